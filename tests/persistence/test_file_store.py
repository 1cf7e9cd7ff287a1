"""The file store as a whole: its directory, deletion, many sessions, closing."""

from __future__ import annotations

import asyncio
import errno
import os
import threading
from pathlib import Path

import pytest

from session_actor.persistence import (
    CatalogCorrupt,
    Fenced,
    FileStore,
    NetworkFileSystem,
    NotDurable,
    SessionTombstoned,
    StoreClosed,
    StoreCorrupt,
    StoreVersionTooNew,
)
from session_actor.persistence.format.record import close_line

from .conformance import listed, opened, said, say
from .disks import TroubledDisk
from .test_writer import until


@pytest.fixture
def root(tmp_path) -> Path:
    return tmp_path / "store"


def files(root: Path) -> dict[str, bytes]:
    return {str(path.relative_to(root)): path.read_bytes() for path in sorted(root.rglob("*")) if path.is_file()}


async def some(root: Path) -> None:
    """A closed store with one session of one record."""
    async with opened(FileStore(root, cut_at_close=0), working=False) as store:
        say(store, await store.acquire("user-42", create=True), "first")


# --- the directory ----------------------------------------------------------------------------------------------------


async def test_only_this_user_can_read_what_is_stored(root):
    old = os.umask(0)
    try:
        async with opened(FileStore(root / "deep", segment_bytes=2000), working=False) as store:
            lease = await store.acquire("user-42", create=True)
            for number in range(30):
                say(store, lease, f"{number} {'x' * 100}")
                await store.flush("synced")
            await store._engine.cutter.cut()
            paths = [root / "deep", *(root / "deep").rglob("*")]
    finally:
        os.umask(old)
    modes = {path.stat().st_mode & 0o777 for path in paths if path.is_dir()}
    assert modes == {0o700}
    assert {path.stat().st_mode & 0o777 for path in paths if path.is_file()} == {0o600}
    names = {path.name for path in (root / "deep").iterdir()}
    assert {"FORMAT", "LOCK", "catalog.db", "log", "journals"} <= names


async def test_what_was_preallocated_is_given_back_at_close(root):
    await some(root)
    (segment,) = (root / "log").iterdir()
    assert segment.stat().st_size < 1000


async def test_opening_and_closing_an_untouched_store_changes_nothing(root):
    await some(root)
    before = files(root)
    async with opened(FileStore(root, cut_at_close=0), working=False) as store:
        assert await listed(store) == ["user-42"]
    assert files(root) == before


async def test_a_store_of_a_newer_format_is_refused_and_left_as_it_is(root):
    await some(root)
    line, _ = close_line(b'{"format":"session-actor-store","version":2')
    (root / "FORMAT").write_bytes(line)
    before = files(root)
    with pytest.raises(StoreVersionTooNew, match="version 2"):
        await FileStore(root).open()
    assert files(root) == before


@pytest.mark.parametrize("content", [b"", b"something else\n", b'{"format":"session-actor-store","version":1}\n'])
async def test_a_damaged_format_file_is_refused(root, content):
    await some(root)
    (root / "FORMAT").write_bytes(content)
    with pytest.raises(StoreCorrupt, match="FORMAT"):
        await FileStore(root).open()


async def test_a_store_that_lost_its_format_or_its_catalog_is_refused_and_not_made_anew(root):
    await some(root)
    (root / "FORMAT").rename(root / "elsewhere")
    with pytest.raises(StoreCorrupt, match="it is missing"):
        await FileStore(root).open()
    (root / "elsewhere").rename(root / "FORMAT")
    (root / "catalog.db").unlink()
    with pytest.raises(CatalogCorrupt):
        await FileStore(root).open()
    assert not (root / "catalog.db").exists()


async def test_a_directory_on_a_network_file_system_is_refused_unless_asked_for(root, monkeypatch):
    monkeypatch.setattr("session_actor.persistence.lock.file_system_of", lambda _: "nfs4")
    with pytest.raises(NetworkFileSystem, match="nfs4"):
        await FileStore(root).open()
    async with opened(FileStore(root, allow_network_fs=True), working=False) as store:
        assert await listed(store) == []


# --- deletion ---------------------------------------------------------------------------------------------------------


async def test_a_session_is_deleted_with_its_queued_records(root):
    async with opened(FileStore(root), working=False) as store:
        gone = await store.acquire("gone", create=True)
        kept = await store.acquire("kept", create=True)
        say(store, gone, *(str(number) for number in range(500)))
        say(store, kept, "kept")
        await store.delete(gone)
        assert store.synced_position == 502
        with pytest.raises(SessionTombstoned):
            await store.acquire("gone", create=False)
    async with opened(FileStore(root), working=False) as store:
        assert await listed(store) == ["kept"]
        with pytest.raises(SessionTombstoned):
            await store.acquire("gone", create=False)


async def test_the_files_of_a_deleted_session_are_removed(root):
    async with opened(FileStore(root, segment_bytes=2000)) as store:
        lease = await store.acquire("gone", create=True)
        for number in range(30):
            say(store, lease, f"{number} {'x' * 100}")
            await store.flush("synced")
        await until(lambda: store.health().live_segments == 1)
        assert len(list((root / "journals").glob("*/*"))) == 1
        await store.delete(lease)
        assert list((root / "journals").glob("*/*")) == []
        again = await store.acquire("gone", create=True)
        say(store, again, "new")
        await store.flush("synced")
        assert await said(store, again) == ["new"]


