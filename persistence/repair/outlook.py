"""What salvage would keep and lose of each session: salvage itself, on a disk that takes nothing."""

from __future__ import annotations

import tempfile
from functools import partial
from typing import TYPE_CHECKING

import msgspec

from session_actor.persistence.catalog.catalog_copy import copy_catalog
from session_actor.persistence.checking.log_survey import LogSurvey
from session_actor.persistence.checking.tree import LookingDisk
from session_actor.persistence.checking.verify import rebuild_from
from session_actor.persistence.errors import CatalogCorrupt
from session_actor.persistence.files.storage import OsFile

from .repair_salvage import told
from .salvage import SessionCopy, Source

if TYPE_CHECKING:
    from collections.abc import Iterator

    from session_actor.persistence.catalog.catalog import Catalog
    from session_actor.persistence.checking.log_survey import Owner
    from session_actor.persistence.format.record import Record
    from session_actor.persistence.layout import Layout

    from .mending import Salvage
    from .repairs import Step


class _Sink(OsFile):
    """A new file that is nowhere."""

    __slots__ = ()

    def __init__(self) -> None:
        """Nothing is opened."""

    def write(self, data: bytes, offset: int) -> None:
        """Taken, and gone."""

    def read(self, offset: int, length: int) -> bytes:  # noqa: ARG002 - as the real one
        """Nothing."""
        return b""

    def size(self) -> int:
        """Nothing."""
        return 0

    def preallocate(self, length: int) -> None:
        """Nothing is taken."""

    def truncate(self, length: int) -> None:
        """It is empty."""

    def sync(self) -> None:
        """There is nothing to sync."""

    def linked(self) -> bool:
        """Nobody removes it."""
        return True

    def close(self) -> None:
        """Nothing is open."""


class _DryDisk(LookingDisk):
    """The real disk to read; what would be written or changed is not."""

    __slots__ = ()

    def open(self, path: str, *, write: bool = False, create: bool = False) -> OsFile:
        return _Sink() if write or create else super().open(path)

    def make_dir(self, path: str) -> bool:  # noqa: ARG002 - as the real one
        return False

    def rename(self, source: str, target: str) -> None:
        """Not done."""

    def unlink(self, path: str) -> None:
        """Not done."""

    def sync_dir(self, path: str) -> None:
        """Nothing to sync."""


def with_outlooks(layout: Layout, steps: list[Step], salvage: Salvage) -> list[Step]:
    """The same steps; those that would salvage a session tell what it would keep and lose. Changes nothing; blocks.

    The store's lock must be held. Raises `StoreVersionTooNew`, `CatalogCorrupt`, OSError.
    """
    disk = LookingDisk()
    with tempfile.TemporaryDirectory(prefix="session-actor-") as folder:
        survey = LogSurvey(disk, layout.log)
        try:
            catalog = copy_catalog(disk, layout.catalog, folder)
        except CatalogCorrupt:
            survey.read(None)
            catalog = rebuild_from(disk, layout, f"{folder}/rebuilt.db", survey, f"{folder}/catalog.db")
        else:
            survey.read(catalog.first_live_segment(), catalog.log_end())
        try:
            outlook = _Outlook(layout, catalog, survey, salvage)
            return [outlook.of(step) for step in steps]
        finally:
            catalog.close()


class _Outlook:
    """Salvages sessions of one store for nothing."""

    def __init__(self, layout: Layout, catalog: Catalog, survey: LogSurvey, salvage: Salvage) -> None:
        self._layout = layout
        self._catalog = catalog
        self._survey = survey
        self._salvage: Salvage = salvage
        self._newest: dict[str, tuple[Owner, tuple[int, int]]] = {}
        """The newest birth of each session in the log, and where its newest record lies."""
        dead = survey.dead()
        for logged in survey.records():
            if logged.owner not in dead:
                self._newest[logged.owner[0]] = logged.owner, (logged.number, logged.offset)

    def of(self, step: Step) -> Step:
        source = None if step.kind != "journal" or step.session is None else self._source(step.session)
        if source is None:
            return step
        copied = SessionCopy(_DryDisk(), self._layout, self._catalog, source, self._salvage).run()
        lost = "nothing can be kept" if copied is None else told(copied.row.seq, copied.gaps, copied.dropped)
        return msgspec.structs.replace(step, what=f"{step.what}; {lost}")

    def _source(self, session: str) -> Source | None:
        """What salvage would find; None: nothing."""
        row = self._catalog.get(session)
        owner, place = self._newest.get(session, (None, (0, 0)))
        if owner is not None and owner[1] in self._catalog.dead_births(session):
            owner, place = None, (0, 0)
        if owner is None:
            if row is None:
                return None
            owner = session, row.birth
        if row is not None and row.birth != owner[1]:
            row = None
        damage = [found for number, found in self._survey.damage if (number, found.offset) > place]
        lost_at_end = sum((found.owners or ()).count(owner) for found in damage)
        created_us = 0 if row is None else row.created_us
        logged = partial(self._logged, owner, 0 if row is None else row.seq)
        return Source(session, owner[1], created_us, row, logged, lost_at_end)

    def _logged(self, owner: Owner, behind: int) -> Iterator[tuple[Record, bytes]]:
        for logged in self._survey.records():
            if logged.owner == owner and logged.record.seq > behind:
                yield logged.record, logged.line
