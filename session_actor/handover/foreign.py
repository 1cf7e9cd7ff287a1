"""Taking over from another generation of the library itself, which was imported anew in this process.

All classes are others then. So the sessions are paused all at once, and their values go through the chain. Only when
all can be taken the other generation ends, but for its store, which stays open. Messages that wait are made anew of the
classes of this generation; their callers get its replies, and errors of their own classes.
"""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Protocol, cast

import msgspec

from session_actor import telemetry
from session_actor.lifetime import Lifetime
from session_actor.snapshots import check_snapshot

from . import values
from .errors import HandoverFailed, HandoverUnusable
from .foreign_store import Foreign, twin_of

if TYPE_CHECKING:
    from session_actor.options import SessionOptions
    from session_actor.persistence import Store
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
        lifetime = await _take(self._offered.bridge(), self.store, options, code_change)
        _hear(self._offered.store)
        return lifetime


async def _take(bridge: Bridging, store: Store, options: SessionOptions, own: values.CodeChange | None) -> Lifetime:
    """The life of a service that goes on with all that the other generation had."""
    arriving: dict[str, values.Value] = {}
    try:
        for name, version, value in await bridge.pause():
            arriving[name] = _checked(name, version, value, own)
    except BaseException:
        bridge.resume()
        raise
    waiting = await bridge.let_go()
    lifetime = await Lifetime.go_on(store, options, asyncio.get_running_loop())
    people = lifetime.population
    for name, value in arriving.items():
        cell = people.cell(name)
        cell.arrival = value
        people.wake(cell)
        for one in waiting[name]:
            _put(cell.server_ref(), one)
    return lifetime


def _checked(name: str, version: int, value: values.Value, own: values.CodeChange | None) -> values.Value:
    try:
        changed = values.changed(version, value, own=own)
        if changed["state"] is not None:
            check_snapshot(changed["state"].encode())
    except Exception as error:
        why = f"{type(error).__name__}: {error}"
        raise HandoverFailed(f"session {name!r}", why) from error
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
    if kind in (list, tuple):
        return kind(anew(item) for item in cast("list[object]", value))
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
