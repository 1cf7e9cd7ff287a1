"""Group commit: when a sync begins, what it covers, and what a failing one leads to."""

from __future__ import annotations

import asyncio
import errno
from pathlib import Path

import pytest

from session_actor.persistence import FileStore, NotDurable, StoreDegraded

from .conformance import opened, said, say
from .disks import TroubledDisk
from .log_lines import decode_log_lines
from .test_writer import log_lines, until, warm


@pytest.fixture
def root(tmp_path) -> Path:
    return tmp_path / "store"


async def test_all_who_push_in_one_turn_share_one_sync(root):
    disk = TroubledDisk()
    async with opened(FileStore(root, disk=disk)) as store:
        leases = await warm(store, *(f"session {number}" for number in range(20)))

        async def push(lease) -> None:
            for number in range(5):
                position = say(store, lease, str(number))
                store.reach("synced")
                await store.flush("synced", position)

        before = disk.calls.count("sync")
        await asyncio.gather(*map(push, leases))
        assert disk.calls.count("sync") - before <= 6
        assert store.synced_position == 120


async def test_records_pushed_during_a_sync_come_into_the_next(root):
    disk = TroubledDisk()
    async with opened(FileStore(root, disk=disk)) as store:
        (lease,) = await warm(store)
        before = disk.calls.count("sync")
        gate = disk.hold("sync")
        say(store, lease, "one")
        first = asyncio.ensure_future(store.flush("synced"))
        await until(disk.entered["sync"].is_set)
        say(store, lease, "two", "three")
        second = asyncio.ensure_future(store.flush("synced"))
        await asyncio.sleep(0)
        gate.set()
        await first
        await second
        assert disk.calls.count("sync") - before == 2


async def test_written_records_are_synced_after_the_interval(root):
    async with opened(FileStore(root, sync_interval_s=0.02)) as store:
        (lease,) = await warm(store)
        position = say(store, lease, "nobody waits")
        store.reach("written")
        await until(lambda: store.synced_position == position)
        assert lease.synced_seq == 2


async def test_many_unsynced_bytes_are_synced_before_the_interval(root):
    async with opened(FileStore(root, sync_interval_s=1000)) as store:
        (lease,) = await warm(store)
        for _ in range(9):
            say(store, lease, "x" * 1_000_000)
            await store.flush("written")
        await until(lambda: store.synced_position > 1)


async def test_unsynced_bytes_stay_in_memory_until_they_are_synced(root):
    async with opened(FileStore(root, sync_interval_s=1000)) as store:
        (lease,) = await warm(store)
        say(store, lease, "x" * 1000)
        store.reach("written")
        assert store._engine.syncer.unsynced_bytes > 1000
        assert [batch.size > 1000 for batch in store._engine.syncer.batches()] == [True]
        await store.flush("synced")
        assert store._engine.syncer.unsynced_bytes == 0
        assert store._engine.syncer.batches() == []


async def test_a_line_tells_how_much_of_its_segment_was_synced_when_it_was_made(root):
    async with opened(FileStore(root)) as store:
        (lease,) = await warm(store)
        synced = store._engine.log.current.synced
        say(store, lease, "second")
        store.reach("written")
        assert [line.w for line in log_lines(root)] == [0, synced]


async def test_an_idle_store_writes_down_that_all_is_synced_once(root, monkeypatch):
    monkeypatch.setattr("session_actor.persistence.writing.syncer.IDLE_S", 0.01)
    async with opened(FileStore(root, sync_interval_s=0.01)) as store:
        (lease,) = await warm(store)
        await until(lambda: len(log_lines(root)) == 2)
        end = Path(store._engine.log.current.path).read_bytes().index(b'{"w":%d,' % log_lines(root)[1].w)
        assert (log_lines(root)[1].w, log_lines(root)[1].birth) == (end, "")
        await asyncio.sleep(0.1)
        assert len(log_lines(root)) == 2
        say(store, lease, "second")
        await until(lambda: len(log_lines(root)) == 4)


async def test_closing_writes_down_that_all_is_synced(root):
    async with opened(FileStore(root, cut_at_close=0), working=False) as store:
        await warm(store)
        end = store._engine.log.current.end
    assert [line.w for line in log_lines(root)] == [0, end]
    async with opened(FileStore(root, cut_at_close=0)):
        pass
    assert len(log_lines(root)) == 2


# --- a sync fails -----------------------------------------------------------------------------------------------------


async def fail_one_sync(store: FileStore, disk: TroubledDisk, lease, text: str) -> NotDurable:
    """Let the sync of a record fail once; returns what its waiter was told."""
    disk.errors["sync"] = errno.EIO
    gate = disk.hold("create")
    say(store, lease, text)
    with pytest.raises(NotDurable) as told:
        await store.flush("synced")
    del disk.errors["sync"], disk.gates["create"]
    gate.set()
    return told.value


