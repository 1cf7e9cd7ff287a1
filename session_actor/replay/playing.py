"""The states of a session: each is what `apply` makes of the records before it, from the nearest that was kept.

While the records are first gone through, the state is written down every so often, as in a snapshot, so that going to
any record plays a few hundred at most. Frames stay on the disk until somebody asks for them. So memory holds some
numbers a record and the states that were written down, whose total is bounded: when it is reached, every other goes.
"""

from __future__ import annotations

import asyncio
from bisect import bisect_left, bisect_right
from contextlib import suppress
from copy import deepcopy
from typing import TYPE_CHECKING, Final, NamedTuple

from session_actor.errors import (
    FrameUnknown,
    JournalCorrupt,
    RecordUnknown,
    RecordUnreadable,
    ReplayError,
    StoreCorrupt,
)
from session_actor.events import Checkpointed, HistorySealed, Pushed, Renamed, Requested, decode_event
from session_actor.persistence import LineDamaged
from session_actor.persistence.format.frame_index import frames_of
from session_actor.persistence.format.gap import GAP, first_lost
from session_actor.persistence.reading.session_lines import Damage
from session_actor.server.cold import Shelf
from session_actor.server.loading import parts_of
from session_actor.server.snapshots import SnapshotUnusable, may_be_saved, snapshot_of, state_from
from session_actor.state.losses import replay
from session_actor.state.state import State

from .reading import translated
from .timeline import PIECE_BYTES, PIECE_RECORDS, Timeline

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from session_actor.events import AnyEvent
    from session_actor.models import ModelProfile
    from session_actor.persistence import Record, Snapshot
    from session_actor.persistence.reading.session_lines import Placed, SessionLines
    from session_actor.state.losses import Losses
    from session_actor.state.table import Table

SAVED_BYTES: Final = 32 * 1024 * 1024
"""States that were written down take up no more."""
_PIECES_KEPT: Final = 2
_TROUBLE: Final = (RecordUnknown, RecordUnreadable, ReplayError, FrameUnknown)
_TRIES: Final = 3
_MOVING_TRIES: Final = 100
"""So often a session that is pruned again and again is gone through before that is an error."""


class _Saved(NamedTuple):
    """A state that was written down after the record at a position."""

    position: int
    seq: int
    data: bytes
    table: Table | None = None
    """Its frames, where records are lost: then they do not follow from their records alone."""
    losses: Losses | None = None

    @property
    def size_bytes(self) -> int:
        """About what it takes up."""
        return len(self.data) + (0 if self.table is None else 8 * self.table.next_id)

    def restored(self, shelf: Shelf) -> State:
        """The state, one of its own. Raises `SnapshotUnusable`."""
        state = state_from(self.data, self.seq, shelf)
        if self.table is not None and self.losses is not None:
            state.table, state.losses = self.table.without([]), deepcopy(self.losses)
        return state


class _Frames:
    """The records that add frames, for a `Shelf`: an `Archive`."""

    def __init__(self, timeline: Timeline) -> None:
        self._timeline = timeline

    def read(self, ids: Iterable[int]) -> list[Record]:
        """See `Archive.read`."""
        adding = self._timeline.adding
        return self._timeline.read(sorted({place for frame in ids if (place := adding(frame)) is not None}))

    async def fetch(self, ids: Iterable[int]) -> list[Record]:
        """See `Archive.fetch`."""
        return await asyncio.to_thread(self.read, list(ids))


class _Shelf(Shelf):
    """Tells a frame that was pruned since: the states before that still have it."""

    __slots__ = ("_lines",)

    def __init__(self, lines: SessionLines, archive: _Frames) -> None:
        """`lines`: they tell whether anything was pruned."""
        super().__init__(lines.session, archive)
        self._lines = lines

    def fill(self, table: Table, ids: Sequence[int]) -> None:
        """See `Shelf.fill`. Raises FrameUnknown for one whose record is gone."""
        try:
            super().fill(table, ids)
        except StoreCorrupt as error:
            if type(error) is not StoreCorrupt or not self._lines.base.seq:
                raise  # that is damage
            missing = next(frame for frame in ids if table.is_cold(frame))
            raise FrameUnknown(missing, "it was pruned since, and its record is gone") from None


