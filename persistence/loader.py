"""Reading all records of one session: from its journal, from the log, and from what is not written yet."""

from __future__ import annotations

import asyncio
import time
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from .errors import JournalCorrupt, LineDamaged, LogCorrupt, PersistenceError, StoreCorrupt
from .journal import broken_link, read_journal
from .names import journal_path
from .record import NO_SUM, Record, decode_record, decode_records, encode_record, verify
from .segment import read_spans
from .store import LoadedSession, RecoveryReport
from .values import encode_record_data

if TYPE_CHECKING:
    from array import array

    from .batch import Backlog
    from .disk_thread import DiskThread
    from .log import Log
    from .segment import Segment
    from .session_log import Extent, SessionLog
    from .storage import Disk
    from .store import TornTail
    from .writer import Writer

_TURN_RECORDS = 256


class _Places(NamedTuple):
    """Where a session's records were at one moment."""

    extent: Extent | None
    ahead: list[bytes] | None
    """The journal, when it was read already."""
    log: list[tuple[Segment, bytes | None, array[int]]]
    memory: list[bytes]

    @property
    def in_memory(self) -> bool:
        """Whether no file needs to be read."""
        return (self.extent is None or self.ahead is not None) and all(data is not None for _, data, _ in self.log)


class Loader:
    """Loads sessions of an open store. Records that are not yet written are served from memory."""

    def __init__(
        self, disk: Disk, journals: str, *, log: Log, backlog: Backlog, writer: Writer, thread: DiskThread
    ) -> None:
        """`journals`: their folder. `thread`: where files are read."""
        self._disk = disk
        self._journals = journals
        self._log = log
        self._backlog = backlog
        self._writer = writer
        self._thread = thread

    async def load(self, log: SessionLog, torn: tuple[TornTail, ...]) -> LoadedSession:
        """All records of a session, checked to be without a gap. `torn`: for the report.

        Raises `JournalTruncated`, `JournalCorrupt`, `LogCorrupt`, `StoreVersionTooNew`, OSError.
        """
        began = time.perf_counter()
        places, pieces, logged = await self._read_all(log)
        records = [record for piece in pieces for record in await self._decode_piece(log, piece)]
        journal_records = len(records)
        for first in range(0, len(logged), _TURN_RECORDS):
            records += self._decode_logged(log, logged[first : first + _TURN_RECORDS], places)
            await asyncio.sleep(0)
        log_records = len(records) - journal_records
        records += [decode_record(line) for line in places.memory]
        self._check(log, records, journal_records, places)
        report = RecoveryReport(
            session=log.session,
            birth=log.birth,
            seq=len(records),
            journal_records=journal_records,
            log_records=log_records,
            queue_records=len(places.memory),
            torn=torn,
            duration_ms=(time.perf_counter() - began) * 1000,
        )
        return LoadedSession(records, report)

    # --- reading -----------------------------------------------------------------------------------------------------

    async def _read_all(self, log: SessionLog) -> tuple[_Places, list[bytes], list[bytes]]:
        """Read until nothing was moved by a cut meanwhile; in the thread, unless all of it is in memory."""
        while True:
            places = self._places(log)
            read = partial(self._read, log, places)
            if places.in_memory:
                log.ahead = None
                return places, *read()
            try:
                return places, *await self._thread.run(read)
            except (FileNotFoundError, StoreCorrupt):
                if log.extent is places.extent:
                    raise

    def _places(self, log: SessionLog) -> _Places:
        segments = [*self._log.sealed, *([self._log.current] if self._log.current else [])]
        found = [
            (segment, segment.data, written)
            for segment in segments
            if log in segment.spans and (written := segment.written_spans(log))
        ]
        memory = [line for batch in self._writer.unwritten() for owner, _, line in batch.records if owner is log]
        ahead = log.ahead[1] if log.ahead is not None and log.ahead[0] is log.extent else None
        return _Places(log.extent, ahead, found, memory + self._queued(log))

    def read_ahead(self, log: SessionLog, extent: Extent) -> tuple[Extent, list[bytes]] | None:
        """The journal of a session that was looked up; None when it cannot be read, as loading it will tell. Blocks."""
        try:
            return extent, read_journal(self._disk, self._path(log, extent.number), log, extent)
        except (OSError, PersistenceError):
            return None

    def _path(self, log: SessionLog, number: int = 1) -> str:
        return f"{self._journals}/{journal_path(log.session, number)}"

    def _queued(self, log: SessionLog) -> list[bytes]:
        """The lines that will be made of what is queued."""
        lines: list[bytes] = []
        if log.written_seq == log.appended_seq:
            return lines
        total = log.tail_sum.decode()
        first = self._backlog.next_position
        for position, (owner, seq, at_us, kind, data, _) in enumerate(self._backlog.entries, first):
            if owner is log and position > log.broken_until:
                line, total = encode_record(seq, at_us, kind, encode_record_data(data), total)
                lines.append(line)
        return lines

    def _read(self, log: SessionLog, places: _Places) -> tuple[list[bytes], list[bytes]]:
        """The journal in pieces of lines, and the lines from the log, checked."""
        pieces = places.ahead or []
        if places.extent is not None and places.ahead is None:
            pieces = read_journal(self._disk, self._path(log, places.extent.number), log, places.extent)
        lines: list[bytes] = []
        for segment, data, spans in places.log:
            if data is not None:
                lines += [data[spans[i] : spans[i + 1]] + b"\n" for i in range(0, len(spans), 2)]
                continue
            file = self._disk.open(segment.path)
            try:
                lines += [_sound(log, segment, record + b"\n") for record in read_spans(file.read, spans)]
            finally:
                file.close()
        return pieces, lines

    # --- decoding ----------------------------------------------------------------------------------------------------

    async def _decode_piece(self, log: SessionLog, piece: bytes) -> list[Record]:
        await asyncio.sleep(0)
        try:
            return decode_records(piece)
        except LineDamaged as error:
            raise JournalCorrupt(self._path(log), 0, 0, str(error)) from error

    @staticmethod
    def _decode_logged(log: SessionLog, lines: list[bytes], places: _Places) -> list[Record]:
        try:
            return decode_records(b"".join(lines))
        except LineDamaged as error:
            segment, _, spans = places.log[0]
            raise LogCorrupt(segment.path, spans[0], f"a record of {log.session!r} is unreadable: {error}") from error

    def _check(self, log: SessionLog, records: list[Record], journal_records: int, places: _Places) -> None:
        """No record may be missing, doubled or out of place."""
        index = broken_link(records, 0, NO_SUM)
        if index is None:
            return
        if index < journal_records or not places.log:
            raise JournalCorrupt(self._path(log), 0, index + 1, "a record does not follow the one before")
        segment, _, spans = places.log[0]
        why = f"record {index + 1} of session {log.session!r} does not follow the one before"
        raise LogCorrupt(segment.path, spans[0], why)


def _sound(log: SessionLog, segment: Segment, line: bytes) -> bytes:
    if not verify(line):
        raise LogCorrupt(segment.path, segment.spans[log][0], f"a record of {log.session!r} fails its check")
    return line
