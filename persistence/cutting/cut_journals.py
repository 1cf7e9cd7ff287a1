"""The journals of a cut: each session's records are written behind the valid part of its journal, and synced.

One session's trouble holds up no other: whose journal the disk refuses again and again gets a new file for what comes,
and the one that is refused is left as it is. Is that refused, too, or the journal damaged, its records stay in the log.
A file of which a sync was refused is never synced again: it is written anew.
"""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING, Final, NamedTuple
from zlib import crc32

from session_actor.persistence.catalog.catalog import CatalogRow
from session_actor.persistence.errors import CatalogCorrupt, LogCorrupt, StoreCorrupt, StoreVersionTooNew
from session_actor.persistence.files.names import journal_path
from session_actor.persistence.journals.journal_writer import JournalWriter
from session_actor.persistence.log.scan import is_tombstone
from session_actor.persistence.reserve import is_full

if TYPE_CHECKING:
    from array import array
    from collections.abc import Generator

    from session_actor.persistence.catalog.catalog import Catalog
    from session_actor.persistence.catalog.catalog_files import FileRow
    from session_actor.persistence.errors import PersistenceError
    from session_actor.persistence.files.storage import Disk
    from session_actor.persistence.log.segment import Segment
    from session_actor.persistence.log.session_log import Extent, SessionLog

PIECE_RECORDS: Final = 512
YIELD_SESSIONS: Final = 1000
NUMBERS: Final = 16
"""So many new files are tried in turn for a session whose journal is refused."""


class Grown(NamedTuple):
    """A session whose journal grew: its new valid part, and what the catalog is to know of it."""

    log: SessionLog
    extent: Extent
    row: CatalogRow
    sealed: list[FileRow]
    broken: PersistenceError | OSError | None
    """Why its newest file was not written to."""


Places = list[tuple[int, "array[int]"]]
"""Index of a segment among those that are cut, and where in it a session's records lie."""
Spans = dict["SessionLog", Places]
Refusals = dict["SessionLog", Exception]
"""Why records of sessions could not be moved."""


class CutJournals:
    """Writes journals for cuts. Methods block."""

    def __init__(self, disk: Disk, catalog: Catalog, folder: str, file_bytes: int) -> None:
        """`folder`: of all journals. `file_bytes`: size at which a journal file is sealed."""
        self._disk = disk
        self._catalog = catalog
        self._folder = folder
        self._file_bytes = file_bytes
        self.touched: dict[str, int] = {}
        """Files that this cut wrote to, and how much of each counts: beyond is what the log has."""
        self.refused: dict[SessionLog, int] = {}
        """Sessions whose journals the disk refused to the last cuts, and to how many."""
        self._distrusted: set[SessionLog] = set()
        """Those of which a sync was refused: of a journal, or of its name."""

    def write_group(
        self, work: list[tuple[SessionLog, Places]], contents: list[bytes], folders: set[str], refusals: Refusals
    ) -> list[Grown]:
        """Write all journals of a group and sync them afterwards: the file system then does much of it together.

        `folders`: takes those in which names changed. `refusals`: takes why a journal was refused. Raises OSError when
        the disk is full, and `CatalogCorrupt`.
        """
        writers: list[tuple[SessionLog, JournalWriter]] = []
        grown: list[Grown] = []
        try:
            for log, places in work:
                with self.refusing(log, refusals):
                    if log in self.refused:
                        grown.append(self._write_past(log, places, contents, folders))
                        continue
                    writer = self._writer(log, folders)
                    writers.append((log, writer))
                    grown.append(_append(writer, log, places, contents))
            for log, writer in writers:
                if log not in refusals:
                    with self.refusing(log, refusals):
                        writer.sync()
        finally:
            for log, writer in writers:
                self._close(log, writer)
        return [one for one in grown if one.log not in refusals]

    def give_back(self, touched: dict[str, int]) -> None:
        """Give back the room that a cut took which surely does not count: the log has its records still.

        What is refused is left: it is overwritten by the next cut.
        """
        for path, size in touched.items():
            with contextlib.suppress(OSError):
                if size:
                    _cut_to(self._disk, path, size)
                else:
                    self._disk.unlink(path)

    @contextlib.contextmanager
    def refusing(self, log: SessionLog, refusals: Refusals) -> Generator[None]:
        """What is refused of one session says nothing of the others; a full disk, or a damaged catalog, does."""
        try:
            yield
        except CatalogCorrupt:
            raise
        except OSError as error:
            if is_full(error):
                raise
            self.refuse(log, error, refusals)
        except (StoreCorrupt, StoreVersionTooNew) as error:  # no new file would mend that
            refusals[log] = error

    def refuse(self, log: SessionLog, error: OSError, refusals: Refusals) -> None:
        """The disk refuses a session's journal."""
        number = 1 if log.extent is None else log.extent.number
        error.filename = error.filename or f"{self._folder}/{journal_path(log.session, number)}"
        self.refused[log] = self.refused.get(log, 0) + 1
        refusals[log] = error

    def distrust(self, log: SessionLog) -> None:
        """A sync of a session's journal, or of its name, was refused: the next that is tried is another file."""
        self._distrusted.add(log)

    def done(self, log: SessionLog) -> None:
        """The catalog has what was written of a session."""
        self.refused.pop(log, None)
        self._distrusted.discard(log)

    def folder_of(self, log: SessionLog) -> str:
        """Where a session's journal is."""
        return f"{self._folder}/{journal_path(log.session, 1)}".rpartition("/")[0]

    def _write_past(self, log: SessionLog, places: Places, contents: list[bytes], folders: set[str]) -> Grown:
        """Write a journal that was refused before; if it is again, into a new file: no session holds up the cut."""
        try:
            return self._write_alone(self._writer(log, folders), log, places, contents)
        except OSError as error:
            if is_full(error):
                raise
            writer = self._writer(log, folders, (error, (self.refused[log] - 1) % NUMBERS + 1))
            return self._write_alone(writer, log, places, contents)

    def _write_alone(self, writer: JournalWriter, log: SessionLog, places: Places, contents: list[bytes]) -> Grown:
        try:
            grown = _append(writer, log, places, contents)
            writer.sync()
        finally:
            self._close(log, writer)
        return grown

    def _close(self, log: SessionLog, writer: JournalWriter) -> None:
        if writer.sync_refused:
            self.distrust(log)
        writer.close()

    def _writer(self, log: SessionLog, folders: set[str], left: tuple[OSError, int] | None = None) -> JournalWriter:
        return JournalWriter(
            self._disk,
            self._folder,
            log,
            file_bytes=self._file_bytes,
            folders=folders,
            touched=self.touched,
            sealed_seq=self._sealed_seq,
            left=left,
            distrusted=log in self._distrusted,
        )

    def _sealed_seq(self, log: SessionLog) -> int:
        """The newest record of a session in a sealed file before its newest file, where there is or was one."""
        files = self._catalog.files
        newest = None if log.extent is None else files.newest(log.session, log.birth, log.extent.number)
        return max(0 if newest is None else newest.last_seq, files.base(log.session, log.birth).seq)


