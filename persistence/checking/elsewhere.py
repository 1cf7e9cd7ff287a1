"""Whether all records of a file that no session counts are somewhere else: in the log, or in a journal that counts."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Final

from session_actor.persistence.format.gap import GAP
from session_actor.persistence.journals.journal_walk import Good, Walk

from .journal_check import expected_files

if TYPE_CHECKING:
    from session_actor.persistence.catalog.catalog import Catalog
    from session_actor.persistence.files.storage import Disk
    from session_actor.persistence.format.record import Record

    from .log_check import LogCheck

RECORDS_MAX: Final = 200_000
"""So many records are compared at once; a file with more counts as one that holds something else."""


def records_in(walk: Walk) -> set[int] | None:
    """Names of all records of a file, gaps aside; None: they are too many. Blocks. Raises OSError."""
    found: set[int] = set()
    for item in walk.items():
        if isinstance(item, Good) and item.record.kind != GAP:
            found.add(_name(item.record))
            if len(found) > RECORDS_MAX:
                return None
    return found


def missing_elsewhere(
    disk: Disk, folder: str, catalog: Catalog, log: LogCheck, wanted: dict[str, set[int]]
) -> dict[str, set[int]]:
    """Of each session those records of `wanted`, by their names, that are nowhere. Blocks.

    `folder`: of the journals; what the disk refuses of them is nowhere. Raises OSError when it refuses the log.
    """
    left = {session: set(records) for session, records in wanted.items()}
    for logged in log.survey.records():
        first = log.firsts.get(logged.owner) if logged.owner[0] in left else None
        if first is not None and logged.record.seq >= first:  # what is before goes with the next cut
            left[logged.owner[0]].discard(_name(logged.record))
    for session, records in left.items():
        row = catalog.get(session) if records else None
        for file in [] if row is None else expected_files(catalog, row):
            with contextlib.suppress(OSError):
                walk = Walk(disk, f"{folder}/{file.path}")
                records.difference_update(
                    _name(item.record) for item in walk.items(file.bytes) if isinstance(item, Good)
                )
    return left


def _name(record: Record) -> int:
    """Number and sum of a record, which covers the sum of the one before."""
    return record.seq << 32 | int(record.sum, 16)
