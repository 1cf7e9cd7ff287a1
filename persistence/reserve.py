"""Room on the disk that is held back, so that a full disk can be left again.

Moving a sealed segment of the log into journals needs room before it frees any, and closing may need a segment for what
is queued. So a preallocated file of a segment's size, which is never written, is kept beside the log, and removed when
one of them finds the disk full.
"""

from __future__ import annotations

import contextlib
import errno
import threading
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from .storage import Disk

NO_ROOM: Final = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})


def is_full(error: BaseException) -> bool:
    """Whether an error says that there is no room on the disk."""
    return isinstance(error, OSError) and error.errno in NO_ROOM


class Reserve:
    """The file that holds the room. All methods block; they may be called in any thread."""

    __slots__ = ("_closed", "_disk", "_mutex", "_path", "_size_bytes", "given_up", "held")

    def __init__(self, disk: Disk, path: str, size_bytes: int) -> None:
        """Nothing is held yet."""
        self.held = False
        self.given_up = False
        """It was needed, and is not held again since."""
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

    def take_back(self) -> None:
        """Hold the room again if it was given up, and if there is any."""
        if self.given_up:
            with contextlib.suppress(OSError):
                self.take()

    def give_up(self) -> bool:
        """Make room: returns whether some was held."""
        with self._mutex:
            held, self.held = self.held, False
            if held:
                self.given_up = True
                self._disk.unlink(self._path)
            return held

    def close(self) -> None:
        """Give the room up, and hold none any more."""
        self._closed = True
        self.give_up()