def _cut_to(disk: Disk, path: str, size: int) -> None:
    file = disk.open(path, write=True)
    try:
        if file.size() > size:
            file.truncate(size)
    finally:
        file.close()


def contents_of(disk: Disk, segment: Segment) -> bytes:
    """The bytes of a sealed segment, which must be those that were written. Blocks. Raises `LogCorrupt`, OSError."""
    if segment.data is not None:
        return segment.data
    file = segment.file or disk.open(segment.path)
    try:
        data = file.read(0, segment.end)
    finally:
        if file is not segment.file:
            file.close()
    if crc32(data) != segment.crc:
        raise LogCorrupt(segment.path, 0, "its bytes are not those that were written")
    return data


async def by_session(segments: list[Segment]) -> Spans:
    """Of each session the places of its records, in the order of the log."""
    spans: Spans = {}
    for index, segment in enumerate(segments):
        for count, (log, places) in enumerate(segment.spans.items()):
            spans.setdefault(log, []).append((index, places))
            if count % YIELD_SESSIONS == YIELD_SESSIONS - 1:
                await asyncio.sleep(0)
    return spans


def note_dead(spans: Spans, contents: list[bytes]) -> None:
    """A session whose synced tombstone is among what is cut is dead, even if nobody was told yet."""
    for log in [log for log in spans if log.dying]:
        index, places = spans[log][-1]
        last = contents[index][places[-2] : places[-1]]
        log.dead = log.dead or is_tombstone(last + b"\n")


def _append(writer: JournalWriter, log: SessionLog, places: Places, contents: list[bytes]) -> Grown:
    """Write a session's records in pieces, each with few system calls, at which other threads may go on."""
    for index, spans in places:
        data = contents[index]
        for first in range(0, len(spans), 2 * PIECE_RECORDS):
            piece = spans[first : first + 2 * PIECE_RECORDS]
            writer.write([data[piece[i] : piece[i + 1]] for i in range(0, len(piece), 2)])
    if writer.extent is None:
        raise RuntimeError(f"session {log.session!r} has no records to cut")
    return Grown(log, writer.extent, _row(log, writer.extent), writer.sealed, writer.broken)


def _row(log: SessionLog, extent: Extent) -> CatalogRow:
    return CatalogRow(
        log.session, log.birth, log.created_us, extent.number, extent.size_bytes, extent.seq, extent.sum, extent.crc
    )