async def test_after_a_failed_sync_a_new_segment_takes_over_at_the_last_synced_byte(root):
    disk = TroubledDisk()
    async with opened(FileStore(root, disk=disk)) as store:
        (lease,) = await warm(store)
        old, synced = store._engine.log.current, store._engine.log.current.synced
        told = await fail_one_sync(store, disk, lease, "second")
        assert (told.seq, told.level) == (2, "synced")
        assert lease.synced_seq == 1
        await store.flush("synced")
        new = store._engine.log.current
        assert (new.number, new.continues.segment, new.continues.offset) == (old.number + 1, old.number, synced)
        data = Path(new.path).read_bytes().rstrip(b"\0")
        (line,) = decode_log_lines(data[data.index(b"\n") + 1 :])
        assert bytes(line.r).startswith(b'{"seq":2,')
        assert (lease.synced_seq, store.synced_position) == (2, 2)
        say(store, lease, "third")
        await store.flush("synced")
        assert await said(store, lease) == ["first", "second", "third"]
    async with opened(FileStore(root)) as store:
        loaded = await store.load(await store.acquire("user-42", create=False))
        assert (loaded.report.seq, loaded.report.clean) == (3, True)


async def test_a_file_whose_sync_failed_is_never_synced_again(root):
    disk = TroubledDisk()
    async with opened(FileStore(root, disk=disk)) as store:
        (lease,) = await warm(store)
        poisoned = store._engine.log.current
        synced = []
        sync = poisoned.file.sync
        poisoned.file.sync = lambda: (synced.append(True), sync())
        await fail_one_sync(store, disk, lease, "second")
        assert len(synced) == 1
        say(store, lease, "third")
        await store.flush("synced")
        assert len(synced) == 1


async def test_the_store_is_degraded_until_the_new_segment_is_synced(root):
    disk = TroubledDisk()
    async with opened(FileStore(root, disk=disk)) as store:
        (lease,) = await warm(store)
        disk.errors["sync"] = errno.EIO
        say(store, lease, "second")
        with pytest.raises(NotDurable):
            await store.flush("synced")
        await until(lambda: store.health().degraded_since_us is not None)
        with pytest.raises(StoreDegraded):
            store.admit("async")
        with pytest.raises(NotDurable):
            await store.flush("synced")
        assert store.synced_position == 1
        assert await said(store, lease) == ["first", "second"]
        disk.errors.clear()
        await store.flush("synced")
        store.admit("synced")
        assert store.synced_position == 2


async def test_writes_in_flight_and_queued_go_to_the_segment_that_takes_over(root):
    disk = TroubledDisk()
    async with opened(FileStore(root, disk=disk)) as store:
        (lease,) = await warm(store)
        sync_gate = disk.hold("sync")
        disk.errors["sync"] = errno.EIO
        say(store, lease, "synced in vain")
        waiting = asyncio.ensure_future(store.flush("synced"))
        await until(disk.entered["sync"].is_set)
        write_gate = disk.hold("write")
        say(store, lease, *(str(number) for number in range(500)))
        store.reach("written")
        await until(disk.entered["write"].is_set)
        sync_gate.set()
        del disk.gates["sync"]
        with pytest.raises(NotDurable):
            await waiting
        disk.errors.clear()
        del disk.gates["write"]
        write_gate.set()
        await store.flush("synced")
        expected = ["first", "synced in vain", *(str(number) for number in range(500))]
        assert await said(store, lease) == expected
    async with opened(FileStore(root)) as store:
        assert await said(store, await store.acquire("user-42", create=False)) == expected


@pytest.mark.parametrize("segment_bytes", [2000, 100_000])
async def test_any_sync_may_fail_and_nothing_acknowledged_is_lost(root, segment_bytes):
    """Every second sync fails, with segments that are begun all the time and with one."""
    disk = TroubledDisk()
    acknowledged = []
    async with opened(FileStore(root, segment_bytes=segment_bytes, disk=disk)) as store:
        leases = await warm(store, "one", "two")
        for number in range(60):
            lease = leases[number % 2]
            if number % 2:
                disk.errors["sync"] = errno.EIO
            say(store, lease, str(number))
            while True:
                try:
                    await store.flush("synced")
                    break
                except NotDurable:
                    disk.errors.clear()
            acknowledged.append(str(number))
        expected = [["first", *acknowledged[index::2]] for index in range(2)]
        assert [await said(store, lease) for lease in leases] == expected
    async with opened(FileStore(root)) as store:
        leases = [await store.acquire(session, create=False) for session in ("one", "two")]
        assert [await said(store, lease) for lease in leases] == expected


async def test_a_segment_that_refuses_lines_again_and_again_is_replaced_by_another(root, monkeypatch):
    disk = TroubledDisk()
    async with opened(FileStore(root, disk=disk)) as store:
        (lease,) = await warm(store)
        bad = store._engine.log.current

        def refuse(*_):
            raise OSError(errno.EIO, "a bad place")

        monkeypatch.setattr(bad.file, "write", refuse)
        say(store, lease, "second")
        for _ in range(2):
            with pytest.raises(NotDurable, match="a bad place"):
                await store.flush("written")
        await until(lambda: store.synced_position == 2)
        assert store._engine.log.current.number == bad.number + 1
        assert store.health().degraded_since_us is None
        say(store, lease, "third")
        await store.flush("written")
        assert await said(store, lease) == ["first", "second", "third"]
    async with opened(FileStore(root), working=False) as store:
        assert await said(store, await store.acquire("user-42", create=False)) == ["first", "second", "third"]
