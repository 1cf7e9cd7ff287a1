"""Writing the newest file of a journal anew, to another one, after a sync of it was refused.

Nothing of such a file is trusted any more, not even when the same bytes are written to it again: the kernel takes what
it could not write for clean, ext4 leaves room that was taken for it unwritten for good, and what says where older bytes
lie may be lost with it. All of that reads well until the power is lost, and each later sync says OK (PostgreSQL's fsync
lesson of 2018). So what counts is copied to a new file, what comes is written behind it, and when all is synced that
file takes the place of the old one: both begin with the same bytes, so that the catalog counts the one as the other.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Final
from zlib import crc32

from session_actor.persistence.errors import JournalCorrupt
from session_actor.persistence.files.names import journal_path

if TYPE_CHECKING:
    from session_actor.persistence.files.storage import Disk, DiskFile

    from .journal import Part

TEMPORARY: Final = ".new"
_PIECE_BYTES: Final = 1024 * 1024


def temporary_path(journals: str, session: str) -> str:
    """Where a file of the session's journal is written anew; `journals`: their folder. There is one of them at most."""
    return f"{journals}/{journal_path(session, 0)}{TEMPORARY}"


class Anew:
    """A file that will take the place of another. All methods block."""

    __slots__ = ("_disk", "_path", "_target", "file")

    def __init__(self, disk: Disk, path: str, target: str, old: DiskFile, part: Part) -> None:
        """Copies the valid part of `old`, which is the file at `target`, to a new file at `path`.

        Raises OSError, and `JournalCorrupt` when that part is not what the catalog counted. Nothing is left then.
        """
        self._disk = disk
        self._path = path
        self._target = target
        disk.unlink(path)  # it would be the same file, of which a sync may have been refused, too
        self.file = disk.open(path, create=True)
        try:
            self._copy(old, part)
        except BaseException:
            self.drop()
            raise

    def _copy(self, old: DiskFile, part: Part) -> None:
        crc = done = 0
        while done < part.size_bytes:
            data = old.read(done, min(_PIECE_BYTES, part.size_bytes - done))
            if not data:
                break
            self.file.write(data, done)
            crc, done = crc32(data, crc), done + len(data)
        if (done, crc) != (part.size_bytes, part.crc):
            raise JournalCorrupt(self._target, 0, 0, "its bytes are not those that the catalog counted")

    def take_place(self) -> None:
        """Put the file, which is synced, in the place of the old one; the name is on the disk when the folder is."""
        self._disk.rename(self._path, self._target)

    def drop(self) -> None:
        """Close the file, and remove it if the disk lets that be done: nobody counts it."""
        self.file.close()
        with contextlib.suppress(OSError):
            self._disk.unlink(self._path)
