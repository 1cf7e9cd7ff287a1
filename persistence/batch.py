"""Lines of the log on their way to the disk, and how they are made from what the store was given."""

from __future__ import annotations

from array import array
from collections import deque
from typing import TYPE_CHECKING
from zlib import crc32

from .record import SUFFIX_BYTES, encode_log_line, encode_logged, encode_watermark
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

    __slots__ = (
        "_parts",
        "_written_parts",
        "_written_records",
        "ends",
        "first",
        "last",
        "logs",
        "segment",
        "seqs",
        "size",
        "start",
        "starts",
        "written_size",
    )

    def __init__(self, segment: Segment, first: int) -> None:
        """An empty batch at the end of `segment`; `first`: position of the next entry."""
        self.segment = segment
        self.start = segment.end
        self.size = self.written_size = 0
        """Length of the lines, and of those that were written."""
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
        self._written_parts = self._written_records = 0

    @property
    def lines(self) -> bytes:
        """All lines in one piece."""
        return b"".join(self._parts)

    @property
    def unwritten_lines(self) -> bytes:
        """The lines that were added since the batch was written last."""
        parts = self._parts[self._written_parts :]
        return parts[0] if len(parts) == 1 else b"".join(parts)

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
        segment = self.segment
        line, segment.last_sum, length, log.tail_sum = encode_logged(
            segment.synced, segment.last_sum, log.owner, seq, at_us, kind, encode_record_data(data), log.tail_sum
        )
        self._note(log, seq, line, length)

    def add_record(self, log: SessionLog, seq: int, record: bytes) -> None:
        """Wrap a journal line, newline included, for the batch's segment."""
        segment = self.segment
        line, total = encode_log_line(segment.synced, segment.last_sum.decode(), log.owner, record)
        segment.last_sum = total.encode()
        self._note(log, seq, line, len(record) - 1)

    def _note(self, log: SessionLog, seq: int, line: bytes, length: int) -> None:
        """Take in a line with a record of `length` bytes."""
        size = len(line)
        self._parts.append(line)
        self.size += size
        end = self.segment.end = self.segment.end + size
        end -= SUFFIX_BYTES
        self.logs.append(log)
        self.seqs.append(seq)
        self.starts.append(end - length)
        self.ends.append(end)

    def add_watermark(self) -> None:
        """Add a line that only tells how far the segment is synced."""
        segment = self.segment
        line, total = encode_watermark(segment.synced, segment.last_sum.decode())
        segment.last_sum = total.encode()
        self._parts.append(line)
        self.size += len(line)
        segment.end += len(line)

    def note_written(self, lines: bytes) -> None:
        """The operating system has `unwritten_lines`, which are `lines`: tell the segment and the sessions."""
        segment, spans, first = self.segment, self.segment.spans, self._written_records
        segment.written = self.start + self.size
        segment.crc = crc32(lines, segment.crc)
        for index in range(first, len(self.seqs)):
            log = self.logs[index]
            places = spans.get(log)
            if places is None:
                places = spans[log] = array("Q")
            places.append(self.starts[index])
            places.append(self.ends[index])
            log.written_seq = self.seqs[index]
            if log.lease is not None:
                log.lease.written_seq = log.written_seq
        self.written_size, self._written_parts, self._written_records = self.size, len(self._parts), len(self.seqs)

    def note_synced(self) -> None:
        """The disk has the lines: tell the sessions."""
        for log, seq in zip(self.logs, self.seqs, strict=True):
            log.synced_seq = seq
            if log.lease is not None:
                log.lease.synced_seq = seq

    def split(self, first: int) -> Batch:
        """Take out what was not written, whose first position is `first`, as a batch of its own."""
        rest = Batch(self.segment, first)
        rest.start, rest.size, rest.last = self.start + self.written_size, self.size - self.written_size, self.last
        records, parts = self._written_records, self._written_parts
        rest.logs, rest.seqs = self.logs[records:], self.seqs[records:]
        rest.starts, rest.ends, rest._parts = self.starts[records:], self.ends[records:], self._parts[parts:]
        del self.logs[records:], self.seqs[records:], self.starts[records:], self.ends[records:], self._parts[parts:]
        self.size, self.last = self.written_size, first - 1
        return rest

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

    def append(self, entry: Entry) -> int:
        """Queue an entry; returns its position."""
        self.entries.append(entry)
        self.weight_bytes += entry[5]
        self.appended_position += 1
        return self.appended_position

    @property
    def next_position(self) -> int:
        """Position of the oldest entry, or of the next one to come."""
        return self.appended_position - len(self.entries) + 1
