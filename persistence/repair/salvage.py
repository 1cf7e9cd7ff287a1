"""Salvage of one damaged session: what can be kept of its records is copied to new files, under a new birth.

The old files stay as they are until one transaction of the catalog puts the new birth in the place of the old one,
which is then dead: so are its records in the log, those that were copied and those that do not count. Dying anywhere
leaves either the old state, and beside it files that nobody counts, or the new one. Files of which not everything was
copied, and records of the log that do not count, are kept under aside/ before that.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, NamedTuple

from session_actor.persistence.catalog.catalog import CatalogRow
from session_actor.persistence.checking.journal_check import Expected, expected_files
from session_actor.persistence.cutting.cut_commit import CutCommit
from session_actor.persistence.files.keeping import Aside
from session_actor.persistence.files.names import journal_path, new_birth
from session_actor.persistence.format.gap import Link
from session_actor.persistence.format.header import RecordRef
from session_actor.persistence.journals.beyond import beyond, unknown
from session_actor.persistence.journals.journal import Part
from session_actor.persistence.journals.journal_copy import JournalCopy
from session_actor.persistence.journals.journal_walk import Bad, Good, Walk
from session_actor.persistence.journals.shelf import journal_numbers
from session_actor.persistence.snapshots.snapshot import look
from session_actor.persistence.snapshots.snapshot_copy import SnapshotCopy

from .mending import Mender

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Sequence

    from session_actor.persistence.catalog.catalog import Catalog
    from session_actor.persistence.catalog.catalog_files import FileRow
    from session_actor.persistence.files.storage import Disk
    from session_actor.persistence.format.record import Record
    from session_actor.persistence.journals.beyond import Beyond
    from session_actor.persistence.layout import Layout
    from session_actor.persistence.snapshots.snapshot import Slot

    from .mending import Kept, Salvage


class Source(NamedTuple):
    """A damaged session."""

    session: str
    birth: str
    created_us: int
    row: CatalogRow | None
    """None: it has no journal yet."""
    logged: Callable[[], Iterable[tuple[Record, bytes]]]
    """Reads its readable records in the log, in order, each with its line, LF included."""
    lost_at_end: int = 0
    """So many records are known to be lost behind its last one."""
    unusable: Collection[Slot] = ()
    """Snapshots that are whole, and that the session's owner cannot use."""


class Copied(NamedTuple):
    """A session under its new birth, not yet in the catalog."""

    row: CatalogRow
    sealed: list[FileRow]
    base: RecordRef
    gaps: list[tuple[int, int]]
    dropped: int
    """Records that do not count any more, beside those in gaps: with `prefix` all behind the last one that is kept."""
    old_paths: list[str]
    """The files of the old birth."""
    kept_at: list[str]
    """What was kept aside."""


