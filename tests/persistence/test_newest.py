"""The newest records of a session, told without loading it, from wherever they are; of a damaged one nothing is."""

from __future__ import annotations

import pytest

from session_actor.persistence import FileStore, MemoryStore

from .conformance_tools import opened, say
from .stores import SMALL, cut_all, fill, flip, journals


@pytest.mark.parametrize("kind", [FileStore, MemoryStore])
async def test_they_are_told_without_taking_the_session_from_its_owner(tmp_path, kind):
    async with opened(FileStore(tmp_path) if kind is FileStore else MemoryStore()) as store:
        assert await store.newest("user-42") == []
        lease = await store.acquire("user-42", create=True)
        assert await store.newest("user-42") == []
        for text in ("a", "b", "c"):
            say(store, lease, text)
            assert await store.newest("user-42") == (await store.load(lease)).records[-1:]
        assert lease.live
        store.release(lease)
        (record,) = await store.newest("user-42")
        assert record.seq == 3
        await store.delete(await store.acquire("user-42", create=False))
        assert await store.newest("user-42") == []


async def test_they_are_told_from_the_journal_the_log_and_memory(tmp_path):
    await fill(tmp_path, "abc", 40, in_log=0)
    async with opened(FileStore(tmp_path, **SMALL), working=False) as store:
        assert await numbers(store, "a", 1) == [40]
        lease = await store.acquire("b", create=False)
        loaded = await store.load(lease)
        assert await store.newest("b", 2) == loaded.records[-2:]
        say(store, lease, "x" * 200_000, "y")
        assert await numbers(store, "b", 2) == [41, 42]
        await store.flush("synced")
        assert await numbers(store, "b", 1) == [42]
        assert await numbers(store, "b", 3) in ([41, 42], [42]), "the others are elsewhere"
        assert await numbers(store, "gone", 1) == await numbers(store, "never", 1) == []
    await cut_all(tmp_path)
    async with opened(FileStore(tmp_path, **SMALL), working=False) as store:
        found = await store.newest("b")
        assert found == (await store.load(await store.acquire("b", create=False))).records[-1:]


async def test_the_newest_one_is_told_where_the_one_before_it_is_in_another_file(tmp_path):
    async with opened(FileStore(tmp_path, **SMALL), working=False) as store:
        lease = await store.acquire("a", create=True)
        for _ in range(4):
            say(store, lease, "x" * 3_000)
            await store.flush("synced")
            await store._engine.cutter.cut()
    await cut_all(tmp_path)
    assert len(journals(tmp_path, "a")) > 1
    async with opened(FileStore(tmp_path, **SMALL), working=False) as store:
        assert await numbers(store, "a", 2) in ([4], [3, 4])
        assert await numbers(store, "a", 1) == [4]


async def test_of_a_damaged_journal_nothing_is_told(tmp_path):
    await fill(tmp_path, "a", 40, in_log=0)
    newest = journals(tmp_path, "a")[-1]
    flip(newest, newest.stat().st_size - 20)
    async with opened(FileStore(tmp_path, **SMALL), working=False) as store:
        assert await store.newest("a") == await store.newest("a", 2) == []
    newest.unlink()
    async with opened(FileStore(tmp_path, **SMALL), working=False) as store:
        assert await store.newest("a") == []


async def numbers(store: FileStore, session: str, count: int) -> list[int]:
    return [record.seq for record in await store.newest(session, count)]
