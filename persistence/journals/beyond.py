"""What lies behind the valid part of a session's journal: what a cut left that was not finished, or records.

The records of a cut that was not finished are all in the log still. Sound records that go on from the journal's last
one, and that the log does not have, were counted once: then it is the catalog that is older than the journal.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from session_actor.persistence.errors import LineDamaged, StoreCorrupt
from session_actor.persistence.files.lines import read_lines
from session_actor.persistence.files.names import journal_path
from session_actor.persistence.files.plain_file import NotPlain, open_plain
from session_actor.persistence.format.gap import Link
from session_actor.persistence.format.header import RecordRef, decode_journal_header
from session_actor.persistence.format.record import MAX_LINE_BYTES, decode_record, verify

from .journal_index import INDEX_START
from .shelf import journal_numbers

if TYPE_CHECKING:
    from collections.abc import Iterator

    from session_actor.persistence.files.lines import Line
    from session_actor.persistence.files.storage import Disk, DiskFile

    from .journal import Part

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
    return _chain(disk, folder, owner, Beyond(part.number, part.end, Link(part.last_seq, part.sum), None))


def unknown(disk: Disk, folder: str, owner: Owner) -> list[Beyond]:
    """The same of a journal of which no file is counted, from its first record on. Blocks; raises the same."""
    numbers = journal_numbers(disk, folder, owner[0])
    chains = [_chain(disk, folder, owner, Beyond(number, 0, Link(), None)) for number in numbers]
    return max(chains, key=lambda chain: chain[-1].last.seq if chain else 0, default=list[Beyond]())


def uncounted(path: str, offset: int, last_seq: int) -> StoreCorrupt:
    """The error for records up to `last_seq` that are sound, that nobody counts, and that the log does not have."""
    what = f"records up to {last_seq} follow that the catalog does not count"
    return StoreCorrupt(path, f"{what}: it is older than the journal (offset {offset})")


def _chain(disk: Disk, folder: str, owner: Owner, begin: Beyond) -> list[Beyond]:
    """What follows `begin`, in its file and in those that go on from it; empty when there is no record in them."""
    found: list[Beyond] = []
    one = _read(disk, folder, owner, begin)
    while one is not None:
        found.append(one)
        one = None if one.sealed is None else _next(disk, folder, owner, one)
    return [] if found and found[-1].last.seq == begin.last.seq else found


def _next(disk: Disk, folder: str, owner: Owner, before: Beyond) -> Beyond | None:
    """The file that goes on from `before`: the next one, or, where that is another's, a later one."""
    numbers = journal_numbers(disk, folder, owner[0])
    later = (Beyond(number, 0, before.last, None) for number in numbers if number > before.number)
    return next((one for begin in later if (one := _read(disk, folder, owner, begin)) is not None), None)


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
