"""Real file systems in trouble: full, failing, read-only, limited, interrupted."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import fcntl
import os
import resource
import shutil
import struct
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from session_actor import (
    FileStore,
    NotDurable,
    SessionActorError,
    SessionService,
    StoreDegraded,
    StoreLocked,
    StoreUnusable,
)
from session_actor.persistence.cutting import cutter

from .loaded_disks import Load, check, found_in, until
from .mounts import ext4, fill, make_ext4, need_mounts, run, tmpfs, write_single_pages

MB = 1 << 20
SEGMENT_BYTES = 128 * 1024
EXT4_IOC_SHUTDOWN = 0x8004587D
NO_FLUSH = 2


@pytest.fixture(autouse=True)
def mounts():
    need_mounts()


# --- full -------------------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def small_disk(tmp_path: Path, kind: str) -> Iterator[Path]:
    if kind == "tmpfs":
        with tmpfs(tmp_path / "disk", 24 * MB) as disk:
            yield disk
    else:
        make_ext4(tmp_path / "image", 24 * MB)
        with ext4(tmp_path / "image", tmp_path / "disk") as disk:
            yield disk


@pytest.mark.parametrize("kind", ["tmpfs", "ext4"])
async def test_a_store_opens_on_a_full_disk_to_be_read_and_goes_on_when_there_is_room(tmp_path, kind):
    with small_disk(tmp_path, kind) as disk:
        async with SessionService.open(disk / "store") as service:
            await (await service.session("a", create=True)).push("before", "")
        fill(disk / "filler")
        async with SessionService.open(disk / "store") as service:
            session = await service.session("a")
            assert [frame.user_input for frame in await session.stack()] == ["before"]
            with pytest.raises(NotDurable, match="No space left"):
                await session.push("refused", "", durability="synced")
            with pytest.raises(StoreLocked, match="in use by"):  # by whom, if the disk took the pid
                await SessionService.open(disk / "store").start()
            (disk / "filler").unlink()
            await until(lambda: service.health().store.degraded_since_us is None)
            await session.push("after", "", durability="synced")
        assert await found_in(disk / "store") == {"a": ["before", "refused", "after"]}


@pytest.mark.timeout(300)
@pytest.mark.parametrize("kind", ["tmpfs", "ext4"])
async def test_a_disk_that_is_full_for_a_while_costs_nothing_but_refusals(tmp_path, kind, faults):
    full_s = 60 if faults.scale == 1 and kind == "ext4" else 2
    with small_disk(tmp_path, kind) as disk:
        store = FileStore(disk / "store", segment_bytes=SEGMENT_BYTES, backlog_bytes=MB)
        async with SessionService.open(store, durability="synced") as service:
            load = Load(service)
            running = asyncio.ensure_future(load.run())
            await until(lambda: service.health().store.last_cut_us is not None)
            fill(disk / "filler")
            await until(lambda: service.health().store.degraded_since_us is not None)
            begun_s, reads = time.monotonic(), load.reads
            await asyncio.sleep(full_s)
            assert load.reads > reads + 10
            assert load.refused > 0
            health = service.health()
            assert health.degraded_s > full_s / 2
            assert "No space left" in health.store.last_error
            (disk / "filler").unlink()
            await until(lambda: service.health().store.degraded_since_us is None)
            pushed = sum(map(len, load.acknowledged.values()))
            await until(lambda: sum(map(len, load.acknowledged.values())) > pushed + 100)
            load.goes_on = False
            await running
            assert load.most_waiting_bytes < 2 * MB
            assert time.monotonic() - begun_s > full_s
        check(load, await found_in(disk / "store"))


async def push_until_refused(service: SessionService, texts: list[str], *, most: int = 1_000) -> None:
    """The last text may be there without having been acknowledged: it is pushed again with its key."""
    session = await service.session("a", create=True)
    with contextlib.suppress(NotDurable, StoreDegraded):
        while len(texts) < most:
            text = str(len(texts))
            await session.push(text, "x" * 50_000, key=text)
            texts.append(text)


async def push_at_last(service: SessionService, texts: list[str]) -> None:
    """Push until one more is acknowledged."""
    count = len(texts)
    async with asyncio.timeout(20):
        while len(texts) == count:
            await push_until_refused(service, texts)
            await asyncio.sleep(0.02)


@pytest.mark.parametrize("kind", ["tmpfs", "ext4"])
@pytest.mark.parametrize("room_bytes", [MB // 4, MB, 5 * MB])
async def test_a_store_goes_on_with_whatever_room_is_made_on_a_full_disk(tmp_path, kind, room_bytes):
    with small_disk(tmp_path, kind) as disk:
        texts: list[str] = []
        service = SessionService.open(disk / "store", durability="synced", close_timeout_s=2)
        await service.start()
        await push_until_refused(service, texts, most=60)
        fill(disk / "filler")
        assert (disk / "filler").stat().st_size >= room_bytes
        for _ in range(10):
            await push_until_refused(service, texts)
            await asyncio.sleep(0.02)
        fill(disk / "rest")
        os.truncate(disk / "filler", max(0, (disk / "filler").stat().st_size - room_bytes))
        os.truncate(disk / "rest", 0)
        await push_at_last(service, texts)
        with contextlib.suppress(SessionActorError):
            await service.close()
        for name in ("filler", "rest"):
            (disk / name).unlink()
        found = await found_in(disk / "store")
        assert found["a"][: len(texts)] == texts
        assert len(found["a"]) <= len(texts) + 1


@pytest.mark.parametrize("how", ["closed", "killed"])
async def test_a_store_that_ended_on_a_full_disk_goes_on_with_the_room_that_it_had_preallocated(tmp_path, how):
    with small_disk(tmp_path, "tmpfs") as disk, tmpfs(tmp_path / "other", 24 * MB) as other:
        texts: list[str] = []
        service = SessionService.open(disk / "store", durability="synced", close_timeout_s=2)
        await service.start()
        session = await service.session("a", create=True)
        for text in map(str, range(20)):
            await session.push(text, "x" * 50_000, key=text)
            texts.append(text)
        if how == "killed":
            shutil.copytree(disk / "store", other / "store")
            fill(other / "filler")
        else:
            fill(disk / "filler")
        with contextlib.suppress(SessionActorError):
            await service.close()
        folder = other if how == "killed" else disk
        service = SessionService.open(folder / "store", durability="synced", close_timeout_s=2)
        await service.start()
        await push_at_last(service, texts)
        with contextlib.suppress(SessionActorError):
            await service.close()
        (folder / "filler").unlink()
        assert (await found_in(folder / "store"))["a"][: len(texts)] == texts


async def test_a_file_size_limit_makes_short_writes_and_no_false_acknowledgement(tmp_path):
    """A write that crosses the limit is cut short by the kernel, and the next one fails."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    store = FileStore(tmp_path / "store", segment_bytes=SEGMENT_BYTES)
    try:
        async with SessionService.open(store, durability="synced") as service:
            load = Load(service)
            running = asyncio.ensure_future(load.run())
            await until(lambda: service.health().store.last_cut_us is not None)
            resource.setrlimit(resource.RLIMIT_FSIZE, (SEGMENT_BYTES // 2, hard))
            await until(lambda: service.health().store.degraded_since_us is not None)
            await until(lambda: load.refused > 20)
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
            await until(lambda: service.health().store.degraded_since_us is None)
            load.goes_on = False
            await running
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    check(load, await found_in(tmp_path / "store"))


# --- failing ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("allocation", ["clusters", "blocks"])
async def test_a_disk_whose_syncs_fail_and_then_say_ok_over_lost_pages_makes_no_false_acknowledgement(
    tmp_path, monkeypatch, allocation
):
    """An image without a journal on a full file system: its writes fail behind the page cache, as on a bad disk.

    A copy is what a loss of power leaves: at once, and when refused cuts are made. With single blocks the latter alone:
    the block that says where a grown file's bytes are may be lost, older bytes with it; a cluster needs none for it.
    """
    monkeypatch.setattr(cutter, "RETRY_S", 0.2)
    features = ["^has_journal", *(["bigalloc"] if allocation == "clusters" else [])]
    at_once, later = tmp_path / "at once", tmp_path / "later"
    with tmpfs(tmp_path / "below", 24 * MB) as below:
        make_ext4(below / "image", 20 * MB, *features)
        with ext4(below / "image", tmp_path / "disk") as disk:
            write_single_pages(below / "image")
            told: set[str] = set()
            store = FileStore(disk / "store", segment_bytes=SEGMENT_BYTES, on_event=lambda event: told.add(event.name))
            async with SessionService.open(store, durability="synced", close_timeout_s=5) as service:
                load = Load(service)
                running = asyncio.ensure_future(load.run())
                for _ in range(3):
                    before = sum(map(len, load.acknowledged.values()))
                    await until(lambda before=before: sum(map(len, load.acknowledged.values())) > before + 300)
                    fill(below / "filler")
                    await until(lambda: service.health().store.degraded_since_us is not None)
                    await asyncio.sleep(0.3)
                    (below / "filler").unlink()
                    with contextlib.suppress(TimeoutError):
                        await until(lambda: service.health().store.degraded_since_us is None, 10)
                load.goes_on = False
                await running
                acknowledged = {name: list(texts) for name, texts in load.acknowledged.items()}
                await copy_at_one_moment(store, below / "image", at_once)
                await until(lambda: service.health().store.live_segments <= 1)
                await copy_at_one_moment(store, below / "image", later)
                assert {"sync_failed", "taken_over", "degraded", "healthy"} <= told
                assert load.not_durable > 0
        load.acknowledged = acknowledged
        for copy in [later, *([at_once] if allocation == "clusters" else [])]:
            with contextlib.suppress(Exception):
                run("e2fsck", "-fy", copy)
            with ext4(copy, tmp_path / f"found {copy.name}") as found:
                check(load, await found_in(found / "store"))


async def copy_at_one_moment(store: FileStore, image: Path, copy: Path) -> None:
    async with store._engine.alone():
        shutil.copyfile(image, copy)


def shut_down(disk: Path) -> None:
    """Have a file system fail from now on, with what it did not write lost."""
    descriptor = os.open(disk, os.O_RDONLY)
    try:
        fcntl.ioctl(descriptor, EXT4_IOC_SHUTDOWN, struct.pack("I", NO_FLUSH))
    except OSError as error:
        pytest.skip(f"this kernel does not shut down a file system: {error}")
    finally:
        os.close(descriptor)


async def test_a_file_system_that_is_shut_down_acknowledges_nothing_and_serves_what_it_has(tmp_path):
    """Between two syncs: of one that is under way meanwhile ext4 may say OK and lose its pages."""
    make_ext4(tmp_path / "image", 24 * MB)
    with ext4(tmp_path / "image", tmp_path / "disk") as disk:
        store = FileStore(disk / "store", segment_bytes=SEGMENT_BYTES)
        service = SessionService.open(store, durability="synced", close_timeout_s=2)
        await service.start()
        load = Load(service)
        running = asyncio.ensure_future(load.run())
        await until(lambda: sum(map(len, load.acknowledged.values())) > 200)
        load.goes_on = False
        await running
        async with store._engine.alone():
            shut_down(disk)
        load.goes_on = True
        running = asyncio.ensure_future(load.run())
        await until(lambda: service.health().store.degraded_since_us is not None)
        reads = load.reads
        await until(lambda: load.reads > reads + 20 and load.refused > 20)
        load.goes_on = False
        await running
        with pytest.raises(SessionActorError):
            await service.close()
    with ext4(tmp_path / "image", tmp_path / "again") as again:
        check(load, await found_in(again / "store"))


# --- read-only --------------------------------------------------------------------------------------------------------


async def test_a_read_only_file_system_is_refused_at_open_and_usable_when_it_is_writable_again(tmp_path):
    make_ext4(tmp_path / "image", 24 * MB)
    with ext4(tmp_path / "image", tmp_path / "disk") as disk:
        async with SessionService.open(disk / "store") as service:
            await (await service.session("a", create=True)).push("before", "")
        run("mount", "-o", "remount,ro", disk)
        with pytest.raises(StoreUnusable, match="Read-only file system"):
            await SessionService.open(disk / "store").start()
        run("mount", "-o", "remount,rw", disk)
        assert await found_in(disk / "store") == {"a": ["before"]}


async def test_a_file_system_that_turns_read_only_underneath_refuses_changes_and_serves_reads(tmp_path):
    """As ext4 does after an error of its own (errors=remount-ro)."""
    make_ext4(tmp_path / "image", 24 * MB)
    with ext4(tmp_path / "image", tmp_path / "disk", "errors=remount-ro") as disk:
        service = SessionService.open(disk / "store", durability="synced", close_timeout_s=2)
        await service.start()
        session = await service.session("a", create=True)
        await session.push("before", "")
        run("mount", "-o", "remount,abort", disk)
        with pytest.raises(SessionActorError):
            await session.push("in flight", "")
        await until(lambda: service.health().store.degraded_since_us is not None)
        with pytest.raises(StoreDegraded):
            await session.push("refused", "", durability="async")
        assert [frame.user_input for frame in await session.stack()] == ["before", "in flight"]
        error = service.health().store.last_error
        assert os.strerror(errno.EROFS) in error or os.strerror(errno.EIO) in error
        with pytest.raises(SessionActorError):
            await service.close()
    with ext4(tmp_path / "image", tmp_path / "again") as again:
        assert (await found_in(again / "store"))["a"][:1] == ["before"]
