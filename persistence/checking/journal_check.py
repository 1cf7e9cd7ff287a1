"""What verifying says of one session's journal: every file of it against its row in the catalog, line by line."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from session_actor.persistence.files.names import journal_path
from session_actor.persistence.format.frame_index import frames_in
from session_actor.persistence.format.gap import Link
from session_actor.persistence.format.record import NO_SUM
from session_actor.persistence.journals.beyond import Beyond, beyond, unknown
from session_actor.persistence.journals.journal import Part
from session_actor.persistence.journals.journal_index import IndexBuilder
from session_actor.persistence.journals.journal_walk import Bad, Good, Index, Walk
from session_actor.persistence.journals.shelf import journal_numbers

from .findings import REPAIR, SALVAGE
from .log_check import InLog

if TYPE_CHECKING:
    from collections.abc import Callable

    from session_actor.persistence.catalog.catalog import Catalog, CatalogRow
    from session_actor.persistence.files.storage import Disk

    from .findings import Findings

_REPAIR: Final = f"{REPAIR} mends it, nothing is lost"
_TAIL: Final = "nothing, the next cut overwrites it"


NOT_LOGGED: Final = InLog(0, NO_SUM, 0)


class Expected(NamedTuple):
    """One journal file as the catalog has it."""

    path: str
    """Relative to the folder of journals."""
    number: int
    first_seq: int | None
    """None: of the newest file, which begins where the one before ends."""
    last_seq: int
    sum: str
    """Of the last record."""
    bytes: int
    index_offset: int | None
    """None: the newest file, which has no index."""
    crc: int


def expected_files(catalog: Catalog, row: CatalogRow) -> list[Expected]:
    """The files of a session's journal, oldest first. Raises `CatalogCorrupt`, OSError."""
    files = [
        Expected(
            journal_path(row.session, file.number),
            file.number,
            file.first_seq,
            file.last_seq,
            file.sum,
            file.bytes,
            file.index_offset,
            file.crc,
        )
        for file in catalog.files.of(row.session, row.birth)
    ]
    newest = Expected(
        journal_path(row.session, row.journal), row.journal, None, row.seq, row.sum, row.bytes, None, row.crc
    )
    return [*files, newest]


