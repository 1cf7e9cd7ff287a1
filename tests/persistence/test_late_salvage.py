"""A salvage whose commit fails, and which has happened, or has not: nothing is appended to a birth that is replaced."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from session_actor.persistence import Fenced, FileStore, StoreCorrupt

from .conformance_tools import opened
from .stores import SMALL, fill, kinds, loaded, push, verified
from .test_late_commit import LateConnection, LateDisk
from .test_salvage import ALL, break_journal


class FailingDisk(LateDisk):
    """While `failing`, a COMMIT does not happen."""

    failing = 0

    def connect(self, path, *, create):
        return FailingConnection(self, super().connect(path, create=create))


class FailingConnection(LateConnection):
    def execute(self, sql, *parameters):
        if sql == "COMMIT" and self._disk.failing:
            self._disk.failing -= 1
            error = sqlite3.OperationalError("disk I/O error")
            error.sqlite_errorcode = sqlite3.SQLITE_IOERR_WRITE
            raise error
        return self._connection.execute(sql, *parameters)


@pytest.fixture
async def root(tmp_path: Path) -> Path:
    await fill(tmp_path / "store")
    break_journal(tmp_path / "store", "a", 17)
    return tmp_path / "store"


def kept(recovery: str, more: int = 0) -> list[int]:
    last = (45 if recovery == "readable" else 16) + more
    return list(range(1, last + 1))


async def numbers(store: FileStore, lease) -> list[int]:
    return [record.seq for record in (await store.load(lease, snapshots=False)).records]


@pytest.mark.parametrize("recovery", ["prefix", "readable"])
async def test_a_salvage_whose_commit_failed_and_happened_is_one(root, recovery):
    disk = FailingDisk()
    async with opened(FileStore(root, disk=disk, recovery=recovery, **SMALL), working=False) as store:
        lease = await store.acquire("a", create=False)
        disk.late = 1
        assert await numbers(store, lease) == kept(recovery)
        assert disk.late == 0
        push(store, lease, 2)
        await store.flush("synced")
    assert await loaded(root, "a") == {"a": kept(recovery, 2)}
    assert kinds(verified(root)) == []


@pytest.mark.parametrize("happened", [True, False])
@pytest.mark.parametrize("tries", [0, 1, 2])
async def test_while_it_is_not_known_whether_it_happened_nobody_has_the_session(root, tries, happened):
    disk = FailingDisk()
    async with opened(FileStore(root, disk=disk, recovery="readable", **SMALL), working=False) as store:
        first = await store.acquire("a", create=False)
        disk.late, disk.failing = (2 + tries, 0) if happened else (0, 2 + tries)
        with pytest.raises(OSError, match="disk I/O error"):
            await store.load(first, snapshots=False)
        with pytest.raises(Fenced):
            push(store, first)
        other = await store.acquire("b", create=False)  # the others go on
        await store.load(other)
        push(store, other)
        for _ in range(tries):
            with pytest.raises(OSError, match="disk I/O error"):
                await store.acquire("a", create=False)
        lease = await store.acquire("a", create=False)
        assert (lease.birth != first.birth) == happened
        assert await numbers(store, lease) == ALL
        assert lease.birth != first.birth
        push(store, lease, 2)
        await store.flush("synced")
        assert await store.newest("a", 2) != []
    assert await loaded(root, "a", "b") == {"a": kept("readable", 2), "b": [*ALL, 46]}
    assert kinds(verified(root)) == []


async def test_a_salvage_whose_commit_did_not_happen_has_changed_nothing_and_is_tried_again(root):
    disk = FailingDisk()
    async with opened(FileStore(root, disk=disk, **SMALL), working=False) as store:
        lease = await store.acquire("a", create=False)
        birth, disk.failing = lease.birth, 1
        with pytest.raises(OSError, match="disk I/O error"):
            await store.salvage(lease, "readable")
        assert (lease.birth, lease.live) == (birth, True)
        with pytest.raises(StoreCorrupt):
            await store.load(lease, snapshots=False)
        await store.salvage(lease, "readable")
        assert await numbers(store, lease) == ALL
    assert kinds(verified(root)) == []


async def test_a_birth_that_was_replaced_is_not_copied_again(root):
    async with opened(FileStore(root, recovery="readable", **SMALL), working=False) as store:
        lease = await store.acquire("a", create=False)
        old = store._logs["a"]
        await store.load(lease, snapshots=False)
        lease.state, old.dead, old.lease, store._logs["a"] = old, False, lease, old  # as if nobody had been told
        with pytest.raises(Fenced):
            await store.salvage(lease, "readable") if store._salvaged.pop("a", None) is None else None
        lease = await store.acquire("a", create=False)
        assert await numbers(store, lease) == ALL
    assert kinds(verified(root)) == []


async def test_a_process_that_ends_before_it_is_known_leaves_a_session_that_is_whole(root):
    disk = FailingDisk()
    async with opened(FileStore(root, disk=disk, recovery="readable", **SMALL), working=False) as store:
        lease = await store.acquire("a", create=False)
        disk.late = 1000
        with pytest.raises(OSError, match="disk I/O error"):
            await store.load(lease, snapshots=False)
    async with opened(FileStore(root, **SMALL), working=False) as store:
        catalog = store._engine.catalog
        before = catalog.changes
        lease = await store.acquire("a", create=False)
        assert catalog.changes == before + 1  # it is made durable before a record is taken
        assert await numbers(store, lease) == ALL
        push(store, lease)
    assert await loaded(root, "a") == {"a": [*ALL, 46]}
    assert kinds(verified(root)) == []
