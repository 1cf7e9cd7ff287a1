"""A call that waits for its reply, and the deferred reply that a handler keeps."""

from __future__ import annotations

import asyncio
from threading import get_ident
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar, final

from msgspec import Struct

from .deadlock import waiting
from .errors import AlreadyReplied, CallTimeout, DeadlockError, shown

if TYPE_CHECKING:
    from contextvars import Context  # noqa: TC004 - the fields are never decoded

    from .slot import Slot  # noqa: TC004

Reply = TypeVar("Reply")

QUEUED: Final = 0
STARTED: Final = 1
FORGOTTEN: Final = 2
ASKED: Final = 3
"""Waits in the control lane."""
AWAITED: Final = 4
"""As QUEUED, but no more to be run from the moment on in which the wait is cancelled."""
_WAITING: Final = (QUEUED, AWAITED, ASKED)
_STATES: Final = ("queued", "started", "forgotten", "queued", "queued")


@final
class PendingReply(Struct, Generic[Reply], eq=False, weakref=True):
    """A message in a mailbox together with its caller, made by `dispatch`; await `wait()` or `wait_keeping()`.

    (A msgspec Struct because one is made for every queued call: a fifth of the time of a plain class.)
    """

    slot: Slot
    message: object
    context: Context
    future: asyncio.Future[Any]
    timeout_s: float | None
    state: int = QUEUED

    @property
    def waiting(self) -> bool:
        """Whether the message still has to be run."""
        return self.state in _WAITING

    def __repr__(self) -> str:
        """The server's id and the message's type, never its content."""
        if self.slot is NOTHING:
            return "<PendingReply of nobody>"
        state = "done" if self.future.done() else _STATES[self.state]
        return f"<PendingReply {shown(self.slot.id)} {type(self.message).__qualname__} {state}>"

    def __rich_repr__(self) -> Any:
        """None, so that rich takes `repr`, too: it would show all fields."""
        return None

    def done(self) -> bool:
        """Say whether the call has been answered, refused or given up."""
        return self.future.done()

    async def wait(self) -> Reply:
        """Wait for the reply; giving up by cancellation means that a message not yet started is never run.

        Returns:
            the handler's reply.

        Raises:
            Refusal: the handler's own.
            CallTimeout: no reply within the timeout given to `dispatch`; not run if it had not started.
            ServerCrashed, ServerStopped, ServerKilled, ServerQuarantined, ServerDown, InitFailed, UnknownMessage.
            DeadlockError: called in a server whose reply the other one needs; the message is not run.
        """
        future = self.future
        if self.state == QUEUED:
            self.state = AWAITED
        try:
            if self.slot.floor.active and not future.done():
                with waiting(self.slot, self):
                    return await future  # type: ignore[no-any-return]
            return await future  # type: ignore[no-any-return]
        except (asyncio.CancelledError, DeadlockError):
            self.forget_in_queue()
            raise

    async def wait_keeping(self) -> Reply:
        """Wait for the reply; cancellation gives up the wait only, the message still runs. Else as `wait`."""
        try:
            if self.slot.floor.active:
                with waiting(self.slot, self):
                    return await self.future  # type: ignore[no-any-return]
            return await self.future  # type: ignore[no-any-return]
        except DeadlockError:
            self.forget_in_queue()
            raise

    def forget(self) -> bool:
        """Make sure that the message is not run from now on; False when it has started or was forgotten before."""
        if self.state not in _WAITING:
            return False
        self.state = FORGOTTEN
        self.message = None
        return True

    def forget_in_queue(self) -> None:
        """Forget a message that stays in its lane until the lane is cleaned."""
        asked = self.state == ASKED
        if self.forget() and not asked:
            self.slot.mailbox.note_abandoned()

    def succeed(self, reply: object) -> None:
        """Give the caller its reply, or count it when nobody waits any more."""
        if self.future.done():
            self.slot.mailbox.dropped += 1
        else:
            self.future.set_result(reply)

    def fail(self, error: BaseException) -> None:
        """Raise `error` at the caller, or count it when nobody waits any more."""
        if self.future.done():
            self.slot.mailbox.dropped += 1
        else:
            if isinstance(error, StopIteration):  # in a coroutine it would be a return
                error = RuntimeError(f"raised {type(error).__qualname__}")
            self.future.set_exception(error)
            self.future.exception()  # seen: a caller that never awaits must not make asyncio log it

    def expire(self) -> None:
        """Time the call out unless it is answered."""
        if self.future.done():
            return
        started = self.state == STARTED
        self.forget_in_queue()
        what = (
            "its outcome is unknown; send again what may be done twice" if started else "it was not run; send it again"
        )
        error = CallTimeout(
            f"no reply from server {shown(self.slot.id)} within {self.timeout_s} s: {what}, or raise timeout_s"
        )
        error.started, error.timeout_s = started, self.timeout_s
        self.fail(error)


NOTHING: Final[Any] = None
CASTING: Final[PendingReply[Any]] = PendingReply(NOTHING, None, NOTHING, NOTHING, None)
"""Stands for "no caller" while a cast is running."""


class Deferred(Struct, Generic[Reply], eq=False):
    """The right to answer a call later, taken by `GenServer.defer()`; dies with the incarnation."""

    _pending: PendingReply[Any]
    _used: bool = False

    @property
    def waiting(self) -> bool:
        """Whether the caller still waits."""
        return not self._pending.done()

    def reply(self, value: Reply) -> None:
        """Answer the call; dropped and counted when nobody waits.

        Raises:
            AlreadyReplied: it was answered before.
            WrongLoop: called from another thread or loop.
        """
        self._use().succeed(value)

    def fail(self, error: BaseException) -> None:
        """Raise `error` at the caller; dropped and counted when nobody waits.

        Raises:
            AlreadyReplied: it was answered before.
            TypeError: `error` is no exception, or a StopIteration, which cannot be raised in a coroutine.
            WrongLoop: called from another thread or loop.
            None of them uses the right up.
        """
        if not isinstance(error, BaseException) or isinstance(error, StopIteration):  # pyright: ignore[reportUnnecessaryIsInstance]
            message = f"a caller can be given an exception other than StopIteration, not {type(error).__qualname__}"
            raise TypeError(message)
        self._use().fail(error)

    def _use(self) -> PendingReply[Any]:
        if self._used:
            message = f"this call of server {shown(self._pending.slot.id)} was answered before; reply once"
            raise AlreadyReplied(message)
        pending = self._pending
        floor = pending.slot.floor
        if get_ident() != floor.telling._thread_id:  # noqa: SLF001 - see `Floor.telling`
            floor.check(pending.slot.id)
        self._used = True
        deferred = pending.slot.deferred
        if deferred:
            deferred.discard(pending)
        return pending
