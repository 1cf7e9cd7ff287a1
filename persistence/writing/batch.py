"""Lines of the log on their way to the disk, and how they are made from what the store was given."""

from __future__ import annotations

from array import array
from collections import deque
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

from session_actor.persistence.format.record import (
    SUFFIX_BYTES,
    encode_log_line,
    encode_logged,
    encode_watermark,
    prev_in,
    record_in,
)
from session_actor.persistence.format.values import encode_record_data

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from session_actor.persistence.log.segment import Segment
    from session_actor.persistence.log.session_log import SessionLog

Entry = tuple["SessionLog", int, int, str, object, int]
"""What `append` was given: session, seq, at_us, kind, data, weight."""


class Refused(NamedTuple):
    """An entry that cannot be stored."""

    entry: Entry
    position: int
    error: Exception | None
    """None: one before it of the same session was refused."""


class Batch:
    """Lines that lie one behind the other in one segment.

    `start`: offset of the first line in the segment. `first`, `last`: the store's positions that the batch covers;
    `last` is `first` - 1 for a watermark, which has a batch of its own, and refused entries have a position but no
    record. The records are kept in parallel lists, because an object for each would keep the garbage collector busy
    until they are synced.
    """

    __slots__ = ("first", "last", "lines", "logs", "midway", "segment", "seqs", "size", "start")

    def __init__(self, segment: Segment, first: int) -> None:
        """An empty batch at the end of `segment`; `first`: position of the next entry."""
        self.segment = segment
        self.start = segment.end
        self.size = 0
        """Length of the lines."""
        self.first = first
        self.last = first - 1
        self.lines: list[bytes] = []
        self.logs: list[SessionLog] = []
        """Of each record, its session."""
        self.seqs: list[int] = []
        self.midway = False
        """Something of it is told to others and something is not: whatever was raised then, it must not be used."""

    @property
    def data(self) -> bytes:
        """All lines in one piece."""
        return self.lines[0] if len(self.lines) == 1 else b"".join(self.lines)

    @property
    def records(self) -> list[tuple[SessionLog, int, bytes]]:
        """Of each record its session, its seq, and its journal line."""
        found = zip(self.logs, self.seqs, self.lines, strict=False)
        return [(log, seq, record_in(line, log.owner)) for log, seq, line in found]

    def take(self, backlog: Backlog, limit: int, full: int) -> list[Refused]:
        """Make lines of the oldest entries: at most `limit`, and until the segment ends at `full` or beyond.

        Returns what cannot be stored. Whatever is raised while lines are made, nothing was taken; `midway` tells if
        that cannot be said. Written out, without helpers: every record goes through this loop.
        """
        refused: list[Refused] = []
        segment, position, weights, log = self.segment, self.last, 0, None
        end, head, spans, last_sum = segment.end, segment.head, segment.spans, segment.last_sum
        made = len(self.seqs)
        try:
            for entry in list(islice(backlog.entries, limit)):
                if end >= full:
                    break
                log, seq, at_us, kind, data, weight = entry
                position += 1
                weights += weight
                if position <= log.broken_until:
                    refused.append(Refused(entry, position, None))
                    continue
                try:
                    line, last_sum, length, tail_sum = encode_logged(
                        head, last_sum, log.owner, seq, at_us, kind, encode_record_data(data), log.tail_sum
                    )
                except MemoryError:
                    raise
                except Exception as error:  # noqa: BLE001  whatever it is concerns this session alone
                    refused.append(Refused(entry, position, error))
                    log.broken_until = backlog.appended_position
                    continue
                end += len(line)
                places = spans.get(log)
                if places is None:
                    places = spans[log] = array("Q")
                places.append(end - SUFFIX_BYTES - length)
                places.append(end - SUFFIX_BYTES)
                self.lines.append(line)
                self.logs.append(log)
                self.seqs.append(seq)
                log.tail_sum = tail_sum
            self.midway = True  # from here on there is no way back
        except BaseException:
            self._undo(made, log, refused)
            raise
        self.size += end - segment.end
        count = position - self.last
        segment.end, segment.last_sum, self.last = end, last_sum, position
        backlog.held_bytes -= weights
        while count:
            backlog.entries.popleft()
            count -= 1
        self.midway = False
        return refused

    def _undo(self, made: int, log: SessionLog | None, refused: list[Refused]) -> None:
        """Forget the lines behind the first `made`, and what was begun of another for `log`."""
        self.midway = True
        lines, logs = self.lines[made:], self.logs[made:]
        for line, one in zip(reversed(lines[: len(logs)]), reversed(logs), strict=True):
            one.tail_sum = prev_in(line)
        for one in {*logs, *([] if log is None else [log])}:
            self.segment.forget_spans(one, self.segment.end)
        del self.lines[made:], self.logs[made:], self.seqs[made:]
        for item in refused:
            if item.error is not None:
                item.entry[0].broken_until = item.position - 1
        self.midway = False

    def add_record(self, log: SessionLog, seq: int, record: bytes) -> None:
        """Wrap a journal line, newline included, for the batch's segment."""
        segment = self.segment
        line, total = encode_log_line(segment.synced, segment.last_sum.decode(), log.owner, record)
        self._add_line(line, total)
        end = segment.end - SUFFIX_BYTES
        segment.spans.setdefault(log, array("Q")).extend((end - len(record) + 1, end))
        self.logs.append(log)
        self.seqs.append(seq)

    def add_watermark(self) -> list[Refused]:
        """Add a line that only tells how far the segment is synced; nothing is refused."""
        segment = self.segment
        self.midway = True
        self._add_line(*encode_watermark(segment.synced, segment.last_sum.decode()))
        segment.marked = segment.end
        self.midway = False
        return []

    def _add_line(self, line: bytes, total: str) -> None:
        self.segment.last_sum = total.encode()
        self.segment.end += len(line)
        self.lines.append(line)
        self.size += len(line)

    def note_written(self) -> None:
        """The operating system has all the lines: tell the segment and the sessions."""
        self.segment.written = self.start + self.size
        for log, seq in zip(self.logs, self.seqs, strict=False):
            log.written_seq = seq

    def note_synced(self) -> None:
        """The disk has the lines: tell the sessions."""
        for log, seq in zip(self.logs, self.seqs, strict=False):
            log.synced_seq = seq

    def absorb(self, following: Batch) -> None:
        """Take in the batch that lies right behind this one in the segment."""
        self.lines += following.lines
        self.logs += following.logs
        self.seqs += following.seqs
        self.size += following.size
        self.last = following.last

    def seq_at(self, position: int) -> int:
        """The seq of the record at a position, or near it where entries were refused."""
        index = min(position - self.first, len(self.seqs) - 1)
        return self.seqs[index] if index >= 0 else 0