class JournalCheck:
    """Checks one session. After `run`, `sums` are the sums of its records that were asked for."""

    def __init__(self, disk: Disk, folder: str, catalog: Catalog, findings: Findings) -> None:
        """`folder`: of the journals."""
        self.sums: dict[int, str] = {}
        self._disk = disk
        self._folder = folder
        self._catalog = catalog
        self._findings = findings
        self.uncounted: list[str] = []
        """Paths, relative to `folder`, of files that the catalog should count and does not, of the session of `run`."""
        self._session = ""
        self.path = folder
        """The file that was looked at last."""

    def run(self, row: CatalogRow, wanted: frozenset[int], logged: InLog | None) -> bool:
        """Tell what is wrong with the journal of `row`, and return whether it is whole.

        `wanted`: numbers of records whose sums are noted. `logged`: what the log has of it; None: not
        known. Raises `CatalogCorrupt`, `StoreVersionTooNew`, OSError.
        """
        self._session, self.sums, self.uncounted = row.session, {}, []
        base = self._catalog.files.base(row.session, row.birth)
        link, whole = Link(base.seq, base.sum), True
        if base.seq in wanted:
            self.sums[base.seq] = base.sum
        pruned = base.seq > 0
        for file in expected_files(self._catalog, row):
            if file.first_seq is not None and file.number >= row.journal:
                self._tell_row(file, f"the catalog counts it as sealed, and file {row.journal} as the newest")
                continue
            self.path = f"{self._folder}/{file.path}"
            walk = Walk(self._disk, self.path)
            self._findings.size_bytes += min(walk.size, file.bytes)
            problem = self._header_problem(walk, file, row)
            if problem is not None:
                self._damage("journal", walk, problem, offset=0, seq=file.first_seq or link.seq + 1)
                whole, link = False, Link(file.last_seq, file.sum)
                continue
            begin = walk.header.continues if walk.header is not None else base
            start = Link(begin.seq, begin.sum)
            hole = pruned and link.seq != begin.seq <= base.seq
            if not hole and not (start == link or (link.is_gap and start.seq == link.seq)):
                what = f"it says that it continues record {begin.seq}, not record {link.seq} of the file before"
                self._damage("journal", walk, what, offset=0, seq=link.seq + 1)
                whole = False
            if file.first_seq not in {None, begin.seq + 1}:
                what = f"it begins with record {begin.seq + 1}, and the catalog says with record {file.first_seq}"
                self._tell_row(file, what)
            good, link = self._lines(walk, file, start if hole else link, wanted)
            whole = whole and good
            self._check_beyond(walk, file, row, logged)
        return whole

    def _tell_row(self, file: Expected, what: str) -> None:
        """The catalog says of a file what is not so."""
        self._findings.damage("journal_row", f"{self._folder}/{file.path}", what, _REPAIR, session=self._session)

    def _check_beyond(self, walk: Walk, file: Expected, row: CatalogRow, logged: InLog | None) -> None:
        """What lies behind the valid part."""
        if walk.size <= file.bytes or logged is None:
            return
        found: list[Beyond] = []
        if file.first_seq is None:
            part = Part(file.number, file.bytes, file.bytes, None, file.last_seq, file.sum, file.crc)
            found = beyond(self._disk, self._folder, part, (row.session, row.birth))
        if self._tell_uncounted(found, file.last_seq, file.bytes, logged):
            return
        what = f"{walk.size - file.bytes} bytes of an unfinished cut are behind its valid part"
        self._findings.note("tail", walk.path, what, _TAIL, offset=file.bytes, session=row.session)

    def run_unknown(self, owner: tuple[str, str], logged: InLog) -> None:
        """Tell of records of a birth that lives in the log, and of which the catalog counts no file.

        `logged`: as for `run`. Raises `StoreVersionTooNew`, OSError.
        """
        self._session, self.uncounted = owner[0], []
        self.path = f"{self._folder}/{journal_path(owner[0], 1)}"
        self._tell_uncounted(unknown(self._disk, self._folder, owner), 0, 0, logged)

    def run_successor(self, row: CatalogRow, dead: Callable[[str], bool]) -> None:
        """Tell of another birth of the session that is there from its first record on, where nothing is of this one.

        The catalog is from before this one was deleted, or salvaged. `dead`: says of a birth whether it is. Raises as
        `run_unknown`.
        """
        numbers = journal_numbers(self._disk, self._folder, row.session)
        walks = [Walk(self._disk, f"{self._folder}/{journal_path(row.session, number)}") for number in numbers]
        births = {walk.header.birth if walk.header is not None else row.birth for walk in walks}
        births = {birth for birth in births if not dead(birth)}
        if row.birth not in births and len(births) == 1:
            self._tell_uncounted(unknown(self._disk, self._folder, (row.session, births.pop())), 0, 0, NOT_LOGGED)

    def _tell_uncounted(self, found: list[Beyond], seq: int, offset: int, logged: InLog) -> bool:
        """Whether records behind `seq` were found that the log does not have."""
        if not found:
            return False
        other = self._is_of_another_history(found, logged)
        if not other and logged.first == seq + 1 and found[-1].last.seq <= logged.last:
            return False
        self.uncounted = [journal_path(self._session, one.number) for one in found]
        if other:
            path = f"{self._folder}/{self.uncounted[-1]}"
            what = f"it has another record {logged.first} than the log, behind those that the catalog counts"
            self._findings.damage("journal", path, what, SALVAGE, session=self._session, seq=logged.first)
            return True
        what = f"records up to {found[-1].last.seq} follow that the catalog does not count, and the log has not"
        path = f"{self._folder}/{self.uncounted[0]}"
        self._findings.damage("uncounted", path, what, _REPAIR, offset=offset, session=self._session, seq=seq + 1)
        return True

    def _is_of_another_history(self, found: list[Beyond], logged: InLog) -> bool:
        """Whether a record of these files and the first one in the log have the same number, and differ."""
        for one in found if logged.first else ():
            if logged.first <= one.last.seq:
                walk = Walk(self._disk, f"{self._folder}/{journal_path(self._session, one.number)}")
                records = (item.record for item in walk.items(one.end) if isinstance(item, Good))
                return any(record.seq == logged.first and record.sum != logged.first_sum for record in records)
        return False

    def _header_problem(self, walk: Walk, file: Expected, row: CatalogRow) -> str | None:
        header = walk.header
        records = file.bytes if file.index_offset is None else file.index_offset
        if walk.there and walk.size < records:
            return f"it has {walk.size} of {file.bytes} bytes"
        if header is None:
            return walk.why
        if (header.session, header.birth, header.number) != (row.session, row.birth, file.number):
            return "it belongs to another session, birth or number"
        return None

    def _lines(self, walk: Walk, file: Expected, link: Link, wanted: frozenset[int]) -> tuple[bool, Link]:
        whole, after_bad, built, index = True, False, IndexBuilder(), b""
        for item in walk.items(file.bytes):
            if isinstance(item, Index) and item.offset == file.index_offset:
                index = item.line
            elif isinstance(item, Good):
                if not link.follows(item.record) and not (after_bad and item.record.seq > link.seq):
                    what = f"it stands behind record {link.seq} and does not follow it"
                    self._damage("journal", walk, what, offset=item.offset, seq=item.record.seq)
                    whole = False
                link, after_bad = Link.of(item.record), False
                built.add(item.offset, len(item.line), frames_in(item.line))
                self._findings.records += 1
                if link.seq in wanted:
                    self.sums[link.seq] = link.sum
            elif item.offset != file.index_offset:
                what = f"{_end(item) - item.offset} bytes are no sound record"
                self._damage("journal", walk, what, offset=item.offset, seq=link.seq + 1)
                whole, after_bad = False, True
        if whole:
            whole = self._check_end(walk, file, link)
        if whole:
            self._check_bytes(walk, file, index, built)
        return whole, Link(file.last_seq, file.sum, link.is_gap)

    def _check_end(self, walk: Walk, file: Expected, link: Link) -> bool:
        if (link.seq, link.sum) == (file.last_seq, file.sum):
            return True
        what = f"its last record is {link.seq}, not the record {file.last_seq} that the catalog counted"
        self._damage("journal", walk, what, offset=walk.end, seq=link.seq + 1)
        return False

    def _check_bytes(self, walk: Walk, file: Expected, index: bytes, built: IndexBuilder) -> None:
        """All records are there; compare the index with what it should say of them, and the row's sum of all bytes."""
        header, is_sealed = walk.header, file.index_offset is not None
        if is_sealed and header is not None and index != built.line(header.birth, header.number):
            self._tell_index(walk, file)
        elif walk.crc != file.crc:
            what = "every line is sound, but their bytes are not those that the catalog counted"
            self._tell_row(file, what)

    def _tell_index(self, walk: Walk, file: Expected) -> None:
        what, tell = "its index does not say which frames are in it", self._findings.damage
        if file.index_offset == file.bytes:  # so the catalog has it, and it is read whole
            what, tell = "it has no index: the disk refused it when it was to be made", self._findings.note
        tell("index", walk.path, what, _REPAIR, offset=file.index_offset, session=self._session)

    def _damage(self, kind: str, walk: Walk, what: str, *, offset: int, seq: int) -> None:
        self._findings.damage(kind, walk.path, what, SALVAGE, offset=offset, session=self._session, seq=seq)


def _end(item: Bad | Index) -> int:
    return item.end if isinstance(item, Bad) else item.offset + len(item.line)