async def test_a_deletion_that_is_not_durable_says_so_and_completes_later(root):
    disk = TroubledDisk()
    async with opened(FileStore(root, disk=disk), working=False) as store:
        lease = await store.acquire("gone", create=True)
        say(store, lease, "first")
        await store.flush("synced")
        disk.errors["write"] = errno.EIO
        with pytest.raises(NotDurable):
            await store.delete(lease)
        with pytest.raises(Fenced):
            store.append(lease, 3, 1, "said", b"{}", 1)
        disk.errors.clear()
        await store.flush("synced")
        with pytest.raises(SessionTombstoned):
            await store.acquire("gone", create=False)
    async with opened(FileStore(root), working=False) as store:
        assert await listed(store) == []


# --- all together -----------------------------------------------------------------------------------------------------


async def test_many_sessions_are_listed_in_order_wherever_their_records_are(root):
    async with opened(FileStore(root, segment_bytes=20_000), working=False) as store:
        ids = [f"user-{number:04}" for number in range(1200)]
        for session in ids[::2]:
            say(store, await store.acquire(session, create=True), "old")
        await store.flush("synced")
        while await store._engine.cutter.cut():
            pass
        for session in ids[1::2]:
            say(store, await store.acquire(session, create=True), "new")
        assert await listed(store) == ids
        assert await listed(store, "user-11") == ids[1100:]
    async with opened(FileStore(root), working=False) as store:
        assert await listed(store) == ids


async def test_a_closed_store_can_be_opened_again_and_its_old_leases_are_over(root):
    store = FileStore(root)
    async with opened(store):
        lease = await store.acquire("a", create=True)
        say(store, lease, "first")
    async with opened(store):
        with pytest.raises(Fenced):
            store.append(lease, 2, 1, "said", b"{}", 1)
        assert await said(store, await store.acquire("a", create=False)) == ["first"]
    with pytest.raises(StoreClosed):
        await store.flush("written")


async def test_closing_while_the_workers_run_lets_them_be_cancelled(root):
    store = FileStore(root, segment_bytes=4096)
    await store.open()
    jobs = [asyncio.ensure_future(job()) for job in store.workers().values()]
    lease = await store.acquire("a", create=True)
    for number in range(200):
        say(store, lease, f"{number} {'x' * 100}")
    await asyncio.sleep(0)
    await store.close()
    for job in jobs:
        job.cancel()
    assert [type(found) for found in await asyncio.gather(*jobs, return_exceptions=True)] == [
        asyncio.CancelledError
    ] * len(jobs)
    async with opened(FileStore(root), working=False) as store:
        assert len(await said(store, await store.acquire("a", create=False))) == 200


async def test_a_close_that_is_cancelled_closes_and_tells_whoever_waits(root):
    disk = TroubledDisk()
    store = FileStore(root, disk=disk)
    await store.open()
    lease = await store.acquire("a", create=True)
    say(store, lease, "first")
    await store.flush("synced")
    gate = disk.hold("sync")
    say(store, lease, "second")
    waiting = asyncio.ensure_future(store.flush("synced"))
    await until(disk.entered["sync"].is_set)
    closing = asyncio.ensure_future(store.close())
    await asyncio.sleep(0)
    threading.Timer(0.05, gate.set).start()
    closing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await closing
    with pytest.raises(NotDurable, match="closed"):
        await waiting
    async with opened(FileStore(root), working=False) as store:
        assert await said(store, await store.acquire("a", create=False)) == ["first", "second"]


async def test_a_listing_that_goes_on_after_the_close_says_so(root):
    store = FileStore(root)
    await store.open()
    for session in "ab":
        say(store, await store.acquire(session, create=True), "first")
    listing = store.sessions()
    await store.close()
    with pytest.raises(StoreClosed):
        await anext(listing)


async def test_nothing_is_tried_again_after_the_close(root):
    disk = TroubledDisk()
    store = FileStore(root, disk=disk)
    await store.open()
    lease = await store.acquire("a", create=True)
    say(store, lease, "first")
    await store.flush("synced")
    disk.errors["write"] = disk.errors["sync"] = errno.EIO
    say(store, lease, "second")
    with pytest.raises(NotDurable):
        await store.close()
    calls = len(disk.calls)
    await asyncio.sleep(0.3)
    assert len(disk.calls) == calls


async def test_a_deleted_session_stays_deleted_while_the_catalog_cannot_forget_it(root, monkeypatch):
    store = FileStore(root)
    async with opened(store, working=False):
        lease = await store.acquire("user-42", create=True)
        say(store, lease, "old")
    async with opened(store, working=False):
        while await store._engine.cutter.cut():
            pass
        lease = await store.acquire("user-42", create=False)

        def refuse(*_: object) -> None:
            raise OSError(errno.ENOSPC, "asked to fail")

        with monkeypatch.context() as patched:
            patched.setattr(store._engine.catalog, "commit_cut", refuse)
            await store.delete(lease)
        assert "asked to fail" in store.health().last_error
        store.release(await store.acquire("user-42", create=True))
        assert [info.id async for info in store.sessions()] == []
        with pytest.raises(SessionTombstoned):
            await store.acquire("user-42", create=False)
    async with opened(store, working=False):
        with pytest.raises(SessionTombstoned):
            await store.acquire("user-42", create=False)
        say(store, await store.acquire("user-42", create=True), "new")
    async with opened(store, working=False):
        assert await said(store, await store.acquire("user-42", create=False)) == ["new"]


async def test_a_delete_that_fails_and_that_nobody_waits_for_is_shown_by_health(root):
    disk = TroubledDisk()
    async with opened(FileStore(root, disk=disk), working=False) as store:
        lease = await store.acquire("a", create=True)
        say(store, lease, "first")
        await store.flush("synced")
        disk.errors["unlink"] = errno.EIO
        await store.delete(lease)
        assert "asked to fail" in store.health().last_error
        with pytest.raises(SessionTombstoned):
            await store.acquire("a", create=False)
        disk.errors.clear()
