"""A session that is looked up while another owner has it, changes it and lets it go is found as it is afterwards."""

from __future__ import annotations

import asyncio
import threading
from contextlib import asynccontextmanager
from types import SimpleNamespace

import pytest

from session_actor.persistence import FileStore, Lease, SessionTombstoned, StoreClosed
from session_actor.persistence.files.gathering import GROUP
from session_actor.persistence.files.names import journal_path
from session_actor.persistence.files.storage import OsDisk

from .conformance_tools import opened
from .stores import clean, fill, loaded, push
from .test_writer import until

SLOW = journal_path("b", 1).rpartition("-")[0]


class HeldDisk(OsDisk):
    """Has whoever reads the journal of session b wait until the gate is open."""

    __slots__ = ("gate", "waits")

    def __init__(self) -> None:
        self.gate = threading.Event()
        self.waits = threading.Event()

    def open(self, path, *, write=False, create=False):
        if SLOW in path:
            self.waits.set()
            assert self.gate.wait(20)
        return super().open(path, write=write, create=create)


@pytest.fixture
async def root(tmp_path):
    await fill(tmp_path / "store", in_log=0)
    return tmp_path / "store"


@asynccontextmanager
async def two_owners(root, session="a", *, create=False):
    """A store, the lease of one owner, and two that acquire it, for whom was read what the first may change."""
    disk = HeldDisk()
    async with opened(FileStore(root, disk=disk, segment_bytes=2000, journal_bytes=2000), working=False) as store:
        filler = await store.acquire("filler", create=True)
        names = [session, *(f"none{number}" for number in range(GROUP - 1)), session, session, "b"]
        asked = [asyncio.create_task(store.acquire(name, create=create and name == session)) for name in names]
        try:
            lease = await asked[0]
            await until(disk.waits.is_set)
            yield SimpleNamespace(store=store, lease=lease, next=asked[-3:-1], filler=filler, gate=disk.gate)
        finally:
            disk.gate.set()
            await asyncio.gather(*asked, return_exceptions=True)
        assert not store._engine.look_ups._running


async def let_go(owners, lease: Lease) -> None:
    """Give a session up, have all of it cut, so that it is not in memory any more, and let the next owner go on."""
    owners.store.release(lease)
    for _ in range(10):
        push(owners.store, owners.filler, 20)
        await owners.store.flush("synced")
        await owners.store._engine.cutter.cut_all()
        await asyncio.sleep(0)
    assert lease.session not in owners.store._logs
    owners.gate.set()


async def push_more(store: FileStore, lease: Lease) -> Lease:
    await store.load(lease)
    push(store, lease, 3)
    await store.flush("synced")
    return lease


async def delete(store: FileStore, lease: Lease) -> Lease:
    await store.delete(lease)
    return lease


async def bear_again(store: FileStore, lease: Lease) -> Lease:
    await store.delete(lease)
    return await push_more(store, await store.acquire(lease.session, create=True))


async def prune(store: FileStore, lease: Lease) -> Lease:
    assert (await store.prune(lease, [(1, 40)])).files
    return lease


async def push_more_and_prune(store: FileStore, lease: Lease) -> Lease:
    return await prune(store, await push_more(store, lease))


async def change_nothing(_: FileStore, lease: Lease) -> Lease:
    return lease


@pytest.mark.parametrize(
    ("change", "seq"),
    [(push_more, 43), (bear_again, 3), (prune, 40), (push_more_and_prune, 43), (change_nothing, 40)],
)
async def test_the_next_owner_finds_what_the_one_before_left(root, change, seq):
    async with two_owners(root) as owners:
        await let_go(owners, await change(owners.store, owners.lease))
        fenced, lease = [await asked for asked in owners.next]
        assert not fenced.live
        assert (await owners.store.load(lease)).report.seq == seq
        push(owners.store, lease, 1)
        await owners.store.flush("synced")
    assert clean(root)
    assert (await loaded(root, "a"))["a"][-1] == seq + 1


async def test_a_session_that_was_deleted_meanwhile_is_told_to_be(root):
    async with two_owners(root) as owners:
        await let_go(owners, await delete(owners.store, owners.lease))
        with pytest.raises(SessionTombstoned):
            await owners.next[1]
    assert clean(root)


async def test_a_session_that_was_deleted_meanwhile_is_born_again(root):
    async with two_owners(root, create=True) as owners:
        await let_go(owners, await delete(owners.store, owners.lease))
        await push_more(owners.store, await owners.next[1])
    assert clean(root)
    assert await loaded(root, "a") == {"a": [1, 2, 3]}


async def test_a_session_that_was_born_meanwhile_is_not_born_twice(root):
    async with two_owners(root, "new", create=True) as owners:
        await let_go(owners, await push_more(owners.store, owners.lease))
        await push_more(owners.store, await owners.next[1])
    assert clean(root)
    assert await loaded(root, "new") == {"new": [1, 2, 3, 4, 5, 6]}


async def test_who_gives_up_the_wait_harms_no_other(root):
    async with two_owners(root) as owners:
        owners.next[0].cancel()
        await let_go(owners, await push_more(owners.store, owners.lease))
        assert (await owners.store.load(await owners.next[1])).report.seq == 43


async def test_a_store_that_is_closed_meanwhile_lends_nothing_also_when_it_is_open_again(root, monkeypatch):
    asked: list[asyncio.Task[Lease]] = []
    async with opened(FileStore(root), working=False) as store:
        note_end = store._engine.note_end

        async def note_end_and_ask() -> None:
            """The last that closing waits for: what is looked up then is answered when the store is closed."""
            await note_end()
            asked.append(asyncio.create_task(store.acquire("a", create=False)))
            for _ in range(2):
                await asyncio.sleep(0)

        monkeypatch.setattr(store._engine, "note_end", note_end_and_ask)
        await store.close()
        await store.open()
        with pytest.raises(StoreClosed, match="closed meanwhile: open it again"):
            await asked[0]
        assert store._logs == {}
