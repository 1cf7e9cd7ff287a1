"""The journal of one session: its records in one file, valid exactly as far as the catalog says."""

from __future__ import annotations

import errno
from typing import TYPE_CHECKING
from zlib import crc32

from .errors import JournalCorrupt, JournalTruncated, LineDamaged
from .gap import Link, first_misfit
from .header import JournalHeader, decode_journal_header, encode_journal_header
from .record import NO_SUM, Record, decode_record
from .session_log import Extent

if TYPE_CHECKING:
    from .session_log import SessionLog
    from .storage import Disk, DiskFile

PIECE_BYTES = 64 * 1024


def append_to_journal(file: DiskFile, log: SessionLog, extent: Extent | None, lines: bytes, last: Record) -> Extent:
    """Write record lines behind the valid part of a journal, and return the new valid part. Blocks; does not sync.

    `extent`: the valid part, None to begin the journal. `lines`: journal lines of `log`, `last` the last of them. What
    a cut that was not finished left behind is overwritten.
    """
    if extent is None:
        header, _ = encode_journal_header(JournalHeader(log.session, log.birth, 1))
        file.truncate(0)
        extent = Extent(1, 0, 0, NO_SUM, 0)
        lines = header + lines
    file.write(lines, extent.size_bytes)
    crc = crc32(lines, extent.crc)
    return Extent(extent.number, extent.size_bytes + len(lines), last.seq, last.sum, crc)


def read_journal(disk: Disk, path: str, log: SessionLog, extent: Extent) -> list[bytes]:
    """The valid record lines of a journal, in pieces of whole lines, for `decode_records`. Blocks.

    Raises `JournalTruncated`, `JournalCorrupt`, `StoreVersionTooNew`, OSError.
    """
    try:
        file = disk.open(path)
    except FileNotFoundError:
        raise JournalTruncated(path, extent.size_bytes, 0) from None
    except OSError as error:
        if error.errno in {errno.ELOOP, errno.EINVAL, errno.ENXIO, errno.EISDIR}:
            raise JournalCorrupt(path, 0, 1, "it is not a regular file") from error
        raise
    try:
        data = file.read(0, extent.size_bytes)
    finally:
        file.close()
    if len(data) < extent.size_bytes:
        raise JournalTruncated(path, extent.size_bytes, len(data))
    start = _check_header(data, path, log)
    if crc32(data) != extent.crc:
        raise _find_damage(data, start, path)
    return _pieces(data, start)


def _check_header(data: bytes, path: str, log: SessionLog) -> int:
    end = data.find(b"\n", 0, PIECE_BYTES) + 1
    try:
        header = decode_journal_header(data[:end], path)
    except LineDamaged as error:
        raise JournalCorrupt(path, 0, 1, str(error)) from error
    if (header.session, header.birth) != (log.session, log.birth):
        raise JournalCorrupt(path, 0, 1, "it belongs to another session or birth")
    return end


def _find_damage(data: bytes, start: int, path: str) -> JournalCorrupt:
    """Name the first bad line of a journal that fails its check as a whole."""
    offset, seq, previous = start, 1, NO_SUM
    for line in data[start:].splitlines(keepends=True):
        try:
            record = decode_record(line)
        except LineDamaged:
            return JournalCorrupt(path, offset, seq)
        if (record.seq, record.prev) != (seq, previous):
            return JournalCorrupt(path, offset, seq, "a line stands where another should")
        offset, seq, previous = offset + len(line), seq + 1, record.sum
    return JournalCorrupt(path, start, seq, "its bytes are not those that the catalog counted")


def _pieces(data: bytes, start: int) -> list[bytes]:
    """Cut into pieces at line ends, so that none takes long to decode."""
    pieces: list[bytes] = []
    while start < len(data):
        end = data.find(b"\n", start + PIECE_BYTES) + 1 or len(data)
        pieces.append(data[start:end])
        start = end
    return pieces


def broken_link(records: list[Record], seq: int, total: str) -> int | None:
    """Index of the first record that does not follow the one before, the first of all following (`seq`, `total`)."""
    expected = [(seq + 1, total), *((record.seq + 1, record.sum) for record in records)]
    found = [(record.seq, record.prev) for record in records]
    if expected[:-1] == found:
        return None
    return first_misfit(records, Link(seq, total))  # gaps are followed by what they hide
