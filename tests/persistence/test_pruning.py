"""Pruning on the disk: which files go, what stays, and what a disk that refuses leaves for the next time."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest

from session_actor.persistence import StoreCorrupt
from session_actor.persistence.snapshots.snapshot import decode_snapshot

from ..living import copy_living
from .conformance_snapshots import ids, save
from .conformance_tools import opened, push
from .disks import TroubledDisk
from .test_journal_files import cut_all, files, small
from .test_snapshots import other_sum, rot, slots, two_snapshots


@pytest.fixture
def root(tmp_path) -> Path:
    return tmp_path / "store"


async def test_pruning_removes_whole_files_and_leaves_two_snapshots(root):
    async with opened(small(root), working=False) as store:
        lease = await store.acquire("user-42", create=True)
        push(store, lease, 300)
        await cut_all(store)
        await save(store, lease)
        before = files(root)
        pruned = await store.prune(lease, [(1, 150)])
        left = files(root)
        assert 0 < pruned.files == len(before) - len(left) < len(before)
        assert pruned.size_bytes > 1000
        found = [decode_snapshot(path.read_bytes(), "")[1].seq for path in slots(root).values()]
        assert found == [300, 300]
        assert (await store.prune(lease, [(1, 150)])).files == 0
        kept = ids(store.archive(lease).read(range(1, 301)))
        assert kept[-150:] == list(range(151, 301))
        rotten = slots(root)["a"]
        rot(rotten)
        assert (await store.load(lease)).report.rejected == (str(rotten),)
        rot(slots(root)["b"])
        with pytest.raises(StoreCorrupt, match="pruned"):
            await store.load(lease)
        assert (await store.prune(lease, [(1, 300)])).files == 0


async def test_a_spoilt_older_snapshot_is_replaced_before_anything_is_pruned(root):
    async with opened(small(root), working=False) as store:
        lease = await two_snapshots(store, first=100, second=100)
        await cut_all(store)
        older = min(slots(root).values(), key=lambda path: decode_snapshot(path.read_bytes(), "")[1].seq)
        other_sum(older)
        assert (await store.prune(lease, [(1, 180)])).files > 0
        found = [decode_snapshot(path.read_bytes(), "")[1].seq for path in slots(root).values()]
        assert found == [200, 200]


async def test_files_that_could_not_be_removed_go_with_the_next_pruning(root):
    disk = TroubledDisk()
    async with opened(small(root, disk=disk), working=False) as store:
        lease = await store.acquire("user-42", create=True)
        push(store, lease, 300)
        await cut_all(store)
        await save(store, lease)
        before = files(root)
        disk.errors["unlink"] = errno.EIO
        assert (await store.prune(lease, [(1, 150)])).files > 0
        assert files(root) == before
        assert store.health().last_error is not None
        disk.errors.clear()
        copy = root.with_name("copy")
        await copy_living(root, copy)
        await store.prune(lease, [(1, 150)])
        assert len(files(root)) < len(before)
    async with opened(small(copy), working=False) as store:
        lease = await store.acquire("user-42", create=False)
        await store.load(lease)
        await store.delete(lease)
    assert files(copy) == []
