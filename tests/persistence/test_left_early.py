"""A segment of the log is left before it is full, as a handover does, and the disk refuses what that takes."""

from __future__ import annotations

import asyncio
import errno
import time

import pytest

from session_actor.persistence import FileStore
from session_actor.persistence.files.storage import OsDisk

from ..living import copy_living
from .conformance_tools import opened
from .stores import SMALL, kinds, push, segments, verified

ROOMY = {"cut_at_close": 0, "segment_bytes": 200_000}


class Refusing(OsDisk):
    """Refuses what a test says, before or after it was done."""

    late_rename: BaseException | None = None
    full = False

    def rename(self, source: str, target: str) -> None:
        super().rename(source, target)
        late, self.late_rename = self.late_rename, None
        if late is not None:
            raise late

    def open(self, path: str, *, write: bool = False, create: bool = False):
        if self.full and path.endswith("/spare"):
            time.sleep(0.02)  # as long as a full file system takes to say so
            raise OSError(errno.ENOSPC, "no space left on device", path)
        return super().open(path, write=write, create=create)


async def seqs_of(root) -> list[int]:
    async with opened(FileStore(root), working=False) as store:
        loaded = await store.load(await store.acquire("a", create=False))
        return [record.seq for record in loaded.records]


async def left(store: FileStore) -> None:
    """Have the current segment left, and wait until it is, or cannot be."""
    log = store._engine.log
    before = log.current
    for _ in range(200):
        store._engine.writer.renew()
        await asyncio.sleep(0.002)
        if log.current is not before or not log.has_room:
            return


@pytest.mark.parametrize("error", [OSError(errno.EIO, "I/O error"), MemoryError(), KeyboardInterrupt()], ids=type)
async def test_nothing_is_lost_when_a_segment_is_begun_and_the_disk_says_that_it_is_not(tmp_path, error):
    root, disk = tmp_path / "store", Refusing()
    store = FileStore(root, disk=disk, **ROOMY)
    async with opened(store):
        lease = await store.acquire("a", create=True)
        push(store, lease, 10)
        await store.flush("synced")
        while not store._engine.log.has_spare:
            store._engine.writer._segments._ask()
            await asyncio.sleep(0.002)
        disk.late_rename = error
        try:
            await left(store)
        except KeyboardInterrupt:
            assert type(error) is KeyboardInterrupt
        assert disk.late_rename is None
        for _ in range(10):
            push(store, lease)
            await store.flush("synced")
        assert lease.synced_seq == 20
        await copy_living(root, tmp_path / "killed")
    (tmp_path / "killed" / "LOCK").write_bytes(b"")
    assert await seqs_of(tmp_path / "killed") == list(range(1, 21))
    assert await seqs_of(root) == list(range(1, 21))


@pytest.mark.parametrize("level", ["written", "synced"])
async def test_who_waits_while_there_is_no_room_for_another_segment_is_told(tmp_path, level):
    disk = Refusing()
    async with opened(FileStore(tmp_path / "store", disk=disk, **ROOMY)) as store:
        lease = await store.acquire("a", create=True)
        push(store, lease, 10)
        await store.flush("synced")
        await store._engine.free_reserve()
        disk.full = True
        store._engine.writer.renew()
        push(store, lease)
        async with asyncio.timeout(5):
            await store.flush(level)
        assert lease.written_seq == 11
        disk.full = False


async def test_an_empty_segment_is_not_left(tmp_path):
    async with opened(FileStore(tmp_path / "store", **ROOMY)) as store:
        lease = await store.acquire("a", create=True)
        push(store, lease, 10)
        await store.flush("synced")
        await left(store)
        empty = store._engine.log.current
        await left(store)
        assert store._engine.log.current is empty
        push(store, lease)
        await store.flush("synced")
        await left(store)
        assert store._engine.log.current is not empty


async def test_a_store_that_is_closed_with_an_empty_segment_behind_others_is_cut(tmp_path):
    async with opened(FileStore(tmp_path / "store", segment_bytes=200_000)) as store:
        lease = await store.acquire("a", create=True)
        push(store, lease, 10)
        await store.flush("synced")
        await left(store)
        assert store._engine.log.current.is_empty
    async with opened(FileStore(tmp_path / "store"), working=False) as store:
        loaded = await store.load(await store.acquire("a", create=False))
    assert (loaded.report.journal_records, loaded.report.log_records) == (10, 0)
    assert kinds(verified(tmp_path / "store")) == []


@pytest.mark.parametrize(
    "name", ["1.ndjson", "01.ndjson", "000000001.ndjson", "77.ndjson", "00000000.ndjson", "1.NDJSON"]
)
@pytest.mark.parametrize("content", [b"", b"not a segment\n"], ids=["empty", "not empty"])
async def test_a_name_in_the_log_that_is_no_segments_harms_no_segment(tmp_path, name, content):
    root = tmp_path / "store"
    store = FileStore(root, **SMALL)
    async with opened(store, working=False):
        push(store, await store.acquire("a", create=True), 15)
        await store.flush("synced")
    assert [path.name for path in segments(root)] == ["00000001.ndjson"]
    (root / "log" / name).write_bytes(content)
    (root / "log" / name).chmod(0o600)
    assert await seqs_of(root) == list(range(1, 16))
    assert await seqs_of(root) == list(range(1, 16))
    assert (root / "log" / name).read_bytes() == content
    assert kinds(verified(root), "note") == ["stranger"]
