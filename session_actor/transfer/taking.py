"""Adding a part of an import to a session: the message, and the one record that its server makes of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import msgspec

from session_actor.errors import ForkUnfinished, SessionEnded
from session_actor.events import CopiedFrame, HistoryCopied, HistorySealed, Pushed
from session_actor.given.private import as_repr
from session_actor.state.grow import frame_on, is_keyframe, place_on
from session_actor.state.weight import SMALL, weigh, weight_of
from session_actor.supervisors import Call

from .errors import SessionChanged

if TYPE_CHECKING:
    from session_actor.frames import Frame
    from session_actor.state.state import State

CHUNK_FRAMES: Final = 128
"""How many frames one record gets at most: about 3 ms of the session's time."""

CHUNK_WEIGHT: Final = 100_000
"""About how many bytes of them."""


class Look(msgspec.Struct, Call[Any], frozen=True, gc=False):
    """The reply is the session's `State` between two changes: for reading at once, since it goes on changing."""


class TakeIn(msgspec.Struct, Call[int], frozen=True):
    """Add frames with the ids and times that they have; the reply is the number of the record.

    Refused: `SessionChanged` when the session is not as it was when this was made.
    """

    next_id: int
    """What the session's next id must be."""
    frames: tuple[CopiedFrame, ...]
    """Parents before children, ids rising; each parent is among them or in the session."""
    sealed: HistorySealed | None = None
    """Where the names are from then on; None: they stay."""
    seq: int | None = None
    """The record that `sealed` was made after; None: whatever came since does not matter."""

    def __repr__(self) -> str:
        """Numbers only."""
        return f"TakeIn({len(self.frames)} frames, sealed={self.sealed is not None})"

    __rich_repr__ = as_repr


def taken_in(state: State, message: TakeIn) -> tuple[HistoryCopied, int]:
    """The record of a message, and its weight. Changes nothing."""
    if state.ended is not None or state.importing:
        raise SessionEnded(state.session) if state.ended is not None else ForkUnfinished(state.session)
    if state.next_id != message.next_id or message.seq not in {None, state.seq}:
        raise SessionChanged(state.session)
    made: dict[int, Frame] = {}
    placed: list[CopiedFrame] = []
    for copied in message.frames:
        event, parent = copied.frame, None
        if event.parent is not None:
            parent = made.get(event.parent) or state.table.get(event.parent)
            if parent is None:
                raise SessionChanged(state.session)  # it was pruned since
        place = None if parent is None or not is_keyframe(event.id, event.parent) else place_on(parent)
        event = msgspec.structs.replace(event, place=place)
        made[event.id] = frame_on(parent, event, copied.at_us)
        placed.append(CopiedFrame(copied.at_us, event))
    weight = SMALL + sum(weight_of(copied.frame) for copied in placed)
    if message.sealed is not None:
        weight += weigh(message.sealed)
    return HistoryCopied(tuple(placed), message.sealed), weight


def bare(event: Pushed) -> Pushed:
    """A frame's event without what only says how it came into its session."""
    return msgspec.structs.replace(
        event, place=None, branch=None, new_branch=None, attach=True, answers=None, astray=()
    )