class SessionCopy:
    """Copies one session; blocks."""

    def __init__(self, disk: Disk, layout: Layout, catalog: Catalog, source: Source, salvage: Salvage) -> None:
        """Nothing is read or written yet."""
        self._disk = disk
        self._aside = Aside(disk, layout.aside)
        self._kept_at: list[str] = []
        self._spoilt = 0
        """Places in files that could not be read, even if no record is lost by them."""
        self._folder = layout.journals
        self._catalog = catalog
        self._source = source
        self._salvage: Salvage = salvage
        self._birth = new_birth()
        self._mender = Mender(salvage)
        self._sealed: list[FileRow] = []
        self._created_us = source.created_us
        self._snapshots = SnapshotCopy(disk, layout.snapshots, source.session, source.birth, source.unusable)
        self._newest: JournalCopy | None = None
        self._written: set[int] = set()
        """Numbers of the files that were begun."""
        self._logged_seq = 0
        """The newest record in the log."""
        self._pruned = 0
        """Records up to this one that are missing were pruned, and there is no snapshot that stands for them."""

    def run(self) -> Copied | None:
        """Write the new files and sync them; None when nothing of the session can be kept.

        Raises `CatalogCorrupt`, `StoreVersionTooNew`, OSError.
        """
        try:
            copied = self._run(self._catalog.files.base(self._source.session, self._source.birth))
        finally:
            if self._newest is not None:
                self._newest.abandon()
        self._remove_vain(copied)
        return copied

    def _remove_vain(self, copied: Copied | None) -> None:
        """Remove the files that were written for nothing; one that stays is a leftover, which counts for nothing."""
        used = set[int]() if copied is None else {copied.row.journal, *(row.number for row in copied.sealed)}
        for number in self._written - used:
            path = f"{self._folder}/{journal_path(self._source.session, number)}"
            with contextlib.suppress(OSError):
                self._disk.unlink(path)
                self._disk.sync_dir(path.rpartition("/")[0])

    def _run(self, base: RecordRef) -> Copied | None:
        copied = self._copy(base)
        if base.seq:
            snapshot = None if copied is None else self._snapshots.newest(base.seq, copied.row.seq, copied.gaps)
            if snapshot is not None:
                self._kept_at += self._snapshots.copy(self._aside, self._birth, snapshot)
            else:
                if self._mender.ended:  # an earlier state would have what was popped and pruned since
                    self._salvage = "readable"
                self._pruned = base.seq
                copied = self._copy(RecordRef())
        if copied is None:
            return None
        return copied._replace(kept_at=[*self._kept_at, *self._snapshots.keep(self._aside)])

    def _copy(self, base: RecordRef) -> Copied | None:
        """Copy what comes behind record `base`, and of what was not pruned before it all that can be read."""
        source = self._source
        mender = self._mender = Mender(self._salvage, Link(base.seq, base.sum))
        self._sealed, self._kept_at = [], []
        files = [] if source.row is None else expected_files(self._catalog, source.row)
        behind = self._beyond(files[-1] if files else None)
        number = self._next_number()
        copy: JournalCopy | None = None
        losses = 0, 0, 0
        for place, file in enumerate(files):
            if not mender.ended:
                losses = len(mender.gaps), mender.dropped, self._spoilt
                copy = self._copy_file(file, number + place, base, is_last=file is files[-1])
            if mender.ended or losses != (len(mender.gaps), mender.dropped, self._spoilt):
                self._keep(f"{self._folder}/{file.path}")
        if copy is None:
            copy = self._new_file(number)
        self._copy_beyond(copy, behind)
        self._copy_log(copy)
        self._disk.sync_dir(copy.path.rpartition("/")[0])
        self._disk.sync_dir(self._folder)
        if not mender.link.seq:
            return None
        old = [f"{self._folder}/{journal_path(source.session, old)}" for old in self._old_numbers(files)]
        return Copied(self._row(copy), self._sealed, base, mender.gaps, self._dropped(), old, self._kept_at)

    def _dropped(self) -> int:
        mender, row = self._mender, self._source.row
        if self._salvage == "readable":
            return mender.dropped
        newest = max(self._logged_seq, 0 if row is None else row.seq) + self._source.lost_at_end
        return max(0, newest - mender.link.seq)

    def _old_numbers(self, files: Sequence[Expected]) -> list[int]:
        """The files of the old birth, and copies of it; those that nobody counts are kept.

        An older catalog may not know of them, nor of the salvage that made such a copy.
        """
        source, counted = self._source, {file.number for file in files}
        pruned, found = set(self._catalog.files.numbers(source.session, source.birth)), set(counted)
        for number in set(journal_numbers(self._disk, self._folder, source.session)) - counted - self._written:
            walk = Walk(self._disk, f"{self._folder}/{journal_path(source.session, number)}")
            header = walk.header
            if header is None or header.session != source.session:
                continue
            if source.birth in {header.birth, header.copies}:
                found.add(number)
                if number not in pruned:
                    self._keep(walk.path)
        return sorted(found)

    def _next_number(self) -> int:
        """Behind all that are counted or there, whoever's they are."""
        session, row = self._source.session, self._source.row
        numbers = set(journal_numbers(self._disk, self._folder, session)) - self._written
        numbers.update(self._catalog.files.numbers(session, self._source.birth))
        return max(0 if row is None else row.journal, *numbers, 0) + 1

    def _new_file(self, number: int) -> JournalCopy:
        self._written.add(number)
        self._newest = JournalCopy(
            self._disk,
            self._folder,
            self._source.session,
            birth=self._birth,
            copies=self._source.birth,
            number=number,
            before=self._mender.link,
        )
        return self._newest

    # --- journals -----------------------------------------------------------------------------------------------------

    def _copy_file(self, file: Expected, number: int, base: RecordRef, *, is_last: bool) -> JournalCopy:
        """Copy what can be kept of one file into file `number`; sealed unless it is the last one."""
        mender = self._mender
        walk = Walk(self._disk, f"{self._folder}/{file.path}")
        if file.first_seq is not None and mender.link.seq != file.first_seq - 1 <= base.seq:
            mender.link = _before(walk, file)  # files between were pruned
        elif mender.link.seq < base.seq and (file.first_seq is None or file.first_seq > base.seq):
            mender.link = Link(base.seq, base.sum)
        copy = self._new_file(number)
        pruned = self._pruned if file.first_seq is None else file.first_seq - 1
        self._write(copy, mender.skip(min(pruned, self._pruned), "pruned", self._created_us))
        is_ours = self._is_ours(walk, file)
        self._spoilt += walk.header is None or not is_ours
        if is_ours:
            for item in walk.items(file.bytes):
                if isinstance(item, Good):
                    self._write(copy, mender.take(item.record, item.line))
                self._spoilt += isinstance(item, Bad)
        self._write(copy, mender.lose(file.last_seq, "damaged", self._created_us))
        if not is_last and not mender.ended:
            self._sealed.append(copy.seal())
            copy.close()
        return copy

    def _beyond(self, newest: Expected | None) -> list[Beyond]:
        """What follows the newest file's valid part, and the log does not have: the catalog is older.

        `newest`: None where it knows of no file.
        """
        owner = self._source.session, self._source.birth
        if newest is None:
            seq, found = 0, unknown(self._disk, self._folder, owner)
        else:
            part = Part(newest.number, newest.bytes, newest.bytes, None, newest.last_seq, newest.sum, newest.crc)
            seq, found = newest.last_seq, beyond(self._disk, self._folder, part, owner)
        logged = {record.seq: record.sum for record, _ in self._source.logged()} if found else {}
        last = found[-1].last if found else Link()
        left_by_a_cut = logged.get(last.seq) == last.sum and logged.keys() >= set(range(seq + 1, last.seq + 1))
        return [] if left_by_a_cut else found

    def _copy_beyond(self, copy: JournalCopy, found: list[Beyond]) -> None:
        for one in found:
            walk = Walk(self._disk, f"{self._folder}/{journal_path(self._source.session, one.number)}")
            self._keep(walk.path)
            for item in walk.items(one.end):
                if isinstance(item, Good) and item.record.seq > self._mender.link.seq:
                    self._write(copy, self._mender.take(item.record, item.line))

    def _is_ours(self, walk: Walk, file: Expected) -> bool:
        """Whether the file is this session's, by its header; without one, by its first or its last record."""
        header, source = walk.header, self._source
        if header is not None:
            return (header.session, header.birth) == (source.session, source.birth)
        good = [item for item in walk.items(file.bytes) if isinstance(item, Good)]
        first, last = good[:1], good[-1:]
        follows = any(self._mender.link.follows(item.record) for item in first) and not self._mender.link.is_gap
        return follows or any((item.record.seq, item.record.sum) == (file.last_seq, file.sum) for item in last)

    def _keep(self, path: str) -> None:
        """Keep a file before it is taken out of use."""
        kept = self._aside.copy(path, f"{path.rpartition('/')[2]}-{self._source.birth}.damaged")
        if kept is not None and kept not in self._kept_at:
            self._kept_at.append(kept)

    # --- the log ------------------------------------------------------------------------------------------------------

    def _copy_log(self, copy: JournalCopy) -> None:
        mender, void = self._mender, list[bytes]()
        for record, line in self._source.logged():
            dropped = mender.dropped
            self._logged_seq = max(self._logged_seq, record.seq)
            self._write(copy, mender.take(record, line))
            if dropped != mender.dropped:
                void.append(line)
        self._write(copy, mender.lose(mender.link.seq + self._source.lost_at_end, "damaged"))
        copy.close()
        if void:
            self._keep_lines(void)

    def _keep_lines(self, lines: list[bytes]) -> None:
        """Keep records of the log that do not count any more."""
        self._kept_at.append(self._aside.add(b"".join(lines), void_name(self._source.session, self._source.birth)))

    def _write(self, copy: JournalCopy, kept: list[Kept]) -> None:
        for line, record in kept:
            copy.add(line, record)

    def _row(self, copy: JournalCopy) -> CatalogRow:
        session, link = self._source.session, copy.link
        return CatalogRow(
            session, self._birth, self._created_us, copy.number, copy.size_bytes, link.seq, link.sum, copy.crc
        )


