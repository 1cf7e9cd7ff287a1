"""The `Disk` of a store on a simulated disk: counts the calls, lets chosen ones fail, dies when told to."""

from __future__ import annotations

import errno
import os
import sqlite3
from collections.abc import Callable
from random import Random
from typing import NamedTuple

from session_actor.persistence.errors import StoreLocked

from .databases import connect
from .image import Folder, Image, Inode, missing
from .loop import SimThread

CHANGING = frozenset(
    {"create", "make_dir", "make_root", "rename", "unlink", "sync_dir", "write", "preallocate", "truncate", "sync",
     "commit"}
)  # fmt: skip
NEED_ROOM = frozenset({"create", "make_dir", "make_root", "rename", "write", "preallocate", "commit"})


class Dead(OSError):
    """The process that used the disk is dead: no call has any effect any more."""


class Fault(NamedTuple):
    """Calls number `first` to `last` fail; those of kinds that are not in `kinds` do not."""

    first: int
    last: int
    errno: int
    kinds: frozenset[str] | None = None
    partly: bool = False
    """A write is done in part, and any other change as a whole, before it fails."""


class Doing:
    """Left when a call is done: then it fails, or not. Written out, not a generator: a store makes many calls."""

    __slots__ = ("failure",)

    def __init__(self, failure: Exception | None) -> None:
        self.failure = failure

    def __enter__(self) -> None:
        """What it is to do is done inside."""

    def __exit__(self, kind: object, *_: object) -> None:
        if kind is None and self.failure is not None:
            raise self.failure


DONE = Doing(None)


class SimDisk:
    """One process's access to an image."""

    def __init__(self, image: Image, rng: Random | None = None, *, room_bytes: int | None = None) -> None:
        """`rng`: chooses how threads take turns; None: every job is done at once. `room_bytes`: size of the disk."""
        self.image = image
        self.rng = rng
        self.room_bytes = room_bytes
        self.calls = 0
        self.counts: dict[str, int] = {}
        self.faults: list[Fault] = []
        self.watch: Callable[[str], None] | None = None
        """Told before each call that changes something."""
        self.dead = False
        self.trusts_pages = True
        """The pages of databases are not checked: that takes longer than all the rest."""
        self.chance = Random(0)
        """Decides what of a failing call is done."""
        self.slow = 0.0
        """The share of jobs before which time passes, where threads take turns."""
        self.read_only: str | None = None
        """A folder in which nothing can be changed."""

    def die(self) -> None:
        """End the process: its locks are free, its calls have no effect."""
        self.dead = True
        self.image.locks.clear()

    def reach(self, kind: str, path: str = "") -> Fault | None:
        """Before each call. Returns the fault of one that must be done in part before it fails."""
        if self.watch is not None and kind in CHANGING and not self.dead:
            self.watch(kind)
        if self.dead:
            raise Dead(errno.EIO, "dead", path)
        self.calls += 1
        if self.read_only is not None and path.startswith(self.read_only) and kind in CHANGING:
            raise OSError(errno.EROFS, os.strerror(errno.EROFS), path)
        counts = self.counts
        counts[kind] = counts.get(kind, 0) + 1
        if not self.faults:
            return None
        for fault in self.faults:
            if fault.first <= self.calls <= fault.last and (fault.kinds is None or kind in fault.kinds):
                if fault.partly and kind in CHANGING:
                    return fault
                raise self.failure(kind, fault.errno, path)
        return None

    def doing(self, kind: str, path: str = "") -> Doing:
        """Around each call that changes something, and is done as a whole or not at all."""
        fault = self.reach(kind, path)
        return DONE if fault is None else Doing(self.failure(kind, fault.errno, path))

    def failure(self, kind: str, number: int, path: str = "") -> Exception:
        if kind not in {"query", "commit"}:
            return OSError(number, os.strerror(number), path)
        error = sqlite3.OperationalError(os.strerror(number))
        error.sqlite_errorcode = {errno.ENOSPC: sqlite3.SQLITE_FULL}.get(number, sqlite3.SQLITE_IOERR)
        return error

    def take_room(self, inode: Inode, size: int) -> None:
        grown = size - inode.size()
        if self.room_bytes is not None and grown > 0 and self.image.size_bytes() + grown > self.room_bytes:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    # --- Disk ---------------------------------------------------------------------------------------------------------

    def open(self, path, *, write=False, create=False):
        fault = self.reach("create" if create else "open", path)
        if write and self.read_only is not None and path.startswith(self.read_only):
            raise OSError(errno.EROFS, os.strerror(errno.EROFS), path)
        folder, name = self.image.parent(path)
        node = folder.names.get(name)
        if node is None and create:
            self.take_room(Inode(), 1)
            node = Inode()
            folder.put(name, node)
        if node is None:
            raise missing(path)
        if isinstance(node, Folder):
            raise OSError(errno.EINVAL, "not a regular file", path)
        if fault is not None:
            raise self.failure("create", fault.errno, path)
        return SimFile(self, folder, node, writable=write or create)

    def list(self, path):
        self.reach("list", path)
        node = self.image.find(path)
        return sorted(node.names) if isinstance(node, Folder) else []

    def make_dir(self, path):
        with self.doing("make_dir", path):
            folder, name = self.image.parent(path)
            if name in folder.names:
                return False
            folder.put(name, Folder())
        return True

    def make_root(self, path):
        folder, name = self.image.parent(path)
        with self.doing("make_root", path):
            if name in folder.names:
                return
            folder.put(name, Folder())
        self._sync_folder(path, folder)

    def rename(self, source, target):
        with self.doing("rename", source):
            folder, name = self.image.parent(source)
            if name not in folder.names:
                raise missing(source)
            assert source.rpartition("/")[0] == target.rpartition("/")[0], "the store renames within a folder"
            folder.put(target.rpartition("/")[2], folder.names[name], name)

    def unlink(self, path):
        with self.doing("unlink", path):
            node = self.image.find(path.rpartition("/")[0])
            name = path.rpartition("/")[2]
            if isinstance(node, Folder) and name in node.names:
                node.drop(name)

    def sync_dir(self, path):
        self._sync_folder(path, self.image.folder(path))

    def _sync_folder(self, path: str, folder: Folder) -> None:
        try:
            fault = self.reach("sync_dir", path)
        except Dead:
            raise
        except OSError as error:
            if error.errno != errno.EROFS:  # then nothing was changed, nor is anything on its way
                folder.lose(self.chance)
            raise
        folder.sync()
        if fault is not None:
            raise self.failure("sync_dir", fault.errno, path)

    def connect(self, path, *, create):
        return connect(self, self.open(path, create=create).inode)

    def lock(self, path):
        return SimLock(self, path)

    def check_local(self, path, *, allow_network_fs):
        """It is local."""

    def thread(self, name, loop):
        return SimThread(name, loop, self.rng, lambda: self.slow)


