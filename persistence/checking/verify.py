"""Reading a whole store once, and telling what is not as it should be. Nothing is changed.

The store's lock is held meanwhile, by a descriptor that only reads. The catalog is read from a copy outside the store.
A damaged catalog is told; journals and log are then compared with the one that repair would make. Memory stays bounded
whatever the files hold: one segment, one line and some numbers a session are the most that is held.
"""

from __future__ import annotations

import tempfile
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from session_actor.persistence.catalog.catalog_copy import copy_catalog, rescue_dead
from session_actor.persistence.catalog.catalog_rebuild import Known, rebuild_catalog
from session_actor.persistence.errors import CatalogCorrupt, StoreCorrupt
from session_actor.persistence.foreign import check_store_there
from session_actor.persistence.format.gap import Link
from session_actor.persistence.layout import Layout
from session_actor.persistence.reading.read_lock import read_lock
from session_actor.persistence.recovery.restored import Restored

from .findings import REPAIR, Findings
from .journal_check import JournalCheck, expected_files
from .log_check import LogCheck
from .log_survey import LogSurvey
from .orphans import Orphans
from .snapshot_check import SnapshotCheck
from .tree import LookingDisk, check_tree

if TYPE_CHECKING:
    import os
    from collections.abc import Callable

    from session_actor.persistence.catalog.catalog import Catalog
    from session_actor.persistence.files.storage import Disk

    from .findings import Finding
    from .log_survey import Owner

PAGE: Final = 500


def check(
    root: str | os.PathLike[str],
    *,
    tell: Callable[[Finding], None] | None = None,
    apart: Callable[[str], bool] | None = None,
) -> Findings:
    """Look at everything in the store at `root`; blocks.

    `tell`: told each finding at once. `apart`: says of an id whether it is counted apart from the others; None: none.

    What the disk refuses to read is a finding, too, and the rest is looked at. Raises `NotAStore`, `StoreLocked` when
    the store is in use, `StoreVersionTooNew`, and OSError when its directory or its lock cannot be read.
    """
    layout, findings = Layout(root), Findings(tell, str(Path(root).absolute()), apart=apart)
    check_store_there(layout)
    with read_lock(layout):
        check_store(LookingDisk(), layout, findings)
    return findings


def check_store(disk: Disk, layout: Layout, findings: Findings) -> None:
    """The same for a store whose lock is held."""
    check_tree(layout, findings)
    with tempfile.TemporaryDirectory(prefix="session-actor-") as folder:
        _Check(disk, layout, findings).run(folder)


