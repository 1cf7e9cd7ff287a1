"""A cut that a full disk refuses gives back what it took, and its commit has room of its own."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest

from session_actor.persistence import FileStore

from .conformance_tools import opened, said, say
from .disks import TroubledDisk
from .test_reserve import SEGMENT_BYTES, SmallDisk

FULL = OSError(errno.ENOSPC, "No space left on device")


@pytest.fixture
def root(tmp_path):
    return tmp_path / "store"


def journals(root: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in root.glob("journals/**/*.ndjson")}


async def push(store: FileStore, lease, texts: list[str], count: int) -> None:
    for _ in range(count):
        texts.append(f"{len(texts)} {'x' * 500}")
        say(store, lease, texts[-1])
    await store.flush("synced")


async def cut(store: FileStore) -> None:
    store._engine.log.seal()
    await store._engine.cutter.cut_all()


@pytest.mark.parametrize("journal_bytes", [100_000, 4000])
@pytest.mark.parametrize("before", [0, 5])
async def test_a_cut_that_finds_the_disk_full_leaves_the_journals_as_they_count(root, journal_bytes, before):
    """Also what files it began; and all is there when there is room."""
    disk = SmallDisk(root)
    store = FileStore(root, segment_bytes=SEGMENT_BYTES, journal_bytes=journal_bytes, disk=disk)
    texts: list[str] = []
    async with opened(store, working=False):
        lease = await store.acquire("a", create=True)
        if before:
            await push(store, lease, texts, before)
            await cut(store)
        counted = journals(root)
        await push(store, lease, texts, 15)
        store._engine.log.seal()
        disk.room_bytes = disk.used_bytes() + 7000
        with pytest.raises(OSError, match="No space left"):
            await store._engine.cutter.cut_all()
        assert journals(root) == counted
        assert await said(store, lease) == texts
        disk.room_bytes = 10**9
        await store._engine.cutter.cut_all()
        assert not store._engine.log.sealed
        assert await said(store, lease) == texts


async def test_a_commit_that_finds_the_disk_full_is_made_in_the_room_that_is_held_for_it(root, monkeypatch):
    store = FileStore(root, segment_bytes=SEGMENT_BYTES, disk=TroubledDisk())
    texts: list[str] = []
    async with opened(store, working=False):
        lease = await store.acquire("a", create=True)
        await push(store, lease, texts, 15)
        catalog, commit = store._engine.catalog, store._engine.catalog.commit_cut

        def full(*args: object) -> None:
            if (root / "log/commit").exists():
                raise FULL
            commit(*args)

        monkeypatch.setattr(catalog, "commit_cut", full)
        await cut(store)
        assert not store._engine.log.sealed
    async with opened(FileStore(root)) as again:
        assert await said(again, await again.acquire("a", create=False)) == texts


async def test_a_commit_that_goes_on_finding_the_disk_full_leaves_the_journals_as_they_count(root, monkeypatch):
    store = FileStore(root, segment_bytes=SEGMENT_BYTES, disk=TroubledDisk())
    texts: list[str] = []
    async with opened(store, working=False):
        lease = await store.acquire("a", create=True)
        await push(store, lease, texts, 5)
        await cut(store)
        counted = journals(root)
        await push(store, lease, texts, 15)

        def full(*_: object) -> None:
            raise FULL

        with monkeypatch.context() as patched:
            patched.setattr(store._engine.catalog, "commit_cut", full)
            with pytest.raises(OSError, match="No space left"):
                await cut(store)
            assert journals(root) == counted
        assert await said(store, lease) == texts
        await cut(store)
        assert not store._engine.log.sealed
    async with opened(FileStore(root)) as again:
        assert await said(again, await again.acquire("a", create=False)) == texts


async def test_a_commit_that_happened_and_says_that_the_disk_is_full_keeps_the_journals(root, monkeypatch):
    store = FileStore(root, segment_bytes=SEGMENT_BYTES, disk=TroubledDisk())
    texts: list[str] = []
    async with opened(store, working=False):
        lease = await store.acquire("a", create=True)
        await push(store, lease, texts, 15)
        commit = store._engine.catalog.commit_cut

        def late(*args: object) -> None:
            commit(*args)
            raise FULL

        with monkeypatch.context() as patched:
            patched.setattr(store._engine.catalog, "commit_cut", late)
            with pytest.raises(OSError, match="No space left"):
                await cut(store)
        assert not store._engine.log.sealed
        assert await said(store, lease) == texts
        await push(store, lease, texts, 5)
    async with opened(FileStore(root)) as again:
        assert await said(again, await again.acquire("a", create=False)) == texts
