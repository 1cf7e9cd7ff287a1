"""Reading one session: its newest good snapshot, and the records behind it from journal, log and memory.

A snapshot is good when it is whole, is of this birth, and names the sum of the record that it was taken after: `prev`
of the first record behind it, or the newest record's sum. The next older one is tried when it is not, and without any
all records are read. Only what lies behind the snapshot is read at all.
"""

from __future__ import annotations

import asyncio
import time
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from session_actor.persistence.errors import JournalCorrupt, LineDamaged, LogCorrupt, PersistenceError, StoreCorrupt
from session_actor.persistence.files.names import journal_path
from session_actor.persistence.format.header import RecordRef
from session_actor.persistence.format.record import Record, decode_record, decode_records
from session_actor.persistence.journals.beyond import beyond, uncounted
from session_actor.persistence.journals.journal import (
    Part,
    broken_link,
    check_end,
    open_journal,
    read_behind,
    read_header,
    read_journal,
    read_newest,
)
from session_actor.persistence.snapshots.snapshot import Slots, check_readable, look, read_slot, usable
from session_actor.persistence.store import LoadedSession, RecoveryReport

from .places import Places

if TYPE_CHECKING:
    from session_actor.persistence.catalog.catalog import Catalog
    from session_actor.persistence.catalog.catalog_files import FileRow
    from session_actor.persistence.files.disk_thread import DiskThread
    from session_actor.persistence.files.storage import Disk
    from session_actor.persistence.log.session_log import Extent, SessionLog
    from session_actor.persistence.store import Snapshot, TornTail

    from .places import Finder


class InFiles(NamedTuple):
    """What was read of a session's files, for one state of its journal."""

    extent: Extent | None
    slots: Slots | None
    """What its snapshots were; None: they were not looked at."""
    snapshot: Snapshot | None
    start: RecordRef
    """The record behind which reading began."""
    journal: list[tuple[str, bytes]]
    """Journal lines in pieces, each with its file."""
    log: list[bytes]
    """Lines of the log, in pieces."""
    rejected: tuple[str, ...]
    """Snapshots that could not be used."""


