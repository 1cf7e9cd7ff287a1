"""What follows when a server's code ran in the task of its caller: what the server's task does after a queued call."""

from __future__ import annotations

from time import perf_counter
from typing import TYPE_CHECKING, Final, NoReturn

from .checks import check_timeout
from .errors import Refusal
from .exits import Ending, ExitReason
from .incarnation import crashed_error, ended_error
from .messages import NO_REPLY
from .serving import answer
from .slot import INSIDE, OPEN, SHUT

if TYPE_CHECKING:
    from .slot import Slot

TIMED: Final = 7
"""One inline call of a leaf in eight is timed, and counts for all: when these bits of the count are 0."""


def inline_failed(slot: Slot, error: BaseException, started_s: float) -> NoReturn:
    """Do after a raising inline handler what the server's task does after a queued one."""
    slot.handler_time_s += perf_counter() - started_s
    if isinstance(error, Refusal):
        slot.current = None
        slot.handled += 1
        if slot.door == INSIDE:
            slot.door = OPEN if slot.waker is not None else SHUT
        try:
            raise error.with_traceback(None) from error.__cause__
        finally:
            del error  # else it would be in its own traceback, with all that the call was given
    crashed(slot, error)
    raise crashed_error(slot, error)


def crashed(slot: Slot, error: BaseException) -> None:
    """Let the server's task end for a handler that raised elsewhere."""
    slot.door = SHUT
    slot.note_crash(error)
    slot.interrupt = True
    slot.wake()
    if isinstance(error, (KeyboardInterrupt, SystemExit)):
        reason = ExitReason("crashed", error)
        slot.ending = Ending(reason, final=True)
        slot.fail_everything(lambda: ended_error(slot, reason))
        raise error


def inline_deferred(slot: Slot, reply: object, timeout_s: float | None, started_s: float) -> object:
    """Give the caller of a handler that took a `Deferred` something to wait for."""
    pending, slot.current = slot.current, None
    if pending is None:
        pending = slot.pending(None, timeout_s)
    if reply is not NO_REPLY or not slot.deferred or pending not in slot.deferred:
        try:
            answer(slot, pending, reply)
        except TypeError as error:
            inline_failed(slot, error, started_s)
        if reply is not NO_REPLY:
            return reply
    pending.timeout_s = timeout_s
    if timeout_s is not None:
        try:
            check_timeout("timeout_s", timeout_s)
        except (TypeError, ValueError):
            pending.future.cancel()  # the caller will not wait
            raise
        slot.floor.deadlines.add(pending, timeout_s)
    return pending
