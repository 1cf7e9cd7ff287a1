"""Pruning: dropping sealed journal files that hold nothing which anybody will ask for.

Order: make sure that two snapshots are there, whole, fitting and durable, and that the files lie before both; note in
the catalog, in one transaction, that the files count no more and up to which record some are missing; only then remove
them. Dying in between leaves files that count for nothing: the catalog keeps their numbers until the next pruning, or
the deletion of the session, has removed them.
"""

from __future__ import annotations

from copy import copy
from functools import partial
from typing import TYPE_CHECKING

from session_actor.persistence.errors import LineDamaged, StoreCorrupt
from session_actor.persistence.files.names import journal_path
from session_actor.persistence.format.header import RecordRef
from session_actor.persistence.snapshots.snapshot import (
    Slots,
    check_readable,
    copy_only,
    look,
    read_slot,
    usable,
    write_again,
)
from session_actor.persistence.store import Pruned

from .journal import Part, open_journal
from .journal_index import read_index

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Sequence

    from session_actor.persistence.catalog.catalog import Catalog
    from session_actor.persistence.catalog.catalog_files import FileRow
    from session_actor.persistence.files.disk_thread import DiskThread
    from session_actor.persistence.files.storage import Disk
    from session_actor.persistence.format.frame_index import Runs
    from session_actor.persistence.loading.loader import Loader
    from session_actor.persistence.loading.places import Finder, Places
    from session_actor.persistence.log.session_log import SessionLog
    from session_actor.persistence.snapshots.snapshot import Slot
    from session_actor.persistence.trouble import Trouble


class Pruner:
    """Prunes sessions of an open store."""

    def __init__(
        self,
        disk: Disk,
        *,
        journals: str,
        snapshots: str,
        catalog: Catalog,
        finder: Finder,
        loader: Loader,
        thread: DiskThread,
        trouble: Trouble,
        locks: Sequence[asyncio.Lock],
    ) -> None:
        """`journals`, `snapshots`: their folders. `locks`: held, in this order, while journals and snapshots change."""
        self._disk = disk
        self._journals = journals
        self._snapshots = snapshots
        self._catalog = catalog
        self._finder = finder
        self._loader = loader
        self._thread = thread
        self._trouble = trouble
        self._journal_lock, self._snapshot_lock = locks

    async def prune(self, log: SessionLog, runs: Runs) -> Pruned:
        """See `Store.prune`. Not to be cancelled."""
        async with self._journal_lock, self._snapshot_lock:
            if not await self._thread.run(partial(self._catalog.files.numbers, log.session, log.birth)):
                return Pruned()  # no file was ever sealed: most sessions that are pruned again and again are small
            places = self._finder.places(log, memory=False)
            slots = await self._thread.run(partial(self._base, log, places))
            log.slots = slots
            if not slots.good or places.extent is None:
                return Pruned()
            log.saved_seq = max(log.saved_seq, slots.good[0].seq)
            rows = await self._thread.run(partial(self._droppable, log, slots.good[-1].seq, places.extent.number, runs))
            left = await self._thread.run(partial(self._drop, log, rows))
            if left is not None:
                self._trouble.note(left, "prune_failed")
            log.extent = copy(log.extent)  # another object: whoever reads meanwhile looks for the records anew
            return Pruned(len(rows), sum(row.bytes for row in rows))

    def _base(self, log: SessionLog, places: Places) -> Slots:
        """Two snapshots that can be used, or none: a single one is copied. Blocks."""
        found = usable(look(self._disk, self._snapshots, log.session, log.birth), log.unusable)
        check_readable(found)
        good = [slot for slot in found.good if self._fits(log, places, slot)]
        slots = Slots(good, found.damaged + [slot.path for slot in found.good if slot not in good])
        if len(good) == 1:
            slots = copy_only(self._disk, slots)
        elif good and log.saved_seq not in {slot.seq for slot in good}:  # one of them is enough
            write_again(self._disk, good[0])
        return slots

    def _fits(self, log: SessionLog, places: Places, slot: Slot) -> bool:
        try:
            snapshot = read_slot(self._disk, slot, log.session, log.birth)
        except LineDamaged:
            return False
        if snapshot.seq > places.written_seq:
            return False
        return self._loader.sum_of(log, places, snapshot.seq) == snapshot.sum

    def _droppable(self, log: SessionLog, before: int, newest: int, runs: Runs) -> list[FileRow]:
        """The sealed files that lie wholly up to record `before` and add dropped frames alone. Blocks."""
        rows = self._catalog.files.of(log.session, log.birth)
        return [
            row
            for row in rows
            if row.number < newest
            and row.last_seq <= before
            and self._adds_only(self._path(log, row.number), row, runs)
        ]

    def _adds_only(self, path: str, row: FileRow, runs: Runs) -> bool:
        if row.last_frame == 0 or runs.cover(row.first_frame, row.last_frame):
            return True
        if row.first_frame not in runs or row.last_frame not in runs:
            return False
        try:
            file, _ = open_journal(self._disk, path, Part.of(row), (row.session, row.birth))
            try:
                return all(runs.cover(*run) for run in read_index(file.read, path, row).frames())
            finally:
                file.close()
        except StoreCorrupt:  # a file whose frames are not sure stays
            return False

    def _drop(self, log: SessionLog, rows: list[FileRow]) -> OSError | None:
        """Drop files; returns why they could not be removed, after they ceased to count. Blocks."""
        earlier = self._catalog.files.numbers(log.session, log.birth, dropped=True)
        if not rows and not earlier:
            return None
        if earlier:
            self._catalog.settle()
        self._unlink(log, earlier)
        base = self._catalog.files.base(log.session, log.birth)
        if rows and rows[-1].last_seq > base.seq:
            base = RecordRef(rows[-1].last_seq, rows[-1].sum)
        self._catalog.files.drop(log.session, log.birth, rows, forgotten=earlier, base=base)
        try:
            self._unlink(log, [row.number for row in rows])
        except OSError as error:  # they go with the next pruning
            return error
        return None

    def _unlink(self, log: SessionLog, numbers: list[int]) -> None:
        if not numbers:
            return
        for number in numbers:
            self._disk.unlink(self._path(log, number))
        self._disk.sync_dir(self._path(log, 1).rpartition("/")[0])

    def _path(self, log: SessionLog, number: int) -> str:
        return f"{self._journals}/{journal_path(log.session, number)}"
