"""Where each record of a session lies, by number, time and frame: some numbers a record, no content."""

from __future__ import annotations

from array import array
from bisect import bisect_left
from typing import TYPE_CHECKING, Final

from session_actor.errors import JournalCorrupt
from session_actor.persistence import LineDamaged
from session_actor.persistence.files.plain_file import NotPlain
from session_actor.persistence.format.frame_index import frames_in
from session_actor.persistence.format.record import decode_record

from .errors import MomentUnknown
from .reading import translated

if TYPE_CHECKING:
    from collections.abc import Sequence

    from session_actor.persistence import Record
    from session_actor.persistence.reading.session_lines import Placed, SessionLines

PIECE_RECORDS: Final = 256
PIECE_BYTES: Final = 1024 * 1024
"""So many records, of so many bytes, are read at once."""
_TRIES: Final = 3


class Timeline:
    """The records that were found, in order; positions count from 0. Reading one makes sure that it is the same."""

    def __init__(self, lines: SessionLines) -> None:
        """`lines`: where records are read."""
        self.lines = lines
        self.seqs = array("Q")
        self.times = array("q")
        """When each was made [microseconds since the epoch]."""
        self._files = array("q")
        self._offsets = array("Q")
        self._lengths = array("Q")
        self._sums = array("I")
        self._frames = array("Q")
        """The highest frame of each record that adds any."""
        self._adding = array("Q")
        """The positions of those records."""

    def __len__(self) -> int:
        """How many records there are."""
        return len(self.seqs)

    @property
    def last_seq(self) -> int:
        """The newest record; 0: there is none."""
        return self.seqs[-1] if self.seqs else 0

    def add(self, placed: Placed) -> None:
        """Note the next record. Raises `LineDamaged` for one whose time is none."""
        record = placed.record
        at_us, frames = record.at_us, frames_in(placed.line)
        if frames:
            self._frames.append(max(frames))
            self._adding.append(len(self.seqs))
        self.seqs.append(record.seq)
        self.times.append(at_us)
        self._files.append(placed.file)
        self._offsets.append(placed.offset)
        self._lengths.append(len(placed.line))
        self._sums.append(int(record.sum, 16))

    def drop_last(self) -> None:
        """Forget the newest record."""
        if self._adding and self._adding[-1] == len(self.seqs) - 1:
            self._adding.pop()
            self._frames.pop()
        for column in (self.seqs, self.times, self._files, self._offsets, self._lengths, self._sums):
            column.pop()

    # --- finding ------------------------------------------------------------------------------------------------------

    def position(self, seq: int) -> int | None:
        """Where record `seq` is; None: it is not there."""
        place = bisect_left(self.seqs, seq)
        return place if place < len(self.seqs) and self.seqs[place] == seq else None

    def adding(self, frame: int) -> int | None:
        """The position of the record that may have added a frame; None: none can."""
        place = bisect_left(self._frames, frame)
        return self._adding[place] if place < len(self._frames) else None

    def before(self, at_us: int) -> int | None:
        """The position of the newest record that was made at this time or before it; None: all are younger."""
        times = self.times
        return next((place for place in range(len(times) - 1, -1, -1) if times[place] <= at_us), None)

    def piece(self, start: int) -> int:
        """Where a piece ends that begins at `start`: at most so many records and bytes, and one at least."""
        stop, size = start, 0
        limit = min(len(self.seqs), start + PIECE_RECORDS)
        while stop < limit and (stop == start or size + self._lengths[stop] <= PIECE_BYTES):
            size += self._lengths[stop]
            stop += 1
        return stop

    def path(self, position: int) -> tuple[str, int]:
        """The file of a record, and its offset there."""
        return self.lines.path(self._files[position]), self._offsets[position]

    # --- reading ------------------------------------------------------------------------------------------------------

    def read(self, positions: Sequence[int]) -> list[Record]:
        """These records. Blocks.

        What a store in use has moved meanwhile is found again. Raises `JournalCorrupt` for damage, `MomentUnknown` for
        what was pruned meanwhile, SessionDeleted, OSError.
        """
        found, bad = self._read(positions)
        for _ in range(_TRIES):
            if bad is None:
                return found
            self._find_again()
            found, bad = self._read(positions)
        if bad is None:
            return found
        seq, (path, offset) = self.seqs[bad], self.path(bad)
        if seq <= self.lines.base.seq:
            raise MomentUnknown(f"record {seq}", "it was pruned meanwhile; refresh the replay")
        raise JournalCorrupt(path, offset, seq, "it is not the record that was there before")

    def _read(self, positions: Sequence[int]) -> tuple[list[Record], int | None]:
        """The records, and the position of one that is not where it was."""
        found: list[Record] = []
        first = 0
        while first < len(positions):
            file = self._files[positions[first]]
            last = first
            while last < len(positions) and self._files[positions[last]] == file:
                last += 1
            here = positions[first:last]
            try:
                lines = self.lines.read(file, self._spans(here))
            except (FileNotFoundError, NotPlain):
                return found, here[0]
            for position, line in zip(here, lines, strict=True):
                record = self._same(position, line)
                if record is None:
                    return found, position
                found.append(record)
            first = last
        return found, None

    def _spans(self, positions: Sequence[int]) -> array[int]:
        spans = array("Q")
        for position in positions:
            begin = self._offsets[position]
            spans.append(begin)
            spans.append(begin + self._lengths[position] - 1)  # the LF of a record in the log is not its own
        return spans

    def _same(self, position: int, line: bytes) -> Record | None:
        """The record of a line, if it is the one that was found at first."""
        try:
            record = decode_record(line)
        except LineDamaged:
            return None
        same = record.seq == self.seqs[position] and int(record.sum, 16) == self._sums[position]
        return record if same else None

    def _find_again(self) -> None:
        """Look where the records are now. Raises SessionDeleted."""
        with translated():
            self.lines.look_again()
            place = 0
            for placed in self.lines.apart().after(self.seqs[0] - 1):
                while place < len(self.seqs) and self.seqs[place] < placed.record.seq:
                    place += 1
                if place == len(self.seqs):
                    return
                if self.seqs[place] == placed.record.seq:
                    self._files[place], self._offsets[place] = placed.file, placed.offset
                    self._lengths[place] = len(placed.line)
