"""The cut: what moves from the log into journals, in which order, and that it may stop anywhere."""

from __future__ import annotations

import asyncio
import errno
from pathlib import Path

import pytest

from session_actor.persistence import FileStore, LogCorrupt
from session_actor.persistence.format.record import decode_records

from ..living import copy_living
from .conformance import opened, said, say
from .disks import TroubledDisk
from .test_writer import until


@pytest.fixture
def root(tmp_path) -> Path:
    return tmp_path / "store"


async def fill(store: FileStore, *sessions: str, count: int = 30):
    """Records of some sessions in turn, synced; returns their leases."""
    leases = [await store.acquire(session, create=True) for session in sessions]
    for number in range(count):
        for lease in leases:
            say(store, lease, f"{number} {'x' * 100}")
        await store.flush("synced")
    return leases


def expected(count: int = 30) -> list[str]:
    return [f"{number} {'x' * 100}" for number in range(count)]


def journals(root: Path) -> dict[str, list[int]]:
    """By the start of a journal's name: the numbers of the records in it."""
    found = {}
    for path in sorted((root / "journals").glob("*/*.ndjson")):
        data = path.read_bytes()
        found[path.name[0]] = [record.seq for record in decode_records(data[data.index(b"\n") + 1 :])]
    return found


async def test_sealed_segments_move_into_journals_in_the_background(root):
    async with opened(FileStore(root, segment_bytes=4096)) as store:
        leases = await fill(store, "a", "b")
        await until(lambda: store.health().live_segments == 1)
        assert store.health().last_cut_us is not None
        found = journals(root)
        assert [found["a"][:3], found["b"][:3]] == [[1, 2, 3]] * 2
        assert [await said(store, lease) for lease in leases] == [expected()] * 2
        loaded = await store.load(leases[0])
        assert loaded.report.journal_records == len(found["a"])
        assert loaded.report.log_records == 30 - len(found["a"])
    assert list((root / "log").iterdir()) == []
    assert journals(root) == {"a": list(range(1, 31)), "b": list(range(1, 31))}


async def test_a_segment_is_not_cut_before_it_is_sealed_and_synced(root):
    disk = TroubledDisk()
    store = FileStore(root, segment_bytes=4096, sync_interval_s=1000, disk=disk)
    async with opened(store):
        lease = await store.acquire("a", create=True)
        for number in range(30):
            say(store, lease, f"{number} {'x' * 100}")
            await store.flush("written")
        assert store.health().live_segments > 1
        assert await store._engine.cutter.cut() == 0
        await store.flush("synced")
        await until(lambda: store.health().live_segments == 1)


async def test_the_order_is_journal_then_sync_then_catalog_then_unlink(root, monkeypatch):
    disk = TroubledDisk()
    store = FileStore(root, segment_bytes=4096, disk=disk)
    async with opened(store, working=False):
        await fill(store, "a")
        catalog = store._engine.catalog
        commit = catalog.commit_cut
        monkeypatch.setattr(catalog, "commit_cut", lambda *args: (disk.calls.append("commit"), commit(*args)))
        disk.calls.clear()
        assert await store._engine.cutter.cut() > 0
        await until(lambda: disk.calls[-1] == "sync_dir" and "unlink" in disk.calls)
        steps = [call for call in disk.calls if call in {"write", "sync", "sync_dir", "commit", "unlink"}]
        assert list(dict.fromkeys(steps)) == ["write", "sync", "sync_dir", "commit", "unlink"]
        assert steps.index("commit") > max(i for i, step in enumerate(steps) if step in {"write", "sync"})
        assert steps.count("sync_dir") == 3
        assert steps[-1] == "sync_dir"


@pytest.mark.parametrize("call", ["read", "create", "write", "sync", "make_dir", "sync_dir"])
async def test_a_cut_that_the_disk_refuses_changes_nothing_and_is_done_again(root, call):
    disk = TroubledDisk()
    store = FileStore(root, segment_bytes=4096, disk=disk)
    async with opened(store, working=False):
        (lease,) = await fill(store, "a")
        live = store.health().live_segments
        disk.errors[call] = errno.EIO
        with pytest.raises(OSError, match="asked to fail"):
            await store._engine.cutter.cut()
        disk.errors.clear()
        assert store.health().live_segments == live
        assert await said(store, lease) == expected()
        assert await store._engine.cutter.cut() == live - 1
        assert await said(store, lease) == expected()


