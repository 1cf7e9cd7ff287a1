"""A store whose process was killed is opened on a full disk: all that was written is read, and none of it is lost."""

from __future__ import annotations

import contextlib
import errno
from random import Random

import pytest

from session_actor.persistence import FileStore, NotDurable, PersistenceError, StoreDegraded
from session_actor.persistence.recovery import segment_scans

from ..simulation.disk import Fault, SimDisk
from ..simulation.image import Image
from ..simulation.life import ROOT, new_image
from ..simulation.loop import simulated
from ..simulation.model import texts_of
from .conformance_tools import said, say

LOSSES = 20
PATIENCE_S = 20


class Losing(Random):
    """All of what a refused sync was to make durable is lost, and later syncs of the file do nothing."""

    def choice(self, seq):
        return seq[0]

    def random(self):
        return 0.0


def small(disk: SimDisk) -> FileStore:
    return FileStore(ROOT, segment_bytes=4000, disk=disk)


async def killed(synced: int, written: int, *, refused: bool = False) -> tuple[Image, list[str]]:
    """What a process leaves that was killed, and what it had written. `refused`: its last sync was."""
    image = new_image()
    disk = SimDisk(image)
    disk.chance = Losing(0)
    store = small(disk)
    await store.open()
    lease = await store.acquire("a", create=True)
    for number in range(synced + written):
        say(store, lease, f"{number} {'x' * 200}")
        await store.flush("synced" if number < synced else "written")
    texts = list(await texts_of(store, lease))
    if refused:
        disk.faults.append(Fault(disk.calls + 1, 1_000_000_000, errno.EIO, frozenset({"sync", "create"})))
        with pytest.raises(NotDurable):
            await store.flush("synced")
    left = image.copy()
    disk.die()
    with contextlib.suppress(PersistenceError, OSError):
        await store.close()
    return left, texts


def full(image: Image, *, taken: bool = False) -> SimDisk:
    """There is no room for anything more. `taken`: but what the log took before and does not need."""
    disk = SimDisk(image)
    for name in list(image.folder(f"{ROOT}/log").names):
        if not name.endswith(".ndjson"):
            disk.unlink(f"{ROOT}/log/{name}")
    for inode in image.files().values():
        if not taken:
            inode.change(len(inode.content().rstrip(b"\0")), None)
    disk.room_bytes = image.size_bytes()
    return disk


async def held(image: Image) -> list[str]:
    """What is there for whoever opens the store."""
    store = small(SimDisk(image))
    await store.open()
    try:
        return list(await texts_of(store, await store.acquire("a", create=False)))
    finally:
        store._engine.let_go()


@pytest.mark.parametrize(("synced", "written"), [(0, 3), (4, 1), (4, 40), (30, 3)])
def test_it_is_read_and_takes_nothing_until_there_is_room_and_then_all_of_it_is_made_durable(synced, written):
    with simulated(1) as (loop, _):

        async def live() -> None:
            image, texts = await killed(synced, written)
            disk = full(image)
            before = {path: inode.content() for path, inode in image.files().items() if "/log/" in path}
            store = small(disk)
            await store.open()
            lease = await store.acquire("a", create=False)
            assert await texts_of(store, lease) == tuple(texts)
            assert {path: inode.content() for path, inode in image.files().items() if "/log/" in path} == before
            with pytest.raises(StoreDegraded):
                store.admit("async")
            assert lease.synced_seq < lease.written_seq == len(texts)
            with pytest.raises(NotDurable):
                await store.flush("synced")
            assert await held(image.copy()) == texts
            disk.room_bytes = None
            await store.flush("synced")
            store.admit("async")
            assert lease.synced_seq == len(texts)
            say(store, lease, "more")
            await store.flush("synced")
            for number in range(LOSSES):
                assert await held(image.crash(Random(number))) == [*texts, "more"]
            await store.close()
            assert await held(image) == [*texts, "more"]

        loop.run(live())


def test_a_loss_of_power_damages_nothing_though_the_last_sync_of_the_killed_process_was_refused():
    """Were it written to the same file again, each sync would say OK, and what comes behind would miss it."""
    with simulated(1) as (loop, _):

        async def live() -> None:
            image, texts = await killed(4, 3, refused=True)
            disk = full(image, taken=True)
            store = small(disk)
            await store.open()
            disk.room_bytes = None
            lease = await store.acquire("a", create=False)
            with contextlib.suppress(NotDurable):
                await store.flush("synced")
            say(store, lease, "more")
            await store.flush("synced")
            for number in range(LOSSES):
                assert await held(image.crash(Random(number))) == [*texts, "more"]
            await store.close()

        loop.run(live())


def test_dying_or_losing_power_at_any_call_of_it_loses_nothing():
    with simulated(1) as (loop, _):

        async def live() -> None:
            image, texts = await killed(4, 20)
            disk = full(image)
            left: list[tuple[Image, int]] = []

            def watch(_: str) -> None:
                left.append((image.copy(), len(texts)))
                left.append((image.crash(Random(len(left))), 4))

            disk.watch = watch
            store = small(disk)
            await store.open()
            disk.room_bytes = None
            await store.flush("synced")
            await store.close()
            assert len(left) > 20
            for each, least in left:
                found = await held(each)
                assert found == texts[: len(found)]
                assert len(found) >= least

        loop.run(live())


def test_a_torn_end_that_cannot_be_kept_aside_is_told_and_keeps_no_store_from_being_opened():
    with simulated(1) as (loop, _):

        async def live() -> None:
            image, texts = await killed(4, 0)
            (path,) = [path for path in image.files(f"{ROOT}/log") if path.endswith(".ndjson")]
            disk = full(image)
            file = disk.open(path, write=True)
            disk.room_bytes = None
            file.write(b'{"w":', file.size())
            disk.room_bytes = image.size_bytes()
            told = []
            store = FileStore(ROOT, segment_bytes=4000, disk=disk, on_event=told.append)
            await store.open()
            assert await texts_of(store, await store.acquire("a", create=False)) == tuple(texts)
            (torn,) = store._recovered.torn
            assert (torn.size_bytes, torn.kept_at) == (5, None)
            assert "torn" in {event.name for event in told}
            with contextlib.suppress(NotDurable):
                await store.close()
            assert await held(image) == texts

        loop.run(live())


async def test_no_more_of_a_log_is_held_than_may_be_and_all_of_it_is_read(tmp_path, monkeypatch):
    root = tmp_path / "store"
    store = FileStore(root, segment_bytes=4000, cut_at_close=0)
    await store.open()
    lease = await store.acquire("a", create=True)
    for number in range(100):
        say(store, lease, f"{number} {'x' * 200}")
        await store.flush("synced")
    await store.close()
    for held_bytes in (1 << 30, 10_000, 0):
        monkeypatch.setattr(segment_scans, "HELD_BYTES", held_bytes)
        store = FileStore(root, segment_bytes=4000, cut_at_close=0)
        await store.open()
        sealed = store._engine.log.sealed
        kept = sum(len(segment.data or b"") for segment in sealed)
        assert len(sealed) > 5
        assert (kept > 20_000) if held_bytes == 1 << 30 else (kept <= held_bytes)
        assert len(await said(store, await store.acquire("a", create=False))) == 100
        await store.close()
    monkeypatch.setattr(segment_scans, "HELD_BYTES", 10_000)
    store = FileStore(root, segment_bytes=4000)
    await store.open()
    while await store._engine.cutter.cut():
        pass
    assert len(await said(store, await store.acquire("a", create=False))) == 100
    await store.close()
