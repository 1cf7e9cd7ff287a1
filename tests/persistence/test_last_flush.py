"""What closing writes: a try that fails, and was begun before the store was closed, is not the last one."""

from __future__ import annotations

import asyncio
import errno
import threading
from pathlib import Path

import pytest

from session_actor.persistence import FileStore, NotDurable

from .conformance_tools import said, say
from .disks import TroubledDisk


class FailsLate(TroubledDisk):
    """The next call of a kind fails, when it is let go on; those that follow are made."""

    def __init__(self) -> None:
        super().__init__()
        self.late: str | None = None
        self.begun, self.goes_on = threading.Event(), threading.Event()

    def reach(self, call: str, path: str = "") -> None:
        if call == self.late:
            self.late = None
            self.begun.set()
            assert self.goes_on.wait(20)
            raise OSError(errno.ENOSPC, "asked to fail", path)
        super().reach(call, path)


@pytest.mark.parametrize("call", ["write", "sync"])
async def test_what_fails_when_closing_had_begun_is_tried_again(tmp_path: Path, call: str):
    disk = FailsLate()
    store = FileStore(tmp_path, disk=disk)
    await store.open()
    lease = await store.acquire("user-42", create=True)
    say(store, lease, "0")
    await store.flush("synced")
    disk.late = call
    for number in range(1, 200):  # so many that a thread writes them
        say(store, lease, str(number))
    store.reach("synced")
    await asyncio.to_thread(disk.begun.wait, 20)
    closing = asyncio.ensure_future(store.close())
    await asyncio.sleep(0.01)
    disk.goes_on.set()
    await closing
    again = FileStore(tmp_path)
    await again.open()
    assert len(await said(again, await again.acquire("user-42", create=False))) == 200
    await again.close()


async def test_a_disk_that_fails_for_good_is_told_when_the_store_is_closed(tmp_path: Path):
    disk = TroubledDisk()
    store = FileStore(tmp_path, disk=disk)
    await store.open()
    lease = await store.acquire("user-42", create=True)
    disk.errors["write"] = errno.ENOSPC
    say(store, lease, "0")
    with pytest.raises(NotDurable):
        await store.close()
    assert store.unsynced == 1
