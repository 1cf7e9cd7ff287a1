"""The archive: single records of a session, found by the frames that they add, wherever they lie.

Sealed journal files have an index, and the catalog says which of them holds a frame. In the newest journal file and in
the log the records are looked for by their ids, which rise. What is not yet written comes from memory. What is in none
of them is looked for in the sealed files that got no index, because the disk refused them then: they are read whole.

Cuts, prunings, deletions and salvage go on meanwhile, in threads of their own. Where a session is, is taken on the
loop as one view; of the catalog's files, those before the view's newest alone are asked for, so that a cut that is
committed and that the loop has not heard of changes nothing. What fails is damage only when nothing was changed since
the view was taken, neither on the loop nor in the catalog; else it is read again.
"""

from __future__ import annotations

from array import array
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from session_actor.persistence.catalog.catalog_files import NO_INDEX
from session_actor.persistence.errors import (
    JournalCorrupt,
    LineDamaged,
    LogCorrupt,
    SessionTombstoned,
    StoreClosed,
    StoreCorrupt,
    StoreVersionTooNew,
)
from session_actor.persistence.files.names import journal_path
from session_actor.persistence.format.frame_index import MAX_FRAME, frames_in
from session_actor.persistence.format.record import Record, decode_record, decode_records
from session_actor.persistence.journals.journal import Part, check_end, open_journal, read_journal
from session_actor.persistence.journals.journal_index import IndexBuilder, read_index
from session_actor.persistence.log.segment import read_spans
from session_actor.persistence.log.session_log import Extent

from .line_search import Bytes, InFile, InLog, find

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from session_actor.persistence.catalog.catalog import Catalog
    from session_actor.persistence.catalog.catalog_files import FileRow
    from session_actor.persistence.files.disk_thread import DiskThread
    from session_actor.persistence.files.storage import Disk, DiskFile
    from session_actor.persistence.journals.journal_index import FrameIndex
    from session_actor.persistence.log.session_log import SessionLog

    from .places import Finder, InSegment


class Archivist(NamedTuple):
    """What archives need of an open store. `find_log(session)`: what is known of a session that is in use.

    `is_deleted(session, birth)`: whether it is deleted, though the catalog may still have it.
    """

    disk: Disk
    journals: str
    catalog: Catalog
    finder: Finder
    thread: DiskThread
    find_log: Callable[[str], SessionLog | None]
    is_deleted: Callable[[str, str], bool]
    is_open: Callable[[], bool]


class _Kept:
    """What an archive remembers from one time to the next. Each is read and replaced as a whole: two threads may."""

    def __init__(self) -> None:
        self.file: tuple[FileRow, FrameIndex] | None = None
        """The sealed file that was read last."""
        self.border: tuple[int, int] = (0, 0)
        """Number of the newest file, and the highest frame in those before it."""
        self.proven: object = None
        """What was found sound as a whole."""


class _View(NamedTuple):
    """Where records were at one moment."""

    log: SessionLog | None
    """None: the session is not in use, and whole in its journal."""
    extent: Extent | None
    segments: list[InSegment]
    memory: list[bytes] | None
    """Lines of what was not written; None: there were some, and nobody asked for them."""
    changes: int
    """What the catalog had seen."""


