"""The few system calls that log and journals need, behind one small interface.

Everything that touches the disk for them goes through a `Disk`, so that another disk can be put in its place. All
methods block and raise OSError as the system gave it; what an error means is decided by the callers.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from typing import Final, Protocol

DIRECTORY_MODE: Final = 0o700
FILE_MODE: Final = 0o600
_FLAGS: Final = os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK


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

    def close(self) -> None:
        """Close; again: no effect."""
        ...


class Disk(Protocol):
    """The system calls on names. Paths are absolute."""

    def open(self, path: str, *, write: bool = False, create: bool = False) -> DiskFile:
        """Open a regular file; never through a symbolic link. `create`: make it anew and empty if it is not there."""
        ...

    def list(self, path: str) -> list[str]:
        """Names in a directory, sorted; empty when there is no such directory."""
        ...

    def make_dir(self, path: str) -> bool:
        """Make a directory for this user alone; returns whether it was new. Its parent must exist."""
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
        flags = _FLAGS | (os.O_RDWR if write or create else os.O_RDONLY) | (os.O_CREAT if create else 0)
        descriptor = os.open(path, flags, FILE_MODE)
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            os.close(descriptor)
            raise OSError(errno.EINVAL, "not a regular file", path)
        return OsFile(descriptor)

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
