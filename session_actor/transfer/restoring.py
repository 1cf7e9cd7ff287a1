"""Our own export on its way back into a session: frames keep their ids and times."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from session_actor.compaction.overlays import OVERLAYS_KEPT
from session_actor.events import CopiedFrame, HistorySealed
from session_actor.state.history import pushed_again, seal_of
from session_actor.state.names import MAIN, NAME_LIMIT, free_name
from session_actor.state.weight import weight_of

from .errors import SessionChanged, SessionDiverged, UnfitFrame
from .growing import send
from .source import state_in
from .taking import CHUNK_FRAMES, CHUNK_WEIGHT, TakeIn, bare

if TYPE_CHECKING:
    from session_actor.events import Pushed
    from session_actor.handle.handle import Session
    from session_actor.state.state import State


_MAX_GAPS: Final = 10_000_000
"""How many ids an export may leave out, because those frames were pruned: each costs 8 bytes of memory."""


class Restoring:
    """Adds the frames of an export that a session does not have; the names come with the last of them."""

    def __init__(self, session: Session, state: State) -> None:
        """`state`: of the session, before."""
        self.session = session
        self.added = self.skipped = 0
        self._table = state.table
        self._first_free = self._next_id = state.next_id
        self._is_new = _is_untouched(state)
        self._ids: set[int] = set()
        """Of frames that are on their way or were added."""
        self._newest = self._gaps = 0
        self._gone: set[int] = set()
        self._ready: list[CopiedFrame] = []
        self._weight = 0

    async def add(self, copied: CopiedFrame) -> None:
        """Add a frame. Raises `SessionDiverged` when the session has another one in its place."""
        event = copied.frame
        if event.id <= self._newest:
            raise UnfitFrame("a frame whose id is not above that of the frame before it")
        gaps = self._gaps + event.id - self._newest - 1
        if gaps > _MAX_GAPS:
            raise UnfitFrame("a frame whose id is too far above that of the frame before it")
        self._newest, self._gaps = event.id, gaps
        if event.id < self._first_free:
            await self._compare(copied)
            return
        if event.parent in self._gone:
            raise SessionDiverged(self.session.id, event.id, f"frame {event.parent}, on which it stands, was pruned")
        if event.parent is not None and event.parent not in self._ids and not self._table.has(event.parent):
            event = msgspec.structs.replace(event, parent=None, forked_from=None)  # its line cannot be read
        self._ids.add(event.id)
        self._ready.append(CopiedFrame(copied.at_us, event))
        self._weight += weight_of(event)
        self.added += 1
        if len(self._ready) > CHUNK_FRAMES or self._weight > CHUNK_WEIGHT:
            rest = self._ready.pop()
            await self._send(None, None)
            self._ready, self._weight = [rest], weight_of(rest.frame)

    async def _compare(self, copied: CopiedFrame) -> None:
        event = copied.frame
        self.skipped += 1
        await self._table.load((event.id,))
        frame = self._table.slot(event.id)
        if frame is None:
            self._gone.add(event.id)
            return
        there = bare(pushed_again(self._table, frame, place=False))
        if frame.at_us != copied.at_us or not _same(there, event):
            raise SessionDiverged(self.session.id, event.id, "the session has another frame of this id")

    async def finish(self, sealed: HistorySealed | None) -> None:
        """Add what is left, with the names of the export; None: its last line is missing, and the names with it."""
        state = await state_in(self.session)
        names = self._names(state, sealed)
        if names is not None:
            await self._send(names, state.seq)

    async def _send(self, sealed: HistorySealed | None, seq: int | None) -> None:
        frames = tuple(self._ready)
        await send(self.session, TakeIn(self._next_id, frames, sealed, seq))
        if frames:
            self._next_id = frames[-1].frame.id + 1

    def _names(self, state: State, sealed: HistorySealed | None) -> HistorySealed | None:
        """Where the names are from then on; None: nothing is to be done."""
        newest = max(self._next_id - 1, *(copied.frame.id for copied in self._ready), 0)
        if sealed is None:
            sealed = HistorySealed(((MAIN, newest or None),), (), newest or None, MAIN, newest + 1)
        if state.next_id != self._next_id:
            raise SessionChanged(state.session)
        next_id = max(min(sealed.next_id, newest + 1 + _MAX_GAPS - self._gaps), newest + 1)
        sealed = self._without_missing(msgspec.structs.replace(sealed, next_id=next_id))
        if self._is_new:
            return sealed if self.added or sealed != seal_of(state) else None
        merged = _merged(seal_of(state), _made_by(sealed, state.seq + 1), follow=bool(self.added))
        return merged if self.added or merged != seal_of(state) else None

    def _has(self, frame: int | None) -> bool:
        return frame is None or frame in self._ids or self._table.has(frame)

    def _without_missing(self, sealed: HistorySealed) -> HistorySealed:
        """Without names that cannot be, or of frames that are not there."""
        branches = tuple(
            (name, frame if self._has(frame) else None) for name, frame in sealed.branches if _is_name(name)
        )
        known = dict(branches)
        attached = sealed.attached if sealed.attached in known else None
        head = sealed.head if attached is None else known[attached]
        return msgspec.structs.replace(
            sealed,
            branches=branches or ((MAIN, None),),
            checkpoints=tuple(
                (name, frame)
                for name, frame in sealed.checkpoints
                if self._has(frame) and _is_name(name) and name not in known
            ),
            head=head if self._has(head) else None,
            attached=attached,
            overlays=tuple(one for one in sealed.overlays if self._has(one.covered_frame)),
            pins=tuple((frame, pin) for frame, pin in sealed.pins if self._has(frame)),
            marks=tuple(mark for mark in sealed.marks if self._has(mark.at)),
        )


def _is_name(name: str) -> bool:
    return 0 < len(name) <= NAME_LIMIT


def _is_untouched(state: State) -> bool:
    """Whether a session shows nothing: it is new, or an import into it was cut short."""
    return state.head is None and state.branches == {MAIN: None} and not state.checkpoints and state.ended is None


def _same(event: Pushed, other: Pushed) -> bool:
    """Whether two frames are the same but for a parent that was lost on the way."""
    if event.parent is None and other.parent is not None:
        other = msgspec.structs.replace(other, parent=None, forked_from=None)
    return event == other


def _made_by(sealed: HistorySealed, seq: int) -> HistorySealed:
    """With compactions and pins that hold from record `seq` on: requests before it did not know them."""
    return msgspec.structs.replace(
        sealed,
        overlays=tuple(msgspec.structs.replace(one, seq=seq) for one in sealed.overlays),
        pins=tuple((frame, msgspec.structs.replace(pin, seq=seq)) for frame, pin in sealed.pins),
    )


def _merged(ours: HistorySealed, theirs: HistorySealed, *, follow: bool) -> HistorySealed:
    """The names of a session and those of an export of it. `follow`: the export is newer, and says where they are."""
    branches, checkpoints = dict(ours.branches), dict(ours.checkpoints)
    for name, frame in theirs.branches:
        if name in branches:
            branches[name] = frame if follow else branches[name]
        else:
            branches[free_name(name, branches, checkpoints)] = frame
    for name, checkpoint in theirs.checkpoints:
        if name in checkpoints:
            checkpoints[name] = checkpoint if follow else checkpoints[name]
        else:
            checkpoints[free_name(name, branches, checkpoints)] = checkpoint
    merged = msgspec.structs.replace(ours, branches=tuple(branches.items()), checkpoints=tuple(checkpoints.items()))
    return _followed(merged, theirs) if follow else merged


def _followed(ours: HistorySealed, theirs: HistorySealed) -> HistorySealed:
    """With the head, and what is shown, of a newer export."""
    known = {(one.covered_frame, one.summary) for one in ours.overlays}
    new = tuple(one for one in theirs.overlays if (one.covered_frame, one.summary) not in known)
    attached = theirs.attached if theirs.attached in dict(ours.branches) else None
    return msgspec.structs.replace(
        ours,
        head=theirs.head if attached is None else dict(ours.branches)[attached],
        attached=attached,
        next_id=max(ours.next_id, theirs.next_id),
        overlays=(*ours.overlays, *new)[-OVERLAYS_KEPT:],
        generation=max(ours.generation, theirs.generation),
        pins=tuple({**dict(theirs.pins), **dict(ours.pins)}.items()),
    )
