"""One store, one owner: threads, and what a forked child has of its parent's store."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import threading
from pathlib import Path

from session_actor import FileStore, SessionService, StoreLocked
from session_actor.persistence.lock import StoreLock


def test_of_two_threads_that_open_one_store_one_is_refused(tmp_path):
    outcomes: list[str] = []
    both_tried = threading.Barrier(2)

    async def use() -> None:
        try:
            async with SessionService.open(tmp_path / "store") as service:
                await (await service.session(threading.current_thread().name, create=True)).push("mine", "")
                outcomes.append("opened")
                await asyncio.to_thread(both_tried.wait, 20)
        except StoreLocked as error:
            outcomes.append(f"refused for {error.pid}")
            await asyncio.to_thread(both_tried.wait, 20)

    threads = [threading.Thread(target=asyncio.run, args=(use(),)) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert sorted(outcomes) == ["opened", f"refused for {os.getpid()}"]
    assert len(asyncio.run(ids(tmp_path / "store"))) == 1


async def ids(folder: Path) -> list[str]:
    async with SessionService.open(folder) as service:
        return [info.id async for info in service.sessions()]


def in_child(work) -> dict[str, object]:
    """What `work()` returns in a forked child."""
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            os.write(writer, json.dumps(work()).encode())
            code = 0
        finally:
            os._exit(code)
    os.close(writer)
    with os.fdopen(reader, "rb") as told:
        found = told.read()
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    return json.loads(found)


def descriptors(folder: Path) -> list[str]:
    """Names of the files below a folder that this process has open."""
    found: list[str] = []
    for descriptor in Path("/proc/self/fd").iterdir():
        with contextlib.suppress(OSError):  # the listing's own descriptor is gone by now
            target = descriptor.readlink()
            found += [target.name] if target.is_relative_to(folder) else []
    return found


async def test_a_forked_child_has_no_lock_frees_none_writes_nothing_and_is_told_that_the_service_is_closed(tmp_path):
    """Also while records are queued: the parent alone writes them."""
    folder = tmp_path / "store"
    async with SessionService.open(folder) as service:
        session = await service.session("a", create=True)
        await session.push("before", "", durability="synced")
        await session.push("queued", "")
        before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}

        def child() -> dict[str, object]:
            told = {}
            try:
                service.health()
                told["health"] = "answered"
            except Exception as error:  # noqa: BLE001
                told["health"] = type(error).__name__
            told["free"] = StoreLock(folder / "LOCK").try_acquire()
            told["lock"] = "LOCK" in descriptors(folder)
            told["changed"] = [
                path.name for path, data in before.items() if path.suffix != ".db" and path.read_bytes() != data
            ]
            return told

        told = in_child(child)
        assert told["free"] is False
        assert told["lock"] is False
        assert told["changed"] == []
        assert not StoreLock(folder / "LOCK").try_acquire()
        await session.push("after", "", durability="synced")
        assert [frame.user_input for frame in await session.stack()] == ["before", "queued", "after"]
    async with SessionService.open(folder) as service:
        stack = await (await service.session("a")).stack()
        assert [frame.user_input for frame in stack] == ["before", "queued", "after"]


async def test_a_child_that_is_forked_during_a_write_does_not_keep_the_store_from_its_parent_s_heir(tmp_path):
    """The child lives on when the parent has closed the store: another process can open it all the same."""
    folder = tmp_path / "store"
    store = FileStore(folder)
    async with SessionService.open(store) as service:
        await (await service.session("a", create=True)).push("before", "")
        reader, writer = os.pipe()
        pid = os.fork()
        if pid == 0:
            os.close(writer)
            os.read(reader, 1)
            os._exit(0)
        os.close(reader)
    try:
        assert await ids(folder) == ["a"]
    finally:
        os.close(writer)
        assert os.waitpid(pid, 0)[1] == 0  # noqa: ASYNC222 - it ends at once
