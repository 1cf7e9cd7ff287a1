"""A cut that runs while the store is listed, or closed."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path

from session_actor.persistence import FileStore
from session_actor.persistence.cutting import cutter as cutter_module

from .conformance_tools import push
from .disks import TroubledDisk


async def leftover(root: Path, sessions: list[str]) -> None:
    """Leave a store with a segment that the next open will cut."""
    store = FileStore(root, cut_at_close=0)
    await store.open()
    for session in sessions:
        lease = await store.acquire(session, create=True)
        store.append(lease, 1, 1, "made", b"{}", 2)
    await store.close()


async def test_a_listing_whose_reader_takes_its_time_misses_no_session_that_a_cut_moves(tmp_path: Path):
    sessions = [f"s{number}" for number in range(20)]
    await leftover(tmp_path / "store", sessions)
    store = FileStore(tmp_path / "store")
    await store.open()
    cutter = asyncio.ensure_future(store.workers()["cutter"]())
    try:
        listed: list[str] = []
        async for info in store.sessions():
            listed.append(info.id)
            while not listed[1:] and store.health().last_cut_us is None:  # noqa: ASYNC110 - it comes in its thread
                await asyncio.sleep(0.001)  # the cut comes between the first session and the rest
        assert listed == sorted(sessions)
    finally:
        cutter.cancel()
        await asyncio.gather(cutter, return_exceptions=True)
        await store.close()


async def test_what_was_left_in_the_log_is_not_cut_while_its_sessions_are_loaded_at_once(tmp_path: Path, monkeypatch):
    """They are waited for; what is sealed from then on is cut, and with it what was left."""
    monkeypatch.setattr(cutter_module, "CALM_S", 3_600.0)
    sessions = [f"s{number}" for number in range(20)]
    await leftover(tmp_path / "store", sessions)
    store = FileStore(tmp_path / "store")
    await store.open()
    cutter = asyncio.ensure_future(store.workers()["cutter"]())
    try:
        for session in sessions:
            lease = await store.acquire(session, create=False)
            assert len((await store.load(lease)).records) == 1
        assert store.health().last_cut_us is None
        assert store._engine is not None
        store._engine.cutter.wake()
        while store.health().last_cut_us is None:  # noqa: ASYNC110 - it comes in its thread
            await asyncio.sleep(0.001)
        assert store.health().live_segments == 0
    finally:
        cutter.cancel()
        await asyncio.gather(cutter, return_exceptions=True)
        await store.close()


async def test_what_was_left_in_the_log_is_cut_when_it_is_calm(tmp_path: Path, monkeypatch):
    monkeypatch.setattr(cutter_module, "CALM_S", 0.01)
    await leftover(tmp_path / "store", ["a"])
    store = FileStore(tmp_path / "store")
    await store.open()
    cutter = asyncio.ensure_future(store.workers()["cutter"]())
    try:
        while store.health().last_cut_us is None:  # noqa: ASYNC110 - it comes in its thread
            await asyncio.sleep(0.001)
    finally:
        cutter.cancel()
        await asyncio.gather(cutter, return_exceptions=True)
        await store.close()


async def test_closing_while_a_cut_is_committed_is_quiet_and_loses_nothing(tmp_path: Path):
    complaints: list[object] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: complaints.append(context))
    sessions = [f"s{number}" for number in range(5)]
    for turns in range(12):
        root = tmp_path / str(turns)
        await leftover(root, sessions)
        store = FileStore(root)
        await store.open()
        cutter = asyncio.ensure_future(store.workers()["cutter"]())
        for _ in range(turns):
            await asyncio.sleep(0.0005)
        cutter.cancel()
        await store.close()
        await asyncio.gather(cutter, return_exceptions=True)
        await asyncio.sleep(0)
        again = FileStore(root)
        await again.open()
        assert [info.id async for info in again.sessions()] == sessions
        await again.close()
    assert complaints == []


async def test_a_close_that_is_given_up_while_it_tidies_leaves_a_watermark(tmp_path: Path):
    """What was synced is shown to be so, however little time there was."""
    disk = TroubledDisk()
    store = FileStore(tmp_path / "store", disk=disk)
    await store.open()
    lease = await store.acquire("a", create=True)
    push(store, lease, 3)
    await store.flush("synced")
    store.save(lease, 3, b"{}")
    gate = disk.hold("rename")
    closing = asyncio.ensure_future(store.close())
    while not disk.entered["rename"].is_set():  # noqa: ASYNC110 - it is another thread that comes there
        await asyncio.sleep(0.001)
    closing.cancel()
    threading.Timer(0.05, gate.set).start()
    await asyncio.gather(closing, return_exceptions=True)
    (segment,) = (tmp_path / "store" / "log").glob("0*.ndjson")
    lines = segment.read_bytes().splitlines(keepends=True)
    assert lines[-1].startswith(b'{"w":%d,' % (len(b"".join(lines[:-1]))))
