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
    """Lines that lie one behind the other in one segment.

    `start`: offset of the first line in the segment. `lines`: the lines, one after the other. `first`, `last`: the
    store's positions that the batch covers; `last` is `first` - 1 for a watermark alone, and refused entries have a
    position but no record. The records are kept in parallel lists, because an object for each would keep the garbage
    collector busy until they are synced.
    """

    __slots__ = ("_parts", "ends", "first", "last", "logs", "segment", "seqs", "size", "start", "starts")

    def __init__(self, segment: Segment, first: int) -> None:
        """An empty batch at the end of `segment`; `first`: position of the next entry."""
        self.segment = segment
        self.start = segment.end
        self.size = 0
        self.first = first
        self.last = first - 1
        self.logs: list[SessionLog] = []
        """Of each record, its session."""
        self.seqs: list[int] = []
        self.starts: list[int] = []
        """Where each record begins in the segment."""
        self.ends: list[int] = []
        """Where each record ends in the segment, without its newline."""
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

    @property
    def records(self) -> list[tuple[SessionLog, int, bytes]]:
        """Of each record its session, its seq, and its journal line."""
        lines, base = self.lines, self.start
        places = zip(self.logs, self.seqs, self.starts, self.ends, strict=True)
        return [(log, seq, lines[start - base : end - base] + b"\n") for log, seq, start, end in places]

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
        self._add_line(line)
        end = segment.end - SUFFIX_BYTES
        self.logs.append(log)
        self.seqs.append(seq)
        self.starts.append(end - len(record) + 1)
        self.ends.append(end)

    def add_watermark(self) -> None:
        """Add a line that only tells how far the segment is synced."""
        segment = self.segment
        line, segment.last_sum = encode_watermark(segment.synced, segment.last_sum)
        self._add_line(line)

    def _add_line(self, line: bytes) -> None:
        self._parts.append(line)
        self.size += len(line)
        self.segment.end += len(line)

    def absorb(self, following: Batch) -> None:
        """Take in the batch that lies directly behind this one."""
        self.size += following.size
        self.last = following.last
        self.logs += following.logs
        self.seqs += following.seqs
        self.starts += following.starts
        self.ends += following.ends
        self._parts += following._parts

    def note_written(self) -> None:
        """The operating system has the lines: tell the segment and the sessions."""
        segment, note = self.segment, self.segment.note
        segment.written = self.start + self.size
        segment.crc = crc32(self.lines, segment.crc)
        for log, seq, start, end in zip(self.logs, self.seqs, self.starts, self.ends, strict=True):
            note(log, start, end)
            log.note_written(seq)

    def note_synced(self) -> None:
        """The disk has the lines: tell the sessions."""
        for log, seq in zip(self.logs, self.seqs, strict=True):
            log.note_synced(seq)

    def seq_at(self, position: int) -> int:
        """The seq of the record at a position, or near it where entries were refused."""
        index = min(position - self.first, len(self.seqs) - 1)
        return self.seqs[index] if index >= 0 else 0


def rebuild(segment: Segment, batches: list[Batch]) -> list[Batch]:
    """Make the lines of `batches` anew for another segment: their records are the same, their wrapping is not."""
    rebuilt: list[Batch] = []
    for old in batches:
        new = Batch(segment, old.first)
        for log, seq, record in old.records:
            new.add_record(log, seq, record)
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
