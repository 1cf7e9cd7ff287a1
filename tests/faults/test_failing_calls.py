"""Every call of a store's life fails, once or from then on: nobody is told a falsehood, nothing hangs, all is kept."""

from __future__ import annotations

import errno
import os
from random import Random

import pytest

from session_actor.persistence import FileStore
from session_actor.persistence.files.storage import OsDisk

from ..persistence.conformance_tools import opened, said, say
from ..simulation.disk import CHANGING, NEED_ROOM, Fault
from ..simulation.life import FOR_GOOD, Life, Ways
from ..simulation.loop import simulated
from .verified import damage_on

LIFE = 122
STEPS = (
    "append", "append", "flush", "append", "cut", "save", "append", "delete", "append", "flush", "append", "cut",
    "append", "save", "sleep", "append", "flush", "cut", "save", "append", "prune", "read", "append", "flush", "prune",
    "salvage", "append", "salvage", "release", "reopen", "delete", "wait",
)  # fmt: skip
PARTS = 2
VERIFIED = 10
"""The store that is left by one of so many calls is looked at by `verify`, too."""
KINDS = {
    "EIO": Fault(0, 0, errno.EIO),
    "ENOSPC": Fault(0, 0, errno.ENOSPC, NEED_ROOM),
    "EINTR": Fault(0, 0, errno.EINTR),
    "short": Fault(0, 0, errno.EIO, frozenset({"write"}), partly=True),
    "full": Fault(0, 0, errno.ENOSPC, NEED_ROOM, partly=True),
    "late": Fault(0, 0, errno.EIO, CHANGING, partly=True),
}
COMBINED = {"full": 4, "late": 4}
"""Of what combines the other kinds one in so many calls is tried, each time others."""


def lead(fault: Fault | None, *, turns: bool, seen: list[tuple[int, str]] | None = None) -> Life:
    """A whole life with everything in it; the fault is mended before the store is closed for the last time.

    `seen`: takes number and kind of each call that changes something.
    """
    with simulated(LIFE) as (loop, _):
        life = Life(Random(LIFE), Ways(segment_bytes=2000, journal_bytes=2000, turns=turns))

        async def live() -> None:
            if seen is not None:
                life.watch = lambda kind: seen.append((life.disk.calls + 1, kind))
            if fault is not None:
                life.faults.append(fault)
            await life.open()
            for name in STEPS:
                await life.do(getattr(life, name))
            await life.mend()
            await life.reopen()
            await life.end()

        try:
            loop.run(live())
        except BaseException as error:
            error.add_note(f"{fault}: {' '.join(life.steps)}")
            raise
    return life


def calls_of(kinds: frozenset[str] | None, *, turns: bool) -> list[int]:
    """The numbers of the calls of these kinds: at any other such a fault changes nothing."""
    seen: list[tuple[int, str]] = []
    life = lead(None, turns=turns, seen=seen)
    return list(range(1, life.disk.calls + 1)) if kinds is None else [number for number, kind in seen if kind in kinds]


@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize("good", [False, True], ids=["once", "for-good"])
@pytest.mark.parametrize("kind", KINDS)
def test_any_call_may_fail(faults, tmp_path, kind, good, part):
    turns = kind == "EIO"  # threads take turns in some of the cases, and work at once in the others
    numbers = calls_of(KINDS[kind].kinds, turns=turns)
    assert len(numbers) > 30
    chosen = faults.some(numbers[part::PARTS])
    if kind in COMBINED:
        chosen = faults.rng.sample(chosen, max(1, len(chosen) // COMBINED[kind]))
    for count, number in enumerate(chosen):
        life = lead(KINDS[kind]._replace(first=number, last=FOR_GOOD if good else number), turns=turns)
        if count % VERIFIED == 0:
            assert damage_on(life.image, tmp_path / str(number)) == [], number


@pytest.mark.parametrize("turns", [False, True], ids=["at-once", "in-turns"])
@pytest.mark.parametrize("good", [False, True], ids=["once", "for-good"])
@pytest.mark.parametrize("kind", ["EIO", "ENOSPC"])
def test_any_commit_may_happen_and_fail(faults, tmp_path, kind, good, turns):
    """The journal of the catalog is truncated, and the sync after that fails: what is committed is there."""
    fault = Fault(0, 0, getattr(errno, kind), frozenset({"commit"}), partly=True)
    numbers = calls_of(fault.kinds, turns=turns)
    assert len(numbers) >= 5
    for number in faults.some(numbers):
        life = lead(fault._replace(first=number, last=FOR_GOOD if good else number), turns=turns)
        assert damage_on(life.image, tmp_path / str(number)) == [], number


def test_the_life_that_is_led_has_everything_in_it():
    life = lead(None, turns=False)
    assert {"append", "flush", "cut", "delete", "reopen", "read", "save", "prune", "salvage"} <= set(life.steps)
    assert life.salvaged == 2
    assert life.pruned_files > 0
    assert any("/snapshots/" in path for path in life.image.files())
    assert {
        "create",
        "rename",
        "unlink",
        "sync_dir",
        "write",
        "sync",
        "preallocate",
        "commit",
    } <= life.disk.counts.keys()


# --- the system's own calls -------------------------------------------------------------------------------------------


async def use(root, disk: OsDisk) -> None:
    """Write, cut, delete, open again, on the real disk."""
    async with opened(FileStore(root, segment_bytes=2048, disk=disk), working=False) as store:
        lease = await store.acquire("ann", create=True)
        for number in range(4):
            say(store, lease, f"{number} {'x' * 1000}")
            await store.flush("written")
        await store.flush("synced")
        await store._engine.cutter.cut()
        other = await store.acquire("ben", create=True)
        say(store, other, "gone")
        await store.delete(other)
    async with opened(FileStore(root, segment_bytes=2048, disk=disk), working=False) as store:
        lease = await store.acquire("ann", create=False)
        assert await said(store, lease) == [f"{number} {'x' * 1000}" for number in range(4)]


async def test_a_short_write_or_read_at_any_call_is_gone_on_with(tmp_path, monkeypatch, faults):
    """The system may write or read less than it was asked to, at any time: then the rest follows."""
    real = {"pwrite": os.pwrite, "pread": os.pread}
    state = {"calls": 0, "short": 0}

    def pwrite(fd, data, offset):
        state["calls"] += 1
        short = state["calls"] == state["short"] and len(data) > 1
        return real["pwrite"](fd, data[: len(data) // 2] if short else data, offset)

    def pread(fd, length, offset):
        state["calls"] += 1
        return real["pread"](fd, max(1, length // 2) if state["calls"] == state["short"] else length, offset)

    monkeypatch.setattr(os, "pwrite", pwrite)
    monkeypatch.setattr(os, "pread", pread)
    await use(tmp_path / "whole", OsDisk())
    total = state["calls"]
    assert total > 10
    for number in faults.some(range(1, total + 1)):
        state |= {"calls": 0, "short": number}
        await use(tmp_path / str(number), OsDisk())
