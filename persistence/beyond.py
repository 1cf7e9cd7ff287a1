"""What lies behind the valid part of a session's journal: what a cut left that was not finished, or records.

The records of a cut that was not finished are all in the log still. Sound records that go on from the journal's last
one, and that the log does not have, were counted once: then it is the catalog that is older than the journal.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from .errors import LineDamaged, StoreCorrupt
from .gap import Link
from .header import RecordRef, decode_journal_header
from .journal_index import INDEX_START
from .lines import read_lines
from .names import journal_path
from .plain_file import NotPlain, open_plain
from .record import MAX_LINE_BYTES, decode_record, verify

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .journal import Part
    from .lines import Line
    from .storage import Disk, DiskFile

    Owner = tuple[str, str]


class Beyond(NamedTuple):
    """How far the records of one file follow one another."""

    number: int
    end: int
    """Where the last of them ends."""
    last: Link
    """The last of them."""
    sealed: int | None
    """Where the index ends that is behind them; None: there is none."""


def beyond(disk: Disk, folder: str, part: Part, owner: Owner) -> list[Beyond]:
    """What follows the valid part of a journal's newest file, in it and in those of higher numbers. Blocks.

    `folder`: of the journals. Empty: no record does. Raises `StoreVersionTooNew`, OSError.
    """
    found: list[Beyond] = []
    start = Link(part.last_seq, part.sum)
    one = _read(disk, folder, owner, Beyond(part.number, part.end, start, None))
    while one is not None:
        found.append(one)
        if one.sealed is None:
            break
        one = _read(disk, folder, owner, Beyond(one.number + 1, 0, one.last, None))
    if found and found[-1].last.seq == start.seq:
        return []
    return found


def uncounted(path: str, offset: int, found: list[Beyond]) -> StoreCorrupt:
    """The error for records that are sound, that nobody counts, and that the log does not have."""
    last = found[-1].last.seq
    why = f"records up to {last} follow that the catalog does not count: it is older than the journal (offset {offset})"
    return StoreCorrupt(path, why)


def _read(disk: Disk, folder: str, owner: Owner, begin: Beyond) -> Beyond | None:
    """What follows `begin`; None when that file is not there or is another's."""
    path = f"{folder}/{journal_path(owner[0], begin.number)}"
    try:
        file = open_plain(disk, path)
    except (FileNotFoundError, NotPlain):
        return None
    try:
        lines = _lines(file, begin.end)
        if not begin.end:
            header = next(lines, None)
            if header is None or not _continues(header, path, owner, begin):
                return None
            begin = begin._replace(end=header.end)
        return _follow(lines, begin)
    finally:
        file.close()


def _lines(file: DiskFile, at: int) -> Iterator[Line]:
    """The whole lines from offset `at`, up to the first that is longer than any can be."""
    begin = -1
    while begin != at and file.read(at, 1) == b"{":
        begin = at
        for line in read_lines(file, at, at + MAX_LINE_BYTES):
            if not line.data.endswith(b"\n"):
                break
            at = line.end
            yield line


def _continues(line: Line, path: str, owner: Owner, begin: Beyond) -> bool:
    try:
        header = decode_journal_header(line.data, path)
    except LineDamaged:
        return False
    before = RecordRef(begin.last.seq, begin.last.sum)
    return (header.session, header.birth, header.number, header.continues) == (*owner, begin.number, before)


def _follow(lines: Iterator[Line], found: Beyond) -> Beyond:
    for line in lines:
        if line.data.startswith(INDEX_START) and verify(line.data):
            return found._replace(sealed=line.end)
        try:
            record = decode_record(line.data)
        except LineDamaged:
            break
        if not found.last.follows(record):
            break
        found = found._replace(end=line.end, last=Link.of(record))
    return found
