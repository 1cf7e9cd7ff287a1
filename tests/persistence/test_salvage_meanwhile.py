"""A session that changes hands, or is deleted, while it is salvaged in a running store."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from session_actor.persistence import Fenced, FileStore, SessionTombstoned
from session_actor.persistence.checking.verify import check

from .conformance_tools import opened
from .disks import TroubledDisk
from .stores import SMALL, fill, loaded, push
from .test_salvage import ALL, break_journal
from .test_writer import until


@pytest.fixture
async def root(tmp_path: Path) -> Path:
    await fill(tmp_path / "store")
    return tmp_path / "store"


@pytest.mark.parametrize("kept", [True, False])
async def test_a_session_that_is_let_go_of_during_its_salvage_is_lent_as_it_is_afterwards(tmp_path, kept):
    await fill(tmp_path / "store", in_log=0)
    break_journal(tmp_path / "store", "a", 17)
    disk = TroubledDisk()
    async with opened(FileStore(tmp_path / "store", disk=disk, **SMALL), working=False) as store:
        lease = await store.acquire("a", create=False)
        gate = disk.hold("rename")
        task = asyncio.create_task(store.salvage(lease, "readable"))
        await asyncio.to_thread(disk.entered["rename"].wait, 20)
        task.cancel()
        store.release(lease)
        lease = await store.acquire("a", create=False)
        if not kept:
            store.release(lease)
        gate.set()
        await asyncio.gather(*store._tasks, return_exceptions=True)
        if not kept:
            lease = await store.acquire("a", create=False)
        found = await store.load(lease, snapshots=False)
        assert [record.seq for record in found.records] == ALL[:40]
        push(store, lease)
        await store.flush("synced")
    assert (await loaded(tmp_path / "store", "a"))["a"] == ALL[:41]
    assert not check(tmp_path / "store").damaged


@asynccontextmanager
async def in_salvage(root: Path):
    """A store that salvages session a, since it was loaded, and its next owner, meanwhile; at the end it goes on."""
    break_journal(root, "a", 17)
    disk = TroubledDisk()
    async with opened(FileStore(root, disk=disk, recovery="readable", **SMALL), working=False) as store:
        gate = disk.hold("rename")
        lease = await store.acquire("a", create=False)
        loading = asyncio.create_task(store.load(lease, snapshots=False))
        await asyncio.to_thread(disk.entered["rename"].wait, 20)
        yield store, await store.acquire("a", create=False), gate
        with pytest.raises(Fenced):
            await loading


async def test_two_owners_one_after_the_other_salvage_a_session_once(root):
    async with in_salvage(root) as (store, lease, gate):
        loading = asyncio.create_task(store.load(lease, snapshots=False))
        await until(lambda: len(store._tasks) == 2)
        gate.set()
        assert [record.seq for record in (await loading).records] == ALL
        push(store, lease)
        await store.flush("synced")
    assert (await loaded(root, "a"))["a"] == [*ALL, 46]
    assert not check(root).damaged


@pytest.mark.parametrize("cancelled", [False, True])
async def test_a_session_that_is_deleted_during_its_salvage_is_gone(root, cancelled):
    async with in_salvage(root) as (store, lease, gate):
        deleting = asyncio.create_task(store.delete(lease))
        await asyncio.sleep(0)
        if cancelled:
            deleting.cancel()
        gate.set()
        await asyncio.gather(deleting, *store._tasks, return_exceptions=True)
        assert deleting.cancelled() == cancelled
    with pytest.raises(SessionTombstoned):
        await loaded(root, "a")
    assert not check(root).damaged
