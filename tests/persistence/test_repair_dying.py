"""Repair dies anywhere, and is run again: nothing that it could keep is lost, and it comes to the same end."""

from __future__ import annotations

import contextlib
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from session_actor.persistence import FileStore, PersistenceError
from session_actor.persistence.checking.verify import check
from session_actor.persistence.repair.repair import repair

from .conformance_tools import opened
from .disks import TroubledDisk
from .stores import SMALL, copied, fill, flip, journals, segments

READS = {"open", "read", "list"}
SESSIONS = "abc"


async def damaged_store(root: Path) -> None:
    """The catalog is lost, a journal line of `a` is damaged, one in the log that hides its owner, an index of `c`."""
    await fill(root, SESSIONS, 24, in_log=4)
    (root / "catalog.db").write_bytes(b"")
    path = journals(root, "a")[0]
    flip(path, path.read_bytes().index(b'"at"', 400))
    data = segments(root)[-1].read_bytes()
    flip(segments(root)[-1], data.index(b'"s":"b"', data.index(b'"s":"b"') + 1) + 1)
    path = journals(root, "c")[0]
    flip(path, path.stat().st_size - 30)


async def outcome(root: Path) -> dict[str, object]:
    """All records of all sessions, and what is kept aside."""
    found: dict[str, object] = {}
    async with opened(FileStore(root, **SMALL), working=False) as store:
        for session in SESSIONS:
            loaded = await store.load(await store.acquire(session, create=False), snapshots=False)
            found[session] = [(record.seq, record.kind, bytes(record.data)) for record in loaded.records]
    return found


def originals(root: Path) -> set[bytes]:
    return {path.read_bytes() for path in (root / "aside").iterdir() if path.is_file()}


@pytest.mark.parametrize("salvage", ["readable", "prefix"])
async def test_dying_at_any_change_of_the_disk_and_repairing_again_comes_to_the_same_end(tmp_path, salvage):
    root = tmp_path / "store"
    await damaged_store(root)
    bad = {path.read_bytes() for path in (journals(root, "a")[0], segments(root)[-1], journals(root, "c")[0])}
    whole = copied(root, "whole")
    disk = TroubledDisk()
    assert repair(whole, write=True, salvage=salvage, disk=disk).left == []
    expected = await outcome(whole)
    assert bad <= originals(whole)
    changes = [number for number, call in enumerate(disk.calls, 1) if call not in READS]
    assert len(changes) > 40
    for dies_at in random.Random(5).sample(changes, 12):
        again = copied(root, str(dies_at))
        with contextlib.suppress(OSError, PersistenceError):
            repair(again, write=True, salvage=salvage, disk=TroubledDisk(dies_at=dies_at))
        assert repair(again, write=True, salvage=salvage).left == [], dies_at
        assert check(again).list == [], dies_at
        assert await outcome(again) == expected, dies_at
        assert bad <= originals(again), dies_at
        shutil.rmtree(again)


CHILD = """
import sys
from session_actor.persistence.repair.repair import repair
print("ready", flush=True)
repair(sys.argv[1], write=True, salvage="readable")
"""


def repair_and_kill(root: Path, after_s: float) -> None:
    child = subprocess.Popen([sys.executable, "-c", CHILD, str(root)], stdout=subprocess.PIPE)
    assert child.stdout.readline() == b"ready\n"
    time.sleep(after_s)
    child.send_signal(signal.SIGKILL)
    child.stdout.close()
    child.wait()


async def test_a_repair_that_is_killed_is_repaired(tmp_path):
    root = tmp_path / "store"
    await damaged_store(root)
    chance = random.Random(11)
    whole = copied(root, "whole")
    began = time.perf_counter()
    repair(whole, write=True, salvage="readable")
    takes_s = time.perf_counter() - began
    expected = await outcome(whole)
    for _ in range(4):
        repair_and_kill(root, chance.random() * takes_s)
    assert repair(root, write=True, salvage="readable").left == []
    assert check(root).list == []
    assert await outcome(root) == expected
