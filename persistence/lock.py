"""One process per store: an flock on the file LOCK, and a check that the file system can be trusted with it.

The kernel frees the lock when the process dies, however it dies. A forked child shares the open file with its parent,
so it closes its copy at once and never unlocks: the lock stays with the parent alone.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import fcntl
import os
import stat
import time
import weakref
from pathlib import Path
from typing import Final

from .errors import NetworkFileSystem, StoreClosed, StoreLocked

_RETRY_S: Final = 0.005
"""How soon to try again: what a handover to a waiting process costs beside its work."""
_PID_BYTES: Final = 20
_PID_TRIES: Final = 20
_NETWORK: Final = frozenset(
    {"9p", "afs", "beegfs", "ceph", "cifs", "gfs2", "glusterfs", "gpfs", "lustre", "ncpfs", "nfs", "nfs4", "ocfs2",
     "orangefs", "smb3", "smbfs"}
)  # fmt: skip
_NETWORK_FUSE: Final = frozenset({"ceph", "cephfs", "gcsfuse", "glusterfs", "moosefs", "rclone", "s3fs", "sshfs"})


class StoreLock:
    """The lock of one store. Not for use from several threads at once."""

    __slots__ = ("__weakref__", "_fd", "_path")

    def __init__(self, path: str | os.PathLike[str]) -> None:
        """`path`: the lock file, made when it is missing; its folder must exist."""
        self._path = Path(path)
        self._fd: int | None = None

    @property
    def held(self) -> bool:
        """Whether this process holds the lock; False in a forked child."""
        return self._fd is not None

    async def acquire(self, timeout_s: float | None = 0) -> None:
        """Take the lock, trying for `timeout_s` seconds: 0 tries once, None without limit.

        Raises `StoreLocked`, also when this object has it already; OSError when the file cannot be made. Cancelling
        leaves it free.
        """
        deadline = None if timeout_s is None else time.monotonic() + timeout_s
        while not self.try_acquire():
            if deadline is not None and time.monotonic() >= deadline:
                pid = await self._told_holder()
                raise StoreLocked(str(self._path.parent), pid, here=pid == os.getpid() and self._is_held_here())
            await asyncio.sleep(_RETRY_S)

    def try_acquire(self) -> bool:
        """Take the lock if it is free and return whether it was. Raises as `acquire`."""
        if self._fd is not None:
            raise StoreLocked(str(self._path.parent), os.getpid(), here=True)
        fd = self._open()
        try:
            taken = _flock(fd) and self._is_current(fd)
            if taken:
                _note_pid(fd)
                self._fd = fd
                _held.add(self)
        finally:
            if self._fd != fd:
                os.close(fd)
        return taken

    def renew(self) -> bool:
        """Make sure that the lock still keeps others out, which it does not once its file was removed or replaced.

        Returns whether it does; when it did not, the file was made and locked anew. Blocks. Raises `StoreLocked` when
        another process has taken the lock meanwhile, `StoreClosed` without it, OSError when the folder is away.
        """
        self.ensure_held()
        fd = self._fd
        if fd is None or self._is_current(fd):
            return True
        self._fd, taken = None, False
        try:
            taken = self.try_acquire()
        finally:
            if not taken:
                self._fd = fd
        if not taken:
            if self._is_current(fd):  # the folder came back between the two looks: what refused is this lock itself
                return True
            raise StoreLocked(str(self._path.parent), self._holder())
        os.close(fd)
        return False

    def release(self) -> None:
        """Give the lock up; without it: no effect."""
        if self._fd is not None:
            with contextlib.suppress(OSError):  # a full disk, say: the pid of who had it harms nobody
                os.ftruncate(self._fd, 0)  # an empty file takes no block of the disk
            # Unlock before closing: a child in the middle of starting another program still has a copy of the file.
            fcntl.flock(self._fd, fcntl.LOCK_UN)
            self.close_copy()

    def ensure_held(self) -> None:
        """Raises `StoreClosed` unless this process holds the lock."""
        if self._fd is None:
            raise StoreClosed(
                f"the store at {self._path.parent} is not open in this process: open it (a forked child cannot go on "
                "with its parent's store)"
            )

    def close_copy(self) -> None:
        """Close this process's copy of the file without unlocking: what a forked child does, by itself."""
        fd, self._fd = self._fd, None
        _held.discard(self)
        if fd is not None:
            os.close(fd)

    def _open(self) -> int:
        flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
        fd = os.open(self._path, flags, 0o600)
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            os.close(fd)
            raise StoreLocked(str(self._path.parent), None, f"{self._path} is not a plain file; remove it")
        return fd

    def _is_current(self, fd: int) -> bool:
        """Whether the path still names the file that was locked: it may have been removed and made anew meanwhile."""
        try:
            return os.path.samestat(os.fstat(fd), os.stat(self._path, follow_symlinks=False))  # noqa: PTH116 - asked at every sync
        except FileNotFoundError:
            return False

    async def _told_holder(self) -> int | None:
        """The pid of the holder, which writes it right after it has the lock, if its disk is not full."""
        for _ in range(_PID_TRIES):
            pid = self._holder()
            if pid is not None:
                return pid
            await asyncio.sleep(_RETRY_S)
        return None

    def _is_held_here(self) -> bool:
        with contextlib.suppress(OSError):
            wanted = self._path.stat()
            return any(lock._fd is not None and os.path.samestat(os.fstat(lock._fd), wanted) for lock in _held)  # noqa: SLF001
        return False

    def _holder(self) -> int | None:
        fd = self._open()
        try:
            text = os.pread(fd, _PID_BYTES, 0)
        finally:
            os.close(fd)
        whole = text.endswith(b"\n") and text[:-1].isdigit()  # the beginning of a pid is another one
        return int(text) if whole else None


