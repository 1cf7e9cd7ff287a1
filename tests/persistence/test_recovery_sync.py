"""What a process that died had written is made durable before anything is built upon it, and not by a sync alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from session_actor.persistence import FileStore, NotDurable
from session_actor.persistence.checking.verify import check

from .conformance import opened, said, say
from .disks import CachedDisk, Kernel


@pytest.fixture
def root(tmp_path) -> Path:
    return tmp_path / "store"


async def die_after(root: Path, kernel: Kernel, *, sync_fails: bool) -> None:
    """A process that wrote `synced`, and `written` behind it, whose sync failed or never came."""
    disk = CachedDisk(kernel)
    store = FileStore(root, disk=disk)
    await store.open()
    lease = await store.acquire("user-42", create=True)
    say(store, lease, "synced")
    await store.flush("synced")
    say(store, lease, "written")
    await store.flush("written")
    disk.sync_fails = sync_fails
    if sync_fails:
        with pytest.raises(NotDurable):
            await store.flush("synced")
    disk.dead = True
    with pytest.raises(NotDurable):
        await store.close()


@pytest.mark.parametrize("sync_fails", [False, True])
async def test_a_record_acknowledged_after_a_crash_survives_a_loss_of_power_with_all_before_it(root, sync_fails):
    kernel = Kernel()
    await die_after(root, kernel, sync_fails=sync_fails)
    disk = CachedDisk(kernel)
    store = FileStore(root, disk=disk)
    await store.open()
    lease = await store.acquire("user-42", create=False)
    assert await said(store, lease) == ["synced", "written"]
    say(store, lease, "later")
    await store.flush("synced")
    disk.dead = True
    await store.close()
    kernel.lose_power(root)
    async with opened(FileStore(root), working=False) as again:
        assert await said(again, await again.acquire("user-42", create=False)) == ["synced", "written", "later"]


async def test_the_kernel_here_loses_what_is_synced_only_after_a_failed_sync(root):
    kernel = Kernel()
    root.mkdir()
    disk = CachedDisk(kernel, sync_fails=True)
    file = disk.open(f"{root}/a.ndjson", create=True)
    file.write(b"lost", 0)
    with pytest.raises(OSError, match="the disk refused"):
        file.sync()
    file.close()
    again = CachedDisk(kernel).open(f"{root}/a.ndjson", write=True)
    again.write(b"kept", 4)
    again.sync()
    assert again.read(0, 8) == b"lostkept"
    again.close()
    kernel.lose_power(root)
    assert (root / "a.ndjson").read_bytes() == b"\0\0\0\0kept"


async def test_what_comes_behind_a_watermark_whose_sync_was_refused_survives_a_loss_of_power(root):
    kernel = Kernel()
    for session, text, ending in [("user-42", "synced", "sync_fails"), ("user-43", "later", "dead")]:
        disk = CachedDisk(kernel)
        store = FileStore(root, disk=disk, cut_at_close=0)
        await store.open()
        say(store, await store.acquire(session, create=True), text)
        await store.flush("synced")
        setattr(disk, ending, True)
        await store.close()
    kernel.lose_power(root)
    assert not check(root).damaged
    async with opened(FileStore(root), working=False) as again:
        assert await said(again, await again.acquire("user-42", create=False)) == ["synced"]
        assert await said(again, await again.acquire("user-43", create=False)) == ["later"]
