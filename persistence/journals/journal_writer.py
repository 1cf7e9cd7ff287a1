"""Writing a session's journal: appending to its newest file, sealing that, and beginning the next.

A file is sealed when it has reached its size and there is more to write: what it holds is read back, its index is
written behind it, and it is synced. Nothing of this counts before the catalog says so: until then the newest file is
valid up to where it was, and what lies behind, files of higher numbers included, is overwritten by whoever writes next,
if the log has it still. What the log has not was counted once: an older catalog does not know of it. A journal with
such records is not gone on with, and a file of another birth, or one with records and no header, is passed over.

Nothing is written into a file that is not the one that the catalog counted, or is shorter: it is left as it is, counts
as sealed, and what comes is written to the next one. Whoever reads it is told of the damage. The same is done with one
that the disk goes on refusing. One of which a sync was refused is written anew: see `journal_anew`.

Of what a process left that is gone a sync may have been refused, too. So bytes behind the valid part are cut off before
others are written there, and a file that nobody counts gives way to a new one of its name.
"""

from __future__ import annotations

import contextlib
from bisect import bisect_left
from itertools import accumulate
from typing import TYPE_CHECKING
from zlib import crc32

from session_actor.persistence.catalog.catalog_files import NO_INDEX, FileRow
from session_actor.persistence.errors import JournalCorrupt, LineDamaged, StoreCorrupt, StoreVersionTooNew
from session_actor.persistence.files.lines import read_lines
from session_actor.persistence.files.names import journal_path
from session_actor.persistence.format.header import JournalHeader, RecordRef, encode_journal_header
from session_actor.persistence.format.record import NO_SUM, Record, decode_record
from session_actor.persistence.log.session_log import Extent

from .beyond import beyond, uncounted
from .journal import Part, check_end, open_journal
from .journal_anew import Anew, temporary_path
from .journal_copy import make_folder
from .journal_index import build_index
from .journal_walk import NO_LIMIT, Good, Walk

if TYPE_CHECKING:
    from collections.abc import Callable

    from session_actor.persistence.files.storage import Disk, DiskFile
    from session_actor.persistence.log.session_log import SessionLog

    from .journal_index import IndexBuilder


