"""One directory, one store: a second process, a second store, an open that did not come to its end, a forked child."""

from __future__ import annotations

import asyncio
import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest

from session_actor.persistence import (
    FileStore,
    StoreLocked,
)

from .conformance import listed, opened, say
from .disks import TroubledDisk
from .test_file_store import some
from .test_writer import until


@pytest.fixture
def root(tmp_path) -> Path:
    return tmp_path / "store"


OTHER = """
import asyncio, sys
from session_actor.persistence import FileStore, StoreLocked

async def main():
    try:
        await FileStore(sys.argv[1], lock_timeout_s=float(sys.argv[2])).open()
    except StoreLocked as error:
        print("locked by", error.pid)
    else:
        print("opened")

asyncio.run(main())
"""


async def other_process(root: Path, timeout_s: float) -> str:
    child = await asyncio.create_subprocess_exec(
        sys.executable, "-c", OTHER, str(root), str(timeout_s), stdout=asyncio.subprocess.PIPE
    )
    out, _ = await child.communicate()
    return out.decode().strip()


async def test_a_second_process_is_told_at_once_who_has_the_store(root):
    async with opened(FileStore(root), working=False):
        assert await other_process(root, 0) == f"locked by {os.getpid()}"
    assert await other_process(root, 0) == "opened"


async def test_a_second_process_may_wait_until_the_first_lets_go(root):
    store = FileStore(root)
    await store.open()
    waiting = asyncio.ensure_future(other_process(root, 20))
    await asyncio.sleep(0.3)
    assert not waiting.done()
    await store.close()
    assert await waiting == "opened"


async def test_two_stores_of_one_process_do_not_share_a_directory(root):
    async with opened(FileStore(root), working=False) as store:
        with pytest.raises(StoreLocked):
            await FileStore(root).open()
        lease = await store.acquire("a", create=True)
        say(store, lease, "still there")
        await store.flush("synced")


async def test_a_failed_open_leaves_the_store_free_for_another(root):
    disk = TroubledDisk()
    disk.errors["rename"] = errno.EIO
    with pytest.raises(OSError, match="asked to fail"):
        await FileStore(root, disk=disk).open()
    await some(root)


async def test_a_cancelled_open_leaves_the_store_free_for_another(root):
    await some(root)
    disk = TroubledDisk()
    gate = disk.hold("list")
    opening = asyncio.ensure_future(FileStore(root, disk=disk).open())
    await until(disk.entered["list"].is_set)
    asyncio.get_running_loop().call_soon(gate.set)
    opening.cancel()
    with pytest.raises(asyncio.CancelledError):
        await opening
    async with opened(FileStore(root), working=False) as store:
        assert await listed(store) == ["user-42"]


FORKING = """
import asyncio, os, sys, warnings
from session_actor.persistence import FileStore, StoreClosed
warnings.simplefilter("ignore")

async def main():
    store = FileStore(sys.argv[1])
    await store.open()
    lease = await store.acquire("parent", create=True)
    store.append(lease, 1, 1, "said", b'{"text":"before"}', 10)
    await store.flush("synced")
    child = os.fork()
    if child == 0:
        try:
            store.admit("async")
        except StoreClosed:
            pass
        else:
            os._exit(1)
        try:
            store.append(lease, 2, 1, "said", b'{"text":"child"}', 10)
        except Exception:
            os._exit(0)
        os._exit(2)
    _, status = os.waitpid(child, 0)
    print("child", os.waitstatus_to_exitcode(status))
    store.append(lease, 2, 1, "said", b'{"text":"after"}', 10)
    await store.flush("synced")
    try:
        await FileStore(sys.argv[1]).open()
    except Exception as error:
        print(type(error).__name__)
    await store.close()

asyncio.run(main())
"""


async def test_a_forked_child_neither_writes_nor_frees_the_lock(root):
    done = subprocess.run(  # noqa: ASYNC221
        [sys.executable, "-c", FORKING, str(root)], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout.split() == ["child", "0", "StoreLocked"]
    async with opened(FileStore(root), working=False) as store:
        assert await said_raw(store, "parent") == [b'{"text":"before"}', b'{"text":"after"}']


async def said_raw(store: FileStore, session: str) -> list[bytes]:
    loaded = await store.load(await store.acquire(session, create=False))
    return [bytes(record.data) for record in loaded.records]
