"""The journal of one session: its records in files, each valid exactly as far as the catalog says.

Files are numbered. The newest grows by cuts; a sealed one never changes again, and its last line is an index of its
frames (see `journal_index`). Each begins with a header that names the record before its first one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple
from zlib import crc32

from session_actor.persistence.catalog.catalog_files import FileRow
from session_actor.persistence.errors import JournalCorrupt, JournalTruncated, LineDamaged
from session_actor.persistence.files.lines import read_lines
from session_actor.persistence.files.plain_file import NotPlain, open_plain
from session_actor.persistence.format.gap import Link, first_misfit
from session_actor.persistence.format.header import JournalHeader, RecordRef, decode_journal_header
from session_actor.persistence.format.record import MAX_LINE_BYTES, SUFFIX_BYTES, Record, decode_record, verify

if TYPE_CHECKING:
    from session_actor.persistence.files.storage import Disk, DiskFile
    from session_actor.persistence.log.session_log import Extent

    Owner = tuple[str, str]

PIECE_BYTES: Final = 64 * 1024
_HEADER_BYTES: Final = 16 * 1024
_READ_BYTES: Final = 1024 * 1024


class Part(NamedTuple):
    """The valid part of one journal file."""

    number: int
    size_bytes: int
    end: int
    """Where its records end: an index may follow."""
    first_seq: int | None
    """Its first record; None: not known by itself, or what the catalog says of it cannot be."""
    last_seq: int
    sum: str
    """Sum of its last record."""
    crc: int
    """CRC-32 of the valid part."""

    @staticmethod
    def of(valid: FileRow | Extent) -> Part:
        """As the catalog has it."""
        if isinstance(valid, FileRow):
            place = valid.number, valid.bytes, valid.index_offset
            first = valid.first_seq if valid.first_seq <= valid.last_seq else None
            return Part(*place, first, valid.last_seq, valid.sum, valid.crc)
        place = valid.number, valid.size_bytes, valid.size_bytes
        return Part(*place, None, valid.seq, valid.sum, valid.crc)


def open_journal(disk: Disk, path: str, part: Part, owner: Owner, *, write: bool = False) -> tuple[DiskFile, int]:
    """Open a journal file of `owner` whose valid part is all there; returns it, and where its header ends. Blocks.

    `write`: to be written, too. Raises `JournalTruncated`, `StoreVersionTooNew`, OSError, and `JournalCorrupt` for what
    is no regular file or is not that file of that session and birth.
    """
    file, _ = _open(disk, path, part, write=write)
    try:
        return file, _check_header(file.read(0, min(_HEADER_BYTES, part.end)), path, owner, part)
    except BaseException:
        file.close()
        raise


def read_header(disk: Disk, path: str) -> JournalHeader | None:
    """The header of the file at `path`; None when there is no file, or none with a sound header. Blocks.

    Raises `StoreVersionTooNew`, OSError.
    """
    try:
        file = disk.open(path)
    except FileNotFoundError:
        return None
    try:
        data = file.read(0, _HEADER_BYTES)
    finally:
        file.close()
    try:
        return decode_journal_header(data[: data.find(b"\n") + 1], path)
    except LineDamaged:
        return None


def check_end(file: DiskFile, path: str, part: Part) -> None:
    """Make sure that the valid part of a journal file ends with the record that the catalog has for its last.

    One that holds no record yet must follow that one: salvage leaves such a file. Blocks. Raises `JournalCorrupt`,
    `StoreVersionTooNew`, OSError.
    """
    if part.end <= _HEADER_BYTES and _follows_only(file.read(0, part.end), path, part):
        return
    begin = max(0, part.end - SUFFIX_BYTES)
    _check_last(file.read(begin, part.end - begin), path, part)


def _follows_only(data: bytes, path: str, part: Part) -> bool:
    """Whether these bytes are a header alone, of a file that follows the last record of the session."""
    if data.find(b"\n") != len(data) - 1:
        return False
    try:
        return decode_journal_header(data, path).continues == RecordRef(part.last_seq, part.sum)
    except LineDamaged:
        return False


def _check_last(data: bytes, path: str, part: Part) -> None:
    if data[-SUFFIX_BYTES:] != b',"sum":"%b"}\n' % part.sum.encode():
        why = f"its last record is not the record {part.last_seq} that the catalog counted"
        raise JournalCorrupt(path, part.end, part.last_seq, why)


def _open(disk: Disk, path: str, part: Part, *, write: bool = False) -> tuple[DiskFile, int]:
    """Open a journal file whose valid part is all there; returns it and how long it is."""
    try:
        file = open_plain(disk, path, write=write)
    except FileNotFoundError:
        raise JournalTruncated(path, part.size_bytes, 0) from None
    except NotPlain as error:
        raise JournalCorrupt(path, 0, 1, "it is not a regular file") from error
    try:
        size = file.size()
    except BaseException:
        file.close()
        raise
    if size < part.size_bytes:
        file.close()
        raise JournalTruncated(path, part.size_bytes, size)
    return file, size


def read_journal(disk: Disk, path: str, part: Part, owner: Owner) -> list[bytes]:
    """The record lines of a journal file, in pieces of whole lines, for `decode_records`. Blocks.

    Raises `JournalTruncated`, `JournalCorrupt`, `StoreVersionTooNew`, OSError.
    """
    file, _ = _open(disk, path, part)
    try:
        return _read_whole(file, path, part, owner)
    finally:
        file.close()


def read_behind(disk: Disk, path: str, part: Part, owner: Owner, seq: int) -> list[bytes]:
    """The record lines behind record `seq`, which is not the last, each checked, in pieces. Reads little else. Blocks.

    Raises `JournalTruncated`, `JournalCorrupt`, `StoreVersionTooNew`, OSError.
    """
    file, _ = _open(disk, path, part)
    try:
        return _read_behind(file, path, part, owner, seq)
    finally:
        file.close()


def read_newest(disk: Disk, path: str, part: Part, owner: Owner, *, behind: int | None) -> tuple[list[bytes], bool]:
    """The record lines of a session's newest file, all or those `behind` a record, and whether more follows them.

    What `read_journal` or `read_behind` does, and what `check_end` does. Blocks; raises the same.
    """
    file, size = _open(disk, path, part)
    try:
        if behind is not None:
            pieces = _read_behind(file, path, part, owner, behind)
        else:
            pieces = _read_whole(file, path, part, owner)
            if pieces:
                _check_last(pieces[-1], path, part)
            else:
                check_end(file, path, part)
    finally:
        file.close()
    return pieces, size > part.size_bytes


def _read_whole(file: DiskFile, path: str, part: Part, owner: Owner) -> list[bytes]:
    first = file.read(0, min(_READ_BYTES, part.size_bytes))
    records = _check_header(first[: min(_HEADER_BYTES, part.end)], path, owner, part)
    pieces: list[bytes] = []
    total = begin = 0
    for piece in _whole_lines(file, path, part.size_bytes, first):
        total = crc32(piece, total)
        start = 0 if begin else records
        stop = len(piece) if begin + len(piece) <= part.end else part.end - begin
        pieces += _cut(piece, start, stop)
        begin += len(piece)
    if total != part.crc:
        raise _find_damage(file, path, part)
    return pieces


def _read_behind(file: DiskFile, path: str, part: Part, owner: Owner, seq: int) -> list[bytes]:
    records = _check_header(file.read(0, min(_HEADER_BYTES, part.end)), path, owner, part)
    wanted, length = b'\n{"seq":%d,' % (seq + 1), PIECE_BYTES
    while True:
        begin = max(0, part.end - length)
        data = file.read(begin, part.end - begin)
        found = data.rfind(wanted) + 1
        if found or not begin or 4 * length > MAX_LINE_BYTES:
            break
        length *= 4
    if not found:  # a gap may hide it, which has the number of the last record that is lost
        return _search_behind(file, path, part, records, seq)
    offset = begin + found
    for line in data[found:].split(b"\n")[:-1]:
        if not verify(line + b"\n"):
            raise JournalCorrupt(path, offset, seq + 1)
        offset, seq = offset + len(line) + 1, seq + 1
    if offset != part.end:
        raise JournalCorrupt(path, offset, seq + 1, "its last line is cut off")
    _check_last(data, path, part)
    return _cut(data, found, len(data))


def _search_behind(file: DiskFile, path: str, part: Part, records: int, seq: int) -> list[bytes]:
    """The same as `read_behind`, line by line from the first record of the file, at offset `records`."""
    found: list[bytes] = []
    for line in read_lines(file, records, part.end):
        try:
            record = decode_record(line.data)
        except LineDamaged as error:
            raise JournalCorrupt(path, line.offset, seq + 1) from error
        if record.seq > seq:
            found.append(line.data)
    if not found:
        raise JournalCorrupt(path, 0, seq + 1, "it does not hold that record")
    check_end(file, path, part)
    return found


def _whole_lines(file: DiskFile, path: str, size: int, data: bytes) -> list[bytes]:
    """The first `size` bytes of a file, cut behind line ends; it begins with `data`."""
    pieces: list[bytes] = []
    kept: list[bytes] = []
    begin = offset = 0
    while offset < size:
        if offset:
            data = file.read(offset, min(_READ_BYTES, size - offset))
        if not data:
            raise JournalTruncated(path, size, offset)
        stop = len(data) if offset + len(data) == size else data.rfind(b"\n") + 1
        if stop:
            pieces.append(b"".join((*kept, data[:stop])))
            kept.clear()
            begin = offset + stop
        kept.append(data[stop:])
        offset += len(data)
        if offset - begin > MAX_LINE_BYTES:
            raise JournalCorrupt(path, begin, 0, f"a line is longer than {MAX_LINE_BYTES} bytes")
    return pieces


def _check_header(data: bytes, path: str, owner: Owner, part: Part) -> int:
    end = data.find(b"\n") + 1
    try:
        header = decode_journal_header(data[:end], path)
    except LineDamaged as error:
        raise JournalCorrupt(path, 0, 1, str(error)) from error
    if (header.session, header.birth, header.number) != (*owner, part.number):
        raise JournalCorrupt(path, 0, 1, "it belongs to another session, birth or number")
    before = header.continues.seq
    if part.first_seq not in {None, before + 1}:
        why = f"it continues record {before}, and should begin with record {part.first_seq}"
        raise JournalCorrupt(path, 0, part.first_seq or 1, why)
    return end


def _find_damage(file: DiskFile, path: str, part: Part) -> JournalCorrupt:
    """Name the first bad line of a journal file that fails its check as a whole."""
    data = file.read(0, part.end)
    offset = data.find(b"\n") + 1
    try:
        begin = decode_journal_header(data[:offset], path).continues
    except LineDamaged as error:  # it was sound a moment ago
        return JournalCorrupt(path, 0, 1, str(error))
    link = Link(begin.seq, begin.sum)
    for line in data[offset:].split(b"\n")[:-1]:
        try:
            record = decode_record(line + b"\n")
        except LineDamaged:
            return JournalCorrupt(path, offset, link.seq + 1)
        if not link.follows(record):
            return JournalCorrupt(path, offset, link.seq + 1, "a line stands where another should")
        offset, link = offset + len(line) + 1, Link.of(record)
    return JournalCorrupt(path, offset, link.seq, "its bytes are not those that the catalog counted")


def _cut(data: bytes, start: int, stop: int) -> list[bytes]:
    """Cut into pieces at line ends, so that none takes long to decode."""
    pieces: list[bytes] = []
    while start < stop:
        end = data.find(b"\n", min(start + PIECE_BYTES, stop - 1), stop) + 1 or stop
        pieces.append(data[start:end])
        start = end
    return pieces


def broken_link(records: list[Record], before: RecordRef) -> int | None:
    """Index of the first record that does not follow the one before, the first of all following `before`."""
    numbers = range(before.seq + 1, before.seq + 1 + len(records))
    sums = [before.sum, *[record.sum for record in records]]
    sums.pop()
    if [record.prev for record in records] == sums and [record.seq for record in records] == list(numbers):
        return None
    return first_misfit(records, Link(before.seq, before.sum))  # gaps are followed by what they hide
