"""The mailbox of a child's slot: two lanes, made only when something waits in them."""

from __future__ import annotations

from collections import deque
from contextvars import Context
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal

from .errors import MailboxFull, ServerError, shown

if TYPE_CHECKING:
    from collections.abc import Callable

    from .reply import PendingReply

CastItem = tuple[object, Context]
COMPACT_ABOVE: Final = 64
WARM_MAILBOXES: Final = 128


@dataclass(frozen=True, slots=True)
class MailboxSpec:
    """How many user messages may wait, and what happens to the next one.

    `block`: calls wait in line for room, their message with them; a cast cannot wait and raises `MailboxFull`.
    `reject`: both raise `MailboxFull`. `drop_oldest`: the oldest message goes; a call among them gets `MailboxFull`.
    """

    limit: int = 10_000
    overflow: Literal["block", "reject", "drop_oldest"] = "block"

    def __post_init__(self) -> None:
        """Refuse a limit below 1 and an unknown overflow with ValueError."""
        if self.limit < 1 or self.overflow not in ("block", "reject", "drop_oldest"):
            message = f"a mailbox needs limit >= 1 and overflow block, reject or drop_oldest, not {self}"
            raise ValueError(message)


DEFAULT_MAILBOX: Final = MailboxSpec()


class Mailbox:
    """Control messages before user messages, each lane first in, first out.

    The line of senders that wait for room is the tail of the user lane beyond the limit: order and room are the same
    as with a second queue, and a blocked message is held the moment it is sent.
    """

    __slots__ = ("_warm", "abandoned", "control", "dropped", "limit", "spec", "user")

    def __init__(self, spec: MailboxSpec, warm: deque[Mailbox]) -> None:
        """Start empty; `warm` are the mailboxes that have a user lane, the oldest first.

        An empty lane takes 600 bytes and its time, so the servers used last keep theirs and the others give it back.
        """
        self.spec = spec
        self.limit = spec.limit
        self._warm = warm
        self.user: deque[CastItem | PendingReply[Any]] | None = None
        self.control: deque[PendingReply[Any]] | None = None
        self.abandoned = 0
        self.dropped = 0

    @property
    def length(self) -> int:
        """Messages that wait, those in line for room included."""
        return 0 if self.user is None else len(self.user) - self.abandoned

    def put_call(self, pending: PendingReply[Any]) -> None:
        """Take a call.

        Raises:
            MailboxFull: no room and `reject`.
        """
        lane = self.user or self.open_lane()
        if len(lane) >= self.limit and self.spec.overflow != "block":
            self._make_room(lane, pending.slot.id)
        lane.append(pending)

    def put_cast(self, item: CastItem, slot_id: object) -> None:
        """Take a cast.

        Raises:
            MailboxFull: no room and `reject` or `block`.
        """
        lane = self.user or self.open_lane()
        if len(lane) >= self.limit:
            self._make_room(lane, slot_id)
        lane.append(item)

    def put_system(self, item: CastItem) -> None:
        """Take a message of the runtime (Down, Exit, a timer's), which needs no room."""
        (self.user or self.open_lane()).append(item)

    def put_control(self, pending: PendingReply[Any]) -> None:
        """Take a control message, which needs no room."""
        if self.control is None:
            self.control = deque()
        self.control.append(pending)

    def open_lane(self) -> deque[CastItem | PendingReply[Any]]:
        """Return the user lane, made when it is missing."""
        lane = self.user
        if lane is None:
            lane = self.user = deque()
            self._warm.append(self)
            if len(self._warm) > WARM_MAILBOXES:
                self._warm.popleft().rest()
        return lane

    def _make_room(self, lane: deque[CastItem | PendingReply[Any]], slot_id: object) -> None:
        if len(lane) - self.abandoned < self.limit:
            return
        if self.spec.overflow != "drop_oldest":
            raise _full(slot_id, self.limit)
        while lane:
            oldest = lane.popleft()
            if isinstance(oldest, tuple):
                break
            if oldest.forget():
                oldest.fail(_full(slot_id, self.limit))
                break
            self.abandoned -= 1
        self.dropped += 1

    def rest(self) -> None:
        """Give an empty user lane back; one in use stays and counts as the newest."""
        if self.user:
            self._warm.append(self)
        else:
            self.user = None

    def note_abandoned(self) -> None:
        """Count a call whose caller gave up; clean the lane when half of it is such calls."""
        if self.user is None:
            return
        self.abandoned += 1
        if self.abandoned > COMPACT_ABOVE and 2 * self.abandoned > len(self.user):
            live = [item for item in self.user if isinstance(item, tuple) or item.waiting]
            self.user.clear()
            self.user.extend(live)
            self.abandoned = 0

    def fail_all(self, error: Callable[[], ServerError]) -> None:
        """Answer every waiting call with a new `error()`, drop and count every cast."""
        for lane in (self.control, self.user):
            while lane:
                item = lane.popleft()
                if isinstance(item, tuple):
                    self.dropped += 1
                elif item.forget():
                    item.fail(error())
        self.control = None
        self.abandoned = 0


def _full(slot_id: object, limit: int) -> MailboxFull:
    return MailboxFull(
        f"the mailbox of server {shown(slot_id)} holds its limit of {limit} messages; slow down or raise the limit"
    )
