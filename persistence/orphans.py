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


def check_journal_files(  # noqa: PLR0917
    disk: Disk, folder: str, catalog: Catalog, log: LogCheck, expected: set[int], findings: Findings
) -> None:
    """`expected`: hashes of the paths that count, relative to `folder`. Raises `StoreVersionTooNew`."""
    for path in _files(disk, folder, findings):
        if hash(path) in expected:
            continue
        whole = f"{folder}/{path}"
        match = JOURNAL_NAME.fullmatch(path.rpartition("/")[2])
        if match is None:
            findings.note("stranger", whole, "it is no journal", "move it away if it is not wanted")
            continue
        try:
            walk = Walk(disk, whole)
        except OSError as error:
            findings.refused(whole, error)
            continue
        if walk.header is None:
            findings.note("unreadable", whole, f"no session counts it, and {walk.why}", _ASIDE)
            continue
        owner = (walk.header.session, walk.header.birth)
        _judge(whole, owner, int(match[3]), catalog, log, findings)


def _judge(  # noqa: PLR0917
    path: str, owner: Owner, number: int, catalog: Catalog, log: LogCheck, findings: Findings
) -> None:
    session, birth = owner
    row, named = catalog.get(session), path.endswith(f"/{journal_path(session, number)}")
    if birth in catalog.dead_births(session) or owner in log.dead:
        findings.note("dead", path, "it is of a birth that was deleted or replaced", _REMOVE, session=session)
    elif named and (owner in log.links if row is None else number > row.journal):
        findings.note("leftover", path, "a cut or a salvage that was not finished left it", _REMOVE, session=session)
    elif row is not None and number in catalog.files.numbers(session, birth, dropped=True):
        findings.note("leftover", path, "it was pruned", _REMOVE, session=session)
    elif named and row is not None and row.birth == birth:  # what is missing of a journal is told where it is missing
        what = "the catalog does not count it: a cut that the disk refused left it"
        findings.note("orphan", path, what, _ASIDE, session=session)
    else:
        findings.damage("orphan", path, "the catalog does not know it", _ASIDE, session=session)


def check_snapshot_files(  # noqa: PLR0917
    disk: Disk, folder: str, catalog: Catalog, log: LogCheck, findings: Findings, told: Container[str]
) -> None:
    """`told`: paths of bad ones that were told already. Raises `StoreVersionTooNew`."""
    for path in _files(disk, folder, findings):
        whole = f"{folder}/{path}"
        if path.endswith(TEMPORARY):
            findings.note("leftover", whole, "a snapshot that was not finished left it", _REMOVE)
            continue
        try:
            owner = _owner_of(disk, whole)
        except LineDamaged as error:
            if whole not in told:
                findings.damage("snapshot", whole, str(error), _ASIDE)
            continue
        except OSError as error:
            if whole not in told:
                findings.refused(whole, error)
            continue
        row = catalog.get(owner[0])
        if owner not in log.links and (row is None or row.birth != owner[1]):
            findings.note("dead", whole, "it is of a birth that was deleted or replaced", _REMOVE, session=owner[0])


def _owner_of(disk: Disk, path: str) -> Owner:
    """Session and birth of a snapshot. Raises `LineDamaged`, `StoreVersionTooNew`, OSError."""
    start, why = read_segment(disk, path, HEADER_BYTES)
    if why:
        raise LineDamaged(why)
    header = decode_snapshot_header(start[: start.find(b"\n") + 1], path)
    return header.session, header.birth


def _files(disk: Disk, folder: str, findings: Findings) -> Iterator[str]:
    """Paths relative to `folder`."""
    for shelf in _names(disk, folder, findings):
        if SHELF_NAME.fullmatch(shelf):
            for name in _names(disk, f"{folder}/{shelf}", findings):
                yield f"{shelf}/{name}"


def _names(disk: Disk, folder: str, findings: Findings) -> list[str]:
    try:
        return disk.list(folder)
    except OSError as error:
        findings.refused(folder, error)
        return []
