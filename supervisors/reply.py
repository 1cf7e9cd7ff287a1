"""A call that waits for its reply, and the deferred reply that a handler keeps."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar, cast

from .deadlock import waiting
from .errors import AlreadyReplied, CallTimeout

if TYPE_CHECKING:
    from contextvars import Context

    from .slot import Slot

Reply = TypeVar("Reply")

QUEUED: Final = 0
STARTED: Final = 1
FORGOTTEN: Final = 2


class PendingReply(Generic[Reply]):
    """A message in a mailbox together with its caller. Made by `ServerRef.dispatch`; await `wait()` or `wait_keeping()`."""

    __slots__ = ("context", "future", "message", "slot", "state", "timeout_s")

    def __init__(
        self, slot: Slot, message: object, context: Context, future: asyncio.Future[Any], timeout_s: float | None
    ) -> None:
        """Hold the message for `slot`; the library's own constructor."""
        self.slot = slot
        self.message = message
        self.context = context
        self.future = future
        self.timeout_s = timeout_s
        self.state = QUEUED

    @property
    def waiting(self) -> bool:
        """Whether the message still has to be run."""
        return self.state == QUEUED

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
        try:
            return await self._wait()
        except asyncio.CancelledError:
            self.forget_in_queue()
            raise

    async def wait_keeping(self) -> Reply:
        """Wait for the reply; cancellation gives up the wait only, the message still runs. Else as `wait`."""
        return await self._wait()

    async def _wait(self) -> Reply:
        future = self.future
        if future.done() or not self.slot.floor.active:
            return cast("Reply", await future)
        try:
            with waiting(self.slot):
                return cast("Reply", await future)
        finally:
            if not future.done():
                self.forget_in_queue()

    def forget(self) -> bool:
        """Make sure that the message is not run from now on; False when it has started or was forgotten before."""
        if self.state != QUEUED:
            return False
        self.state = FORGOTTEN
        self.message = None
        return True

    def forget_in_queue(self) -> None:
        """Forget a message that stays in its lane for now."""
        if self.forget():
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
            self.future.set_exception(error)
            self.future.exception()  # seen: a caller that never awaits must not make asyncio log it

    def expire(self) -> None:
        """Time the call out unless it is answered."""
        if self.future.done():
            return
        started = self.state == STARTED
        self.forget_in_queue()
        what = "it is running, its outcome is unknown" if started else "it was not run"
        self.fail(
            CallTimeout(
                f"no reply from server {self.slot.id!r} within {self.timeout_s} s: {what}; retry or raise timeout_s"
            )
        )


CASTING: Final[PendingReply[Any]] = PendingReply.__new__(PendingReply)
"""Stands for "no caller" while a cast is running."""


class Deferred(Generic[Reply]):
    """The right to answer a call later, taken by `GenServer.defer()`; dies with the incarnation."""

    __slots__ = ("_pending", "_used")

    def __init__(self, pending: PendingReply[Any]) -> None:
        """Answer `pending`; the library's own constructor."""
        self._pending = pending
        self._used = False

    @property
    def waiting(self) -> bool:
        """Whether the caller still waits."""
        return not self._pending.done()

    def reply(self, value: Reply) -> None:
        """Answer the call; dropped and counted when nobody waits.

        Raises:
            AlreadyReplied: it was answered before.
        """
        self._use().succeed(value)

    def fail(self, error: BaseException) -> None:
        """Raise `error` at the caller; dropped and counted when nobody waits.

        Raises:
            AlreadyReplied: it was answered before.
        """
        self._use().fail(error)

    def _use(self) -> PendingReply[Any]:
        if self._used:
            message = f"this call of server {self._pending.slot.id!r} was answered before; reply once"
            raise AlreadyReplied(message)
        self._used = True
        self._pending.slot.deferred_done(self._pending)
        return self._pending
