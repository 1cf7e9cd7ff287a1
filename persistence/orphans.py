"""Files of journals and snapshots that no session counts: left behind by a cut, a deletion, a salvage, or strangers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from .errors import LineDamaged
from .findings import REPAIR
from .header import decode_snapshot_header
from .journal_walk import Walk
from .names import journal_path
from .segment_file import read_segment
from .snapshot import TEMPORARY
from .tree import JOURNAL_NAME, SHELF_NAME

if TYPE_CHECKING:
    from collections.abc import Container, Iterator

    from .catalog import Catalog
    from .findings import Findings
    from .log_check import LogCheck
    from .log_survey import Owner
    from .storage import Disk

HEADER_BYTES: Final = 16 * 1024
_REMOVE: Final = f"{REPAIR} removes it"
_ASIDE: Final = f"{REPAIR} moves it aside"


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
        findings = self._findings
        for path in self._files(folder):
            if hash(path) in expected:
                continue
            whole = f"{folder}/{path}"
            match = JOURNAL_NAME.fullmatch(path.rpartition("/")[2])
            if match is None:
                findings.note("stranger", whole, "it is no journal", "move it away if it is not wanted")
                continue
            try:
                walk = Walk(self._disk, whole)
            except OSError as error:
                findings.refused(whole, error)
                continue
            if walk.header is None:
                findings.note("unreadable", whole, f"no session counts it, and {walk.why}", _ASIDE)
                continue
            self._judge(whole, (walk.header.session, walk.header.birth), int(match[3]))

    def _judge(self, path: str, owner: Owner, number: int) -> None:
        """What a journal is that nobody counts; `number`: of the file in its journal."""
        session, birth = owner
        catalog, log, findings = self._catalog, self._log, self._findings
        row, named = catalog.get(session), path.endswith(f"/{journal_path(session, number)}")
        if birth in catalog.dead_births(session) or owner in log.dead:
            findings.note("dead", path, "it is of a birth that was deleted or replaced", _REMOVE, session=session)
        elif named and (owner in log.links if row is None else number > row.journal):
            what = "a cut or a salvage that was not finished left it"
            findings.note("leftover", path, what, _REMOVE, session=session)
        elif row is not None and number in catalog.files.numbers(session, birth, dropped=True):
            findings.note("leftover", path, "it was pruned", _REMOVE, session=session)
        elif named and row is not None and row.birth == birth:  # what a journal misses is told where it is missing
            what = "the catalog does not count it: a cut that the disk refused left it"
            findings.note("orphan", path, what, _ASIDE, session=session)
        else:
            findings.damage("orphan", path, "the catalog does not know it", _ASIDE, session=session)

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
            if owner not in self._log.links and (row is None or row.birth != owner[1]):
                what = "it is of a birth that was deleted or replaced"
                findings.note("dead", whole, what, _REMOVE, session=owner[0])

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
