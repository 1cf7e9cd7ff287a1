"""Real disks that fail, wait or die on request: the system calls are the system's own, until one is told not to be."""

from __future__ import annotations

import asyncio
import errno
import threading
from collections.abc import Awaitable, Callable
from pathlib import Path

from session_actor.persistence import Level, NotDurable
from session_actor.persistence.files.storage import OsDisk


async def until_synced(flush: Callable[[Level], Awaitable[object]], patience_s: float = 60) -> None:
    """Wait until a disk that serves again has all; a try that was under way while it refused may fail yet, and is told.

    `flush`: a session's or a store's.
    """
    async with asyncio.timeout(patience_s):
        while True:
            try:
                await flush("synced")
            except NotDurable:
                await asyncio.sleep(0.001)
            else:
                return


class Dead(OSError):
    """The process that used the disk is dead: no call has any effect any more."""


class TroubledDisk(OsDisk):
    """Counts calls, makes chosen ones fail, lets chosen ones wait."""

    def __init__(self, *, dies_at: int | None = None) -> None:
        """`dies_at`: number of the call (1, 2 …) from which on every call fails without effect."""
        self.calls: list[str] = []
        self.dies_at = dies_at
        self.errors: dict[str, int] = {}
        """By call: the errno that it fails with, until it is removed."""
        self.gates: dict[str, threading.Event] = {}
        """By call: what it waits for before it is made."""
        self.entered: dict[str, threading.Event] = {}
        self.mutex = threading.Lock()

    def hold(self, call: str) -> threading.Event:
        """Let a kind of call wait until the event is set."""
        self.entered[call] = threading.Event()
        gate = self.gates[call] = threading.Event()
        return gate

    def reach(self, call: str, path: str = "") -> None:
        """Before each call."""
        with self.mutex:
            self.calls.append(call)
            number = len(self.calls)
        if self.dies_at is not None and number >= self.dies_at:
            raise Dead(errno.EIO, "dead", path)
        if call in self.gates:
            self.entered[call].set()
            assert self.gates[call].wait(20)
        if call in self.errors:
            raise OSError(self.errors[call], "asked to fail", path)

    def open(self, path, *, write=False, create=False):
        self.reach("create" if create else "open", path)
        return TroubledFile(self, super().open(path, write=write, create=create))

    def list(self, path):
        self.reach("list", path)
        return super().list(path)

    def make_dir(self, path):
        self.reach("make_dir", path)
        return super().make_dir(path)

    def rename(self, source, target):
        self.reach("rename", source)
        super().rename(source, target)

    def unlink(self, path):
        self.reach("unlink", path)
        super().unlink(path)

    def sync_dir(self, path):
        self.reach("sync_dir", path)
        super().sync_dir(path)


class TroubledFile:
    """A file of a `TroubledDisk`."""

    def __init__(self, disk: TroubledDisk, file) -> None:
        self.disk = disk
        self.file = file

    def write(self, data, offset):
        self.disk.reach("write")
        self.file.write(data, offset)

    def read(self, offset, length):
        self.disk.reach("read")
        return self.file.read(offset, length)

    def size(self):
        return self.file.size()

    def linked(self):
        return self.file.linked()

    def preallocate(self, length):
        self.disk.reach("preallocate")
        self.file.preallocate(length)

    def truncate(self, length):
        self.disk.reach("truncate")
        self.file.truncate(length)

    def sync(self):
        self.disk.reach("sync")
        self.file.sync()

    def close(self):
        self.file.close()


class Kernel:
    """What the disk itself holds of each file, and what is on its way there, by inode: see `CachedDisk`."""

    def __init__(self) -> None:
        self.durable: dict[int, bytearray] = {}
        self.dirty: dict[int, list[tuple[int, bytes]]] = {}

    def lose_power(self, root: Path) -> None:
        """Leave in the files under `root` what the disk holds."""
        for path in root.rglob("*.ndjson"):
            path.write_bytes(self.durable[path.stat().st_ino])
        self.dirty.clear()


class CachedDisk(OsDisk):
    """Writes reach the files at once, as through the page cache, and the disk at a sync; then the power may be lost.

    A sync that fails forgets what it should have made durable, and later ones say OK over that, as on Linux; the
    process dies with it. Names are always durable.
    """

    def __init__(self, kernel: Kernel, *, sync_fails: bool = False) -> None:
        self.kernel = kernel
        self.sync_fails = sync_fails
        self.dead = False

    def open(self, path, *, write=False, create=False):
        self.reach()
        return CachedFile(self, super().open(path, write=write, create=create), Path(path).stat().st_ino)

    def rename(self, source, target):
        self.reach()
        super().rename(source, target)

    def reach(self) -> None:
        if self.dead:
            raise Dead(errno.EIO, "dead")


class CachedFile:
    """A file of a `CachedDisk`."""

    def __init__(self, disk: CachedDisk, file, inode: int) -> None:
        self.disk = disk
        self.file = file
        if not file.size():
            disk.kernel.durable[inode], disk.kernel.dirty[inode] = bytearray(), []
        self.durable = disk.kernel.durable[inode]
        self.dirty = disk.kernel.dirty.setdefault(inode, [])
        self.read, self.size, self.linked, self.close = file.read, file.size, file.linked, file.close

    def write(self, data, offset):
        self.disk.reach()
        self.file.write(data, offset)
        self.dirty.append((offset, data))

    def preallocate(self, length):
        self.disk.reach()
        self.file.preallocate(length)
        self.durable.extend(bytes(length - len(self.durable)))

    def truncate(self, length):
        self.disk.reach()
        self.file.truncate(length)
        del self.durable[length:]

    def sync(self):
        self.disk.reach()
        dirty = self.dirty[:]
        self.dirty.clear()
        if self.disk.sync_fails:
            self.disk.dead = True
            raise Dead(errno.EIO, "the disk refused")
        for offset, data in dirty:
            self.durable.extend(bytes(max(0, offset + len(data) - len(self.durable))))
            self.durable[offset : offset + len(data)] = data