class Loader:
    """Loads sessions of an open store. Records that are not yet written are served from memory."""

    def __init__(
        self, disk: Disk, *, journals: str, snapshots: str, catalog: Catalog, finder: Finder, thread: DiskThread
    ) -> None:
        """`journals`, `snapshots`: their folders. `thread`: where files are read."""
        self._disk = disk
        self._journals = journals
        self._snapshots = snapshots
        self._catalog = catalog
        self._finder = finder
        self._thread = thread

    async def load(
        self, log: SessionLog, torn: tuple[TornTail, ...], *, before: int | None = None, snapshots: bool = True
    ) -> LoadedSession:
        """A session as `Store.load` promises it. `torn`: for the report.

        Raises `JournalTruncated`, `JournalCorrupt`, `LogCorrupt`, `StoreCorrupt`, `StoreVersionTooNew`, OSError.
        """
        began = time.perf_counter()
        if before is not None:
            await self._pass_over(log, before)
        places, found = await self._read_all(log, before, snapshots=snapshots)
        records: list[Record] = []
        borders: list[tuple[int, str]] = []
        for path, piece in found.journal:
            records += await self._decode_piece(path, piece)
            borders.append((len(records), path))
        journal_records = len(records)
        for piece in found.log:
            records += self._decode_logged(log, piece, places)
            await asyncio.sleep(0)
        log_records = len(records) - journal_records
        records += [decode_record(line) for line in places.memory]
        self._check(log, records, found.start, borders, places)
        report = RecoveryReport(
            session=log.session,
            birth=log.birth,
            seq=records[-1].seq if records else found.start.seq,
            journal_records=journal_records,
            log_records=log_records,
            queue_records=len(places.memory),
            torn=torn,
            duration_ms=(time.perf_counter() - began) * 1000,
            snapshot_seq=0 if found.snapshot is None else found.snapshot.seq,
            rejected=found.rejected,
        )
        return LoadedSession(records, report, found.snapshot)

    async def _pass_over(self, log: SessionLog, before: int) -> None:
        """The owner of a session cannot use its snapshots from record `before` on: they are to be replaced first."""
        slots = await self._thread.run(lambda: look(self._disk, self._snapshots, log.session, log.birth))
        log.unusable |= {slot for slot in slots.good if slot.seq >= before}
        log.slots, log.saved_seq = None, 0  # to be looked at anew

    # --- reading -----------------------------------------------------------------------------------------------------

    async def _read_all(self, log: SessionLog, before: int | None, *, snapshots: bool) -> tuple[Places, InFiles]:
        """Read until nothing was moved meanwhile by a cut or dropped; in the thread, unless all of it is in memory."""
        while True:
            places, changes = self._finder.places(log), self._catalog.changes
            ahead, log.ahead = log.ahead, None
            logged = all(place.data is not None for place in places.log)
            if ahead is not None and ahead.extent is places.extent and before is None and snapshots and logged:
                rest = [piece for place in places.log for piece in place.behind(ahead.start.seq).pieces(self._disk, "")]
                return places, ahead._replace(log=rest)
            known_empty = log.slots is not None and not (log.slots.good or log.slots.damaged)
            slots = log.slots if known_empty else None
            read = partial(self.read, log, places, before, snapshots=snapshots, slots=slots)
            try:
                in_memory = places.extent is None and logged and (known_empty or not snapshots)
                found = read() if in_memory else await self._thread.run(read)
            except (FileNotFoundError, StoreCorrupt):
                if self._catalog.changes == changes and not self._finder.moved(log, places):
                    raise
            else:
                if log.slots is None and found.slots is not None:
                    log.slots = usable(found.slots, log.unusable)
                return places, found

    def read_ahead(self, log: SessionLog, slots: Slots | None = None) -> InFiles | None:
        """What a session that is whole in its journal has; None when it cannot be read, as loading tells. Blocks.

        `slots`: what its snapshots are; None: that is not known.
        """
        try:
            return self.read(log, Places(log.extent, [], [], log.written_seq, log.tail_sum.decode()), None, slots=slots)
        except (OSError, PersistenceError):
            return None

    def read(
        self,
        log: SessionLog,
        places: Places,
        before: int | None,
        *,
        snapshots: bool = True,
        slots: Slots | None = None,
    ) -> InFiles:
        """Read what `load` needs. Blocks. `slots`: what its snapshots are; None: that is looked up."""
        rejected: list[str] = []
        if slots is None:
            slots = look(self._disk, self._snapshots, log.session, log.birth) if snapshots else Slots([], [])
        rejected += [path for path, _ in slots.refused]
        for slot in slots.good:
            if before is not None and slot.seq >= before:
                rejected.append(slot.path)
                continue
            try:
                snapshot = read_slot(self._disk, slot, log.session, log.birth)
            except LineDamaged:
                rejected.append(slot.path)
                continue
            except OSError as error:
                rejected.append(slot.path)
                slots = slots._replace(refused=(*slots.refused, (slot.path, error)))
                continue
            found = self._read_behind(log, places, RecordRef(snapshot.seq, snapshot.sum))
            if found is not None:
                return found._replace(snapshot=snapshot, **_judged(slots, rejected))
            rejected.append(slot.path)
        base, rows = RecordRef(), None
        if places.extent is not None:
            base, rows = self._catalog.files.whole(log.session, log.birth)
        if snapshots and base.seq:
            check_readable(slots)
            why = f"records up to {base.seq} of {log.session!r} were pruned, and no snapshot behind them can be used"
            raise StoreCorrupt(self._path(log, 1), why)
        found = self._read_behind(log, places, base, rows)
        if found is None:
            raise JournalCorrupt(self._path(log, 1), 0, base.seq + 1, "the records behind what was pruned do not fit")
        return found._replace(**_judged(slots, rejected)) if snapshots else found

    def _read_behind(
        self, log: SessionLog, places: Places, start: RecordRef, rows: list[FileRow] | None = None
    ) -> InFiles | None:
        """All that is written behind record `start`; None when `start` is not a record of this session.

        `rows`: the sealed files that hold it, when they are known.
        """
        if start.seq > places.written_seq:
            return None
        journal = self._read_journals(log, places.extent, start.seq, rows)
        logged = [part for place in places.log for part in place.behind(start.seq).pieces(self._disk, log.session)]
        first = next(iter([*(piece for _, piece in journal[:1]), *logged[:1], *places.memory[:1]]), None)
        if first is None:
            fits = (start.seq, start.sum) == (places.written_seq, places.newest_sum)
        else:
            fits = not start.seq or self._first_of(log, first).prev == start.sum
        return InFiles(places.extent, None, None, start, journal, logged, ()) if fits else None

    def _read_journals(
        self, log: SessionLog, extent: Extent | None, seq: int, rows: list[FileRow] | None
    ) -> list[tuple[str, bytes]]:
        """Journal lines behind record `seq`."""
        if extent is None:
            return []
        if extent.seq <= seq:
            self._check_newest(log, extent)
            return []
        return self._read_files(log, extent, seq, rows)

    def _read_files(
        self, log: SessionLog, extent: Extent, seq: int, rows: list[FileRow] | None
    ) -> list[tuple[str, bytes]]:
        if rows is None:
            rows = self._catalog.files.of(log.session, log.birth, after_seq=seq)
        rows = [self._known(row) for row in rows if row.number < extent.number]  # a cut may have sealed more meanwhile
        owner, pieces = (log.session, log.birth), list[tuple[str, bytes]]()
        for row in rows:
            path, part = self._path(log, row.number), Part.of(row)
            read = read_journal if row.first_seq > seq else partial(read_behind, seq=seq)
            pieces += [(path, piece) for piece in read(self._disk, path, part, owner)]
        path, part = self._path(log, extent.number), Part.of(extent)
        begins_behind = seq < (rows[-1].last_seq + 1 if rows else 1)  # where it begins is not known by itself
        newest, longer = read_newest(self._disk, path, part, owner, behind=None if begins_behind else seq)
        if longer:
            self._check_uncounted(log, path, part)
        return pieces + [(path, piece) for piece in newest]

    def _known(self, row: FileRow) -> FileRow:
        """The row of a sealed file; where its first record cannot be, with the one that the file itself names.

        A file without a record has such a row, and so has one that was cut twice by an older version, see `CutCommit`.
        """
        if row.first_seq <= row.last_seq:
            return row
        header = read_header(self._disk, f"{self._journals}/{journal_path(row.session, row.number)}")
        if header is None or (header.session, header.birth, header.number) != (row.session, row.birth, row.number):
            return row  # who reads it tells
        return msgspec.structs.replace(row, first_seq=header.continues.seq + 1)

    def _check_newest(self, log: SessionLog, extent: Extent) -> None:
        """Make sure that the newest file is this session's, and ends where the catalog says."""
        path, part, owner = self._path(log, extent.number), Part.of(extent), (log.session, log.birth)
        file, _ = open_journal(self._disk, path, part, owner)
        try:
            check_end(file, path, part)
            longer = file.size() > part.size_bytes
        finally:
            file.close()
        if longer:
            self._check_uncounted(log, path, part)

    def _check_uncounted(self, log: SessionLog, path: str, part: Part) -> None:
        """Make sure that what is behind the valid part of the newest file is nothing that was counted once."""
        found = beyond(self._disk, self._journals, part, (log.session, log.birth))
        if found and found[-1].last.seq > log.written_seq:  # asked afterwards: a cut may be writing what was new
            raise uncounted(path, part.size_bytes, found[-1].last.seq)

    def sum_of(self, log: SessionLog, places: Places, seq: int) -> str:
        """Sum of a record that is written. Blocks. Raises OSError and `StoreCorrupt`, also when a cut moves it."""
        extent = places.extent
        if extent is None or seq > extent.seq:
            for place in places.log:
                if place.first_seq <= seq < place.first_seq + len(place.spans) // 2:
                    index = 2 * (seq - place.first_seq)
                    one = place._replace(spans=place.spans[index : index + 2])
                    return self._first_of(log, one.lines(self._disk, log.session)[0]).sum
            raise StoreCorrupt(self._path(log, 1), f"record {seq} of {log.session!r} is nowhere")
        base = self._catalog.files.base(log.session, log.birth)
        if seq in {extent.seq, base.seq}:
            return extent.sum if seq == extent.seq else base.sum
        rows = self._catalog.files.of(log.session, log.birth, after_seq=seq - 1)
        part = next((Part.of(row) for row in rows if row.number < extent.number), Part.of(extent))
        owner = log.session, log.birth
        piece = read_behind(self._disk, self._path(log, part.number), part, owner, seq - 1)[0]
        return self._first_of(log, piece).sum

    def _first_of(self, log: SessionLog, lines: bytes) -> Record:
        """The first of some lines, whose sums fit."""
        try:
            return decode_record(lines[: lines.find(b"\n") + 1])
        except LineDamaged as error:
            raise StoreCorrupt(self._path(log, 1), f"a record of {log.session!r} is unreadable: {error}") from error

    def _path(self, log: SessionLog, number: int) -> str:
        return f"{self._journals}/{journal_path(log.session, number)}"

    # --- decoding ----------------------------------------------------------------------------------------------------

    @staticmethod
    async def _decode_piece(path: str, piece: bytes) -> list[Record]:
        await asyncio.sleep(0)
        try:
            return decode_records(piece)
        except LineDamaged as error:
            raise JournalCorrupt(path, 0, 0, str(error)) from error

    @staticmethod
    def _decode_logged(log: SessionLog, piece: bytes, places: Places) -> list[Record]:
        try:
            return decode_records(piece)
        except LineDamaged as error:
            place = places.log[0]
            why = f"a record of {log.session!r} is unreadable: {error}"
            raise LogCorrupt(place.segment.path, place.spans[0], why) from error

    def _check(
        self, log: SessionLog, records: list[Record], start: RecordRef, borders: list[tuple[int, str]], places: Places
    ) -> None:
        """No record may be missing, doubled or out of place."""
        index = broken_link(records, start)
        if index is None:
            return
        seq = records[index].seq
        path = next((path for end, path in borders if index < end), None)
        if path is not None or not places.log:
            path = path or self._path(log, 1)
            raise JournalCorrupt(path, 0, start.seq + index + 1, "a record does not follow the one before")
        place = places.log[0]
        why = f"record {seq} of session {log.session!r} does not follow the one before"
        raise LogCorrupt(place.segment.path, place.spans[0], why)


def _judged(slots: Slots, rejected: list[str]) -> dict[str, Any]:
    """What is now known of the slots, for `InFiles`."""
    paths = [*slots.damaged, *rejected]
    good = [slot for slot in slots.good if slot.path not in rejected]
    return {"slots": Slots(good, paths), "rejected": tuple(paths)}
