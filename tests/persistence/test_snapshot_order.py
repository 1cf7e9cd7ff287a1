"""A snapshot is never on the disk before the records that it covers."""

from __future__ import annotations

import asyncio
from pathlib import Path

from session_actor.persistence import FileStore

from .conformance_tools import opened, say
from .disks import TroubledDisk


def snapshots(root: Path) -> list[Path]:
    return [path for path in (root / "snapshots").rglob("*") if path.is_file()]


async def test_a_snapshot_waits_for_the_sync_of_its_records(tmp_path):
    root, disk = tmp_path / "store", TroubledDisk()
    async with opened(FileStore(root, disk=disk)) as store:
        lease = await store.acquire("user-42", create=True)
        gate = disk.hold("sync")
        say(store, lease, "one", "two")
        store.save(lease, 2, b"{}")
        saved = asyncio.ensure_future(store.saved(lease, 2))
        await asyncio.to_thread(disk.entered["sync"].wait, 20)
        assert snapshots(root) == []
        assert not saved.done()
        gate.set()
        await saved
        assert lease.synced_seq == 2
        assert len(snapshots(root)) == 1


async def test_a_snapshot_is_synced_before_it_has_its_name_and_its_name_before_it_counts(tmp_path):
    root, disk = tmp_path / "store", TroubledDisk()
    async with opened(FileStore(root, disk=disk)) as store:
        lease = await store.acquire("user-42", create=True)
        say(store, lease, "one")
        await store.flush("synced")
        disk.calls.clear()
        store.save(lease, 1, b"{}")
        await store.saved(lease, 1)
        calls = [call for call in disk.calls if call in {"write", "sync", "rename", "sync_dir"}]
        assert calls[:4] == ["write", "sync", "rename", "sync_dir"]