class Player:
    """All states of a session. Its methods block."""

    def __init__(self, lines: SessionLines, models: Mapping[str, ModelProfile] | None) -> None:
        """`models`: the service's own profiles of models, which no record has."""
        self.lines = lines
        self.damage: Damage | None = None
        """Why there is nothing behind the newest record; None: it is the newest."""
        self._models = models
        self._begin()

    def _begin(self) -> None:
        """Nothing is known. States begin with the first record; in a session that was pruned, with a snapshot."""
        self.timeline = Timeline(self.lines)
        self.named: dict[str, int] = {}
        """By the name of each checkpoint that ever was, the record that last set it."""
        self.requests: list[int] = []
        """The records of requests."""
        self.first = 0
        """The position of the first record whose state is known."""
        self._shelf = _Shelf(self.lines, _Frames(self.timeline))
        self._saved: list[_Saved] = []
        self._every = PIECE_RECORDS
        self._bytes_since = 0
        self._pieces: dict[int, list[Record]] = {}
        with translated():
            base = self._base = self.lines.base
            self._snapshots = [one for one in self.lines.snapshots() if one.seq >= base.seq] if base.seq else []
        self._end = None if base.seq else State()
        """The state after the newest record; None: no record with a known state was found."""

    # --- going through the records ------------------------------------------------------------------------------------

    def extend(self) -> int:
        """Go through the records that are not known yet; returns how many there are. Raises as `Replay.open`.

        When the session was pruned since, or is meanwhile, all of it is gone through again.
        """
        known = self.timeline.last_seq
        if self.lines.base != self._base:
            self._begin()
        tries = _TRIES
        for _ in range(_MOVING_TRIES):
            if self._walk():
                return len(self.timeline) - bisect_right(self.timeline.seqs, known)
            before = self._base
            with translated():
                self.lines.look_again()
            self._begin()
            tries -= self._base == before
            if not tries:
                break
        why = f"records up to {self.lines.base.seq} of {self.lines.session!r} were pruned"
        raise StoreCorrupt(self.lines.path(1), f"{why}, and no snapshot behind them can be used")

    def _walk(self) -> bool:
        """Whether all new records were gone through, or those before the first damage."""
        self.damage, newest = None, self.timeline.last_seq
        with translated():
            for placed in self.lines.after(newest):
                if self._end is not None and newest and _first(placed.record) > newest + 1:
                    return False  # what is between was pruned meanwhile
                self.damage = self._take(placed)
                if self.damage is not None:
                    break
                newest = placed.record.seq
            else:
                self.damage = self.lines.damage
        if self._end is None and self.damage is not None:
            damage = self.damage
            raise JournalCorrupt(damage.path, damage.offset, damage.seq, damage.why)
        return self._end is not None

    def _take(self, placed: Placed) -> Damage | None:
        """Note a record, and play it; returns why it cannot be."""
        timeline, record = self.timeline, placed.record
        try:
            timeline.add(placed)
        except LineDamaged as error:
            return self._damaged(placed, str(error))
        if self._end is None:
            self._begin_at(record)
        if self._end is None or self._end.seq >= record.seq:
            return None
        try:
            event = decode_event(record.kind, record.data)
            play(self._end, event, record.seq, timeline.times[-1])
        except _TROUBLE as error:
            if any(snapshot.seq >= record.seq for snapshot in self._snapshots):  # a frame that it needs is pruned
                self._end = None
                self._saved.clear()
                return None
            timeline.drop_last()
            return self._damaged(placed, str(error))
        self._note(self._end, event, record.seq)
        self._bytes_since += len(placed.line)
        here = len(timeline) - 1
        if here - (self._saved[-1].position if self._saved else -1) >= self._every or self._bytes_since > PIECE_BYTES:
            self._save(self._end, here)
        return None

    def _damaged(self, placed: Placed, why: str) -> Damage:
        return Damage(self.lines.path(placed.file), placed.offset, placed.record.seq, why)

    def _begin_at(self, record: Record) -> None:
        """Of a session that was pruned: begin where a snapshot was taken after this record, or after the one before."""
        here, base = len(self.timeline) - 1, self.lines.base
        for snapshot in self._snapshots:
            if (snapshot.seq, snapshot.sum) == (record.seq, record.sum):
                self._start(snapshot, here)
            elif (snapshot.seq, snapshot.sum) == (base.seq, base.sum) and record.seq == base.seq + 1:
                self._start(snapshot, here - 1)

    def _start(self, snapshot: Snapshot, position: int) -> None:
        try:
            self._end = state_from(snapshot.data, snapshot.seq, self._shelf)
        except SnapshotUnusable:
            return
        self._saved.append(_Saved(position, snapshot.seq, bytes(snapshot.data)))
        self.first = bisect_left(self.timeline.seqs, snapshot.seq)

    def _note(self, state: State, event: AnyEvent, seq: int) -> None:
        """What is looked for by name."""
        if type(event) is Requested:
            self.requests.append(seq)
        elif type(event) is Checkpointed:
            self.named[event.name] = seq
        elif type(event) is Renamed and event.new in state.checkpoints:
            self.named[event.new] = seq
        elif type(event) is HistorySealed:
            self.named.update(dict.fromkeys(state.checkpoints, seq))

    def _save(self, state: State, position: int) -> None:
        """Write the state down, and go on from what was written: its frames may go, where they follow from records."""
        self._bytes_since = 0
        if state.importing or state.created_at_us is None:
            return  # a snapshot would not say what is still to come
        saved = _Saved(position, state.seq, snapshot_of(state))
        if state.losses is not None:
            saved = saved._replace(table=state.table.without([]), losses=deepcopy(state.losses))
        try:
            restored = saved.restored(self._shelf)
        except SnapshotUnusable:
            return
        if may_be_saved(state):
            self._end = restored
        self._saved.append(saved)
        if sum(one.size_bytes for one in self._saved) > SAVED_BYTES and len(self._saved) > _PIECES_KEPT:
            self._saved = self._saved[:1] + self._saved[2::2]
            self._every *= 2

    @property
    def is_pruned(self) -> bool:
        """Whether records of it are gone."""
        return bool(self._base.seq)

    def adding(self, frame: int) -> int | None:
        """The position of the record that added a frame; None: none of those that are left did."""
        position = self.timeline.adding(frame)
        if position is None or frame not in frames_of(*self._content(position)):
            return None
        return position

    def _content(self, position: int) -> tuple[str, bytes]:
        record = self.timeline.read([position])[0]
        return record.kind, bytes(record.data)

    # --- one state ----------------------------------------------------------------------------------------------------

    def state_at(self, position: int) -> State:
        """The state after the record at a position, one of its own. Raises as `Timeline.read`, and ReplayError."""
        place = bisect_right(self._saved, position, key=lambda one: one.position) - 1
        if place < 0:
            state, start = State(), 0
        else:
            saved = self._saved[place]
            state, start = saved.restored(self._shelf), saved.position + 1
        while start <= position:
            stop = self.timeline.piece(start)
            for record in self._piece(start, stop)[: position + 1 - start]:
                play(state, decode_event(record.kind, record.data), record.seq, record.at_us)
            start = stop
        state.models = self._models
        state.session = state.session or self.lines.session
        if state.head is not None:
            with suppress(FrameUnknown):  # pruned since: whoever asks for it is told
                state.table.get(state.head)
        return state

    def _piece(self, start: int, stop: int) -> list[Record]:
        """Records that were read lately are kept: who steps through them asks for the same again and again."""
        found = self._pieces.pop(start, None)
        if found is None or len(found) != stop - start:
            found = self.timeline.read(range(start, stop))
        self._pieces[start] = found
        while len(self._pieces) > _PIECES_KEPT:
            del self._pieces[next(iter(self._pieces))]
        return found


def _first(record: Record) -> int:
    """The first record that this one stands for: itself, unless it is a gap."""
    return first_lost(record) if record.kind == GAP else record.seq


def play(state: State, event: AnyEvent, seq: int, at_us: int) -> None:
    """Apply a record, after reading what a frame inherits from a cold one and its record does not hold. Blocks."""
    table = state.table
    if isinstance(event, Pushed) and event.parent is not None and event.parent < table.cold_below:
        place = event.place
        if place is None:
            table.read((event.parent,))
        elif place.configured is not None and table.instructions_of(place.configured) is None:
            table.read((place.configured,))
    for part in parts_of(state, event):
        replay(state, part, seq, at_us)