class _Check:
    """One check of one store."""

    def __init__(self, disk: Disk, layout: Layout, findings: Findings) -> None:
        self._disk = disk
        self._layout = layout
        self._findings = findings
        self._snapshots = SnapshotCheck(disk, layout.snapshots, findings)
        self._expected: set[int] = set()
        """Hashes of the paths of all journal files that count."""

    def run(self, folder: str) -> None:
        """`folder`: for a copy of the catalog."""
        layout, findings = self._layout, self._findings
        finished = self._check_format()
        survey = LogSurvey(self._disk, layout.log)
        try:
            catalog = self._catalog(folder, survey, finished=finished)
        except OSError as error:  # without it nothing can be judged
            findings.refused(layout.catalog, error)
            return
        try:
            log = self._check_log(catalog, survey)
            self._check_sessions(catalog, log)
            if not log.refused:  # what the log holds explains files that the catalog does not count
                orphans = Orphans(self._disk, catalog, log, findings)
                orphans.check_journals(layout.journals, self._expected)
                orphans.check_snapshots(layout.snapshots, self._snapshots.told)
        finally:
            catalog.close()

    def _check_log(self, catalog: Catalog, survey: LogSurvey) -> LogCheck:
        try:
            if not survey.was_read:
                survey.read(catalog.first_live_segment(), catalog.log_end())
            restored = Restored(self._disk, self._layout.journals, catalog)
            log = LogCheck(survey, self._findings, self._snapshots.wanted, restored)
            log.run(lambda owner: _newest(catalog, owner))
        except OSError as error:
            self._findings.refused(self._layout.log, error)
            log = LogCheck(survey, self._findings)
            log.refused = True
        return log

    def _check_format(self) -> bool:
        """Whether the store was ever finished."""
        try:
            finished = self._layout.is_finished(self._disk)
        except StoreCorrupt as error:
            advice = f"{REPAIR} writes it anew"
            self._findings.damage("format", self._layout.format, error.why, advice)
            return True
        except OSError as error:
            self._findings.refused(self._layout.format, error)
            return True
        if not finished:
            what = "it is missing, because making the store was cut short; no record is in it"
            self._findings.note("unfinished", self._layout.format, what, "nothing, opening the store makes it")
        return finished

    def _catalog(self, folder: str, survey: LogSurvey, *, finished: bool) -> Catalog:
        """The catalog, or the one that repair would make; the survey is then read for it. Raises OSError."""
        layout = self._layout
        try:
            catalog = copy_catalog(self._disk, layout.catalog, folder)
        except CatalogCorrupt as error:
            advice = f"{REPAIR} makes it anew from the journals and the log"
            if finished:
                self._findings.damage("catalog", layout.catalog, error.why, advice)
        else:
            return catalog
        survey.read(None)
        return rebuild_from(self._disk, layout, f"{folder}/rebuilt.db", survey, f"{folder}/catalog.db")

    def _check_sessions(self, catalog: Catalog, log: LogCheck) -> None:
        after: str | None = None
        check = JournalCheck(self._disk, self._layout.journals, catalog, self._findings)
        while rows := catalog.rows(after=after, limit=PAGE):
            for row in rows:
                self._findings.count(row.session)
                self._findings.meet(row.session)
                owner = (row.session, row.birth)
                self._expected.update(hash(file.path) for file in expected_files(catalog, row))
                logged = None if log.refused else log.of(owner)
                base, whole = catalog.files.base(*owner), False
                try:
                    whole = check.run(row, self._snapshots.wanted(owner), logged) and not log.refused
                    if not whole and owner not in log.links:
                        check.run_successor(row, partial(_is_dead, catalog, log, row.session))
                except OSError as error:
                    self._findings.refused(check.path, error, session=row.session)
                self._expected.update(map(hash, check.uncounted))
                self._snapshots.check(owner, log.sums_of(owner) | check.sums, whole=whole, pruned=base.seq)
            after = rows[-1].session
        for owner in log.links:
            self._findings.meet(owner[0])
            known = catalog.get(owner[0])
            if known is None:
                self._findings.count(owner[0])
                self._snapshots.check(owner, log.sums_of(owner), whole=False)
            if known is None or known.birth != owner[1]:
                try:
                    check.run_unknown(owner, log.of(owner))
                except OSError as error:
                    self._findings.refused(check.path, error, session=owner[0])
                self._expected.update(map(hash, check.uncounted))


def rebuild_from(disk: Disk, layout: Layout, path: str, survey: LogSurvey, damaged: str) -> Catalog:
    """A catalog at `path` made from what else is in the store, open. `damaged`: a copy of the old one, if there is any.

    Raises `StoreVersionTooNew`, OSError.
    """
    firsts: dict[Owner, int] = {}
    dead = survey.dead() | rescue_dead(damaged)
    for logged in survey.records():
        if logged.owner not in dead:
            firsts.setdefault(logged.owner, logged.record.seq)
    first_live = min(survey.chain, default=max(survey.numbers, default=0) + 1)
    snapshots = SnapshotCheck(disk, layout.snapshots, Findings())

    def covered(session: str, birth: str) -> int:
        return snapshots.covered((session, birth))

    return rebuild_catalog(disk, layout, path, Known(first_live, firsts, dead, covered))


def _is_dead(catalog: Catalog, log: LogCheck, session: str, birth: str) -> bool:
    return birth in catalog.dead_births(session) or (session, birth) in log.dead


def _newest(catalog: Catalog, owner: Owner) -> Link | None:
    """The newest record in the journal of a birth; None: it is dead."""
    session, birth = owner
    row = catalog.get(session)
    if row is not None and row.birth == birth:
        return Link(row.seq, row.sum)
    return None if birth in catalog.dead_births(session) else Link()
