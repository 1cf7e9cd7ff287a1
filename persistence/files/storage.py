"""The few system calls that a store needs, behind one small interface.

Everything of a store that touches the disk goes through a `Disk`, so that another disk can be put in its place. All
methods block and raise OSError as the system gave it; what an error means is decided by the callers.
"""

from __future__ import annotations

import contextlib
import errno
import os
import sqlite3
import stat
from typing import TYPE_CHECKING, Final, Protocol

from session_actor.persistence.lock import StoreLock, check_local

from .disk_thread import DiskThread

if TYPE_CHECKING:
    import asyncio

DIRECTORY_MODE: Final = 0o700
FILE_MODE: Final = 0o600
_FLAGS: Final = os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
HEADER_BYTES: Final = 100
"""Of a database (SQLite: file format, 1.3)."""
_WRITE_VERSION_AT: Final = 18
_WRITE_VERSION_MAX: Final = 2


class OnlyReadable(Exception):
    """A database says of itself that it may be read and never written, so that no change of it would succeed."""


def refuse_only_readable(header: bytes) -> None:
    """Raise `OnlyReadable` for the header of a database that SQLite would open and not write (file format, 1.3.3).

    It says then of each change that the database is read-only, as of one on a disk that is: this one is damaged.
    """
    version = header[_WRITE_VERSION_AT] if len(header) > _WRITE_VERSION_AT else 0
    if version > _WRITE_VERSION_MAX:
        raise OnlyReadable(f"its header has write version {version}, which SQLite reads and does not write")


class DiskFile(Protocol):
    """One open regular file. Offsets and lengths are in bytes; there is no file position."""

    def write(self, data: bytes, offset: int) -> None:
        """Write all of `data` at `offset`."""
        ...

    def read(self, offset: int, length: int) -> bytes:
        """Read up to `length` bytes from `offset`; fewer only at the end of the file."""
        ...

    def size(self) -> int:
        """Length of the file."""
        ...

    def preallocate(self, length: int) -> None:
        """Make the file `length` bytes long, zeros where nothing was written, with its room on the disk taken."""
        ...

    def truncate(self, length: int) -> None:
        """Cut the file to `length` bytes."""
        ...

    def sync(self) -> None:
        """Return when everything written so far is on the disk (fdatasync). After an error nothing may be assumed."""
        ...

    def linked(self) -> bool:
        """Whether the file still has a name: one that was removed takes writes, and is gone when it is closed.

        True once it is closed.
        """
        ...

    def close(self) -> None:
        """Close; again: no effect."""
        ...


class DiskLock(Protocol):
    """The lock of one store."""

    async def acquire(self, timeout_s: float | None = 0) -> None:
        """Take the lock; see `StoreLock.acquire`."""
        ...

    def renew(self) -> bool:
        """Make sure that the lock still keeps others out; see `StoreLock.renew`."""
        ...

    def release(self) -> None:
        """Give the lock up; without it: no effect."""
        ...


class Disk(Protocol):
    """The system calls on names, and what else of a store depends on its disk. Paths are absolute."""

    def open(self, path: str, *, write: bool = False, create: bool = False) -> DiskFile:
        """Open a regular file; never through a symbolic link. `create`: make it anew and empty if it is not there."""
        ...

    def list(self, path: str) -> list[str]:
        """Names in a directory, sorted; empty when there is no such directory."""
        ...

    def make_dir(self, path: str) -> bool:
        """Make a directory for this user alone; returns whether it was new. Its parent must exist."""
        ...

    def make_root(self, path: str) -> None:
        """Make a store's directory, for this user alone, and those above it, if they are not there.

        The names of what was made are on the disk when this returns.
        """
        ...

    def rename(self, source: str, target: str) -> None:
        """Rename in place of whatever `target` was."""
        ...

    def unlink(self, path: str) -> None:
        """Remove a file; no effect when it is gone."""
        ...

    def sync_dir(self, path: str) -> None:
        """Return when the names in a directory are on the disk."""
        ...

    def connect(self, path: str, *, create: bool) -> sqlite3.Connection:
        """Open a database, for use in any thread and without transactions of its own. `create`: if it is not there.

        A COMMIT is on the disk when it returns, by the pragmas of the caller. Raises sqlite3.Error beside OSError, and
        `OnlyReadable`.
        """
        ...

    def lock(self, path: str) -> DiskLock:
        """Give the lock whose file is `path`, not yet taken."""
        ...

    def check_local(self, path: str, *, allow_network_fs: bool) -> None:
        """Raise `NetworkFileSystem` when a directory is on one, unless `allow_network_fs`."""
        ...

    def thread(self, name: str, loop: asyncio.AbstractEventLoop) -> DiskThread:
        """Give a thread for calls that block; results are reported to `loop`."""
        ...


