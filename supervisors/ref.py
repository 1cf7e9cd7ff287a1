"""The public face of a server: calls, casts, stop."""

from __future__ import annotations

from asyncio import CancelledError
from contextvars import copy_context
from math import inf
from threading import get_ident
from time import perf_counter
from typing import TYPE_CHECKING, Any, Literal, TypeVar, overload

from .borrowing import Borrows
from .checks import check_timeout
from .deadlock import refuse_own_task, waiting
from .errors import Refusal, shown
from .exits import Ending, ExitReason, asked_reason
from .incarnation import stop_slot
from .inline import TIMED, crashed, inline_deferred, inline_failed
from .messages import NO_REPLY, Call
from .reply import AWAITED, QUEUED, STARTED, PendingReply
from .serving import drain
from .slot import INSIDE, OPEN, PLANNED, SHUT

if TYPE_CHECKING:
    from collections.abc import Hashable

    from .slot import Phase, Slot

Reply = TypeVar("Reply")


class ServerRef(Borrows):
    """Names a child's slot, not an incarnation: it stays good over restarts. Equal only to itself, hashable."""

    __slots__ = ()

    def __init__(self, slot: Slot) -> None:
        """Face `slot`; made by supervisors."""
        self.slot = slot

    def __repr__(self) -> str:
        """Show id and phase."""
        return f"<ServerRef {shown(self.slot.id)} {self.slot.phase}>"

    @property
    def id(self) -> Hashable:
        """The child's id in its supervisor."""
        return self.slot.id

    @property
    def phase(self) -> Phase:
        """What the server is doing: starting, running, suspended, draining, stopping, backoff, quarantined or ended."""
        return self.slot.phase

    @property
    def alive(self) -> bool:
        """Whether messages are accepted: not stopping, quarantined or ended; a restart in between counts as alive."""
        return self.slot.refuse is None

    @property
    def reason(self) -> ExitReason | None:
        """Why the slot ended, None while it has not; of a crash only a summary is kept."""
        return self.slot.reason

    @property
    def used_s(self) -> float:
        """When it last began to run a message [seconds of `time.perf_counter`]; before the first: when it was made."""
        return self.slot.used_s

    @overload
    def dispatch(self, message: Call[Reply], timeout_s: float | None = 5.0) -> Reply | PendingReply[Reply]: ...
    @overload
    def dispatch(self, message: object, timeout_s: float | None = 5.0) -> Any: ...

    def dispatch(self, message: object, timeout_s: float | None = 5.0) -> Any:
        """Send a call, without suspending: run it now when nothing stands before it, else put it into the mailbox.

        It runs now, in a copy of the caller's context, when the server is idle, nothing waits, the handler is sync and
        the loop's fairness budget is not spent. Otherwise the mailbox holds it when this returns; but of a leaf it runs
        now for a while when only the budget is spent, and the reply, or refusal, comes when the loop has turned.

        Args:
            message: an instance of a type that the server handles.
            timeout_s: seconds until the reply must be there, the wait in the queue included; None: no limit.

        Returns:
            the reply, or a `PendingReply` to await.

        Raises:
            Refusal: the handler's own (when it ran now).
            ServerCrashed: the handler raised (when it ran now); the supervisor restarts the server.
            ServerStopped, ServerKilled, ServerQuarantined, ServerDown, InitFailed: the server takes no messages.
            MailboxFull: no room, and the mailbox rejects.
            DeadlockError: called from inside this server's own handler.
            WrongLoop: called from another thread or loop.
            ValueError, TypeError: the timeout is negative, NaN or no number (looked at when there is something to wait
                for: a handler that defers its reply has run then).
        """
        slot = self.slot
        if slot.door != OPEN:
            return slot.enqueue_call(message, timeout_s)
        handler, floor = slot.sync_handlers.get(type(message)), slot.floor
        if handler is None or get_ident() != floor.telling._thread_id:  # noqa: SLF001 - see `Floor.telling`
            return slot.enqueue_call(message, timeout_s)
        started_s = perf_counter()
        if started_s >= floor.budget.check_at and not floor.budget.admits(started_s):
            return _when_spent(slot, message, timeout_s, started_s)
        slot.door = INSIDE
        slot.used_s = started_s
        try:
            if slot.leaf:
                reply = handler(slot.server, message)
                if not slot.handled & TIMED:
                    slot.handler_time_s += (TIMED + 1) * (perf_counter() - started_s)
            else:
                floor.stack.append(slot)
                try:
                    reply = copy_context().run(handler, slot.server, message)
                finally:
                    floor.stack.pop()
                slot.handler_time_s += perf_counter() - started_s
        except BaseException as error:  # noqa: BLE001 - sorted out there
            inline_failed(slot, error, started_s)
        slot.handled += 1
        if slot.door == INSIDE:
            slot.door = OPEN if slot.waker is not None else SHUT
        if slot.current is None and reply is not NO_REPLY:
            return reply
        return inline_deferred(slot, reply, timeout_s, started_s)

    @overload
    async def call(self, message: Call[Reply], timeout_s: float | None = 5.0) -> Reply: ...
    @overload
    async def call(self, message: object, timeout_s: float | None = 5.0) -> Any: ...

    async def call(self, message: object, timeout_s: float | None = 5.0) -> Any:
        """Send a call and wait for its reply: `dispatch`, then `PendingReply.wait`.

        Args and errors as there; CallTimeout when the reply is late. Cancelled before the message has started, it is
        never run; one that has started completes.
        """
        slot = self.slot
        reply: Any = self.dispatch(message, timeout_s) if slot.door == OPEN else slot.enqueue_call(message, timeout_s)
        if type(reply) is not PendingReply:
            return reply
        pending: PendingReply[Any] = reply  # pyright: ignore[reportUnknownVariableType]
        if slot.floor.active:
            return await pending.wait()
        if pending.state == QUEUED:
            pending.state = AWAITED
        try:  # as `wait` does, without one more coroutine
            return await pending.future
        except CancelledError:
            pending.forget_in_queue()
            raise
        finally:
            del pending, reply  # what is raised would hold itself by them

    def cast(self, message: object) -> None:
        """Send a message without an answer; it is in the mailbox when this returns. A refusal is dropped and counted.

        Raises:
            MailboxFull: no room, with overflow `block` or `reject`.
            ServerStopped, ServerKilled, ServerQuarantined, ServerDown, InitFailed: the server takes no messages.
            WrongLoop: called from another thread or loop.
        """
        slot = self.slot
        if slot.refuse is not None or get_ident() != slot.floor.telling._thread_id:  # noqa: SLF001 - the same
            slot.admit()
        lane = slot.mailbox.user
        if lane is None or len(lane) >= slot.mailbox.limit:
            slot.put_cast(message)
        else:
            lane.append((message, copy_context()))
        if slot.waker is not None or slot.door != SHUT:
            slot.wake()

    def run_planned(self) -> None:
        """Run what waits in an idle server: what its task would do when woken. Called by the loop (see `PLANNED`)."""
        slot = self.slot
        user = slot.mailbox.user
        if slot.door != PLANNED:
            return  # the task was woken meanwhile, or has ended
        if user:
            try:
                left = drain(slot, user)
            except BaseException as error:  # noqa: BLE001 - sorted out there
                crashed(slot, error)
                return
            if left is not None:
                user.appendleft(left)
            if user and left is None and slot.door == PLANNED and not slot.interrupt:  # the turn's budget is spent
                slot.floor.budget.plan(self.run_planned)
                return
        if slot.door == PLANNED:
            if user or slot.interrupt:
                slot.wake()
            else:
                slot.door = OPEN

    async def stop(
        self, reason: Literal["stopped", "normal"] = "stopped", timeout_s: float | None = 5.0, *, drain: bool = False
    ) -> None:
        """End the server for good, whatever its restart kind: after the running message, before any queued one.

        Args:
            reason: "stopped" or "normal": what monitors and `terminate` see.
            timeout_s: seconds until it is killed; None waits for ever. What survives even that is reported as leaked.
            drain: first run what is queued; new messages are refused at once.

        Returns when it has ended. Cancelling gives up the wait only. An ended server: returns at once.

        Raises:
            DeadlockError: called from inside its own handler; use `stop_self`.
            WrongLoop: called from another thread or loop.
            ValueError: another reason, or a timeout that is negative or NaN.
        """
        ending = Ending(asked_reason(reason), final=True, drain=drain)
        check_timeout("timeout_s", timeout_s)
        self.slot.floor.check(self.slot.id)
        refuse_own_task(self.slot)
        await stop_slot(self.slot, ending, timeout_s)

    def kill(self) -> None:
        """Cancel the current incarnation and fail all its calls at once; the supervisor treats it as an abnormal end.

        Raises:
            WrongLoop: called from another thread or loop.
        """
        self.slot.floor.check(self.slot.id)
        if self.slot.task is not None:
            self.slot.kill()

    async def started(self, timeout_s: float | None = None) -> None:
        """Wait until `init` is through: of the first start, or of the restart that is coming.

        Args:
            timeout_s: seconds until it must be; None: no limit.

        Raises:
            CallTimeout: it is not in time; the start goes on.
            InitFailed: the first init raised; `__cause__` is what it raised.
            ServerStopped, ServerKilled, ServerQuarantined, ServerDown: it ended instead.
            ValueError: the timeout is negative or NaN.
        """
        slot = self.slot
        slot.admit()
        check_timeout("timeout_s", timeout_s)
        if slot.phase in ("starting", "backoff"):
            waiter = slot.start_waiter()
            if timeout_s is not None:
                start: PendingReply[None] = PendingReply(slot, None, slot.floor.context, waiter, timeout_s, STARTED)
                slot.floor.deadlines.add(start, timeout_s)
            if slot.floor.active:
                with waiting(slot):
                    await waiter
            else:
                await waiter


def _when_spent(slot: Slot, message: object, timeout_s: float | None, now_s: float) -> object:
    """Queue a call; one of a leaf is rather run, which takes no longer, and answered when the loop has turned."""
    budget = slot.floor.budget
    if not slot.leaf or now_s >= budget.bears_until:
        return slot.enqueue_call(message, timeout_s)
    reply: Any = None
    refused: Refusal | None = None
    budget.check_at = inf
    try:
        reply = slot.ref.dispatch(message, timeout_s)
    except Refusal as refusal:
        refused = refusal.with_traceback(None)
    finally:
        budget.check_at = -inf
    if type(reply) is PendingReply:
        return reply  # pyright: ignore[reportUnknownVariableType]
    pending = slot.pending(None, timeout_s)
    pending.state = STARTED
    budget.answer_later(pending, reply, refused)
    return pending
