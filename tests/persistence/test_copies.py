"""Copies of a store, as the page on durability tells how to make them."""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path

import pytest

from session_actor.persistence import FileStore, StoreCorrupt

from .conformance_tools import listed, opened, said, say
from .test_writer import until

SEGMENT = 16 * 1024
SESSIONS = [f"user-{number}" for number in range(8)]


@pytest.fixture
def root(tmp_path) -> Path:
    return tmp_path / "store"


def copy_running(root: Path, copy: Path) -> bool:
    """Copy a store that is open elsewhere; returns whether the copy is good: nothing was moved meanwhile."""
    copy.mkdir()
    before = (root / "catalog.db").read_bytes()
    (copy / "catalog.db").write_bytes(before)
    shutil.copy2(root / "FORMAT", copy)
    try:
        if (root / "snapshots").exists():
            shutil.copytree(root / "snapshots", copy / "snapshots")
        shutil.copytree(root / "journals", copy / "journals")
        (copy / "log").mkdir()
        for segment in sorted((root / "log").glob("*.ndjson"), reverse=True):  # newest first
            shutil.copy2(segment, copy / "log")
    except (FileNotFoundError, shutil.Error):
        return False
    after = (root / "catalog.db").read_bytes()
    journal = root / "catalog.db-journal"
    return before == after and not (journal.exists() and journal.stat().st_size)


async def test_a_copy_of_a_closed_store_is_the_store(root, tmp_path):
    store = FileStore(root, segment_bytes=SEGMENT)
    async with opened(store):
        for session in SESSIONS:
            say(store, await store.acquire(session, create=True), *(f"{session} {n}" for n in range(50)))
        await store.flush("synced")
    shutil.copytree(root, tmp_path / "copy")
    async with opened(FileStore(tmp_path / "copy")) as copy:
        assert await listed(copy) == sorted(SESSIONS)
        for session in SESSIONS:
            wanted = [f"{session} {n}" for n in range(50)]
            assert await said(copy, await copy.acquire(session, create=False)) == wanted


async def test_a_copy_of_a_running_store_during_which_the_catalog_did_not_change_holds_all_that_was_synced(
    root, tmp_path
):
    store = FileStore(root, segment_bytes=SEGMENT)
    stopped = asyncio.Event()

    async def push(session: str, counts: dict[str, int]) -> None:
        lease = await store.acquire(session, create=True)
        while not stopped.is_set():
            say(store, lease, f"{session} {counts[session]}")
            counts[session] += 1
            await store.flush("synced")

    good = 0
    async with opened(store):
        counts = dict.fromkeys(SESSIONS, 0)
        pushers = [asyncio.ensure_future(push(session, counts)) for session in SESSIONS]
        for number in range(25):
            await asyncio.sleep(0.002)
            synced = {session: count - 1 for session, count in counts.items()}
            copy = tmp_path / f"copy-{number}"
            if await asyncio.to_thread(copy_running, root, copy):
                good += 1
                await check(copy, synced)
            shutil.rmtree(copy)
        stopped.set()
        await asyncio.gather(*pushers)
    assert good > 2


async def check(copy: Path, synced: dict[str, int]) -> None:
    """The copy opens and every session has all records that were synced before it was made."""
    async with opened(FileStore(copy)) as store:
        for session, count in synced.items():
            if count > 0:
                texts = await said(store, await store.acquire(session, create=False))
                assert texts == [f"{session} {n}" for n in range(len(texts))]
                assert len(texts) >= count


async def test_journals_that_were_copied_before_the_catalog_moved_on_are_found_to_be_short(root, tmp_path):
    store, copy = FileStore(root, segment_bytes=SEGMENT), tmp_path / "copy"
    async with opened(store):
        lease = await store.acquire("user-42", create=True)
        say(store, lease, *("x" * 100 for _ in range(200)))
        await store.flush("synced")
        await until(lambda: store.health().last_cut_us)
    shutil.copytree(root / "journals", copy / "journals")
    async with opened(store):
        lease = await store.acquire("user-42", create=False)
        await store.load(lease)
        say(store, lease, *("y" * 100 for _ in range(400)))
        await store.flush("synced")
        await until(lambda: store.health().last_cut_us)
    for name in ("FORMAT", "catalog.db"):
        shutil.copy2(root / name, copy)
    shutil.copytree(root / "log", copy / "log")
    async with opened(FileStore(copy)) as again:
        lease = await again.acquire("user-42", create=False)
        with pytest.raises(StoreCorrupt):
            await again.load(lease)
