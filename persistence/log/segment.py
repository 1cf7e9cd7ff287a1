"""One segment of the log in this process: where its bytes are, how safe, and whose records lie where."""

from __future__ import annotations

import sys
from bisect import bisect_left
from itertools import takewhile
from typing import TYPE_CHECKING
from zlib import crc32

from session_actor.persistence.errors import LineDamaged
from session_actor.persistence.format.record import decode_record, log_head

if TYPE_CHECKING:
    from array import array
    from collections.abc import Callable

    from session_actor.persistence.files.storage import Disk, DiskFile
    from session_actor.persistence.format.header import SegmentRef

    from .session_log import SessionLog

_NEARBY_BYTES = 16 * 1024


class Segment:
    """A log file. Offsets are in bytes from its start.

    `continues`: the segment and offset that it takes over from; None for the first of all.
    `end`: up to here lines were made for it. `written`, `synced`: up to here they are with the operating system and on
    the disk. `head`: what lines start with now. `crc`: CRC-32 of the bytes up to `synced`, of the header while nothing
    is. `last_sum`: sum of the last line that was made. `spans`: for each session with records here, start and end of
    each record, made and perhaps not yet written. `room_bytes`: up to here its room on the disk was taken.
    `marked`: up to here a later line of the segment shows that it was synced. `data`: its bytes, when they were
    read and checked when the store was opened; `crc` is then not known. `made_at`: how many syncs of the folder had
    been refused when it got its name. `cut`: its records are in journals, but for those that are left in `spans`: their
    journals are refused.
    """

    __slots__ = (
        "continues",
        "crc",
        "cut",
        "data",
        "end",
        "file",
        "head",
        "last_sum",
        "made_at",
        "marked",
        "number",
        "path",
        "room_bytes",
        "spans",
        "synced",
        "written",
    )

    def __init__(
        self, number: int, path: str, file: DiskFile | None, continues: SegmentRef | None, header: tuple[bytes, str]
    ) -> None:
        """`header`: the line that the file starts with, and its sum. `file`: None for a segment that is only read."""
        self.number = number
        self.path = path
        self.file = file
        self.continues = continues
        self.end = self.written = len(header[0])
        self.synced = self.marked = self.room_bytes = self.made_at = 0
        self.head = log_head(0)
        self.crc = crc32(header[0])
        self.last_sum = header[1].encode()
        self.data: bytes | None = None
        self.cut = False
        self.spans: dict[SessionLog, array[int]] = {}

    @property
    def is_empty(self) -> bool:
        """Whether it holds no record, and nothing of it is known to be on the disk."""
        return not (self.spans or self.synced)

    @property
    def writable(self) -> DiskFile:
        """The open file."""
        if self.file is None:
            raise RuntimeError(f"{self.path} is closed: nothing can be written to it")
        return self.file

    def written_spans(self, log: SessionLog) -> array[int]:
        """Where the written records of a session that has records here begin and end."""
        spans = self.spans[log]
        return spans[: bisect_left(spans, self.written)]

    def note_synced(self, size: int, crc: int) -> None:
        """The first `size` bytes, whose CRC-32 is `crc`, are on the disk."""
        self.synced, self.crc, self.head = size, crc, log_head(size)

    def cut_to_synced(self) -> None:
        """Forget what lies beyond the synced part: another segment took it over."""
        self.end = self.written = self.synced
        for log in list(self.spans):
            self.forget_spans(log, self.synced)

    def forget_spans(self, log: SessionLog, end: int) -> None:
        """Forget where records of a session lie that begin at `end` or behind."""
        spans = self.spans.get(log)
        if spans is not None:
            del spans[bisect_left(spans, end) :]
            if not spans:
                del self.spans[log]

    def leave_out(self, log: SessionLog, seq: int, disk: Disk) -> bool:
        """Take no notice of a session's records up to `seq`; returns whether it has no others here. Blocks."""
        spans = self.spans[log]
        if self.data is None:
            file = disk.open(self.path)
            try:
                records = read_spans(file.read, spans)
            finally:
                file.close()
        else:
            records = [self.data[spans[i] : spans[i + 1]] for i in range(0, len(spans), 2)]
        count = sum(1 for _ in takewhile(lambda record: _seq_of(record) <= seq, records))
        del spans[: 2 * count]
        if not spans:
            del self.spans[log]
        return not spans

    def close(self) -> None:
        """Close the file, if one is open."""
        if self.file is not None:
            self.file.close()
            self.file = None


def _seq_of(record: bytes) -> int:
    """The number of a record; very high for what is none."""
    try:
        return decode_record(record + b"\n").seq
    except LineDamaged:
        return sys.maxsize


def read_spans(read: Callable[[int, int], bytes], spans: array[int]) -> list[bytes]:
    """The records at `spans`, read with few system calls: neighbours come in one read.

    `read(offset, length)` reads from the segment; fewer bytes than asked for make short records.
    """
    records: list[bytes] = []
    first = 0
    while first < len(spans):
        last = first
        while last + 2 < len(spans) and spans[last + 2] - spans[last + 1] <= _NEARBY_BYTES:
            last += 2
        base = spans[first]
        data = read(base, spans[last + 1] - base)
        records += [data[spans[i] - base : spans[i + 1] - base] for i in range(first, last + 1, 2)]
        first = last + 2
    return records
