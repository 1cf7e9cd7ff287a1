"""Real disks that fail, wait or die on request: the system calls are the system's own, until one is told not to be."""

from __future__ import annotations

import errno
import threading

from session_actor.persistence.storage import OsDisk


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
