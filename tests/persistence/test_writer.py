"""The writer: when lines go to the operating system, in which order, and what happens when it refuses them."""

from __future__ import annotations

import asyncio
import errno
import time
from functools import partial
from pathlib import Path

import pytest

from session_actor.persistence import (
    LEVELS,
    BacklogFull,
    FileStore,
    NotDurable,
    StoreClosed,
    StoreDegraded,
)
from session_actor.persistence.writing.waiters import SLICE_S

from .conformance import opened, said, say
from .disks import TroubledDisk
from .log_lines import decode_log_lines


@pytest.fixture
def root(tmp_path) -> Path:
    return tmp_path / "store"


def log_lines(root: Path):
    """All lines of all segments, headers left out."""
    found = []
    for path in sorted((root / "log").glob("*.ndjson")):
        data = path.read_bytes().rstrip(b"\0")
        found += decode_log_lines(data[data.index(b"\n") + 1 :])
    return found


async def until(condition, patience_s: float = 10) -> None:
    """Lets the threads work until `condition()` holds."""
    async with asyncio.timeout(patience_s):
        while not condition():  # noqa: ASYNC110 - what it waits for happens in threads
            await asyncio.sleep(0.001)


async def warm(store: FileStore, *ids: str):
    """Leases on new sessions with one synced record each: a segment is there, and nothing is in flight."""
    leases = [await store.acquire(session, create=True) for session in ids or ("user-42",)]
    for lease in leases:
        say(store, lease, "first")
    await store.flush("synced")
    return leases


async def test_a_short_queue_is_written_before_reach_returns(root):
    async with opened(FileStore(root)) as store:
        (lease,) = await warm(store)
        position = say(store, lease, *"abc")
        store.reach("written")
        assert store.written_position == position
        assert lease.written_seq == 4
        assert [bytes(line.r).count(b'"text":"c"') for line in log_lines(root)] == [0, 0, 0, 1]


async def test_of_many_sessions_that_ask_in_one_turn_those_that_come_late_share_a_write(root):
    disk = TroubledDisk()
    async with opened(FileStore(root, disk=disk)) as store:
        leases = await warm(store, *(f"session {number}" for number in range(100)))
        before = disk.calls.count("write")
        for lease in leases:
            position = say(store, lease, "second")
            store.reach("written")
        assert store.written_position < position
        await store.flush("written")
        assert 32 < disk.calls.count("write") - before <= 40
        assert [line.session for line in log_lines(root)] == [lease.session for lease in leases] * 2
        position = say(store, leases[0], "in the next turn")
        store.reach("written")
        assert store.written_position == position


async def test_a_long_queue_is_written_by_the_thread_in_order(root):
    async with opened(FileStore(root)) as store:
        one, two = await warm(store, "one", "two")
        for number in range(200):
            say(store, one, f"1/{number}")
            say(store, two, f"2/{number}")
        store.reach("written")
        assert store.written_position == 2
        await store.flush("written")
        assert [line.session for line in log_lines(root)] == ["one", "two"] * 201
        assert await said(store, two) == ["first", *(f"2/{number}" for number in range(200))]


async def test_what_comes_behind_a_write_in_flight_waits_its_turn(root):
    disk = TroubledDisk()
    async with opened(FileStore(root, disk=disk)) as store:
        (lease,) = await warm(store)
        gate = disk.hold("write")
        say(store, lease, *(str(number) for number in range(100)))
        store.reach("written")
        await until(disk.entered["write"].is_set)
        say(store, lease, "behind")
        store.reach("written")
        assert store.written_position == 1
        gate.set()
        del disk.gates["write"]
        await store.flush("written")
        assert (await said(store, lease))[-2:] == ["99", "behind"]


async def test_a_running_sync_is_no_bar_to_a_written_record(root):
    disk = TroubledDisk()
    async with opened(FileStore(root, disk=disk)) as store:
        (lease,) = await warm(store)
        gate = disk.hold("sync")
        say(store, lease, "synced")
        waiting = asyncio.ensure_future(store.flush("synced"))
        await until(disk.entered["sync"].is_set)
        position = say(store, lease, "written")
        store.reach("written")
        assert store.written_position == position
        assert store.synced_position == 1
        gate.set()
        await waiting
        assert store.synced_position >= 2


async def test_records_at_level_async_are_written_by_the_worker_soon(root):
    async with opened(FileStore(root)) as store:
        lease = await store.acquire("user-42", create=True)
        position = say(store, lease, "in the background")
        assert store.written_position == 0
        await until(lambda: store.written_position == position)
        assert len(log_lines(root)) == 1


