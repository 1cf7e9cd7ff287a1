"""Files of journals and snapshots that no session counts: left behind by a cut, a deletion, a salvage, or strangers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from session_actor.persistence.errors import LineDamaged
from session_actor.persistence.files.names import journal_path
from session_actor.persistence.format.header import decode_snapshot_header
from session_actor.persistence.journals.journal_walk import Walk
from session_actor.persistence.log.segment_file import read_segment
from session_actor.persistence.snapshots.snapshot import TEMPORARY

from .elsewhere import RECORDS_MAX, missing_elsewhere, records_in
from .findings import REPAIR
from .tree import JOURNAL_ANEW, JOURNAL_NAME, SHELF_NAME

if TYPE_CHECKING:
    from collections.abc import Container, Iterator

    from session_actor.persistence.catalog.catalog import Catalog
    from session_actor.persistence.files.storage import Disk

    from .findings import Findings
    from .log_check import LogCheck
    from .log_survey import Owner

HEADER_BYTES: Final = 16 * 1024
_REMOVE: Final = f"{REPAIR} removes it"
_ASIDE: Final = f"{REPAIR} moves it aside"


class _Unsure(NamedTuple):
    """A journal file that nobody counts, and that is of no birth that is dead."""

    path: str
    session: str
    records: set[int] | None
    """None: it stays, whatever it holds."""
    is_older: bool
    """Whether it lies before the newest file of its journal."""


class Orphans:
    """Looks through the folders of a store for such files, once the catalog and the log are known."""

    def __init__(self, disk: Disk, catalog: Catalog, log: LogCheck, findings: Findings) -> None:
        """`findings`: where they are told."""
        self._disk = disk
        self._catalog = catalog
        self._log = log
        self._findings = findings

    def check_journals(self, folder: str, expected: set[int]) -> None:
        """`expected`: hashes of the paths that count, relative to `folder`. Raises `StoreVersionTooNew`."""
        findings, unsure, records = self._findings, list[_Unsure](), 0
        for path in self._files(folder):
            if hash(path) in expected:
                continue
            whole = f"{folder}/{path}"
            if JOURNAL_ANEW.fullmatch(path.rpartition("/")[2]) is not None:
                findings.note("leftover", whole, "a cut that was not finished left it", _REMOVE)
                continue
            if JOURNAL_NAME.fullmatch(path.rpartition("/")[2]) is None:
                findings.note("stranger", whole, "it is no journal", "move it away if it is not wanted")
                continue
            try:
                one = self._judge(Walk(self._disk, whole))
            except OSError as error:
                findings.refused(whole, error)
                continue
            if one is not None:
                unsure.append(one)
                records += len(one.records or ())
            if records > RECORDS_MAX:
                self._compare(folder, unsure)
                unsure, records = [], 0
        self._compare(folder, unsure)

    def _judge(self, walk: Walk) -> _Unsure | None:
        """Tell what a journal is that nobody counts; None: its records must be compared for that."""
        findings, header = self._findings, walk.header
        if header is None:
            findings.note("unreadable", walk.path, f"no session counts it, and {walk.why}", _ASIDE)
            return None
        session, birth, number = header.session, header.birth, _number(walk.path)
        row = self._catalog.get(session)
        if birth in self._catalog.dead_births(session) or (session, birth) in self._log.dead:
            what = "it is of a birth that was deleted or replaced"
            findings.note("dead", walk.path, what, _REMOVE, session=session)
            return None
        if row is not None and number in self._catalog.files.numbers(session, birth, dropped=True):
            findings.note("leftover", walk.path, "it was pruned", _REMOVE, session=session)
            return None
        is_now = (session, birth) in self._log.links or (row is not None and row.birth == birth)
        is_named = walk.path.endswith(f"/{journal_path(session, number)}")
        records = records_in(walk) if is_named and (is_now or header.copies is not None) else None
        is_older = is_named and is_now and row is not None and number < row.journal
        return _Unsure(walk.path, session, records, is_older=is_older)

    def _compare(self, folder: str, unsure: list[_Unsure]) -> None:
        """Tell which of these files hold nothing but what is elsewhere."""
        wanted: dict[str, set[int]] = {}
        for one in unsure:
            wanted.setdefault(one.session, set()).update(one.records or ())
        try:
            missing = missing_elsewhere(self._disk, folder, self._catalog, self._log, wanted)
        except OSError as error:
            self._findings.refused(folder, error)
            return
        for one in unsure:
            findings = self._findings
            if one.records is not None and one.records.isdisjoint(missing[one.session]):
                what = "a cut or a salvage that was not finished left it"
                findings.note("leftover", one.path, what, _REMOVE, session=one.session)
            elif one.is_older:  # what a journal misses is told where it is missing
                what = "the catalog does not count it: a cut that the disk refused left it"
                findings.note("orphan", one.path, what, _ASIDE, session=one.session)
            else:
                findings.damage("orphan", one.path, "the catalog does not know it", _ASIDE, session=one.session)

    def check_snapshots(self, folder: str, told: Container[str]) -> None:
        """`told`: paths of bad ones that were told already. Raises `StoreVersionTooNew`."""
        findings = self._findings
        for path in self._files(folder):
            whole = f"{folder}/{path}"
            if path.endswith(TEMPORARY):
                findings.note("leftover", whole, "a snapshot that was not finished left it", _REMOVE)
                continue
            try:
                owner = _owner_of(self._disk, whole)
            except LineDamaged as error:
                if whole not in told:
                    findings.damage("snapshot", whole, str(error), _ASIDE)
                continue
            except OSError as error:
                if whole not in told:
                    findings.refused(whole, error)
                continue
            row = self._catalog.get(owner[0])
            if owner in self._log.links or (row is not None and row.birth == owner[1]):
                continue
            if owner[1] in self._catalog.dead_births(owner[0]) or owner in self._log.dead:
                what = "it is of a birth that was deleted or replaced"
                findings.note("dead", whole, what, _REMOVE, session=owner[0])
            else:
                findings.note("orphan", whole, "the catalog does not know its birth", _ASIDE, session=owner[0])

    def _files(self, folder: str) -> Iterator[str]:
        """Paths relative to `folder`."""
        for shelf in self._names(folder):
            if SHELF_NAME.fullmatch(shelf):
                for name in self._names(f"{folder}/{shelf}"):
                    yield f"{shelf}/{name}"

    def _names(self, folder: str) -> list[str]:
        try:
            return self._disk.list(folder)
        except OSError as error:
            self._findings.refused(folder, error)
            return []


def _owner_of(disk: Disk, path: str) -> Owner:
    """Session and birth of a snapshot. Raises `LineDamaged`, `StoreVersionTooNew`, OSError."""
    start, why = read_segment(disk, path, HEADER_BYTES)
    if why:
        raise LineDamaged(why)
    header = decode_snapshot_header(start[: start.find(b"\n") + 1], path)
    return header.session, header.birth


def _number(path: str) -> int:
    """Of a journal file in its journal."""
    return int(path.rpartition("-")[2].removesuffix(".ndjson"))
