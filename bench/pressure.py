"""Memory while the disk is slower than who pushes: the queue fills, further records are refused, and nothing grows.

What pushes is as fast as it can be: it hands encoded records of 4 kB to the store, whenever the store admits one.
"""

from __future__ import annotations

import asyncio
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import msgspec

from bench import children
from bench.harness import OURS, Options, Report
from bench.targets import limit
from session_actor.persistence import BacklogFull, FileStore
from session_actor.persistence.files.storage import OsDisk, OsFile

if TYPE_CHECKING:
    from session_actor.persistence import Lease
    from session_actor.persistence.files.storage import DiskFile

SESSIONS = 50
BYTES_PER_S = 100e6
DATA_BYTES = 4_096
FULL_BACKLOGS = 5
VARIANT = "disk of 100 MB/s"


class SlowFile:
    """A file that takes its time to write."""

    def __init__(self, file: DiskFile) -> None:
        """Stand before `file`."""
        self._file = file

    def write(self, data: bytes, offset: int) -> None:
        """Write at the speed of the slow disk."""
        time.sleep(len(data) / BYTES_PER_S)
        self._file.write(data, offset)

    def __getattr__(self, name: str) -> Any:
        """Do all else as the file does."""
        return getattr(self._file, name)


class SlowDisk(OsDisk):
    """The disk of the operating system, with slow files."""

    __slots__ = ()

    def open(self, path: str, *, write: bool = False, create: bool = False) -> OsFile:
        """See `OsDisk`."""
        return cast("OsFile", SlowFile(super().open(path, write=write, create=create)))


class Seen(msgspec.Struct):
    """What a child saw: bytes of memory at first and when the queue was first full, and the highest afterwards."""

    at_first: int = 0
    full: int = 0
    first_half: int = 0
    second_half: int = 0
    refused: int = 0
    pushed: int = 0


class Pressed:
    """Many pushers on one store, for as long as several full queues take to be written."""

    def __init__(self, store: FileStore, records: int) -> None:
        """Push `records` after the queue was full for the first time."""
        self.seen = Seen(at_first=children.resident_bytes())
        self._store = store
        self._records = records

    async def push(self, lease: Lease) -> None:
        """Append records as fast as the store admits them."""
        seen, store = self.seen, self._store
        number = 0
        while not seen.full or seen.pushed < self._records:
            try:
                store.admit("async")
            except BacklogFull:
                self._note_refusal()
                await asyncio.sleep(0.005)
                continue
            number += 1
            data = b'{"number":%d,"text":"%s"}' % (number, b"x" * DATA_BYTES)
            store.append(lease, lease.appended_seq + 1, time.time_ns() // 1_000, "push", data, len(data))
            seen.pushed += bool(seen.full)
            await asyncio.sleep(0)

    def _note_refusal(self) -> None:
        """Look at the memory: the queue is full now."""
        seen, memory = self.seen, children.resident_bytes()
        seen.refused += 1
        seen.full = seen.full or memory
        if seen.pushed < self._records // 2:
            seen.first_half = max(seen.first_half, memory)
        else:
            seen.second_half = max(seen.second_half, memory)


async def press(root: str, backlog_bytes: int) -> Seen:
    """Push beyond what the disk can take; the child's part."""
    store = FileStore(root, disk=SlowDisk(), backlog_bytes=backlog_bytes)
    await store.open()
    jobs = [asyncio.ensure_future(job()) for job in store.workers().values()]
    leases = [await store.acquire(f"session-{number}", create=True) for number in range(SESSIONS)]
    for lease in leases:
        await store.load(lease)
    pressed = Pressed(store, FULL_BACKLOGS * backlog_bytes // DATA_BYTES)
    await asyncio.gather(*map(pressed.push, leases))
    await store.close()
    for job in jobs:
        job.cancel()
    await asyncio.gather(*jobs, return_exceptions=True)
    return pressed.seen


def measure(report: Report, options: Options) -> None:
    """Let a child push, and judge whether its memory stayed where it was when the queue was first full."""
    backlog: int = options.pick(64, 8) * 2**20
    with tempfile.TemporaryDirectory(prefix="bench-pressure-", dir=options.directory) as directory:
        printed = children.start("press", Path(directory) / "store", backlog)
    seen = msgspec.json.decode(printed, type=Seen)
    for op, n in (
        ("memory at first [bytes]", seen.at_first),
        ("memory when the queue is first full [bytes]", seen.full),
        ("memory, highest in the first half [bytes]", seen.first_half),
        ("memory, highest in the second half [bytes]", seen.second_half),
        ("records pushed meanwhile", seen.pushed),
        ("refusals", seen.refused),
    ):
        report.count(OURS, op, VARIANT, SESSIONS, n)
    grown = seen.second_half / seen.first_half if seen.first_half else float("inf")
    report.judge(limit("memory under back-pressure, second half / first half", grown, at_most=1.1, unit="x"))