async def test_the_worker_notes_a_failed_cut_and_tries_again(root, monkeypatch):
    monkeypatch.setattr("session_actor.persistence.cutting.cutter.RETRY_S", 0.01)
    disk = TroubledDisk()
    disk.errors["make_dir"] = 0
    async with opened(FileStore(root, segment_bytes=4096)) as store:
        store._engine.cutter._journals._disk = disk
        disk.errors["make_dir"] = errno.EROFS
        (lease,) = await fill(store, "a")
        await until(lambda: store.health().last_error is not None)
        store.admit("async")
        assert await said(store, lease) == expected()
        disk.errors.clear()
        await until(lambda: store.health().live_segments == 1)


async def test_segments_that_changed_on_disk_are_not_cut(root):
    async with opened(FileStore(root, segment_bytes=4096), working=False) as store:
        (lease,) = await fill(store, "a")
        path = min((root / "log").glob("*.ndjson"))
        data = bytearray(path.read_bytes())
        data[300] ^= 1
        with path.open("r+b") as file:
            file.write(data)
        with pytest.raises(LogCorrupt):
            await store._engine.cutter.cut()
        assert path.read_bytes() == data
        assert journals(root) == {}
        assert lease.live


async def test_a_cancelled_cut_leaves_a_whole_store_and_another_finishes(root):
    disk = TroubledDisk()
    async with opened(FileStore(root, segment_bytes=4096, disk=disk), working=False) as store:
        leases = await fill(store, "a", "b")
        for call in ("read", "create", "sync", "sync_dir"):
            gate = disk.hold(call)
            cutting = asyncio.ensure_future(store._engine.cutter.cut())
            await until(disk.entered[call].is_set)
            cutting.cancel()
            await asyncio.gather(cutting, return_exceptions=True)
            gate.set()
            del disk.gates[call]
            assert [await said(store, lease) for lease in leases] == [expected()] * 2
        assert await store._engine.cutter.cut() > 0
        assert [await said(store, lease) for lease in leases] == [expected()] * 2


async def test_a_cut_cancelled_during_its_commit_is_done(root):
    async with opened(FileStore(root, segment_bytes=4096), working=False) as store:
        (lease,) = await fill(store, "a")
        catalog = store._engine.catalog
        commit, begun = catalog.commit_cut, []
        catalog.commit_cut = lambda *args: (begun.append(True), commit(*args))
        cutting = asyncio.ensure_future(store._engine.cutter.cut())
        await until(lambda: begun)
        cutting.cancel()
        await asyncio.gather(cutting, return_exceptions=True)
        await until(lambda: store.health().live_segments == 1)
        assert await store._engine.cutter.cut() == 0
        assert await said(store, lease) == expected()


async def test_sessions_load_and_grow_while_their_segments_are_cut(root):
    async with opened(FileStore(root, segment_bytes=4096)) as store:
        leases = [await store.acquire(session, create=True) for session in "abcd"]
        for number in range(100):
            for lease in leases:
                say(store, lease, f"{number} {'x' * 100}")
            await store.flush("written")
            assert len(await said(store, leases[number % 4])) == number + 1
        await store.flush("synced")
        await until(lambda: store.health().live_segments == 1)
        assert [await said(store, lease) for lease in leases] == [expected(100)] * 4


async def test_nothing_stays_in_memory_of_sessions_that_are_whole_in_their_journals(root):
    async with opened(FileStore(root, segment_bytes=4096), working=False) as store:
        leases = await fill(store, "a", "b")
        store.release(leases[0])
        await fill(store, "c", count=40)
        while await store._engine.cutter.cut():
            pass
        assert sorted(store._logs) == ["b", "c"]
        assert await said(store, await store.acquire("a", create=False)) == expected()


async def test_the_cut_goes_on_where_a_crash_left_it(root, tmp_path):
    """Journals were written and synced, the catalog was not told: the bytes beyond are dropped and written again."""
    async with opened(FileStore(root, segment_bytes=4096), working=False) as store:
        await fill(store, "a", "b")
        store._engine.catalog.commit_cut = lambda *_: (_ for _ in ()).throw(OSError("killed"))
        with pytest.raises(OSError, match="killed"):
            await store._engine.cutter.cut()
        assert journals(root) != {}
        await copy_living(root, tmp_path / "copy")
    async with opened(FileStore(tmp_path / "copy"), working=False) as store:
        leases = [await store.acquire(session, create=False) for session in "ab"]
        assert [await said(store, lease) for lease in leases] == [expected()] * 2
        assert await store._engine.cutter.cut() > 0
        assert [await said(store, lease) for lease in leases] == [expected()] * 2
        assert journals(tmp_path / "copy") == {"a": list(range(1, 31)), "b": list(range(1, 31))}
