"""Where the records of a session are at one moment: journal, log, memory. Taken on the loop, read in any thread."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from session_actor.persistence.errors import LogCorrupt
from session_actor.persistence.format.record import encode_record, verify
from session_actor.persistence.format.values import encode_record_data
from session_actor.persistence.log.segment import read_spans

if TYPE_CHECKING:
    from array import array

    from session_actor.persistence.files.storage import Disk
    from session_actor.persistence.log.log import Log
    from session_actor.persistence.log.segment import Segment
    from session_actor.persistence.log.session_log import Extent, SessionLog
    from session_actor.persistence.writing.batch import Backlog
    from session_actor.persistence.writing.writer import Writer


_PIECE_RECORDS: Final = 256


class InSegment(NamedTuple):
    """Records of a session in one segment of the log, which are written."""

    segment: Segment
    data: bytes | None
    """The segment's bytes, when they are in memory."""
    spans: array[int]
    """Where the records begin and end."""
    first_seq: int
    """Number of the first of them."""

    def behind(self, seq: int) -> InSegment:
        """Without the records up to `seq`."""
        skip = max(0, seq + 1 - self.first_seq)
        return self._replace(spans=self.spans[2 * skip :], first_seq=self.first_seq + skip)

    def pieces(self, disk: Disk, session: str) -> list[bytes]:
        """The same records in pieces of whole lines, so that none takes long to decode. As `lines`."""
        spans, data, step = self.spans, self.data, 2 * _PIECE_RECORDS
        if data is None:
            lines = self.lines(disk, session)
            return [b"".join(lines[i : i + _PIECE_RECORDS]) for i in range(0, len(lines), _PIECE_RECORDS)]
        return [
            b"\n".join([*[data[spans[i] : spans[i + 1]] for i in range(at, min(at + step, len(spans)), 2)], b""])
            for at in range(0, len(spans), step)
        ]

    def lines(self, disk: Disk, session: str) -> list[bytes]:
        """The records, LF included, checked. Blocks. Raises `LogCorrupt`, OSError."""
        spans, data = self.spans, self.data
        if not spans:
            return []
        if data is not None:
            return [data[spans[i] : spans[i + 1]] + b"\n" for i in range(0, len(spans), 2)]
        file = disk.open(self.segment.path)
        try:
            lines = [record + b"\n" for record in read_spans(file.read, spans)]
        finally:
            file.close()
        for index, line in enumerate(lines):
            if not verify(line):
                raise LogCorrupt(self.segment.path, spans[2 * index], f"a record of {session!r} fails its check")
        return lines


class Places(NamedTuple):
    """Where a session's records are. `log` and `memory` are in order and follow the journal, whose end is `extent`."""

    extent: Extent | None
    log: list[InSegment]
    memory: list[bytes]
    """Lines of what is not written yet."""
    written_seq: int
    newest_sum: str
    """Sum of record `written_seq`; only to be asked when `memory` is empty."""


class Finder:
    """Knows where records of an open store's sessions are."""

    def __init__(self, log: Log, backlog: Backlog, writer: Writer) -> None:
        """The parts of the store that hold records."""
        self._log = log
        self._backlog = backlog
        self._writer = writer

    def places(self, log: SessionLog, *, memory: bool = True) -> Places:
        """Where the records of a session are now. `memory` False: what is not yet written is left out."""
        held = self.memory(log) if memory else []
        return Places(log.extent, self._segments(log), held, log.written_seq, log.tail_sum.decode())

    def moved(self, log: SessionLog, places: Places) -> bool:
        """Whether records of a session lie elsewhere now."""
        before, now = places.log, self._segments(log)
        same = [place.segment for place in before] == [place.segment for place in now][: len(before)]
        return not same or log.extent is not places.extent

    def _segments(self, log: SessionLog) -> list[InSegment]:
        current = self._log.current
        found = [
            (segment, written)
            for segment in (*self._log.sealed, *([current] if current else []))
            if log in segment.spans and (written := segment.written_spans(log))
        ]
        places: list[InSegment] = []
        next_seq = log.written_seq + 1
        for segment, spans in reversed(found):
            next_seq -= len(spans) // 2
            places.append(InSegment(segment, segment.data, spans, next_seq))
        return places[::-1]

    def memory(self, log: SessionLog) -> list[bytes]:
        """Lines of the records of a session that are not yet written."""
        if log.written_seq == log.appended_seq:
            return []
        made = [line for batch in self._writer.unwritten() for owner, _, line in batch.records if owner is log]
        return made + self._queued(log)

    def _queued(self, log: SessionLog) -> list[bytes]:
        """The lines that will be made of what is queued."""
        lines: list[bytes] = []
        total = log.tail_sum.decode()
        first = self._backlog.next_position
        for position, (owner, seq, at_us, kind, data, _) in enumerate(self._backlog.entries, first):
            if owner is log and position > log.broken_until:
                line, total = encode_record(seq, at_us, kind, encode_record_data(data), total)
                lines.append(line)
        return lines
