"""Room on the disk that is held back, so that a full disk can be left again.

Moving a sealed segment of the log into journals needs room before it frees any, and closing may need a segment for what
is queued. So a preallocated file of a segment's size, which is never written, is kept beside the log, and removed when
one of them finds the disk full. Another, of a few pages, is held from the first cut on, so that the commit that makes a
cut valid has room.

Where there is little, the log takes its room piece by piece, so that it goes on with whatever there is.
"""

from __future__ import annotations

import contextlib
import errno
import os
import threading
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from .files.storage import Disk, DiskFile

NO_ROOM: Final = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
PIECE_BYTES: Final = 64 * 1024
PIECES: Final = 128
COMMIT_BYTES: Final = 64 * 1024
COMMITS: Final = 16


def is_full(error: BaseException) -> bool:
    """Whether an error says that there is no room on the disk."""
    return isinstance(error, OSError) and error.errno in NO_ROOM


def piece_of(segment_bytes: int) -> int:
    """The least room that the log takes at a time."""
    return min(PIECE_BYTES, -(-segment_bytes // PIECES))


def room_of_commit(segment_bytes: int) -> int:
    """The room that is held for the commit of a cut."""
    return min(COMMIT_BYTES, segment_bytes // COMMITS)


def take_room(file: DiskFile, want_bytes: int, least_bytes: int) -> int:
    """Preallocate a file that is empty; returns how much: less than is wanted when the disk is full. Raises OSError."""
    try:
        file.preallocate(want_bytes)
    except OSError as error:
        if not is_full(error) or want_bytes <= least_bytes:
            raise
        file.truncate(0)  # some file systems leave what they could get
        file.preallocate(least_bytes)
        return least_bytes
    return want_bytes


class Reserve:
    """The file that holds the room. All methods block; they may be called in any thread."""

    __slots__ = ("_closed", "_disk", "_mutex", "_path", "_size_bytes", "given_up", "held", "lent")

    def __init__(self, disk: Disk, path: str, size_bytes: int) -> None:
        """Nothing is held yet."""
        self.held = False
        self.given_up = False
        """It was needed, held or not, and is not held again since."""
        self.lent = False
        """It was given up for something that is under way: nothing else may take that room."""
        self._disk = disk
        self._path = path
        self._size_bytes = size_bytes
        self._mutex = threading.Lock()
        self._closed = False

    def take(self) -> None:
        """Hold the room, if it is not held already. Raises OSError when there is none."""
        with self._mutex:
            if self.held or self._closed:
                return
            file = self._disk.open(self._path, create=True)
            try:
                file.preallocate(self._size_bytes)
            except BaseException:
                self._disk.unlink(self._path)
                raise
            finally:
                file.close()
            self.held, self.given_up = True, False

    def hold(self, *, needed: bool) -> bool:
        """Hold the room, if there is any; not while what it was given up for is `needed`. Returns whether it is held.

        Raises OSError for anything else than a full disk.
        """
        if not (self.given_up and needed):
            try:
                self.take()
            except OSError as error:
                if not is_full(error):
                    raise
        return self.held

    def check_free(self) -> None:
        """Raises OSError while the room is lent."""
        if self.lent:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def take_back(self) -> None:
        """Hold the room again if it was given up, and if there is any."""
        if self.given_up:
            with contextlib.suppress(OSError):
                self.take()

    def give_up(self) -> bool:
        """Make room, and leave it to what needs it until `take_back`; returns whether some was held."""
        with self._mutex:
            held, self.held, self.given_up = self.held, False, True
            if held:
                self._disk.unlink(self._path)
            return held

    def close(self) -> None:
        """Give the room up, and hold none any more."""
        self._closed = True
        if self.held:
            self.give_up()
