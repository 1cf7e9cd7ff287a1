"""Files of an open store that somebody removes or replaces: nothing is acknowledged that would be lost with them."""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path

import pytest

from session_actor.persistence import FileStore, JournalTruncated, NotDurable, StoreDegraded
from session_actor.persistence.files.storage import OsDisk
from session_actor.persistence.lock import StoreLock

from .conformance import opened, said, say
from .test_writer import until, warm


@pytest.fixture
def root(tmp_path) -> Path:
    return tmp_path / "store"


async def refused(store: FileStore) -> str:
    """Wait until nothing is admitted; returns why."""
    await until(lambda: not store.admitted)
    with pytest.raises(StoreDegraded) as caught:
        store.admit("async")
    return str(caught.value)


async def said_after_a_kill(root: Path, tmp_path: Path) -> list[str]:
    """What another process finds if this one is killed now."""
    copy = tmp_path / "copy"
    await until(lambda: copied(root, copy))
    async with opened(FileStore(copy), working=False) as store:
        return await said(store, await store.acquire("user-42", create=False))


def copied(root: Path, copy: Path) -> bool:
    """Copy a store at one moment, so far as no thread removed a file meanwhile."""
    shutil.rmtree(copy, ignore_errors=True)
    try:
        shutil.copytree(root, copy)
    except shutil.Error:
        return False
    return True


async def synced(store: FileStore, lease, text: str) -> None:
    """Push until it is synced: a failure on the way is told and retried."""
    position = say(store, lease, text)
    for _ in range(5):
        try:
            await store.flush("synced", position)
        except NotDurable:
            continue
        return
    raise AssertionError(store.health().last_error)


@pytest.mark.parametrize("what", ["segment", "folder"])
async def test_a_removed_segment_of_the_log_is_found_at_the_next_sync_and_written_anew(root, tmp_path, what):
    async with opened(FileStore(root)) as store:
        (lease,) = await warm(store)
        await synced(store, lease, "before")
        shutil.rmtree(root / "log") if what == "folder" else Path(store._engine.log.current.path).unlink()
        say(store, lease, "in flight")
        with pytest.raises(NotDurable, match="removed underneath"):
            await store.flush("synced")
        await store.flush("synced")
        await synced(store, lease, "after")
        assert await said(store, lease) == ["first", "before", "in flight", "after"]
        assert await said_after_a_kill(root, tmp_path) == ["first", "before", "in flight", "after"]
        assert store.health().degraded_since_us is None


async def test_a_removed_log_folder_is_made_anew_for_the_next_segment(root, tmp_path):
    """The current segment is full, so that no sync finds it before the next one is begun."""
    async with opened(FileStore(root, segment_bytes=4000), working=False) as store:
        (lease,) = await warm(store)
        await synced(store, lease, "x" * 5000)
        shutil.rmtree((root / "log").rename(tmp_path / "gone"))  # first out of the way: a spare file may just be made
        await synced(store, lease, "next")
        assert await said_after_a_kill(root, tmp_path) == ["first", "x" * 5000, "next"]


async def test_a_removed_segment_that_is_replaced_by_another_file_is_written_anew(root, tmp_path):
    async with opened(FileStore(root)) as store:
        (lease,) = await warm(store)
        path = Path(store._engine.log.current.path)
        other = tmp_path / "other"
        other.write_bytes(b"not a segment\n")
        other.replace(path)
        await synced(store, lease, "second")
        assert await said_after_a_kill(root, tmp_path) == ["first", "second"]


async def test_sealed_segments_that_are_removed_before_they_are_cut_are_written_anew(root, tmp_path):
    async with opened(FileStore(root, segment_bytes=4000), working=False) as store:
        (lease,) = await warm(store)
        for _ in range(12):
            await synced(store, lease, "x" * 1000)
        assert len(store._engine.log.sealed) >= 2
        for path in (root / "log").iterdir():
            path.unlink()
        await synced(store, lease, "last")
        assert await said_after_a_kill(root, tmp_path) == ["first", *["x" * 1000] * 12, "last"]
        assert await said(store, lease) == ["first", *["x" * 1000] * 12, "last"]


async def test_a_removed_journal_shows_when_it_is_read_and_other_sessions_go_on(root):
    async with opened(FileStore(root), working=False) as store:
        await warm(store, "user-42", "other")
    async with opened(FileStore(root, segment_bytes=4000)) as store:
        lease, other = await warm_again(store)
        await until(lambda: not store._engine.log.sealed)
        store.release(lease)
        for path in (root / "journals").glob("*/user_42*"):
            path.unlink()
        await synced(store, other, "goes on")
        with pytest.raises(JournalTruncated):
            await store.load(await store.acquire("user-42", create=False))
        assert (await said(store, other))[-1] == "goes on"


