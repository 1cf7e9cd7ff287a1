"""Lines of the log on their way to the disk, and how they are made from what the store was given."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING
from zlib import crc32

from .record import SUFFIX_BYTES, encode_log_line, encode_record, encode_watermark
from .values import encode_record_data

if TYPE_CHECKING:
    from .segment import Segment
    from .session_log import SessionLog
    from .storage import DiskFile

Entry = tuple["SessionLog", int, int, str, object, int]
"""What `append` was given: session, seq, at_us, kind, data, weight."""


class Batch:
    """Lines that go to one segment with one write.

    `start`: offset of the first line in the segment. `lines`: the lines, one after the other. `records`: of each record
    session, seq, and start and end inside the batch. `first`, `last`: the store's positions that the batch covers;
    `last` is `first` - 1 for a watermark alone, and refused entries have a position but no record.
    """

    __slots__ = ("_parts", "first", "last", "records", "segment", "size", "start")

    def __init__(self, segment: Segment, first: int) -> None:
        """An empty batch at the end of `segment`; `first`: position of the next entry."""
        self.segment = segment
        self.start = segment.end
        self.size = 0
        self.first = first
        self.last = first - 1
        self.records: list[tuple[SessionLog, int, int, int]] = []
        self._parts: list[bytes] = []

    @property
    def lines(self) -> bytes:
        """All lines in one piece."""
        if len(self._parts) > 1:
            self._parts = [b"".join(self._parts)]
        return self._parts[0] if self._parts else b""

    @property
    def file(self) -> DiskFile:
        """The open file of the batch's segment."""
        if self.segment.file is None:
            raise RuntimeError(f"{self.segment.path} is closed: nothing can be written to it")
        return self.segment.file

    def add_entry(self, entry: Entry) -> None:
        """Make the line of one entry. Raises what makes it unstorable, and then only its position is taken."""
        log, seq, at_us, kind, data, _ = entry
        self.last += 1
        if self.last <= log.broken_until:
            raise ValueError("a record before it could not be encoded")
        record, total = encode_record(seq, at_us, kind, encode_record_data(data), log.tail_sum)
        log.tail_sum = total
        self.add_record(log, seq, record)

    def add_record(self, log: SessionLog, seq: int, record: bytes) -> None:
        """Wrap a journal line, newline included, for the batch's segment."""
        segment = self.segment
        line, segment.last_sum = encode_log_line(segment.synced, segment.last_sum, log.owner, record)
        segment.end += len(line)
        self._parts.append(line)
        self.size += len(line)
        end = self.size - SUFFIX_BYTES
        self.records.append((log, seq, end - len(record) + 1, end))

    def add_watermark(self) -> None:
        """Add a line that only tells how far the segment is synced."""
        segment = self.segment
        line, segment.last_sum = encode_watermark(segment.synced, segment.last_sum)
        segment.end += len(line)
        self._parts.append(line)
        self.size += len(line)

    def note_written(self) -> None:
        """The operating system has the lines: tell the segment and the sessions."""
        segment, start = self.segment, self.start
        segment.written = start + self.size
        segment.crc = crc32(self.lines, segment.crc)
        for log, seq, begin, end in self.records:
            segment.note(log, start + begin, start + end)
            log.note_written(seq)

    def note_synced(self) -> None:
        """The disk has the lines: tell the sessions."""
        for log, seq, _, _ in self.records:
            log.note_synced(seq)

    def seq_at(self, position: int) -> int:
        """The seq of the record at a position, or near it where entries were refused."""
        index = min(position - self.first, len(self.records) - 1)
        return self.records[index][1] if index >= 0 else 0


def rebuild(segment: Segment, batches: list[Batch]) -> list[Batch]:
    """Make the lines of `batches` anew for another segment: their records are the same, their wrapping is not."""
    rebuilt: list[Batch] = []
    for old in batches:
        new = Batch(segment, old.first)
        lines = old.lines
        for log, seq, start, end in old.records:
            new.add_record(log, seq, lines[start:end] + b"\n")
        new.last = old.last
        rebuilt.append(new)
    return rebuilt


class Backlog:
    """Entries that are not yet lines. It belongs to the store, so it outlives every writer."""

    __slots__ = ("appended_position", "entries", "weight_bytes")

    def __init__(self) -> None:
        """Nothing is queued."""
        self.entries: deque[Entry] = deque()
        self.weight_bytes = 0
        self.appended_position = 0

    @property
    def next_position(self) -> int:
        """Position of the oldest entry, or of the next one to come."""
        return self.appended_position - len(self.entries) + 1