async def test_a_new_writer_goes_on_at_the_first_unwritten_byte(root):
    disk = TroubledDisk()
    store = FileStore(root, disk=disk)
    async with opened(store, working=False):
        (lease,) = await warm(store)
        run = store.workers()["writer"]
        for round_ in range(5):
            worker = asyncio.ensure_future(run())
            gate = disk.hold("write")
            say(store, lease, *(f"{round_}/{number}" for number in range(300)))
            await until(disk.entered["write"].is_set)
            worker.cancel()
            await asyncio.gather(worker, return_exceptions=True)
            gate.set()
            del disk.gates["write"]
        assert store.written_position < 1501
        worker = asyncio.ensure_future(run())
        await until(lambda: store.written_position == 1501)
        worker.cancel()
        await asyncio.gather(worker, return_exceptions=True)
        assert len(log_lines(root)) == 1501
        assert await said(store, lease) == ["first", *(f"{r}/{n}" for r in range(5) for n in range(300))]


async def test_a_mistake_in_a_turn_of_the_writer_is_raised_by_its_worker_and_a_new_one_goes_on(root, monkeypatch):
    store = FileStore(root)
    async with opened(store, working=False):
        (lease,) = await warm(store)
        run = store.workers()["writer"]
        worker = asyncio.ensure_future(run())
        await asyncio.sleep(0)
        with monkeypatch.context() as patched:
            patched.setattr(store._engine.log.current, "room_bytes", "a mistake")
            say(store, lease, "second")
            with pytest.raises(TypeError):
                await worker
        worker = asyncio.ensure_future(run())
        await until(lambda: store.written_position == 2)
        worker.cancel()
        await asyncio.gather(worker, return_exceptions=True)
        assert await said(store, lease) == ["first", "second"]


# --- the operating system refuses -------------------------------------------------------------------------------------


@pytest.mark.parametrize("error", [errno.EIO, errno.ENOSPC, errno.EROFS])
async def test_a_refused_write_tells_who_waits_and_keeps_the_record_queued(root, error):
    disk = TroubledDisk()
    async with opened(FileStore(root, disk=disk)) as store:
        (lease,) = await warm(store)
        disk.errors["write"] = error
        told = []
        position = say(store, lease, "kept")
        store.when("written", position, told.append)
        store.when("synced", position, told.append)
        store.reach("written")
        assert [(type(found), found.seq, found.level) for found in told] == [
            (NotDurable, 2, "written"),
            (NotDurable, 2, "synced"),
        ]
        with pytest.raises(StoreDegraded):
            store.admit("async")
        assert store.admitted == ()
        health = store.health()
        assert health.degraded_since_us is not None
        assert "asked to fail" in health.last_error
        assert await said(store, lease) == ["first", "kept"]
        disk.errors.clear()
        await store.flush("synced")
        store.admit("async")
        assert store.admitted == LEVELS
        assert store.health().degraded_since_us is None
        assert lease.synced_seq == 2


async def test_a_flush_tries_a_failing_disk_again_at_once_and_says_that_it_failed(root, monkeypatch):
    """By itself it would be tried again much later; and one refusal more, and another segment would take over."""
    monkeypatch.setattr("session_actor.persistence.trouble.FIRST_RETRY_S", 1000.0)
    disk = TroubledDisk()
    async with opened(FileStore(root, disk=disk)) as store:
        (lease,) = await warm(store)
        disk.errors["write"] = errno.EIO
        say(store, lease, "kept")
        for _ in range(2):
            tried = disk.calls.count("write")
            with pytest.raises(NotDurable, match="record 2 is applied and queued, but not written"):
                await store.flush("written")
            assert disk.calls.count("write") == tried + 1
        disk.errors.clear()
        await store.flush("written")


async def test_a_failing_disk_is_tried_again_without_being_asked(root):
    disk = TroubledDisk()
    async with opened(FileStore(root, disk=disk)) as store:
        (lease,) = await warm(store)
        disk.errors["write"] = errno.ENOSPC
        position = say(store, lease, "kept")
        store.reach("written")
        disk.errors.clear()
        await until(lambda: store.written_position == position)
        store.admit("written")