class OsFile:
    """A `DiskFile` of the operating system."""

    __slots__ = ("_fd",)

    def __init__(self, descriptor: int) -> None:
        """Takes over `descriptor`."""
        self._fd = descriptor

    def write(self, data: bytes, offset: int) -> None:
        """See `DiskFile`."""
        done = os.pwrite(self._fd, data, offset)
        if done != len(data):
            self._write_rest(memoryview(data), done, offset)

    def _write_rest(self, data: memoryview, done: int, offset: int) -> None:
        while done < len(data):
            step = os.pwrite(self._fd, data[done:], offset + done)
            if step == 0:
                raise OSError(errno.EIO, "the system wrote nothing")
            done += step

    def read(self, offset: int, length: int) -> bytes:
        """See `DiskFile`."""
        data = os.pread(self._fd, length, offset)
        if len(data) in {0, length}:
            return data
        parts = [data]
        done = len(data)
        while done < length and (data := os.pread(self._fd, length - done, offset + done)):
            parts.append(data)
            done += len(data)
        return b"".join(parts)

    def size(self) -> int:
        """See `DiskFile`."""
        return os.fstat(self._fd).st_size

    def preallocate(self, length: int) -> None:
        """See `DiskFile`."""
        if hasattr(os, "posix_fallocate"):
            os.posix_fallocate(self._fd, 0, length)
        elif self.size() < length:
            os.ftruncate(self._fd, length)

    def truncate(self, length: int) -> None:
        """See `DiskFile`."""
        os.ftruncate(self._fd, length)

    def sync(self) -> None:
        """See `DiskFile`."""
        _sync_data(self._fd)

    def linked(self) -> bool:
        """See `DiskFile`."""
        try:
            return self._fd < 0 or os.fstat(self._fd).st_nlink > 0
        except OSError:
            if self._fd >= 0:
                raise
            return True  # another thread has closed it meanwhile

    def close(self) -> None:
        """See `DiskFile`."""
        if self._fd >= 0:
            descriptor, self._fd = self._fd, -1
            os.close(descriptor)


class OsDisk:
    """The `Disk` of the operating system: files 0600, directories 0700, descriptors not inherited."""

    __slots__ = ()

    def open(self, path: str, *, write: bool = False, create: bool = False) -> OsFile:
        """See `Disk`. Raises OSError(ELOOP) for a symbolic link and OSError(EINVAL) for what is no regular file."""
        flags = (os.O_RDWR if write or create else os.O_RDONLY) | (os.O_CREAT if create else 0)
        return OsFile(_open_regular(path, flags))

    def list(self, path: str) -> list[str]:
        """See `Disk`."""
        try:
            return sorted(os.listdir(path))  # noqa: PTH208 - a plain system call
        except FileNotFoundError:
            return []

    def make_dir(self, path: str) -> bool:
        """See `Disk`."""
        try:
            os.mkdir(path, DIRECTORY_MODE)  # noqa: PTH102 - a plain system call
        except FileExistsError:
            return False
        return True

    def make_root(self, path: str) -> None:
        """See `Disk`."""
        if os.path.isdir(path):  # noqa: PTH112 - a plain system call
            return
        missing = [path]
        while not os.path.isdir(above := os.path.dirname(missing[-1])):  # noqa: PTH112, PTH120 - the same
            missing.append(above)
        for each in reversed(missing):  # those above the store's are open to others, as they expect it
            os.makedirs(each, DIRECTORY_MODE if each == path else 0o777, exist_ok=True)  # noqa: PTH103 - the same
            self.sync_dir(os.path.dirname(each))  # noqa: PTH120 - the same

    def rename(self, source: str, target: str) -> None:
        """See `Disk`."""
        os.replace(source, target)  # noqa: PTH105 - a plain system call

    def unlink(self, path: str) -> None:
        """See `Disk`."""
        with contextlib.suppress(FileNotFoundError):
            os.unlink(path)  # noqa: PTH108 - a plain system call

    def sync_dir(self, path: str) -> None:
        """See `Disk`."""
        descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

    def connect(self, path: str, *, create: bool) -> sqlite3.Connection:
        """See `Disk`. The file is made private before SQLite does it; OSError as `open` for what is no regular file."""
        file = OsFile(_open_regular(path, os.O_RDONLY | (os.O_CREAT if create else 0)))
        try:
            refuse_only_readable(file.read(0, HEADER_BYTES))
        finally:
            file.close()
        return sqlite3.connect(path, isolation_level=None, check_same_thread=False)

    def lock(self, path: str) -> StoreLock:
        """See `Disk`."""
        return StoreLock(path)

    def check_local(self, path: str, *, allow_network_fs: bool) -> None:
        """See `Disk`."""
        check_local(path, allow_network_fs=allow_network_fs)

    def thread(self, name: str, loop: asyncio.AbstractEventLoop) -> DiskThread:
        """See `Disk`."""
        return DiskThread(name, loop)


def _open_regular(path: str, flags: int) -> int:
    descriptor = os.open(path, flags | _FLAGS, FILE_MODE)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(errno.EINVAL, "not a regular file", path)
    return descriptor


def _sync_data(descriptor: int) -> None:
    """On macOS neither fsync nor fdatasync reaches the platter; F_FULLFSYNC does (Apple: fsync(2))."""
    if hasattr(os, "fdatasync"):
        os.fdatasync(descriptor)
        return
    import fcntl

    full = getattr(fcntl, "F_FULLFSYNC", None)
    if full is None:
        os.fsync(descriptor)
    else:
        fcntl.fcntl(descriptor, full)