class FileArchive:
    """See `Archive`. One index of a sealed file is kept: who goes through old frames goes from one to the next."""

    def __init__(self, archivist: Archivist, session: str, birth: str) -> None:
        """Of one birth of a session."""
        self._has = archivist
        self._session = session
        self._birth = birth
        self._kept = _Kept()

    def read(self, ids: Iterable[int]) -> list[Record]:
        """See `Archive.read`."""
        wanted, memory = _sorted(ids), False
        while True:
            view, fresh = self._view(memory=memory), self._kept.file is None
            try:
                lines = self._read(wanted, view)
            except (FileNotFoundError, StoreCorrupt):
                if self._is_final(view) and fresh:
                    raise
                continue
            if view.memory is not None or not _without(wanted, lines):
                return _in_order(lines)
            memory = True

    async def fetch(self, ids: Iterable[int]) -> list[Record]:
        """See `Archive.fetch`."""
        wanted, memory = _sorted(ids), False
        while True:
            view, fresh = self._view(memory=memory), self._kept.file is None
            try:
                lines = await self._has.thread.run(partial(self._read, wanted, view))
            except (FileNotFoundError, StoreCorrupt):
                if self._is_final(view) and fresh:
                    raise
                continue
            if view.memory is not None or not _without(wanted, lines):
                self._view(memory=False)  # the session may have been deleted meanwhile
                return _in_order(lines)
            memory = True

    # --- where --------------------------------------------------------------------------------------------------------

    def _view(self, *, memory: bool) -> _View:
        if not self._has.is_open():
            raise StoreClosed("the store was closed: open it, and load the session again")
        log, changes = self._has.find_log(self._session), self._has.catalog.changes
        if self._has.is_deleted(self._session, self._birth):
            raise SessionTombstoned(self._session)
        if log is not None:
            if log.birth != self._birth or log.dead or log.dying:
                raise SessionTombstoned(self._session)
            complete = memory or log.written_seq == log.appended_seq
            places = self._has.finder.places(log, memory=memory)
            return _View(log, places.extent, places.log, places.memory if complete else None, changes)
        row = self._has.catalog.get(self._session)
        if row is None and self._birth not in self._has.catalog.dead_births(self._session):
            return _View(None, None, [], [], changes)
        if row is None or row.birth != self._birth:
            raise SessionTombstoned(self._session)
        return _View(None, Extent(row.journal, row.bytes, row.seq, row.sum, row.crc), [], [], changes)

    def _is_final(self, view: _View) -> bool:
        """Whether nothing was changed since; what was remembered is forgotten, for the next try.

        Raises `SessionTombstoned`.
        """
        self._kept = _Kept()
        now = self._view(memory=False)
        self._check_alive()
        segments = [place.segment for place in view.segments]
        moved = now.extent != view.extent or segments != [place.segment for place in now.segments][: len(segments)]
        return not moved and now.log is view.log and now.changes == view.changes

    def _check_alive(self) -> None:
        """Raises `SessionTombstoned`: salvage puts another birth in the catalog before the loop hears of it."""
        if self._birth in self._has.catalog.dead_births(self._session):
            raise SessionTombstoned(self._session)

    def _path(self, number: int) -> str:
        return f"{self._has.journals}/{journal_path(self._session, number)}"

    # --- reading ------------------------------------------------------------------------------------------------------

    def _read(self, wanted: list[int], view: _View) -> list[bytes]:
        """Lines of what is written, and of what the view has in memory. Blocks."""
        kept, extent = self._kept, view.extent
        lines: list[bytes] = []
        if extent is not None and wanted:
            border = self._border(kept, extent)
            lines = self._in_sealed(kept, [frame for frame in wanted if frame <= border], extent)
            newer = [frame for frame in wanted if frame > border]
            lines += self._in_newest(newer, extent) if newer else []
        left = _without(wanted, lines)
        for place in view.segments:
            if left:
                found = self._in_segment(left, place)
                lines += found
                left = _without(left, found)
        if left and view.memory:
            found = [line for line in view.memory if not set(left).isdisjoint(frames_in(line))]
            lines += found
            left = _without(left, found)
        if left and view.memory is not None and extent is not None:
            found = self._in_unindexed(kept, left, extent)
            lines += found
            left = _without(left, found)
        if left and view.memory is not None:
            self._prove(kept, view)
        return lines

    def _border(self, kept: _Kept, extent: Extent) -> int:
        """The highest frame in a sealed file."""
        number, frame = kept.border
        if number != extent.number:
            number = extent.number
            frame = self._has.catalog.files.newest_frame(self._session, self._birth, number)
            kept.border = number, frame
        return frame

    def _prove(self, kept: _Kept, view: _View) -> None:
        """A frame is nowhere: make sure that it does not stand in what is damaged, or that salvage took out of use.

        Raises `StoreCorrupt`, `SessionTombstoned`.
        """
        self._check_alive()
        key = view.extent, sum(len(place.spans) for place in view.segments)
        if key == kept.proven:
            return
        if view.extent is not None:
            owner = self._session, self._birth
            read_journal(self._has.disk, self._path(view.extent.number), Part.of(view.extent), owner)
        before = 0 if view.extent is None else view.extent.seq
        if view.segments and view.segments[0].first_seq > before + 1:
            first = view.segments[0]
            why = f"records {before + 1} to {first.first_seq - 1} of {self._session!r} are missing before it"
            raise LogCorrupt(first.segment.path, first.spans[0], why)
        for place in view.segments:
            for index, line in enumerate(place.lines(self._has.disk, self._session)):
                if decode_record(line).seq != place.first_seq + index:
                    why = f"record {place.first_seq + index} of {self._session!r} should be there"
                    raise LogCorrupt(place.segment.path, place.spans[2 * index], why)
        kept.proven = key

    def _in_newest(self, wanted: list[int], extent: Extent) -> list[bytes]:
        part, path = Part.of(extent), self._path(extent.number)
        file, start = open_journal(self._has.disk, path, part, (self._session, self._birth))
        try:
            return find(InFile(file, path, start, part.end), wanted)
        finally:
            file.close()

    def _in_segment(self, wanted: list[int], place: InSegment) -> list[bytes]:
        if place.data is not None:
            return find(InLog(Bytes(place.data), place), wanted)
        file = self._has.disk.open(place.segment.path)
        try:
            return find(InLog(file, place), wanted)
        finally:
            file.close()

    # --- sealed files -------------------------------------------------------------------------------------------------

    def _in_sealed(self, kept: _Kept, wanted: list[int], extent: Extent) -> list[bytes]:
        lines: list[bytes] = []
        while wanted:
            row = self._row_of(kept, wanted[0])
            if row is None or row.number >= extent.number:
                wanted = wanted[1:]
                continue
            inside = [frame for frame in wanted if frame <= row.last_frame]
            lines += self._in_file(kept, inside, row)
            wanted = wanted[len(inside) :]
        return lines

    def _row_of(self, kept: _Kept, frame: int) -> FileRow | None:
        known = kept.file
        row = None if known is None else known[0]
        if row is not None and row.first_frame <= frame <= row.last_frame:
            return row
        return self._has.catalog.files.with_frame(self._session, self._birth, frame)

    def _in_file(self, kept: _Kept, wanted: list[int], row: FileRow) -> list[bytes]:
        path = self._path(row.number)
        file, begin = open_journal(self._has.disk, path, Part.of(row), (self._session, self._birth))
        try:
            known = kept.file
            if known is None or known[0] != row:
                check_end(file, path, Part.of(row))
                known = kept.file = row, self._index(file, path, row, begin)
            index = known[1]
            places = sorted({place for frame in wanted if (place := index.place(frame)) is not None})
            if any(offset < 0 or length < 0 or offset + length > row.index_offset for offset, length in places):
                raise JournalCorrupt(path, row.index_offset, row.last_seq + 1, "its index names places outside it")
            spans = array("Q", [border for offset, length in places for border in (offset, offset + length)])
            found = read_spans(file.read, spans)
        finally:
            file.close()
        for line, (offset, _) in zip(found, places, strict=True):
            try:
                decode_record(line)
            except LineDamaged as error:
                raise JournalCorrupt(path, offset, 0, f"a line fails its check: {error}") from error
        return found

    def _in_unindexed(self, kept: _Kept, wanted: list[int], extent: Extent) -> list[bytes]:
        """Look in the sealed files without an index. Raises what one refuses when no other has what is wanted."""
        lines: list[bytes] = []
        refusal: OSError | StoreCorrupt | StoreVersionTooNew | None = None
        for row in self._has.catalog.files.without_index(self._session, self._birth, extent.number):
            left = _without(wanted, lines)
            if not left:
                break
            try:
                lines += self._in_file(kept, left, row)
            except (OSError, StoreCorrupt, StoreVersionTooNew) as error:
                refusal = refusal or error
        if refusal is not None and _without(wanted, lines):
            raise refusal
        return lines

    def _index(self, file: DiskFile, path: str, row: FileRow, begin: int) -> FrameIndex:
        """The index of a sealed file whose records begin at offset `begin`, made of them when it got none."""
        if row.last_frame != NO_INDEX:
            return read_index(file.read, path, row)
        builder = IndexBuilder()
        for piece in read_journal(self._has.disk, path, Part.of(row), (self._session, self._birth)):
            begin = builder.add_lines(begin, piece.split(b"\n")[:-1])
        return builder.index()


def _in_order(lines: list[bytes]) -> list[Record]:
    return sorted(decode_records(b"".join(lines)), key=lambda record: record.seq)


def _sorted(ids: Iterable[int]) -> list[int]:
    return sorted({frame for frame in ids if 0 < frame <= MAX_FRAME})


def _without(wanted: list[int], lines: list[bytes]) -> list[int]:
    """The frames that none of the lines adds."""
    found = {frame for line in lines for frame in frames_in(line)}
    return [frame for frame in wanted if frame not in found]
