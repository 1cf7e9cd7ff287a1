"""A process dies at every single system call of rotating, cutting, snapshots, pruning, deleting and closing."""

from __future__ import annotations

import contextlib
import shutil
from pathlib import Path

from session_actor.persistence import (
    FileStore,
    NotDurable,
    SessionTombstoned,
    SessionUnknown,
    StoreClosed,
    StoreCorrupt,
)

from .conformance_snapshots import ids, seqs
from .conformance_tools import opened, push
from .disks import Dead, TroubledDisk
from .test_journal_files import cut_all

DROPPED = (1, 25)


class Promised:
    """What was acknowledged: records that are synced, and which snapshots and deletions are done."""

    def __init__(self) -> None:
        self.frames = {"kept": 0, "gone": 0}
        self.snapshot = 0
        self.deleting = self.deleted = False


def small(root: Path, disk: TroubledDisk | None = None, *, at_close: int = 64) -> FileStore:
    return FileStore(root, segment_bytes=3000, journal_bytes=1000, cut_at_close=at_close, disk=disk)


async def use(store: FileStore, promised: Promised) -> None:
    """Several files a cut, snapshots between, pruning, a session with many files deleted and made again."""
    kept, gone = [await store.acquire(session, create=True) for session in promised.frames]
    for turn in range(1, 4):
        for lease in (kept, gone):
            push(store, lease, 12)
            await store.flush("synced")
            promised.frames[lease.session] = lease.appended_seq
            store.save(lease, lease.appended_seq, b"%d" % lease.appended_seq)
        if turn > 1:
            await cut_all(store)
        await store.saved(kept, 12 * turn)
        await store.saved(gone, 12 * turn)
        promised.snapshot = 12 * turn
    await store.prune(kept, [DROPPED])
    promised.deleting = True
    await store.delete(gone)
    promised.deleted = True
    push(store, kept, 1)
    await store.prune(kept, [DROPPED])
    await store.flush("synced")
    promised.frames["kept"] = 37


async def run_until_death(root: Path, dies_at: int | None) -> tuple[TroubledDisk, Promised]:
    disk, promised = TroubledDisk(dies_at=dies_at), Promised()
    store = small(root, disk)
    try:
        await store.open()
        await use(store, promised)
    except (Dead, NotDurable, StoreClosed, StoreCorrupt):  # what a dead disk does not read looks damaged
        pass
    finally:
        with contextlib.suppress(NotDurable):
            await store.close()
    return disk, promised


async def check_kept(store: FileStore, promised: Promised) -> None:
    lease = await store.acquire("kept", create=False)
    loaded = await store.load(lease)
    count = lease.appended_seq
    assert promised.frames["kept"] <= count <= promised.frames["kept"] + 12
    assert loaded.report.snapshot_seq >= promised.snapshot
    assert loaded.report.rejected == ()
    assert seqs(loaded) == list(range(loaded.report.snapshot_seq + 1, count + 1))
    found = ids(store.archive(lease).read(range(1, 100)))
    assert found[-1] == count
    assert set(found) >= set(range(DROPPED[1] + 1, count + 1))
    if not promised.deleting:
        assert set(found) >= set(range(1, min(count, DROPPED[1]) + 1)) or promised.snapshot == 36
    push(store, lease, 30)
    await store.prune(lease, [DROPPED])
    await cut_all(store)
    assert set(ids(store.archive(lease).read(range(1, 100)))) >= set(range(DROPPED[1] + 1, count + 31))


async def check_gone(store: FileStore, root: Path, promised: Promised) -> None:
    try:
        lease = await store.acquire("gone", create=False)
    except (SessionTombstoned, SessionUnknown):
        if promised.frames["gone"]:
            assert promised.deleting
            assert [path for path in root.rglob("gone-*") if path.is_file()] == []
        return
    assert not promised.deleted
    loaded = await store.load(lease)
    assert lease.appended_seq >= promised.frames["gone"]
    assert loaded.report.rejected == ()
    assert set(ids(store.archive(lease).read(range(1, 100)))) == set(range(1, lease.appended_seq + 1))
    await store.delete(lease)
    assert [path for path in root.rglob("gone-*") if path.is_file()] == []


async def test_dying_at_any_system_call_loses_no_record_no_snapshot_and_leaves_no_file(tmp_path, faults):
    disk, promised = await run_until_death(tmp_path / "whole", None)
    assert (promised.frames["kept"], promised.snapshot, promised.deleted) == (37, 36, True)
    assert {"rename", "unlink", "create", "sync_dir"} <= set(disk.calls)
    total = len(disk.calls)
    for dies_at in faults.some(range(1, total + 1)):
        root = tmp_path / str(dies_at)
        _, promised = await run_until_death(root, dies_at)
        async with opened(small(root, at_close=dies_at % 2 * 64), working=False) as store:
            if promised.frames["kept"]:
                await check_kept(store, promised)
            await check_gone(store, root, promised)
        if promised.frames["kept"]:
            async with opened(small(root), working=False) as store:
                loaded = await store.load(await store.acquire("kept", create=False))
                assert loaded.records[-1].seq >= promised.frames["kept"] + 30
        shutil.rmtree(root, ignore_errors=True)
    assert total > 200