def seq_at(position: int, batches: Iterable[Batch], backlog: Backlog) -> int:
    """The seq of the record at a position that is in one of these batches or still queued; 0: it is in neither."""
    for batch in batches:
        if batch.first <= position <= batch.last:
            return batch.seq_at(position)
    index = position - backlog.next_position
    return backlog.entries[index][1] if 0 <= index < len(backlog.entries) else 0


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
    """Entries that are not yet lines. It belongs to the store, so it outlives every writer.

    What waits for the disk is bounded: at a limit the store is `full`, and admits nothing.
    """

    __slots__ = (
        "_max_records", "_on_change", "appended_position", "attend_at", "entries", "full", "held_bytes", "max_bytes"
    )  # fmt: skip

    def __init__(self, max_records: int, max_bytes: int, on_change: Callable[[], None]) -> None:
        """Nothing is queued. `on_change`: told when it becomes full, and when it is not any more."""
        self.entries: deque[Entry] = deque()
        self.held_bytes = 0
        """Weight of the entries, and the bytes that are written and kept in memory until they are synced."""
        self.appended_position = 0
        self.attend_at = 0
        """Position from which on the one who appends must call `attend`; 0 while no writing is planned."""
        self.max_bytes = max_bytes
        self.full = False
        self._max_records = max_records
        self._on_change = on_change

    def append(self, entry: Entry) -> int:
        """Queue an entry; returns its position."""
        self.entries.append(entry)
        self.held_bytes += entry[5]
        self.appended_position += 1
        return self.appended_position

    @property
    def next_position(self) -> int:
        """Position of the oldest entry, or of the next one to come."""
        return self.appended_position - len(self.entries) + 1

    def attend(self) -> None:
        """Compare with the limits, and set from which position on that must be done again."""
        self.attend_at = self.next_position + self._max_records - 1
        self.check()

    def check(self) -> None:
        """Compare with the limits."""
        full = self.held_bytes >= self.max_bytes or len(self.entries) >= self._max_records
        if full != self.full:
            self.full = full
            self._on_change()
