"""Borrowing an idle leaf: it does what it is lent for in its borrower's task, as in an inline call, without a message.

An inline call saves the mailbox and the task switch of a `gen_server:call`; a server that is borrowed is not even sent
anything. (OTP has no such thing: its processes share no memory.) Whatever keeps a call from running inline keeps a
server from being borrowed, and no order, refusal, crash or figure tells the one from the other.
"""

from __future__ import annotations

from threading import get_ident
from time import perf_counter
from typing import TYPE_CHECKING, Any, Final

from .errors import ServerCrashed
from .inline import TIMED, inline_deferred, inline_failed
from .messages import NO_REPLY
from .reply import NOTHING, PendingReply
from .slot import INSIDE, OPEN, SHUT

if TYPE_CHECKING:
    from .slot import Slot

BUSY: Final[PendingReply[Any]] = PendingReply(NOTHING, None, NOTHING, NOTHING, None)
"""Returned by `borrow`: the server cannot be borrowed now, and nothing was done; send a message."""

_WITHIN_S: Final = 5.0
"""How long a reply that is deferred may take [seconds], as that of a call by default."""


class Borrows:
    """The part of a `ServerRef` that borrows."""

    __slots__ = ("__weakref__", "slot")

    slot: Slot

    def borrow(self, content: Any) -> Any:
        """Let the server run `lent(content)` now, if it is a leaf, and an inline call would run now.

        Returns:
            what `lent` returned; or a `PendingReply`: `BUSY`, or one to await, as the reply was deferred or `lent`
            raised (ServerCrashed).

        Raises:
            Refusal: `lent`'s own.
        """
        slot = self.slot
        if slot.door != OPEN or not slot.leaf:
            return BUSY
        floor = slot.floor
        if get_ident() != floor.telling._thread_id:  # noqa: SLF001 - see `Floor.telling`
            return BUSY
        started_s = perf_counter()
        if started_s >= floor.budget.check_at and not floor.budget.admits(started_s):
            return BUSY
        slot.door = INSIDE
        slot.used_s = started_s
        server: Any = slot.server
        try:
            reply = server.lent(content)
        except BaseException as error:  # noqa: BLE001 - sorted out there
            return _failed(slot, error, started_s)
        handled = slot.handled
        if not handled & TIMED:
            slot.handler_time_s += (TIMED + 1) * (perf_counter() - started_s)
        slot.handled = handled + 1
        if slot.door == INSIDE:
            slot.door = OPEN if slot.waker is not None else SHUT
        if slot.current is None and reply is not NO_REPLY:
            return reply
        return _deferred(slot, reply, started_s)


def _failed(slot: Slot, error: BaseException, started_s: float) -> PendingReply[Any]:
    """A refusal is raised; of a crash hears who awaits the reply."""
    try:
        inline_failed(slot, error, started_s)
    except ServerCrashed as crash:
        return _crashed(slot, crash)
    finally:
        del error  # as there


def _deferred(slot: Slot, reply: object, started_s: float) -> object:
    """The reply of a server that was woken meanwhile, or that answers later."""
    try:
        return inline_deferred(slot, reply, _WITHIN_S, started_s)
    except ServerCrashed as crash:
        return _crashed(slot, crash)


def _crashed(slot: Slot, crash: ServerCrashed) -> PendingReply[Any]:
    pending = slot.pending(None, None)
    pending.fail(crash.with_traceback(None))
    return pending