class JournalWriter:
    """Writes records behind the valid part of one session's journal. All methods block.

    `extent`: the part that is valid with what was written. `sealed`: rows of the files that were sealed. `broken`: why
    the newest file was left as it is; None: it was not. `sync_refused`: a sync was, so that the file is not trusted.
    """

    __slots__ = (
        "_anew",
        "_begins",
        "_disk",
        "_distrusted",
        "_file",
        "_first_seq",
        "_folder",
        "_folders",
        "_full",
        "_left",
        "_log",
        "_sealed_seq",
        "_sums",
        "_touched",
        "broken",
        "extent",
        "sealed",
        "sync_refused",
    )

    def __init__(
        self,
        disk: Disk,
        journals: str,
        log: SessionLog,
        *,
        file_bytes: int,
        folders: set[str],
        touched: dict[str, int],
        sealed_seq: Callable[[SessionLog], int],
        left: tuple[OSError, int] | None = None,
        distrusted: bool = False,
    ) -> None:
        """`journals`: their folder. `file_bytes`: size at which a file is sealed.

        `folders`: takes the folders in which names changed. `touched`: takes the files that are written to, and
        how much of each counted before. `sealed_seq(log)`: the newest record in a sealed file.
        `left`: why the disk refuses the newest file, which is left as it is, and by how many numbers the next one comes
        later. `distrusted`: a sync of the newest file, or of its name, was refused: nothing is written to it again.
        """
        self.sync_refused = False
        self.extent = log.extent
        self.sealed: list[FileRow] = []
        self.broken: StoreCorrupt | StoreVersionTooNew | OSError | None = None if left is None else left[0]
        self._disk = disk
        self._folder = journals
        self._log = log
        self._full = file_bytes
        self._folders = folders
        self._touched = touched
        self._sealed_seq = sealed_seq
        self._left = 0 if left is None else left[1]
        self._distrusted = distrusted
        self._file: DiskFile | None = None
        self._anew: Anew | None = None
        """The newest file as it is written anew, until it has taken the place of the old one."""
        self._begins: int | None = None
        """First record of the newest file, when it was begun here."""
        self._first_seq = 0
        """First record that is written; 0: none is yet. The log has it and all that follow."""
        self._sums = bytearray()
        """Those of all records that were written or are being written, eight bytes each."""

    def write(self, records: list[bytes]) -> None:
        """Append record lines, which are without LF. What a cut that was not finished left behind is overwritten.

        Raises OSError, and `StoreCorrupt`: what is in the files already is not what these records follow.
        """
        seq = 1 + (0 if self.extent is None else self.extent.seq)
        if not self._first_seq and records:
            self._check_first(records[0], seq)
        self._sums += b"".join([record[-10:-2] for record in records])
        while records:
            header = self._prepare()
            extent = self.extent or Extent(1, 0, 0, NO_SUM, 0)
            room = self._full - extent.size_bytes - len(header)
            count = len(records)
            if sum(map(len, records)) + count > room:
                count = bisect_left(list(accumulate(len(record) + 1 for record in records)), room) + 1
            last = self._decode(records[count - 1])
            lines = b"\n".join((*records[:count], b""))
            if header:
                lines = header + lines
            self._opened().write(lines, extent.size_bytes)
            size, crc = extent.size_bytes + len(lines), crc32(lines, extent.crc)
            self.extent = Extent(extent.number, size, last.seq, last.sum, crc)
            records = records[count:]

    def sync(self) -> None:
        """Return when what was written is on the disk, but for the names of new files: see `folders`."""
        if self._file is not None:
            try:
                self._file.sync()
            except BaseException:
                self.sync_refused = True
                raise
        if self._anew is not None:
            self._anew.take_place()
            self._anew = None

    def close(self) -> None:
        """Close the newest file; again: no effect. One that was to take its place and did not is removed."""
        file, self._file = self._file, None
        anew, self._anew = self._anew, None
        if file is not None:
            file.close()
        if anew is not None:
            anew.drop()

    # --- files --------------------------------------------------------------------------------------------------------

    def _check_first(self, record: bytes, seq: int) -> None:
        """The first record must be number `seq`, behind the last one that is counted. Raises `StoreCorrupt`."""
        if not record.startswith(b'{"seq":%d,' % seq):
            first, number = self._decode(record).seq, 1 if self.extent is None else self.extent.number
            why = f"it ends with record {seq - 1}, and the log goes on with record {first}: the catalog is older"
            raise StoreCorrupt(self._path(number), why)
        self._first_seq = seq

    def _is_in_log(self, record: Record) -> bool:
        """Whether the log has this record of a file, and none of another history that has its number."""
        place = 8 * (record.seq - self._first_seq)
        if 0 <= place < len(self._sums):
            return bytes(self._sums[place : place + 8]) == record.sum.encode()
        return record.seq <= self._log.written_seq

    def _prepare(self) -> bytes:
        """Have a file with room for a record open; returns the header that must precede it in a new one."""
        extent = self.extent
        if extent is None or not self._open(extent):
            return self._begin(extent)
        if extent.size_bytes < self._full:
            return b""
        self._seal(extent)
        return self._begin(extent)

    def _decode(self, record: bytes) -> Record:
        try:
            return decode_record(record + b"\n")
        except LineDamaged as error:
            why = f"the log holds a record of {self._log.session!r} that is none: {error}"
            raise StoreCorrupt(self._folder, why) from error

    def _opened(self) -> DiskFile:
        if self._file is None:
            raise RuntimeError("no journal file is open")
        return self._file

    def _begin(self, before: Extent | None) -> bytes:
        number = 1 + self._left if before is None else before.number + max(1, self._left)
        while (walk := self._overwritable(number)) is None:
            number += 1
        self._left = 0
        continues = RecordRef() if before is None else RecordRef(before.seq, before.sum)
        self._touched.setdefault(self._path(number), 0)
        self._file = self._create(number, is_there=walk.there)
        self._file.truncate(0)
        self.extent = Extent(number, 0, continues.seq, continues.sum, 0)
        self._begins = continues.seq + 1
        return encode_journal_header(JournalHeader(self._log.session, self._log.birth, number, continues))[0]

    def _overwritable(self, number: int) -> Walk | None:
        """The file of a number if there is none, or all records in it are of this birth and in the log.

        Raises `StoreCorrupt` for later ones of this birth, `StoreVersionTooNew`, OSError.
        """
        walk = Walk(self._disk, self._path(number))
        header = walk.header
        if header is not None and (header.session, header.birth) != (self._log.session, self._log.birth):
            return None
        records = [item.record for item in walk.items() if isinstance(item, Good)]
        if header is None or not records:
            return None if records else walk
        if not all(map(self._is_in_log, records)):
            raise uncounted(walk.path, 0, records[-1].seq)
        return walk if records[0].seq >= self._first_seq else None

    def _seal(self, extent: Extent) -> None:
        """Write the index of the newest file; none when it does not read as it was written: who reads it judges it."""
        file = self._opened()
        index = build_index(file, extent.size_bytes, extent.crc)
        line = b"" if index is None else index.line(self._log.birth, extent.number)
        size = extent.size_bytes + len(line)
        if line:
            file.write(line, extent.size_bytes)
        if file.size() > size:
            file.truncate(size)
        self.sync()
        self.close()
        self._note_sealed(extent, index, line)

    def _note_sealed(self, extent: Extent, index: IndexBuilder | None, line: bytes) -> None:
        first_seq = self._sealed_seq(self._log) + 1 if self._begins is None else self._begins
        frames = (0, NO_INDEX) if index is None else (index.first_frame, index.last_frame)
        row = FileRow(
            session=self._log.session,
            birth=self._log.birth,
            number=extent.number,
            first_seq=first_seq,
            last_seq=extent.seq,
            first_frame=frames[0],
            last_frame=frames[1],
            bytes=extent.size_bytes + len(line),
            index_offset=extent.size_bytes,
            sum=extent.sum,
            crc=crc32(line, extent.crc),
        )
        self.sealed.append(row)

    def _open(self, extent: Extent) -> bool:
        """Have the newest file open; when it is not as the catalog counted it, let it count as sealed: False."""
        if self._file is not None:
            return True
        if self._left:
            self._note_sealed(extent, None, b"")
            return False
        path, part = self._path(extent.number), Part.of(extent)
        try:
            self._file, _ = open_journal(self._disk, path, part, (self._log.session, self._log.birth), write=True)
            check_end(self._file, path, part)
        except (StoreCorrupt, StoreVersionTooNew) as error:
            self._leave(extent, error)
            return False
        if self._file.size() > part.size_bytes:
            self._check_beyond(path, part)
            if not self._distrusted:
                self._file.truncate(part.size_bytes)
        if self._distrusted:
            try:
                self._renew(self._file, path, part)
            except JournalCorrupt as error:
                self._leave(extent, error)
                return False
        self._touched.setdefault(path, part.size_bytes)
        return True

    def _leave(self, extent: Extent, error: StoreCorrupt | StoreVersionTooNew) -> None:
        """Write nothing to the newest file."""
        self.broken = error
        self.close()
        self._note_sealed(extent, None, b"")

    def _renew(self, old: DiskFile, path: str, part: Part) -> None:
        self._anew = Anew(self._disk, temporary_path(self._folder, self._log.session), path, old, part)
        self._file = self._anew.file
        old.close()
        self._folders.add(path.rpartition("/")[0])

    def _check_beyond(self, path: str, part: Part) -> None:
        """Overwrite nothing but what the log has, also behind damage. Raises `StoreCorrupt`."""
        found = beyond(self._disk, self._folder, part, (self._log.session, self._log.birth))
        if found and found[-1].last.seq > self._log.written_seq:
            raise uncounted(path, part.size_bytes, found[-1].last.seq)
        for line in read_lines(self._opened(), part.size_bytes, NO_LIMIT):
            with contextlib.suppress(LineDamaged):
                record = decode_record(line.data)
                if not self._is_in_log(record):
                    raise uncounted(path, part.size_bytes, record.seq)

    def _create(self, number: int, *, is_there: bool) -> DiskFile:
        path = self._path(number)
        folder = path.rpartition("/")[0]
        if folder not in self._folders:
            make_folder(self._disk, self._folder, path)
            # One that is there may have been made by a cut that failed or died before it synced the name.
            self._folders.update((folder, self._folder))
        if is_there or self._distrusted:
            self._disk.unlink(path)
        return self._disk.open(path, create=True)

    def _path(self, number: int) -> str:
        return f"{self._folder}/{journal_path(self._log.session, number)}"
