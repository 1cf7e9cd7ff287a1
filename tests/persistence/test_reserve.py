"""The room that is held back for a full disk: when it is taken, given up, and taken again."""

from __future__ import annotations

import asyncio
import errno
from contextlib import suppress
from pathlib import Path

import pytest

from session_actor.persistence import FileStore, NotDurable, StoreDegraded
from session_actor.persistence.reserve import Reserve

from .conformance import opened, said, say
from .disks import TroubledDisk, TroubledFile
from .test_writer import until, warm

SEGMENT_BYTES = 20_000


@pytest.fixture
def root(tmp_path):
    return tmp_path / "store"


class SmallDisk(TroubledDisk):
    """A disk with room for so many bytes of files; the catalog's do not count."""

    def __init__(self, root: Path) -> None:
        super().__init__()
        self.root = root
        self.room_bytes = 10**9

    def open(self, path, *, write=False, create=False):
        return SmallFile(self, super().open(path, write=write, create=create))

    def used_bytes(self) -> int:
        return sum(path.stat().st_size for folder in ("log", "journals") for path in self.root.glob(f"{folder}/**/*"))

    def check(self, growth_bytes: int) -> None:
        if growth_bytes > 0 and self.used_bytes() + growth_bytes > self.room_bytes:
            raise OSError(errno.ENOSPC, "No space left on device")


class SmallFile(TroubledFile):
    """A file of a `SmallDisk`."""

    def write(self, data, offset):
        self.disk.check(offset + len(data) - self.size())
        super().write(data, offset)

    def preallocate(self, length):
        self.disk.check(length - self.size())
        super().preallocate(length)


@pytest.fixture
def disk(root):
    return SmallDisk(root)


@pytest.fixture
async def store(root, disk):
    async with opened(FileStore(root, segment_bytes=SEGMENT_BYTES, disk=disk)) as store:
        yield store


async def push_until_refused(store: FileStore, lease, texts: list[str]) -> None:
    async def push() -> None:
        store.admit("synced")
        texts.append(f"{len(texts)} {'x' * 500}")
        await store.flush("synced", say(store, lease, texts[-1]))

    with pytest.raises((NotDurable, StoreDegraded)):  # noqa: PT012
        while True:
            await push()


async def push_until_full(store: FileStore, disk: SmallDisk, lease, texts: list[str]) -> None:
    """Push until the disk is full, and nothing that is being cut makes any room on it."""
    refused = 0
    while refused < 2:
        disk.room_bytes = disk.used_bytes()
        count = len(texts)
        await push_until_refused(store, lease, texts)
        await until(lambda: not store._engine.log.sealed)
        await store._engine.run_cut(lambda: None)  # it may be removing a file
        await asyncio.sleep(0.1)
        refused = refused + 1 if len(texts) <= count + 1 and store.health().degraded_since_us is not None else 0


async def push_past_a_segment(store: FileStore, lease) -> list[str]:
    """Afterwards one segment is cut, and the reserve is held."""
    texts = [f"{number} {'x' * 500}" for number in range(60)]
    for text in texts:
        await store.flush("synced", say(store, lease, text))
    await until(lambda: store._engine.log.reserve.held and not store._engine.log.sealed)
    return ["first", *texts]


async def test_the_reserve_is_held_before_the_first_segment_is_sealed(store, root):
    (lease,) = await warm(store)
    assert not store._engine.log.reserve.held
    for text in ("x" * (SEGMENT_BYTES // 2), "more"):
        await store.flush("written", say(store, lease, text))
    await until(lambda: store._engine.log.reserve.held)
    assert (root / "log/reserve").stat().st_size == SEGMENT_BYTES
    assert store._engine.log.current.number == 1
    await store.close()
    assert not (root / "log/reserve").exists()


async def test_a_segment_is_cut_on_a_full_disk_in_the_room_of_the_reserve(store, root, disk):
    """Of one session: there is room for what is in the log, and afterwards the reserve is held again."""
    (lease,) = await warm(store)
    texts = await push_past_a_segment(store, lease)
    gate = disk.hold("read")  # the cut of the next segment
    while not store._engine.log.sealed:
        texts.append(f"{len(texts)} {'x' * 500}")
        await store.flush("synced", say(store, lease, texts[-1]))
    await until(disk.entered["read"].is_set)
    disk.room_bytes = disk.used_bytes()
    del disk.gates["read"]
    gate.set()
    await until(lambda: not store._engine.log.sealed)
    assert store.health().last_error == "OSError: [Errno 28] No space left on device"
    await until(lambda: store._engine.log.reserve.held)
    assert disk.used_bytes() <= disk.room_bytes
    assert await said(store, lease) == texts


async def test_a_store_on_a_full_disk_takes_nothing_serves_what_it_has_and_goes_on_when_there_is_room(store, disk):
    (lease,) = await warm(store)
    texts = await push_past_a_segment(store, lease)
    await push_until_full(store, disk, lease, texts)
    for _ in range(3):
        with pytest.raises(NotDurable):
            await store.flush("synced")
        with pytest.raises(StoreDegraded):
            store.admit("async")
        assert await said(store, lease) == texts
    disk.room_bytes = 10**9
    await until(lambda: store.health().degraded_since_us is None)
    await until(lambda: store.synced_position == len(texts))
    assert store.admitted
    assert await said(store, lease) == texts


async def test_closing_on_a_full_disk_uses_the_room_of_the_reserve(store, root, disk):
    (lease,) = await warm(store)
    texts = await push_past_a_segment(store, lease)
    await push_until_full(store, disk, lease, texts)
    assert store._engine.log.reserve.held
    await store.close()
    async with opened(FileStore(root), working=False) as again:
        assert await said(again, await again.acquire("user-42", create=False)) == texts


async def test_a_takeover_after_a_failed_sync_uses_the_room_of_the_reserve(store, root, disk):
    (lease,) = await warm(store)
    texts = await push_past_a_segment(store, lease)
    await store._engine.syncer._thread.run(lambda: None)  # it may be removing a file
    disk.room_bytes = disk.used_bytes()
    disk.errors["sync"] = errno.EIO
    gate = disk.hold("create")
    texts.append("in flight")
    say(store, lease, texts[-1])
    with pytest.raises(NotDurable):
        await store.flush("synced")
    disk.errors.clear()
    del disk.gates["create"]
    gate.set()
    with suppress(NotDurable):  # the reserve may be lent to a cut at this moment
        await store.flush("synced")
    await until(lambda: store.health().degraded_since_us is None)
    await store.flush("synced")
    assert await said(store, lease) == texts


def test_a_reserve_is_taken_once_given_up_once_and_taken_back_only_if_it_was_needed(tmp_path):
    disk = TroubledDisk()
    reserve = Reserve(disk, str(tmp_path / "reserve"), 1000)
    reserve.take_back()
    assert not reserve.held
    reserve.take()
    reserve.take()
    assert disk.calls.count("preallocate") == 1
    assert (reserve.give_up(), reserve.give_up()) == (True, False)
    assert not (tmp_path / "reserve").exists()
    disk.errors["preallocate"] = errno.ENOSPC
    reserve.take_back()
    assert (reserve.held, reserve.given_up, (tmp_path / "reserve").exists()) == (False, True, False)
    disk.errors.clear()
    reserve.take_back()
    assert (reserve.held, reserve.given_up) == (True, False)
    reserve.close()
    reserve.take()
    assert not reserve.held
