"""What a store tells of itself: events, log lines, health."""

from __future__ import annotations

import asyncio
import errno

import pytest
import structlog

from session_actor.persistence import FileStore, NotDurable, StoreEvent

from .conformance import opened, say
from .disks import TroubledDisk
from .test_writer import until, warm


@pytest.fixture
def root(tmp_path):
    return tmp_path / "store"


class Told(list):
    """Takes events, and tells their names."""

    def __call__(self, event: StoreEvent) -> None:
        self.append(event)

    def names(self) -> list[str]:
        return [event.name for event in self if event.name not in {"cut", "snapshot"}]  # these are no news


async def fail_writes(store: FileStore, disk: TroubledDisk, lease) -> None:
    """Let the disk refuse a record, and take it afterwards."""
    disk.errors["write"] = errno.ENOSPC
    say(store, lease, "secret words")
    with pytest.raises(NotDurable):
        await store.flush("written")
    await take_writes(store, disk)


async def take_writes(store: FileStore, disk: TroubledDisk) -> None:
    """Let the disk work again; the try that was under way may still fail, and is told to who flushes."""
    disk.errors.clear()
    await until(lambda: store.health().degraded_since_us is None)
    await store.flush("written")


async def test_a_failing_write_is_told_by_events_with_the_error_and_how_long_it_lasted(root):
    disk, told = TroubledDisk(), Told()
    async with opened(FileStore(root, disk=disk, on_event=told)) as store:
        (lease,) = await warm(store)
        await fail_writes(store, disk, lease)
    names = told.names()
    failed = names.count("write_failed")  # once more when the next try began before the disk worked again
    assert (*names[:2], *names[-1:]) == ("write_failed", "degraded", "healthy")
    assert len(names) == failed + 2
    assert told[1].metadata == {"store": str(root), "error": "OSError: [Errno 28] asked to fail: ''"}
    (healthy,) = (event for event in told if event.name == "healthy")
    assert healthy.measurements["degraded_s"] >= 0
    assert healthy.measurements["tries"] == failed


async def test_a_failing_sync_is_told_and_that_another_segment_took_over(root):
    disk, told = TroubledDisk(), Told()
    async with opened(FileStore(root, disk=disk, on_event=told)) as store:
        (lease,) = await warm(store)
        disk.errors["sync"] = errno.EIO
        say(store, lease, "second")
        with pytest.raises(NotDurable):
            await store.flush("synced")
        disk.errors.clear()
        await until(lambda: store.health().degraded_since_us is None)
    assert told.names()[:2] == ["sync_failed", "degraded"]
    assert told.names()[-2:] == ["taken_over", "healthy"]


async def test_a_full_backlog_is_told(root):
    disk, told = TroubledDisk(), Told()
    async with opened(FileStore(root, disk=disk, backlog_bytes=100_000, on_event=told)) as store:
        (lease,) = await warm(store)
        say(store, lease, "x" * 200_000)
        assert told.names() == ["backlog_full"]
        await store.flush("synced")
    assert told.names() == ["backlog_full", "backlog_free"]


async def test_a_torn_end_is_told_when_the_store_is_opened(root):
    async with opened(FileStore(root, cut_at_close=0), working=False) as store:
        await warm(store)
        path = store._engine.log.current.path
    with open(path, "ab") as file:  # noqa: PTH123
        file.write(b"torn")
    told = Told()
    async with opened(FileStore(root, on_event=told), working=False):
        pass
    assert told.names() == ["torn"]
    assert told[0].measurements == {"size_bytes": 4}
    assert told[0].metadata["path"] == path


@pytest.mark.parametrize("error", [KeyError, asyncio.CancelledError, GeneratorExit])
async def test_a_hook_that_raises_is_detached_and_reported_and_the_store_goes_on(root, error):
    def raising(_):
        raise error("mine")

    disk = TroubledDisk()
    async with opened(FileStore(root, disk=disk, on_event=raising)) as store:
        (lease,) = await warm(store)
        with structlog.testing.capture_logs() as logs:
            await fail_writes(store, disk, lease)
        assert store.on_event is None
        assert store.health().written_position == 2
    assert [log["event"] for log in logs].count("store.event_hook_detached") == 1


async def test_each_failure_is_logged_once_with_the_store_and_without_content(root):
    disk = TroubledDisk()
    async with opened(FileStore(root, disk=disk)) as store:
        (lease,) = await warm(store)
        with structlog.testing.capture_logs() as logs:
            for _ in range(3):
                await fail_writes(store, disk, lease)
    assert [(log["event"], log["log_level"]) for log in logs] == [
        ("store.write_failed", "warning"),
        ("store.degraded", "warning"),
        ("store.healthy", "info"),
    ]
    assert {log["store"] for log in logs} == {str(root)}
    assert "secret" not in str(logs)


async def test_health_tells_the_last_error_when_it_was_and_since_when_nothing_is_taken(root):
    disk = TroubledDisk()
    async with opened(FileStore(root, disk=disk)) as store:
        (lease,) = await warm(store)
        assert (store.health().last_error, store.health().last_error_at_us) == (None, None)
        disk.errors["write"] = errno.ENOSPC
        say(store, lease, "second")
        with pytest.raises(NotDurable):
            await store.flush("written")
        during = store.health()
        assert during.last_error == "OSError: [Errno 28] asked to fail: ''"
        assert during.degraded_since_us == during.last_error_at_us
        assert (during.appended_position, during.written_position, during.synced_position) == (2, 1, 1)
        assert during.backlog_records + during.backlog_bytes > 0
        await take_writes(store, disk)
        await store.flush("synced")
        after = store.health()
        assert after.degraded_since_us is None
        assert after.last_error == during.last_error
        assert after.last_error_at_us >= during.last_error_at_us
        assert (after.backlog_records, after.backlog_bytes) == (0, 0)


async def test_a_log_that_cannot_be_written_keeps_nobody_from_anything(root):
    def refuse(*_):
        raise BrokenPipeError("nobody reads this any more")

    disk, told = TroubledDisk(), Told()
    structlog.configure(processors=[refuse])
    try:
        async with opened(FileStore(root, disk=disk, on_event=told)) as store:
            (lease,) = await warm(store)
            await fail_writes(store, disk, lease)
            await store.flush("synced")
    finally:
        structlog.reset_defaults()
    assert {"degraded", "healthy"} <= set(told.names())
