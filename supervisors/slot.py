"""A child's place in its supervisor: mailbox, current incarnation and figures; it outlives every incarnation."""

from __future__ import annotations

from collections.abc import Callable
from contextvars import copy_context
from threading import get_ident
from time import perf_counter
from typing import TYPE_CHECKING, Any, Final, Literal

from .checks import check_timeout
from .deadlines import EXACT_BELOW_S
from .deadlock import refuse_own_handler
from .errors import MailboxFull, ServerError, ServerKilled, ServerStopped, UnknownMessage, shown
from .events import emit
from .fairness import WAKES_PER_TURN
from .mailbox import Mailbox
from .reply import ASKED, CASTING, STARTED, PendingReply
from .tied import Tied

if TYPE_CHECKING:
    import asyncio
    from contextvars import Context

    from .child_spec import ChildSpec
    from .clock import TimerHandle
    from .deadlock import Awaited
    from .exits import Ending, ExitReason
    from .floor import Floor
    from .gen_server import GenServer
    from .ref import ServerRef
    from .serving import TraceEvent
    from .supervisor_base import SupervisorBase

Phase = Literal["starting", "running", "suspended", "draining", "stopping", "backoff", "quarantined", "ended"]
NOBODY: Final[frozenset[object]] = frozenset()
"""No one holds a server still: see `Slot.suspended`, which has who does."""
Handler = Callable[[Any, Any], Any]
Refuse = Callable[[], ServerError]

# The door for inline calls. OPEN: idle, nothing waits, nothing forbids. INSIDE: an inline handler is running; when it
# is through, the door is shut if the server's task was woken meanwhile. Only that task, going idle, opens it again.
# PLANNED: idle, and the loop will run what waits without waking that task, which takes a fifth less time.
OPEN: Final = 0
INSIDE: Final = 1
SHUT: Final = 2
PLANNED: Final = 3

NO_HANDLERS: Final[dict[type, Handler]] = {}


