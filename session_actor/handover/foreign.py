"""Taking over from another generation of the library itself, which was imported anew in this process.

All classes are others then. So the sessions are paused all at once, and their values go through the chain. Only when
all can be taken the other generation ends, but for its store, which stays open. Messages that wait are made anew of the
classes of this generation; their callers get its replies, and errors of their own classes.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Protocol, cast

import anyio
import msgspec

from session_actor import telemetry
from session_actor.errors import translate
from session_actor.persistence import PersistenceError
from session_actor.server.levels import check_promised
from session_actor.server.snapshots import check_snapshot
from session_actor.service.finishing import to_its_end
from session_actor.service.lifetime import Lifetime

from . import values
from .errors import HandoverUnusable, failed
from .foreign_store import Foreign, twin_error, twin_of
from .telling import handing_over

if TYPE_CHECKING:
    from session_actor.persistence import Store
    from session_actor.service.options import SessionOptions
    from session_actor.supervisors import PendingReply

    from .bridge import Waiting

PROTOCOL: Final = 1
"""What two generations must have in common: the names of `Bridge` and `Waiting`."""


class Offered(Protocol):
    """A `Handover` of another generation."""

    store: Any

    def bridge(self) -> Bridging:
        """As `Handover.bridge`."""
        ...


class Bridging(Protocol):
    """A `Bridge` of another generation."""

    async def pause(self) -> list[tuple[str, int, values.Value]]:
        """As `Bridge.pause`."""
        ...

    def resume(self) -> None:
        """As `Bridge.resume`."""
        ...

    async def let_go(self) -> dict[str, list[Waiting]]:
        """As `Bridge.let_go`."""
        ...


class ForeignHandover:
    """A `Handover` of another generation, as one of this."""

    def __init__(self, offered: Offered) -> None:
        """`offered`: what the other service's `handover` returned."""
        self._offered = offered
        self.store: Any = Foreign(offered.store)

    async def taken(self, options: SessionOptions, code_change: values.CodeChange | None) -> Lifetime:
        """As `Handover.taken`."""
        bridge, measured = self._offered.bridge(), dict[str, float]()
        check_promised(self.store, options.durability)
        with handing_over("generation", measured):
            arriving = await _values(bridge, code_change)
            measured["sessions"] = len(arriving)
            lifetime = await _go_on(bridge, self.store, options, arriving)
            _hear(self._offered.store)
        return lifetime


async def _values(bridge: Bridging, own: values.CodeChange | None) -> dict[str, values.Value]:
    """The values of all sessions, which are paused; the other generation goes on when one cannot be taken."""
    try:
        return {name: _checked(name, version, value, own) for name, version, value in await _paused(bridge)}
    except BaseException:
        bridge.resume()
        raise


async def _paused(bridge: Bridging) -> list[tuple[str, int, values.Value]]:
    """As `Bridging.pause`. Raises HandoverFailed for what the other generation raises: a disk that refuses, say."""
    try:
        return await bridge.pause()
    except Exception as error:  # noqa: BLE001 - it may be of the other generation's classes
        twin = cast("Exception", twin_error(error))
        told = failed("the service", translate(twin) if isinstance(twin, PersistenceError) else twin)
        raise told from told.__cause__


async def _go_on(
    bridge: Bridging, store: Store, options: SessionOptions, arriving: dict[str, values.Value]
) -> Lifetime:
    """The life of a service that has all that the other generation had."""
    loop = asyncio.get_running_loop()
    letting_go = loop.create_task(bridge.let_go())
    try:
        await to_its_end(letting_go)
        lifetime = await Lifetime.go_on(store, options, loop)
    except BaseException as error:  # noqa: BLE001 - it is raised again
        await to_its_end(_go_nowhere(letting_go, store, options.close_timeout_s))
        raise twin_error(error) from error.__cause__
    waiting, people = letting_go.result(), lifetime.population
    for name, value in arriving.items():
        cell = people.cell(name)
        cell.arrival = value
        people.wake(cell)
        for one in waiting[name]:
            _put(cell.server_ref(), one)
    return lifetime


async def _go_nowhere(letting_go: asyncio.Task[dict[str, list[Waiting]]], store: Store, timeout_s: float) -> None:
    """The other generation has ended, and this one cannot begin: refuse what waits, and let go of the store."""
    if letting_go.exception() is None:
        for one in [one for messages in letting_go.result().values() for one in messages]:
            one.give_up()
    with suppress(PersistenceError, OSError), anyio.move_on_after(timeout_s):
        await store.close()


def _checked(name: str, version: int, value: values.Value, own: values.CodeChange | None) -> values.Value:
    try:
        changed = values.changed(version, value, own=own)
        values.check_form(changed)
        if changed["state"] is not None:
            check_snapshot(changed["state"].encode())
    except Exception as error:  # noqa: BLE001 - whatever it is, it is told
        told = failed(f"session {name!r}", error)
        raise told from told.__cause__
    return changed


def _put(ref: Any, waiting: Waiting) -> None:
    """Put a message into a new mailbox."""
    try:
        message = anew(waiting.message)
    except (HandoverUnusable, TypeError):
        waiting.give_up()
        return
    caller = waiting.future
    if caller is None:
        waiting.context.run(ref.cast, message)
        return
    pending: PendingReply[Any] = waiting.context.run(ref.slot.enqueue_call, message, None)
    pending.future.add_done_callback(partial(_answer, waiting))
    caller.add_done_callback(lambda _: pending.forget_in_queue())


def _answer(waiting: Waiting, reply: asyncio.Future[Any]) -> None:
    caller = waiting.future
    if caller is None or caller.done() or reply.cancelled():
        return
    error = reply.exception()
    if error is None:
        caller.set_result(reply.result())
    else:
        waiting.fail(error)


def anew(value: object) -> Any:
    """The same value, of the classes of this generation. Raises HandoverUnusable for what has no fields."""
    kind = type(value)
    if kind is list or kind is tuple:
        items = [anew(item) for item in cast("list[object]", value)]
        return items if kind is list else tuple(items)
    if kind is dict:
        return {key: anew(item) for key, item in cast("dict[object, object]", value).items()}
    twin: Any = twin_of(kind)
    if twin is None:
        return value
    if not isinstance(value, msgspec.Struct):
        raise HandoverUnusable(f"a {kind.__qualname__} cannot be made anew")
    return twin(**{name: anew(getattr(value, name)) for name in value.__struct_fields__})


def _hear(store: Any) -> None:
    """Let the store tell its events here, where it told them the other generation."""
    if getattr(store, "on_event", None) is not None and store.on_event.__module__ == telemetry.__name__:
        store.on_event = telemetry.store_event
