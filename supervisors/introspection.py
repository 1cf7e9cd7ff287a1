"""Looking into a running server and holding it still (OTP: sys)."""

from __future__ import annotations

import inspect
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from .checks import awaited
from .errors import CrashSummary, Refusal, SupervisorError, UnknownMessage, shown
from .slot import NOBODY

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from .gen_server import GenServer
    from .ref import ServerRef
    from .serving import TraceEvent
    from .slot import Slot


class SystemCallFailed(SupervisorError, Refusal):
    """The server's own code raised while it was looked into, or there is no server; what is there lives, unchanged."""


class Statistics(NamedTuple):
    """Figures of one slot, over all its incarnations."""

    mailbox_length: int
    """User messages that wait now."""
    handled: int
    """User messages run, refused ones too."""
    crashes: int
    restarts: int
    dropped: int
    """Casts and late replies that nobody got, refused casts, messages that gave way."""
    handler_time_s: float
    """Seconds spent in handlers; an async handler's waits count. Of a leaf's inline calls one in eight is timed."""


def statistics(ref: ServerRef) -> Statistics:
    """Return the figures of `ref` now; works in every phase."""
    slot = ref.slot
    mailbox = slot.mailbox
    return Statistics(mailbox.length, slot.handled, slot.crashes, slot.restarts, mailbox.dropped, slot.handler_time_s)


def trace(ref: ServerRef, function: Callable[[TraceEvent], None] | None) -> None:
    """Call `function` with a `TraceEvent` for each step of a message; None ends it; one that raises is detached."""
    slot = ref.slot
    slot.floor.check(slot.id)
    slot.trace = function
    slot.interrupt = True
    slot.wake()


async def get_state(ref: ServerRef, timeout_s: float | None = 5.0) -> Any:
    """Return what the server's `get_state` returns, taken between two messages; works while suspended.

    Cancelled before its turn, it does nothing.

    Args:
        ref: the server.
        timeout_s: seconds until it must have answered; None: no limit.

    Raises:
        SystemCallFailed: its `get_state` raised, or it is no server. And what `ServerRef.call` raises.
    """
    return await ask(ref, lambda slot: _server(slot).get_state(), timeout_s)


async def replace_state(ref: ServerRef, function: Callable[[Any], Any], timeout_s: float | None = 5.0) -> Any:
    """Set the state to `function(state)`, between two messages, and return the new one (OTP: sys:replace_state).

    Cancelled before its turn, it does nothing; in the very moment of it, the state is set.

    Args:
        ref: the server.
        function: makes the new state of the old one; sync, and quick.
        timeout_s: seconds until it must be done; None: no limit.

    Raises:
        SystemCallFailed: a step raised, or it is no server; nothing was set. And what `ServerRef.call` raises.
    """

    def replace(slot: Slot) -> Any:
        server = _server(slot)
        state = function(server.get_state())
        server.set_state(state)
        return state

    return await ask(ref, replace, timeout_s)


async def suspend(ref: ServerRef, timeout_s: float | None = 5.0) -> None:
    """Run no further user message until `resume`; messages wait, their timeouts run. Again: nothing changes.

    Returns when the running message is through (OTP: sys:suspend). Cancelled, it does not suspend: who is on the way
    out resumes nothing. A server that somebody else suspended, too, stays so.

    Args:
        ref: the server.
        timeout_s: seconds until it must have answered; None: no limit.

    Raises:
        SystemCallFailed: it is no server (but a supervisor or a bare task).
        CallTimeout and the other errors of `ServerRef.call`; after a timeout the server is not suspended.
    """
    holder = object()
    try:
        await ask(ref, partial(hold, holder=holder), timeout_s)
    except BaseException:  # cancelled when it had taken hold already: nobody else could let go
        let_go(ref.slot, holder)
        raise


async def resume(ref: ServerRef, timeout_s: float | None = 5.0) -> None:
    """Go on after `suspend`, whoever suspended it (OTP: sys:resume).

    Cancelled before its turn, it does nothing; in the very moment of it, the server has gone on.

    Args:
        ref: the server.
        timeout_s: seconds until it must have answered; None: no limit.

    Raises:
        CallTimeout and the other errors of `ServerRef.call`.
    """
    await ask(ref, go_on, timeout_s)


def hold(slot: Slot, holder: object) -> None:
    """Let no user message run until `let_go` of the same holder, or `go_on`; called between two messages."""
    slot.suspended |= {holder}
    if slot.phase == "running":
        slot.phase = "suspended"


def let_go(slot: Slot, holder: object) -> None:
    """Run messages again, unless somebody else holds it still; no effect when `holder` does not."""
    if holder not in slot.suspended:  # also when it was refused, because it came from another thread
        return
    slot.suspended -= {holder}
    if not slot.suspended:
        go_on(slot)


def go_on(slot: Slot) -> None:
    """Run messages again, whoever held it still."""
    slot.suspended = NOBODY
    if slot.phase == "suspended":
        slot.phase = "running"
    slot.interrupt = True
    slot.wake()


async def change_code(ref: ServerRef, factory: Callable[[], GenServer], timeout_s: float | None = 5.0) -> None:
    """Replace the running server by `factory()`, its state carried over by the new one's `code_change`.

    Between two messages: `new.set_state(await new.code_change(old.version, old.get_state()))`. Restarts still use the
    spec's own `start`. Cancelled, or timed out, before the state is carried over, it does nothing: the old server goes
    on. Afterwards it is done.

    Args:
        ref: the server.
        factory: makes the new server; its `init` is not run.
        timeout_s: seconds until it must be done; None: no limit.

    Raises:
        SystemCallFailed: a step raised, or it is no server; the old server goes on. And what `ServerRef.call` raises.
    """
    given_up: list[bool] = []

    async def change(slot: Slot) -> None:
        old = _server(slot)
        new = factory()
        new.attach(slot)
        state = await awaited(new, "code_change", new.code_change(old.version, old.get_state()))
        if not given_up:
            new.set_state(state)
            put(slot, new)

    try:
        await ask(ref, change, timeout_s)
    except BaseException:
        given_up.append(True)
        raise


def _server(slot: Slot) -> GenServer:
    if slot.server is None:
        raise SystemCallFailed(str(slot.no_server_error()))
    return slot.server


def put(slot: Slot, new: GenServer) -> None:
    """Let another server answer from here on; called between two messages."""
    slot.server = new
    slot.sync_handlers = new.sync_handlers()
    slot.leaf = new.leaf


async def ask(ref: ServerRef, action: Callable[[Slot], Any], timeout_s: float | None) -> Any:
    """Run `action` in the server's task, between two messages; what the server's own code raises: SystemCallFailed."""

    async def run(slot: Slot) -> Any:
        try:
            result = action(slot)
            return await result if inspect.isawaitable(result) else result
        except Refusal:
            raise
        except Exception as error:  # noqa: BLE001 - the server's own code; its fault goes to who asked
            message = f"server {shown(slot.id)}: {CrashSummary.of(error)}"
            raise SystemCallFailed(message) from None

    try:
        ref.slot.refuse_messages()
        pending: Awaitable[Any] = ref.slot.enqueue_control(run, timeout_s).wait()
        return await pending
    except UnknownMessage as error:
        raise SystemCallFailed(str(error)) from None