async def warm_again(store: FileStore):
    """Leases on the two sessions, whose first records are in journals afterwards."""
    leases = [await store.acquire(session, create=False) for session in ("user-42", "other")]
    for lease in leases:
        await store.load(lease)
    for _ in range(5):
        await synced(store, leases[1], "x" * 2000)
    return leases


async def test_a_removed_lock_is_made_and_locked_anew(root):
    async with opened(FileStore(root)) as store:
        (lease,) = await warm(store)
        (root / "LOCK").unlink()
        await synced(store, lease, "second")
        assert store.health().last_error is None
        assert not StoreLock(root / "LOCK").try_acquire()


async def test_a_replaced_lock_that_nobody_holds_is_locked_anew(root, tmp_path):
    async with opened(FileStore(root)) as store:
        (lease,) = await warm(store)
        (tmp_path / "new").write_bytes(b"")
        (tmp_path / "new").replace(root / "LOCK")
        await synced(store, lease, "second")
        assert not StoreLock(root / "LOCK").try_acquire()


async def lose(root: Path, store: FileStore, lease) -> None:
    """Remove the lock and let another take it, then push: nothing is acknowledged, and nothing is admitted any more."""
    with pytest.raises(NotDurable, match="in use by"):
        await store.flush("synced", say(store, lease, "in vain"))
    assert "in use by" in await refused(store)


async def test_a_store_whose_lock_another_process_took_writes_and_acknowledges_nothing_any_more(root):
    told = []
    store = FileStore(root, on_event=lambda event: told.append(event.name))
    await store.open()
    workers = [asyncio.ensure_future(work()) for work in store.workers().values()]
    (lease,) = await warm(store)
    (root / "LOCK").unlink()
    other = StoreLock(root / "LOCK")
    assert other.try_acquire()
    await lose(root, store, lease)
    before = {path: path.read_bytes() for path in root.rglob("*") if path.is_file()}
    assert await said(store, lease) == ["first", "in vain"]
    with pytest.raises(NotDurable):
        await store.flush("synced")
    with pytest.raises(NotDurable):
        await store.close()
    for worker in workers:
        worker.cancel()
    await asyncio.gather(*workers, return_exceptions=True)
    assert {path: path.read_bytes() for path in root.rglob("*") if path.is_file()} == before
    assert told == ["lost", "degraded"]
    other.release()
    async with opened(FileStore(root), working=False) as again:
        assert "first" in await said(again, await again.acquire("user-42", create=False))


async def test_a_store_that_another_process_opened_and_left_meanwhile_is_lost_too(root):
    store = FileStore(root)
    async with opened(store, working=False):
        (lease,) = await warm(store)
        (root / "LOCK").unlink()
        async with opened(FileStore(root, cut_at_close=0)) as other:
            await synced(other, await loaded(other), "the other's")
        with pytest.raises(NotDurable):  # a segment is gone, or LOCK is another: whatever is met first
            await store.flush("synced", say(store, lease, "in vain"))
        await until(lambda: "not as this process left it" in (store.health().last_error or ""))
        assert store.admitted == ()
        with pytest.raises(NotDurable):
            await store.close()
    async with opened(FileStore(root), working=False) as again:
        assert await said(again, await again.acquire("user-42", create=False)) == ["first", "the other's"]


async def loaded(store: FileStore):
    lease = await store.acquire("user-42", create=False)
    await store.load(lease)
    return lease


async def test_a_store_whose_directory_is_gone_admits_nothing_serves_what_it_has_and_acknowledges_nothing(root):
    store = FileStore(root)
    async with opened(store):
        (lease,) = await warm(store)
        shutil.rmtree(root)
        with pytest.raises(NotDurable):
            await store.flush("synced", say(store, lease, "second"))
        await refused(store)
        with pytest.raises(NotDurable):
            await store.flush("synced")
        assert store.synced_position == 1
        with pytest.raises(NotDurable):
            await store.close()
    assert not root.exists()


async def test_a_store_whose_directory_comes_back_goes_on_by_itself(root, tmp_path):
    async with opened(FileStore(root)) as store:
        (lease,) = await warm(store)
        root.rename(tmp_path / "away")
        with pytest.raises(NotDurable):
            await store.flush("synced", say(store, lease, "second"))
        await refused(store)
        (tmp_path / "away").rename(root)
        await until(lambda: store.health().degraded_since_us is None)
        await synced(store, lease, "third")
        assert await said(store, lease) == ["first", "second", "third"]
        assert await said_after_a_kill(root, tmp_path) == ["first", "second", "third"]


def test_a_file_that_is_closed_meanwhile_was_not_removed(tmp_path):
    """As when a cut removes a segment while a sync looks at it."""
    file = OsDisk().open(str(tmp_path / "file"), create=True)
    assert file.linked()
    (tmp_path / "file").unlink()
    assert not file.linked()
    file.close()
    assert file.linked()
