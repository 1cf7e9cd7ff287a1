"""The log is cut ahead of a close, while records go on coming: the next opening reads little, and all of them."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager

import pytest

from session_actor.persistence import FileStore
from session_actor.persistence.cutting import ahead


@asynccontextmanager
async def working(root, **options):
    """An open store whose workers run."""
    store = FileStore(root, **options)
    await store.open()
    tasks = [asyncio.create_task(run()) for run in store.workers().values()]
    try:
        yield store
    finally:
        await store.close()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def append(store: FileStore, lease, count: int) -> None:
    for _ in range(count):
        seq = lease.appended_seq + 1
        store.append(lease, seq, seq, "test", b'{"n":%d}' % seq, 100)
        if seq % 3 == 0:
            store.reach("written")
        if seq % 7 == 0:
            await asyncio.sleep(0)


async def records(root, name: str):
    store = FileStore(root)
    await store.open()
    try:
        loaded = await store.load(await store.acquire(name, create=False))
        return [record.seq for record in loaded.records], loaded.report
    finally:
        await store.close()


@pytest.mark.parametrize("busy", [True, False], ids=["records come meanwhile", "nothing comes meanwhile"])
async def test_what_is_in_the_log_is_in_journals_before_the_close(tmp_path, monkeypatch, busy):
    monkeypatch.setattr(ahead, "LEAST_BYTES", 1_000)
    async with working(tmp_path / "store", cut_at_close=0) as store:
        first = await store.acquire("a", create=True)
        second = await store.acquire("b", create=True)
        await append(store, first, 200)
        await append(store, second, 20)
        cutting = asyncio.create_task(store.cut_ahead())
        while busy and not cutting.done():
            await append(store, second, 10)
            await asyncio.sleep(0.001)
        await cutting
        store.leave_log()
        expected = second.appended_seq

    seqs, report = await records(tmp_path / "store", "a")
    assert seqs == list(range(1, 201))
    assert (report.journal_records, report.log_records) == (200, 0)
    seqs, report = await records(tmp_path / "store", "b")
    assert seqs == list(range(1, expected + 1))
    assert report.journal_records >= 20


async def test_a_short_log_is_left_as_it_is(tmp_path):
    async with working(tmp_path / "store", cut_at_close=0) as store:
        await append(store, await store.acquire("a", create=True), 20)
        await store.flush("synced")
        await store.cut_ahead()
    _, report = await records(tmp_path / "store", "a")
    assert (report.journal_records, report.log_records) == (0, 20)


async def test_a_cut_ahead_that_is_given_up_leaves_a_store_that_goes_on(tmp_path, monkeypatch):
    monkeypatch.setattr(ahead, "LEAST_BYTES", 1_000)
    async with working(tmp_path / "store") as store:
        lease = await store.acquire("a", create=True)
        await append(store, lease, 100)
        cutting = asyncio.create_task(store.cut_ahead())
        await asyncio.sleep(0)
        cutting.cancel()
        await asyncio.gather(cutting, return_exceptions=True)
        await append(store, lease, 100)
        await store.flush("synced")
    seqs, _ = await records(tmp_path / "store", "a")
    assert seqs == list(range(1, 201))