class SimFile:
    """An open file of a `SimDisk`."""

    __slots__ = ("disk", "folder", "inode", "writable")

    def __init__(self, disk: SimDisk, folder: Folder, inode: Inode, *, writable: bool) -> None:
        self.disk = disk
        self.folder = folder
        self.inode = inode
        self.writable = writable

    def write(self, data, offset):
        assert self.writable
        fault = self.disk.reach("write")
        if fault is not None:
            self.inode.change(offset, bytes(data[: self.disk.chance.randrange(len(data))]))
            raise self.disk.failure("write", fault.errno)
        self.disk.take_room(self.inode, offset + len(data))
        self.inode.change(offset, bytes(data))

    def read(self, offset, length):
        self.disk.reach("read")
        return self.inode.read(offset, length)

    def size(self):
        return self.inode.size()

    def preallocate(self, length):
        with self.disk.doing("preallocate"):
            self.disk.take_room(self.inode, length)
            if length > self.inode.size():
                self.inode.change(length, None)

    def truncate(self, length):
        with self.disk.doing("truncate"):
            if length != self.inode.size():
                self.inode.change(length, None)

    def sync(self):
        try:
            fault = self.disk.reach("sync")
        except Dead:
            raise
        except OSError:
            self.inode.lose(self.disk.chance)
            raise
        self.inode.sync()
        if fault is not None:
            raise self.disk.failure("sync", fault.errno)

    def linked(self):
        return any(node is self.inode for node in self.folder.names.values())

    def close(self):
        """Nothing is held."""


class SimLock:
    """The lock of a store on an image."""

    def __init__(self, disk: SimDisk, path: str) -> None:
        self.disk = disk
        self.path = path
        self.held = False

    async def acquire(self, timeout_s=0):
        self.disk.reach("lock", self.path)
        if self.path in self.disk.image.locks:
            raise StoreLocked(self.path, None)
        self.disk.image.locks.add(self.path)
        self.held = True

    def renew(self):
        return self.held and self.path in self.disk.image.locks

    def release(self):
        if self.held and not self.disk.dead:
            self.disk.image.locks.discard(self.path)
        self.held = False
