"""Reading while a cut, a pruning or a salvage is done in the catalog, and the loop has not heard of it yet."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from pathlib import Path

import pytest

from session_actor.persistence import FileStore, SessionTombstoned

from .conformance_snapshots import ids, seqs
from .conformance_tools import opened, push

FRAMES = range(1, 101)
LEFT = range(61, 101)
"""What pruning leaves, and some more may stay."""


@pytest.fixture
def root(tmp_path) -> Path:
    return tmp_path / "store"


def small(root: Path) -> FileStore:
    return FileStore(root, segment_bytes=20_000, journal_bytes=2_000)


@contextlib.asynccontextmanager
async def held_behind(monkeypatch, owner: object, name: str, job):
    """`job` runs, and its thread waits behind the method `name` of `owner`, which has done its work."""
    done, go_on, method = threading.Event(), threading.Event(), getattr(owner, name)

    def held(*arguments, **options):
        result = method(*arguments, **options)
        done.set()
        assert go_on.wait(20)
        return result

    monkeypatch.setattr(owner, name, held)
    task = asyncio.ensure_future(job)
    try:
        assert await asyncio.to_thread(done.wait, 20)
        yield
    finally:
        monkeypatch.undo()
        go_on.set()
        await task


async def cut(store: FileStore) -> None:
    await store.flush("synced")
    store._engine.log.seal()
    while await store._engine.cutter.cut():
        pass


async def grown(store: FileStore):
    """A session of a hundred frames: most in sealed files, some in the newest, some in the log."""
    lease = await store.acquire("user-42", create=True)
    push(store, lease, 40)
    await cut(store)
    push(store, lease, 30, first=41)
    await cut(store)
    push(store, lease, 30, first=71)
    await store.flush("synced")
    return lease


async def sizes(store: FileStore) -> list[int]:
    return [info.size_bytes async for info in store.sessions()]


@pytest.mark.parametrize("warm", [True, False], ids=["read before", "not read before"])
async def test_a_cut_that_the_loop_has_not_heard_of_changes_nothing_of_what_is_read(root, monkeypatch, warm):
    async with opened(small(root), working=False) as store:
        lease = await grown(store)
        archive = store.archive(lease)
        if warm:
            archive.read(FRAMES)
        store._engine.log.seal()
        async with held_behind(monkeypatch, store._engine.catalog, "commit_cut", store._engine.cutter.cut()):
            assert ids(archive.read(FRAMES)) == list(FRAMES)
            for frame in (*FRAMES, 200):
                assert ids(archive.read([frame])) == [frame][: frame in FRAMES]
            assert ids(await archive.fetch(FRAMES)) == list(FRAMES)
            assert seqs(await store.load(lease)) == list(FRAMES)
            assert seqs(await store.load(lease, snapshots=False)) == list(FRAMES)
            between = await sizes(store)
        assert await sizes(store) == between
        assert ids(archive.read(FRAMES)) == list(FRAMES)


@pytest.mark.parametrize("warm", [True, False], ids=["read before", "not read before"])
@pytest.mark.parametrize("behind", ["drop", "unlink"])
async def test_a_pruning_that_the_loop_has_not_heard_of_is_no_damage(root, monkeypatch, warm, behind):
    async with opened(small(root), working=False) as store:
        lease = await grown(store)
        await cut(store)
        store.save(lease, 100, b"{}")
        await store.saved(lease, 100)
        archive = store.archive(lease)
        if warm:
            archive.read([1])
        pruner, files = store._engine.pruner, store._engine.catalog.files
        owner, name = (files, "drop") if behind == "drop" else (pruner, "_drop")
        async with held_behind(monkeypatch, owner, name, store.prune(lease, [(1, 60)])):
            assert set(ids(archive.read(FRAMES))) >= set(LEFT)
            assert set(ids(await archive.fetch(FRAMES))) >= set(LEFT)
            archive.read([1])
            loaded = await store.load(lease)
            assert (loaded.snapshot.seq, seqs(loaded)) == (100, [])
            left = seqs(await store.load(lease, snapshots=False))
            assert left == list(range(left[0], 101))
        assert set(ids(archive.read(FRAMES))) >= set(LEFT)


async def test_records_that_are_pruned_while_they_are_read_are_no_damage(root, monkeypatch):
    async with opened(small(root), working=False) as store:
        lease = await grown(store)
        await cut(store)
        store.save(lease, 100, b"{}")
        await store.saved(lease, 100)
        archive, files = store.archive(lease), store._engine.catalog.files
        async with held_behind(monkeypatch, files, "with_frame", archive.fetch(FRAMES)):
            assert (await store.prune(lease, [(1, 60)])).files > 0
        async with held_behind(monkeypatch, files, "whole", store.load(lease, snapshots=False)):
            assert (await store.prune(lease, [(1, 90)])).files > 0


async def test_a_session_that_is_salvaged_is_gone_for_who_reads_its_old_birth(root, monkeypatch):
    async with opened(small(root), working=False) as store:
        lease = await grown(store)
        await cut(store)
        archive = store.archive(lease)
        archive.read([1])
        async with held_behind(monkeypatch, store._engine.catalog, "commit_cut", store.salvage(lease, "readable")):
            for old in (next((root / "journals").glob("*/*-1.ndjson")), next((root / "journals").glob("*/*-2.ndjson"))):
                old.unlink()  # as salvage does next
            with pytest.raises(SessionTombstoned):
                archive.read(FRAMES)
            with pytest.raises(SessionTombstoned):
                await archive.fetch(FRAMES)