class Slot(Tied):
    """See the module. Everything in it is changed on the loop's thread only."""

    __slots__ = (
        "attempt",
        "awaits",
        "backoff_timer",
        "behaviour",
        "crash",
        "crashes",
        "current",
        "deferred",
        "door",
        "ending",
        "exit_waiters",
        "first",
        "floor",
        "handled",
        "handler_time_s",
        "id",
        "interrupt",
        "killing",
        "kind",
        "leaf",
        "lived_from_s",
        "mailbox",
        "opening",
        "opens_in",
        "parent",
        "phase",
        "reason",
        "ref",
        "refuse",
        "restarts",
        "server",
        "spec",
        "start_waiters",
        "suspended",
        "sync_handlers",
        "task",
        "trace",
        "used_s",
        "waker",
    )

    def __init__(
        self, spec: ChildSpec, floor: Floor, parent: SupervisorBase | None, make_ref: Callable[[Slot], ServerRef]
    ) -> None:
        """Make an empty place; `launch` starts its first incarnation."""
        super().__init__()
        self.id = spec.id
        self.spec = spec
        self.floor = floor
        self.parent = parent
        self.mailbox = Mailbox(spec.mailbox, floor.warm)
        self.phase: Phase = "starting"
        self.door = SHUT
        self.kind: Literal["worker", "supervisor"] = "worker"
        self.server: GenServer | None = None
        self.opening: GenServer | None = None
        self.opens_in: Context | None = None
        self.behaviour: SupervisorBase | None = None
        self.sync_handlers = NO_HANDLERS
        self.leaf = False
        self.task: asyncio.Task[None] | None = None
        self.waker: asyncio.Future[None] | None = None
        self.current: PendingReply[Any] | None = None
        self.deferred: set[PendingReply[Any]] | None = None
        self.awaits: Awaited | None = None
        self.crash: BaseException | None = None
        self.ending: Ending | None = None
        self.killing = False
        self.interrupt = False
        self.suspended: frozenset[object] = NOBODY
        self.first = True
        self.refuse: Refuse | None = None
        self.reason: ExitReason | None = None
        self.trace: Callable[[TraceEvent], None] | None = None
        self.start_waiters: list[asyncio.Future[None]] | None = None
        self.exit_waiters: list[asyncio.Future[None]] | None = None
        self.backoff_timer: TimerHandle | None = None
        self.attempt = 0
        self.lived_from_s: float | None = None
        self.handled = 0
        self.used_s = perf_counter()
        self.handler_time_s = 0.0
        self.crashes = 0
        self.restarts = 0
        self.ref = make_ref(self)

    # -- messages in ------------------------------------------------------------------------------------------------

    def admit(self) -> None:
        """Check that a message from here may come in now."""
        self.floor.check(self.id)
        if self.refuse is not None:
            raise self.refuse()

    def enqueue_call(self, message: object, timeout_s: float | None) -> PendingReply[Any]:
        """Put a call into the user lane; see `ServerRef.dispatch`."""
        floor = self.floor
        if self.refuse is not None or floor.thread_id != get_ident() or not floor.is_running():
            self.admit()
        stack = floor.stack
        if stack and self in stack:
            refuse_own_handler(self)
        if timeout_s is not None and not (type(timeout_s) is float and timeout_s >= 0.0):
            check_timeout("timeout_s", timeout_s)
        pending: PendingReply[Any] = PendingReply(self, message, copy_context(), floor.loop.create_future(), timeout_s)
        lane = self.mailbox.user
        if lane is None or len(lane) >= self.mailbox.limit:
            self.put_call(pending)
        else:
            lane.append(pending)
        if timeout_s is not None:
            deadlines = floor.deadlines
            if deadlines.ticking and timeout_s >= EXACT_BELOW_S:
                deadlines.fresh.add(pending)
            else:
                deadlines.add(pending, timeout_s)
        if self.door == OPEN and type(message) in self.sync_handlers:
            self._run_soon()
        elif self.door != PLANNED and (self.waker is not None or self.door != SHUT):
            self.wake()
        return pending

    def _run_soon(self) -> None:
        """Let the loop itself run what an idle server is to do, or its task, on which its handlers may count."""
        budget = self.floor.budget
        if budget.wakes < WAKES_PER_TURN and budget.check_at >= 0:
            budget.wakes += 1
            self.door = PLANNED
            self.floor.loop.call_soon(self.ref.run_planned, context=self.floor.context)
        elif self.leaf:  # the loop has much else to do
            self.door = PLANNED
            budget.plan(self.ref.run_planned)
        else:
            self.wake()

    def put_call(self, pending: PendingReply[Any]) -> None:
        """`Mailbox.put_call`, and tell when the mailbox becomes full by it, or refuses."""
        self.refuse_messages()
        mailbox = self.mailbox
        try:
            mailbox.put_call(pending)
        except MailboxFull:
            self.tell_full()
            raise
        if mailbox.length == mailbox.limit + 1:
            self.tell_full()

    def put_cast(self, message: object) -> None:
        """`Mailbox.put_cast`, and tell when it refuses."""
        self.refuse_messages()
        try:
            self.mailbox.put_cast((message, copy_context()), self.id)
        except MailboxFull:
            self.tell_full()
            raise

    def refuse_messages(self) -> None:
        """Refuse a message to what is no server. While nothing is in a mailbox, as in that of such, all come by here.

        Raises:
            UnknownMessage: it says what is there instead.
        """
        if self.kind == "supervisor" or self.spec.task is not None:
            raise self.no_server_error()

    def tell_full(self) -> None:
        """Tell that the mailbox holds its limit, and more messages come."""
        emit(self.parent, "mailbox_full", self, waiting=self.mailbox.length)

    def enqueue_system(self, message: object) -> None:
        """Put a message of the runtime into the user lane; dropped when the slot takes none any more."""
        if self.refuse is None:
            self.mailbox.put_system((message, copy_context()))
            self.wake()

    def enqueue_control(self, action: Callable[[Slot], Any], timeout_s: float | None) -> PendingReply[Any]:
        """Put an action into the control lane: it runs between two user messages, in the server's task."""
        self.admit()
        check_timeout("timeout_s", timeout_s)
        pending = self.pending(action, timeout_s)
        pending.state = ASKED
        self.mailbox.put_control(pending)
        self.interrupt = True
        if timeout_s is not None:
            self.floor.deadlines.add(pending, timeout_s)
        self.wake()
        return pending

    def pending(self, message: object, timeout_s: float | None) -> PendingReply[Any]:
        """Make a call that waits for this slot."""
        return PendingReply(self, message, copy_context(), self.floor.loop.create_future(), timeout_s)

    def wake(self) -> None:
        """Shut the door for inline calls and let the server's task look again."""
        if self.door != INSIDE:
            self.door = SHUT
        waker = self.waker
        if waker is not None:
            self.waker = None
            budget = self.floor.budget
            if waker.done():
                return
            if budget.wakes < WAKES_PER_TURN and budget.check_at >= 0:
                budget.wakes += 1
                waker.set_result(None)
            else:
                budget.postpone(waker)

    # -- replies out ------------------------------------------------------------------------------------------------

    def defer(self) -> PendingReply[Any] | None:
        """Keep the running call open after its handler; None outside a call."""
        pending = self.current
        if pending is None and (self.door == INSIDE or self in self.floor.stack):
            context, future = self.floor.context, self.floor.loop.create_future()
            new: PendingReply[Any] = PendingReply(self, None, context, future, None, STARTED)
            pending = self.current = new
        if pending is None or pending is CASTING:
            return None
        if self.deferred is None:
            self.deferred = set()
        self.deferred.add(pending)
        return pending

    def is_deferred(self, pending: PendingReply[Any]) -> bool:
        """Say whether somebody holds the right to answer `pending` later."""
        return self.deferred is not None and pending in self.deferred

    def fail_running(self, error: Refuse) -> None:
        """Fail the running call and the deferred replies of this incarnation."""
        open_calls = self.deferred or set()
        if self.current is not None and self.current is not CASTING:
            open_calls.add(self.current)
        self.current = self.deferred = None
        for pending in open_calls:
            if not pending.future.done():
                pending.fail(error())

    def fail_everything(self, error: Refuse) -> None:
        """Fail every call that waits for this slot in whatever way."""
        self.fail_running(error)
        self.mailbox.fail_all(error)

    # -- ends -------------------------------------------------------------------------------------------------------

    def ask_end(self, ending: Ending) -> None:
        """Let the current incarnation end after its running message."""
        if self.ending is None or (ending.final and not self.ending.final):
            self.ending = ending
        if ending.final:
            self.refuse = self.stopped_error
            self.phase = "draining" if ending.drain else "stopping"
        if self.spec.task is not None and self.task is not None:
            self.task.cancel()
        self.interrupt = True
        self.wake()

    def note_crash(self, error: BaseException) -> None:
        """Count the crash of this incarnation, once, at the moment it happens."""
        if self.crash is None:
            self.crash = error
            self.crashes += 1

    def crash_from_outside(self, error: BaseException) -> None:
        """Crash the current incarnation after its running message."""
        if self.task is not None:
            self.note_crash(error)
            self.interrupt = True
            self.wake()

    def kill(self) -> None:
        """Cancel the current incarnation and fail everything that waits, at once."""
        self.killing = self.interrupt = True
        self.door = SHUT
        self.fail_everything(self.killed_error)
        if self.behaviour is not None:
            self.behaviour.kill_children()
        if self.task is not None:
            self.task.cancel()

    def finish(self, reason: ExitReason, refuse: Refuse) -> None:
        """End the slot: from now on everything is refused with `refuse()`."""
        self.phase = "ended"
        self.reason = reason
        self.refuse = refuse
        self.ending = None
        self.stop_backoff()
        self.cancel_owned()
        self.fail_everything(refuse)
        self.resolve_start_waiters(refuse)

    def stop_backoff(self) -> None:
        """Forget a restart that was to come."""
        if self.backoff_timer is not None:
            self.backoff_timer.cancel()
            self.backoff_timer = None

    def start_waiter(self) -> asyncio.Future[None]:
        """Return a future that is done when the next init is through, or fails when the slot ends."""
        waiter: asyncio.Future[None] = self.floor.loop.create_future()
        if self.start_waiters is None:
            self.start_waiters = []
        self.start_waiters.append(waiter)
        return waiter

    def resolve_start_waiters(self, error: Refuse | None) -> None:
        """Answer everybody in `started()`."""
        waiters, self.start_waiters = self.start_waiters, None
        for waiter in waiters or ():
            if waiter.done():
                continue
            if error is None:
                waiter.set_result(None)
            else:
                waiter.set_exception(error())
                waiter.exception()

    def no_server_error(self) -> ServerError:
        """Make the error of a slot in which no server lives."""
        bare = self.spec.task is not None
        what = "a bare task" if bare else "a supervisor"
        instead = "" if bare else ": call the methods of the object that its start= returned"
        why = f"{shown(self.id)} is {what}, which takes no messages and has no state to look into{instead}"
        return UnknownMessage(why)

    def stopped_error(self) -> ServerError:
        """Make the error of a stopped slot."""
        return ServerStopped(f"server {shown(self.id)} was stopped")

    def killed_error(self) -> ServerError:
        """Make the error of a killed incarnation."""
        return ServerKilled(f"server {shown(self.id)} was killed")