async def test_no_room_for_another_segment_degrades_the_store_until_there_is_room(root):
    disk = TroubledDisk()
    async with opened(FileStore(root, segment_bytes=4096, disk=disk)) as store:
        (lease,) = await warm(store)
        disk.errors["preallocate"] = errno.ENOSPC
        refused = []
        for number in range(100):
            say(store, lease, str(number))
            try:
                await store.flush("written")
            except NotDurable as error:
                refused.append(error)
                break
        assert len(refused) == 1
        with pytest.raises(StoreDegraded):
            store.admit("async")
        disk.errors.clear()
        await store.flush("synced")
        texts = await said(store, lease)
        assert texts == ["first", *(str(number) for number in range(len(texts) - 1))]
        assert store.health().degraded_since_us is None


async def test_a_store_that_cannot_write_closes_and_says_so(root):
    disk = TroubledDisk()
    store = FileStore(root, disk=disk)
    await store.open()
    (lease,) = await warm(store)
    disk.errors["write"] = errno.EIO
    say(store, lease, "lost with the process")
    with pytest.raises(NotDurable):
        await store.close()
    with pytest.raises(StoreClosed):
        store.admit("async")
    async with opened(FileStore(root)) as store:
        assert await said(store, await store.acquire("user-42", create=False)) == ["first"]


async def test_a_full_backlog_refuses_at_admission_and_changes_nothing(root):
    store = FileStore(root, backlog_records=10, backlog_bytes=1000)
    async with opened(store, working=False):
        lease = await store.acquire("user-42", create=True)
        for number in range(10):
            assert store.admitted == LEVELS
            say(store, lease, str(number))
        assert store.admitted == ()
        with pytest.raises(BacklogFull) as refused:
            store.admit("async")
        assert (refused.value.records, store.health().backlog_records) == (10, 10)
        await store.flush("synced")
        store.admit("async")
        assert store.admitted == LEVELS
        say(store, lease, "x" * 1000)
        assert store.admitted == ()
        with pytest.raises(BacklogFull):
            store.admit("async")
        store.reach("written")
        assert (store.health().backlog_bytes, store.admitted) == (0, ())
        await store.flush("synced")
        assert store.admitted == LEVELS


async def test_a_backlog_of_one_record_takes_the_next_as_soon_as_it_is_written(root):
    store = FileStore(root, backlog_records=1)
    async with opened(store, working=False):
        (lease,) = await warm(store)
        for number in range(5):
            say(store, lease, str(number))
            assert store.admitted == ()
            store.reach("written")
            assert store.admitted == LEVELS


async def test_many_who_wait_are_told_in_order_over_several_turns_of_the_loop(root):
    async with opened(FileStore(root)) as store:
        (lease,) = await warm(store)
        told = []

        def slow(position: int, _: BaseException | None) -> None:
            told.append(position)
            assert store.written_position >= position
            began = time.perf_counter()
            while time.perf_counter() < began + SLICE_S / 2:
                pass

        positions = [say(store, lease, str(number)) for number in range(20)]
        for position in positions:
            store.when("written", position, partial(slow, position))
        store.reach("written")
        assert 1 < store.written_position < positions[-1]
        assert len(told) < 10
        await store.flush("written")
        assert told == positions


async def test_who_is_reached_but_not_yet_told_is_not_told_of_a_failure_behind(root):
    disk = TroubledDisk()
    async with opened(FileStore(root, disk=disk)) as store:
        (lease,) = await warm(store)
        told = []

        def slow(error: BaseException | None) -> None:
            told.append(error)
            disk.errors["write"] = errno.EIO
            began = time.perf_counter()
            while time.perf_counter() < began + SLICE_S:
                pass

        for _ in range(3):
            store.when("written", say(store, lease, "a"), slow)
        store.reach("written")
        say(store, lease, "b")
        with pytest.raises(NotDurable):
            await store.flush("written")
        assert told == [None, None, None]
        disk.errors.clear()


async def test_a_record_that_cannot_be_encoded_ends_its_own_session_alone(root):
    async with opened(FileStore(root)) as store:
        good, bad = await warm(store, "good", "bad")
        told = []
        positions = [store.append(bad, 2, 1, "said", object(), 1), store.append(bad, 3, 1, "said", b"{}", 1)]
        last = say(store, good, "second")
        for position in (*positions, last):
            store.when("written", position, told.append)
        store.reach("written")
        assert [getattr(found, "seq", None) for found in told] == [2, 3, None]
        assert not bad.live
        assert await said(store, good) == ["first", "second"]
        again = await store.acquire("bad", create=False)
        assert await said(store, again) == ["first"]
        say(store, again, "second")
        await store.flush("synced")
        assert await said(store, again) == ["first", "second"]
