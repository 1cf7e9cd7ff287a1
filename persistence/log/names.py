"""The names in the folder of the log, of which a refused sync may lose some.

What such a sync was to make durable may be lost, and each later one says OK over that: the kernel takes for clean what
it could not write (PostgreSQL's fsync lesson of 2018). So only a name that was made since the last refusal is made
durable by a sync. Of any other nothing is said: its segment is left, and another takes over from memory.
"""

from __future__ import annotations

import errno
import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from session_actor.persistence.files.storage import Disk


class Names:
    """The names in one folder. `refusals`: how many syncs of it were refused."""

    __slots__ = ("_disk", "_folder", "_mutex", "refusals")

    def __init__(self, disk: Disk, folder: str) -> None:
        """No sync was refused."""
        self.refusals = 0
        self._disk = disk
        self._folder = folder
        self._mutex = threading.Lock()

    def sync(self, made_at: int | None = None) -> None:
        """Sync the folder: names that were made when there were `made_at` refusals are on the disk when this returns.

        None: it is not said of any name. Blocks; may be called in any thread. Raises OSError, also when one was refused
        since those names were made.
        """
        with self._mutex:  # a refusal that another thread is told of must be counted first
            try:
                self._disk.sync_dir(self._folder)
            except OSError:
                self.refusals += 1
                raise
            if made_at is not None and made_at != self.refusals:
                raise OSError(errno.EIO, "an earlier sync of it was refused, and may have lost names", self._folder)
