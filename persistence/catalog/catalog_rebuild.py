"""Making a catalog from what else is in a store: the journals, the log, and what of the old catalog can be read.

The valid end of a session's journal follows from the log: what the log still holds was not counted. For a session that
is not in the log, the journal is valid up to its last sound record. A deleted session stays deleted if its tombstone is
in the log, or in the part of the old catalog that can be read; else only the removal of its files speaks for it.

Of births that none of this tells to be dead the newest is what the session is, and no clock says which that is: all
births of an id have the numbers of their files from one row, so the one that begins with the higher number came later.
One whose beginning is gone was being removed. A copy that salvage made is the same birth as far as that goes: of the
two, the one that goes on further counts, and the original if neither does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from session_actor.persistence.checking.tree import JOURNAL_NAME
from session_actor.persistence.files.names import journal_path
from session_actor.persistence.format.frame_index import frames_in
from session_actor.persistence.format.gap import Link
from session_actor.persistence.format.header import RecordRef
from session_actor.persistence.journals.journal_index import IndexBuilder
from session_actor.persistence.journals.journal_walk import Good, Index, Walk
from session_actor.persistence.repair.mending import time_of

from .catalog import Catalog, CatalogRow
from .catalog_files import NO_INDEX, FileRow

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from session_actor.persistence.checking.log_survey import Owner
    from session_actor.persistence.files.storage import Disk
    from session_actor.persistence.layout import Layout

BATCH: Final = 500


class Known(NamedTuple):
    """What is known from elsewhere."""

    first_live: int
    firsts: Mapping[Owner, int]
    """The oldest record in the log of each birth that lives."""
    dead: set[Owner]
    covered: Callable[[str, str], int]
    """The newest record that a good snapshot of a session and birth covers; 0: there is no snapshot."""


def rebuild_catalog(disk: Disk, layout: Layout, path: str, known: Known) -> Catalog:
    """A new catalog at `path`, open. Blocks. Raises `StoreVersionTooNew`, OSError."""
    catalog = Catalog(path)
    catalog.open(create=True)
    try:
        rows: list[CatalogRow] = []
        sealed: list[FileRow] = []
        for rebuilt in _sessions(disk, layout, known):
            rows.append(rebuilt.row)
            sealed += rebuilt.sealed
            if rebuilt.base.seq:
                catalog.files.drop(rebuilt.row.session, rebuilt.row.birth, [], forgotten=[], base=rebuilt.base)
            if len(rows) >= BATCH:
                catalog.commit_cut(rows, [], known.first_live, sealed)
                rows, sealed = [], []
        catalog.commit_cut(rows, sorted(known.dead), known.first_live, sealed)
    except BaseException:
        catalog.close()
        raise
    return catalog


class Rebuilt(NamedTuple):
    """What the catalog is to know of one session."""

    row: CatalogRow
    sealed: list[FileRow]
    base: RecordRef
    begins: tuple[bool, int]
    """Whether its first record is there, or was pruned, and the number of its first file."""
    origin: str
    """The birth that it copies, or its own."""


def _sessions(disk: Disk, layout: Layout, known: Known) -> Iterator[Rebuilt]:
    for shelf in disk.list(layout.journals):
        stems: dict[str, list[int]] = {}
        for name in disk.list(f"{layout.journals}/{shelf}"):
            match = JOURNAL_NAME.fullmatch(name)
            if match is not None:
                stems.setdefault(f"{shelf}/{match[1]}-{match[2]}", []).append(int(match[3]))
        for stem, numbers in stems.items():
            births = _births(disk, layout.journals, stem, sorted(numbers), known)
            if births:
                yield _newest(births)


def _newest(births: list[Rebuilt]) -> Rebuilt:
    origin = max(births, key=lambda one: one.begins).origin
    return max((one for one in births if one.origin == origin), key=lambda one: (one.row.seq, -one.row.journal))


def _births(disk: Disk, folder: str, stem: str, numbers: list[int], known: Known) -> list[Rebuilt]:
    """The session of these files, once for each birth that they have and that is not dead."""
    walks = [(number, Walk(disk, f"{folder}/{stem}-{number}.ndjson")) for number in numbers]
    found = {(walk.header.session, walk.header.birth) for _, walk in walks if walk.header is not None}
    owners = {owner for owner in found if journal_path(owner[0], 0).startswith(f"{stem}-")} - known.dead
    alive = sorted(owner for owner in owners if owner in known.firsts) or sorted(owners)
    return [rebuilt for owner in alive if (rebuilt := _Files(owner, known).read(walks, owners)) is not None]


class _Files:
    """Reads the files of one birth into rows."""

    def __init__(self, owner: Owner, known: Known) -> None:
        self._session, self._birth = owner
        self._until = known.firsts.get(owner)
        """The first record that is in the log."""
        self._covered = known.covered(*owner)
        self._created_us = 0
        self._base = RecordRef()
        self._sealed: list[FileRow] = []
        self._newest: CatalogRow | None = None

    def read(self, walks: list[tuple[int, Walk]], owners: set[Owner]) -> Rebuilt | None:
        """None when there is no record."""
        link = Link()
        mine = [(number, walk) for number, walk in walks if self._may_be_mine(walk, owners)]
        for place, (number, walk) in enumerate(mine):
            begin = link if walk.header is None else Link(walk.header.continues.seq, walk.header.continues.sum)
            if link.seq < begin.seq <= self._covered:
                self._base = RecordRef(begin.seq, begin.sum)
            link, ended = self._read_file(number, walk, begin, _end_of(number, walk, begin, mine[place + 1 :]))
            if ended:
                break
        if self._newest is None or not self._newest.seq:
            return None
        number, walk = mine[0]
        is_whole = bool(self._base.seq) or (walk.header is not None and not walk.header.continues.seq)
        copies = [walk.header.copies for _, walk in mine if walk.header is not None and walk.header.copies]
        return Rebuilt(self._newest, self._sealed, self._base, (is_whole, number), copies[0] if copies else self._birth)

    def _may_be_mine(self, walk: Walk, owners: set[Owner]) -> bool:
        if walk.header is None:
            return walk.there and len(owners) == 1
        return (walk.header.session, walk.header.birth) == (self._session, self._birth)

    def _read_file(self, number: int, walk: Walk, link: Link, after: RecordRef | None) -> tuple[Link, bool]:
        """Make the row of a file; returns its last record, and whether the log goes on inside it.

        `after`: its last record, says the next file, which shows that it was sealed; None: it is the newest.
        """
        index, end, first, index_offset = IndexBuilder(), walk.begin, link.seq + 1, 0
        for item in walk.items():
            if isinstance(item, Index):
                index_offset = item.offset
            elif isinstance(item, Good):
                if self._until is not None and item.record.seq >= self._until:
                    after = None
                    break
                index.add(item.offset, len(item.line), frames_in(item.line))
                end, link = item.offset + len(item.line), Link.of(item.record)
                self._created_us = self._created_us or time_of(item.record)
        ended = after is None
        if after is None:
            self._newest = CatalogRow(
                self._session, self._birth, self._created_us, number, end, link.seq, link.sum, walk.crc_of(end)
            )
        else:
            self._seal(number, first, after, walk, index, index_offset or end)
        return link, ended

    def _seal(  # noqa: PLR0917 - all that is known of the file
        self, number: int, first: int, last: RecordRef, walk: Walk, index: IndexBuilder, index_offset: int
    ) -> None:
        frames = (index.first_frame, index.last_frame) if index_offset < walk.size else (0, NO_INDEX)
        self._sealed.append(
            FileRow(
                self._session,
                self._birth,
                number,
                first,
                last.seq,
                *frames,
                walk.size,
                index_offset,
                last.sum,
                walk.crc_of(walk.size),
            )
        )


def _end_of(number: int, walk: Walk, begin: Link, following: list[tuple[int, Walk]]) -> RecordRef | None:
    """The last record of file `number`, as the next one names it, or by its own lines; None: there is no later one."""
    if not following:
        return None
    header = following[0][1].header
    if header is not None and following[0][0] == number + 1:
        return header.continues
    last = begin
    for item in walk.items():
        last = Link.of(item.record) if isinstance(item, Good) else last
    return RecordRef(last.seq, last.sum)