def _before(walk: Walk, file: Expected) -> Link:
    if walk.header is not None:
        return Link(walk.header.continues.seq, walk.header.continues.sum)
    return Link((file.first_seq or 1) - 1, "", is_gap=True)


def void_name(session: str, birth: str) -> str:
    """By what name records of the log are kept that do not count any more."""
    return f"{journal_path(session, 0).rpartition('/')[2]}-{birth}.void"


def commit_of(catalog: Catalog, source: Source, copied: Copied) -> CutCommit:
    """What puts the new birth in the place of the old one. Blocks. Raises `CatalogCorrupt`, OSError."""
    row, base = copied.row, copied.base
    bases = ((row.session, row.birth, base),) if base.seq else ()
    dead, first_live = [(source.session, source.birth)], catalog.first_live_segment()
    return CutCommit([row], copied.sealed, dead, first_live, bases=bases)


def old_files(disk: Disk, layout: Layout, source: Source, copied: Copied) -> list[str]:
    """The files of the old birth. Blocks. Raises OSError."""
    slots = look(disk, layout.snapshots, source.session, source.birth)
    return [*copied.old_paths, *(slot.path for slot in slots.good), *slots.damaged]


def remove_files(disk: Disk, paths: Iterable[str]) -> None:
    """Remove the files of a birth that was replaced. Blocks.

    Those that cannot be removed count for nothing: verifying tells of them, and repair removes them.
    """
    for path in paths:
        with contextlib.suppress(OSError):
            disk.unlink(path)
            disk.sync_dir(path.rpartition("/")[0])
