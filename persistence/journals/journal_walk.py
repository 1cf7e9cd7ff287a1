"""Reading one journal file of any content, line by line, in bounded memory, past what is damaged."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple
from zlib import crc32

from session_actor.persistence.errors import LineDamaged
from session_actor.persistence.files.lines import PIECE_BYTES, read_lines
from session_actor.persistence.files.plain_file import NotPlain, open_plain
from session_actor.persistence.format.header import JournalHeader, decode_journal_header
from session_actor.persistence.format.record import Record, decode_record, verify

if TYPE_CHECKING:
    from collections.abc import Iterator

    from session_actor.persistence.files.storage import Disk

INDEX_START: Final = b'{"index":'
"""What the last line of a sealed file starts with, and no other."""
NO_LIMIT: Final = 1 << 62
_MISSING: Final = "it is missing"


class Good(NamedTuple):
    """A sound record."""

    offset: int
    line: bytes
    record: Record


class Bad(NamedTuple):
    """Bytes that are no sound line, as many as lie together."""

    offset: int
    end: int


class Index(NamedTuple):
    """A sound index line."""

    offset: int
    line: bytes


class Walk:
    """One journal file. `header` is None and `why` says the reason when it cannot be read or has no sound header."""

    def __init__(self, disk: Disk, path: str) -> None:
        """Reads the header. Raises `StoreVersionTooNew`, OSError."""
        self.path = path
        self.header: JournalHeader | None = None
        self.why = ""
        self.size = 0
        """Length of the file; 0 for one that is not there or no plain file."""
        self.there = False
        self.crc: int | None = None
        """After `items`: CRC-32 of what was read; None when that cannot be told."""
        self.end = 0
        """After `items`: where reading ended."""
        self.begin = 0
        """Where the header ends."""
        self._disk = disk
        self._read_header()

    def _read_header(self) -> None:
        try:
            file = open_plain(self._disk, self.path)
        except FileNotFoundError:
            self.why = _MISSING
            return
        except NotPlain:
            self.why = "it is no plain file"
            return
        try:
            self.there, self.size = True, file.size()
            first = next(read_lines(file, 0, self.size), None)
        finally:
            file.close()
        try:
            self.header = decode_journal_header(b"" if first is None else first.data, self.path)
        except LineDamaged as error:
            self.why = str(error)
        self.begin = 0 if first is None or self.header is None else first.end

    def items(self, limit: int = NO_LIMIT) -> Iterator[Good | Bad | Index]:
        """What the file holds behind its header, up to offset `limit`. A damaged header is bad bytes like others.

        Raises OSError.
        """
        if not self.there:
            return
        file = self._disk.open(self.path)
        bad: Bad | None = None
        try:
            self.crc = crc32(file.read(0, self.begin))
            self.end = self.begin
            for line in read_lines(file, self.begin, limit):
                self.end = line.end
                self.crc = crc32(line.data, self.crc) if line.data and self.crc is not None else None
                item = _read(line.offset, line.data)
                if item is None:
                    bad = Bad(line.offset if bad is None else bad.offset, line.end)
                    continue
                if bad is not None:
                    yield bad
                    bad = None
                yield item
            if bad is not None:
                yield bad
        finally:
            file.close()

    def crc_of(self, size: int) -> int:
        """CRC-32 of the first `size` bytes. Blocks. Raises OSError."""
        total, position = 0, 0
        file = self._disk.open(self.path)
        try:
            while position < size and (piece := file.read(position, min(PIECE_BYTES, size - position))):
                total = crc32(piece, total)
                position += len(piece)
        finally:
            file.close()
        return total


def _read(offset: int, line: bytes) -> Good | Index | None:
    if line.startswith(INDEX_START):
        return Index(offset, line) if verify(line) else None
    try:
        return Good(offset, line, decode_record(line))
    except LineDamaged:
        return None
