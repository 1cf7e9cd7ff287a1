"""The newest record of a session, told without loading it: from wherever it is, and not at all from what is damaged."""

from __future__ import annotations

import pytest

from session_actor.persistence import FileStore, MemoryStore

from .conformance_tools import opened, say
from .stores import SMALL, cut_all, fill, flip, journals


@pytest.mark.parametrize("kind", [FileStore, MemoryStore])
async def test_it_is_told_without_taking_the_session_from_its_owner(tmp_path, kind):
    async with opened(FileStore(tmp_path) if kind is FileStore else MemoryStore()) as store:
        assert await store.newest("user-42") is None
        lease = await store.acquire("user-42", create=True)
        assert await store.newest("user-42") is None
        for text in ("a", "b", "c"):
            say(store, lease, text)
            record = await store.newest("user-42")
            assert (record.seq, record) == (lease.appended_seq, (await store.load(lease)).records[-1])
        assert lease.live
        store.release(lease)
        assert await store.newest("user-42") == record
        await store.delete(await store.acquire("user-42", create=False))
        assert await store.newest("user-42") is None


async def test_it_is_told_from_the_journal_the_log_and_memory(tmp_path):
    await fill(tmp_path, "abc", 40, in_log=0)
    async with opened(FileStore(tmp_path, **SMALL), working=False) as store:
        assert (await store.newest("a")).seq == 40
        lease = await store.acquire("b", create=False)
        loaded = await store.load(lease)
        assert await store.newest("b") == loaded.records[-1]
        say(store, lease, "x" * 200_000)
        assert (await store.newest("b")).seq == 41
        await store.flush("synced")
        assert (await store.newest("b")).seq == 41
        assert await store.newest("gone") is None
        assert await store.newest("never") is None
    await cut_all(tmp_path)
    async with opened(FileStore(tmp_path, **SMALL), working=False) as store:
        found = await store.newest("b")
        lease = await store.acquire("b", create=False)
        assert found == (await store.load(lease)).records[-1]


async def test_of_a_damaged_journal_nothing_is_told(tmp_path):
    await fill(tmp_path, "a", 40, in_log=0)
    newest = journals(tmp_path, "a")[-1]
    flip(newest, newest.stat().st_size - 20)
    async with opened(FileStore(tmp_path, **SMALL), working=False) as store:
        assert await store.newest("a") is None
    newest.unlink()
    async with opened(FileStore(tmp_path, **SMALL), working=False) as store:
        assert await store.newest("a") is None
