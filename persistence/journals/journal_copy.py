"""Writing a journal file from its beginning to its end."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final
from zlib import crc32

from session_actor.persistence.catalog.catalog_files import FileRow
from session_actor.persistence.files.names import journal_path
from session_actor.persistence.format.frame_index import frames_in
from session_actor.persistence.format.gap import Link
from session_actor.persistence.format.header import JournalHeader, RecordRef, encode_journal_header

from .journal_index import IndexBuilder

if TYPE_CHECKING:
    from session_actor.persistence.files.storage import Disk
    from session_actor.persistence.format.record import Record

BUFFER_BYTES: Final = 1024 * 1024


class JournalCopy:
    """A new journal file, at a place where there is none, or an earlier try of the same. All methods block."""

    def __init__(
        self, disk: Disk, folder: str, session: str, *, birth: str, copies: str, number: int, before: Link
    ) -> None:
        """`folder`: of the journals. `copies`: the birth that is copied. `before`: the record before the first one.

        Raises OSError.
        """
        self.path = f"{folder}/{journal_path(session, number)}"
        self.number = number
        self.link = before
        self.crc = 0
        self.size_bytes = 0
        self._session = session
        self._birth = birth
        self._first_seq = before.seq + 1
        self._index = IndexBuilder()
        self._buffer: list[bytes] = []
        self._buffered = 0
        make_folder(disk, folder, self.path)
        self._file = disk.open(self.path, create=True)
        try:
            self._file.truncate(0)
        except BaseException:
            self._file.close()
            raise
        header = JournalHeader(session, birth, number, RecordRef(before.seq, before.sum), copies=copies)
        self._put(encode_journal_header(header)[0])

    def add(self, line: bytes, record: Record) -> None:
        """The next record; `line`: its bytes, LF included."""
        self._index.add(self.size_bytes, len(line), frames_in(line))
        self._put(line)
        self.link = Link.of(record)

    def seal(self) -> FileRow:
        """Write the index; returns the file's row for the catalog."""
        index_offset = self.size_bytes
        self._put(self._index.line(self._birth, self.number))
        return FileRow(
            self._session,
            self._birth,
            self.number,
            self._first_seq,
            self.link.seq,
            self._index.first_frame,
            self._index.last_frame,
            self.size_bytes,
            index_offset,
            self.link.sum,
            self.crc,
        )

    def close(self) -> None:
        """Return when the bytes are on the disk, and close the file."""
        try:
            self._flush()
            self._file.sync()
        finally:
            self._file.close()

    def abandon(self) -> None:
        """Close the file as it is."""
        self._file.close()

    def _put(self, data: bytes) -> None:
        self.crc = crc32(data, self.crc)
        self.size_bytes += len(data)
        self._buffer.append(data)
        self._buffered += len(data)
        if self._buffered >= BUFFER_BYTES:
            self._flush()

    def _flush(self) -> None:
        if self._buffered:
            self._file.write(b"".join(self._buffer), self.size_bytes - self._buffered)
            self._buffer.clear()
            self._buffered = 0


def make_folder(disk: Disk, journals: str, path: str) -> None:
    """Make the folder of a journal file, and that of all journals if somebody removed it. Blocks. Raises OSError."""
    folder = path.rpartition("/")[0]
    try:
        disk.make_dir(folder)
    except FileNotFoundError:
        disk.make_dir(journals)
        disk.sync_dir(journals.rpartition("/")[0])
        disk.make_dir(folder)