def _note_pid(fd: int) -> None:
    """Tell others who has the lock, if the disk takes it: what keeps them out is the lock alone."""
    with contextlib.suppress(OSError):  # a full disk, say, on which a store is opened to be read
        os.ftruncate(fd, 0)
        os.pwrite(fd, f"{os.getpid()}\n".encode(), 0)


_held: Final[weakref.WeakSet[StoreLock]] = weakref.WeakSet()


def _close_copies() -> None:
    for lock in list(_held):
        lock.close_copy()


os.register_at_fork(after_in_child=_close_copies)


def _flock(fd: int) -> bool:
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno in {errno.EWOULDBLOCK, errno.EACCES}:
            return False
        raise
    return True


def check_local(root: str | os.PathLike[str], *, allow_network_fs: bool = False) -> None:
    """Raises `NetworkFileSystem` when `root`, which must exist, is on one, unless `allow_network_fs`.

    Asks the kernel's mount table; where there is none (not Linux), nothing is refused.
    """
    kind = None if allow_network_fs else file_system_of(root)
    if kind is None:
        return
    if kind in _NETWORK or (kind.startswith("fuse.") and kind[5:] in _NETWORK_FUSE):
        raise NetworkFileSystem(os.fspath(root), kind)


def file_system_of(path: str | os.PathLike[str], mountinfo: str = "/proc/self/mountinfo") -> str | None:
    """The type of the file system that `path` is on, as the kernel names it; None without a mount table."""
    try:
        lines = Path(mountinfo).read_text(encoding="utf-8", errors="surrogateescape").splitlines()
    except OSError:
        return None
    real = os.path.realpath(path)
    best, kind = "", None
    for line in lines:
        fields, _, rest = line.partition(" - ")
        point = _unquoted(fields.split(" ")[4])
        inside = real == point or real.startswith(point.rstrip("/") + "/")
        if inside and len(point) >= len(best):  # of two mounts on one point the later lies on top
            best, kind = point, rest.split(" ")[0]
    return kind


def _unquoted(point: str) -> str:
    for code, character in (("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")):
        point = point.replace(code, character)
    return point
