"""Writes that fail in the background: nothing is half-acknowledged, and a retry with the same key never doubles."""

from __future__ import annotations

import asyncio
import errno
from collections.abc import Callable

import pytest

from session_actor import (
    BacklogFull,
    FileStore,
    NotDurable,
    Session,
    SessionActorError,
    SessionService,
    StoreDegraded,
    ValueNotStorable,
    telemetry,
)
from session_actor.persistence.files.storage import OsDisk, OsFile


class FailingDisk(OsDisk):
    """Fails the calls that `fails(call)` says; they have no effect."""

    def __init__(self) -> None:
        self.fails: Callable[[str], bool] = lambda _: False

    def check(self, call: str) -> None:
        if self.fails(call):
            raise OSError(errno.EIO, f"the disk refuses to {call}")

    def open(self, path, *, write=False, create=False):
        self.check("open")
        return FailingFile(self, super().open(path, write=write, create=create))


class FailingFile:
    """A file of a `FailingDisk`."""

    def __init__(self, disk: FailingDisk, file: OsFile) -> None:
        self._disk = disk
        self._file = file

    def __getattr__(self, name: str):
        call = getattr(self._file, name)
        if name not in {"write", "sync", "preallocate"}:
            return call

        def checked(*arguments):
            self._disk.check(name)
            return call(*arguments)

        return checked


@pytest.fixture
def disk():
    return FailingDisk()


async def texts(session: Session) -> list[str]:
    return [frame.user_input for frame in await session.stack()]


async def settled(service: SessionService) -> None:
    """A write that began before the disk was well again may still fail, and tells all who wait: not before it ended."""
    async with asyncio.timeout(20):
        while service.health().store.degraded_since_us is not None:  # noqa: ASYNC110 - threads do it
            await asyncio.sleep(0.005)


@pytest.mark.parametrize("level", ["written", "synced"])
@pytest.mark.parametrize("call", ["write", "sync"])
async def test_a_retry_with_the_same_key_after_a_failed_write_never_doubles(tmp_path, disk, level, call):
    folder = tmp_path / "store"
    async with SessionService.open(FileStore(folder, disk=disk), durability=level) as service:
        session = await service.session("a", create=True)
        first = await session.push("first", "", durability="synced")
        disk.fails = lambda asked: asked == call
        replies = []
        for _ in range(3):
            try:
                replies.append(await session.push("second", "", key="second"))
            except (NotDurable, StoreDegraded):
                continue
        disk.fails = lambda _: False
        await settled(service)
        second = await session.push("second", "", key="second", durability="synced")
        assert (first.id, second.id) == (1, 2)
        assert all(reply.id == 2 for reply in replies)
        assert await texts(session) == ["first", "second"]
        assert (await session.push("third", "")).id == 3
    async with SessionService.open(folder) as service:
        assert await texts(await service.session("a")) == ["first", "second", "third"]


async def test_a_failed_background_write_is_raised_by_flush_shown_by_health_and_told_by_an_event(tmp_path, disk):
    told = []
    detach = telemetry.attach(telemetry.STORE, lambda name, *_: told.append(name[-1]))
    try:
        async with SessionService.open(FileStore(tmp_path / "store", disk=disk)) as service:
            session = await service.session("a", create=True)
            await session.push("first", "", durability="synced")
            assert service.health().error_age_s is None
            disk.fails = lambda call: call == "write"
            await session.push("in the background", "")
            async with asyncio.timeout(20):
                while "degraded" not in told:  # noqa: ASYNC110 - a timer does it
                    await asyncio.sleep(0.005)
            with pytest.raises(NotDurable, match="refuses to write"):
                await session.flush("written")
            health = service.health()
            assert "refuses to write" in health.store.last_error
            assert health.degraded_s >= 0
            assert health.error_age_s >= 0
            assert (health.store.backlog_records, health.store.backlog_bytes > 0) == (1, True)
            with pytest.raises(StoreDegraded):
                await session.push("refused", "")
            assert await texts(session) == ["first", "in the background"]
            disk.fails = lambda _: False
            await settled(service)
            await session.flush("synced")
            assert service.health().degraded_s is None
            assert service.health().store.backlog_records == 0
        trouble = [name for name in told if name in {"write_failed", "degraded", "healthy"}]
        assert trouble[:2] == ["write_failed", "degraded"]
        assert trouble[-1] == "healthy"
    finally:
        detach()


async def test_what_waits_for_a_disk_that_refuses_is_bounded_and_what_was_refused_changed_nothing(tmp_path, disk):
    store = FileStore(tmp_path / "store", disk=disk, backlog_bytes=200_000, backlog_records=500)
    async with SessionService.open(store) as service:
        session = await service.session("a", create=True)
        await session.push("first", "", durability="synced")
        disk.fails = lambda call: call in {"write", "sync"}
        taken = refused = 0
        for _ in range(2000):
            try:
                await session.push("x", "y" * 1000)
                taken += 1
            except (BacklogFull, StoreDegraded):
                refused += 1
                async with asyncio.timeout(20):  # lines that are on their way do not count as waiting
                    while service.health().degraded_s is None:  # noqa: ASYNC110 - nobody tells
                        await asyncio.sleep(0.001)
        assert refused > 0
        assert taken < 1000  # three times what may wait: it waits, is on its way, and was when the disk began to refuse
        assert service.health().store.backlog_bytes < 1_000_000
        assert len(await session.stack()) == taken + 1
        disk.fails = lambda _: False
        await settled(service)
        await session.flush("synced")
        assert len(await session.stack()) == taken + 1


async def test_an_item_that_cannot_be_stored_fails_its_own_call_alone(tmp_path):
    cyclic: list[object] = []
    cyclic.append(cyclic)
    async with SessionService.open(tmp_path / "store", durability="written") as service:
        sessions = [await service.session(name, create=True) for name in "ab"]

        async def push(session: Session, number: int) -> object:
            if number % 3:
                return await session.push(str(number), "")
            return await service.session(f"never {number}", create=True, metadata={"x": [cyclic, float("nan"), 2**70]})

        calls = [push(session, number) for number in range(30) for session in sessions]
        outcomes = await asyncio.gather(*calls, return_exceptions=True)
        failed = [outcome for outcome in outcomes if isinstance(outcome, BaseException)]
        assert len(failed) == 20
        assert {type(error) for error in failed} <= {ValueNotStorable}
        assert all(isinstance(error, SessionActorError) for error in failed)
        expected = [str(number) for number in range(30) if number % 3]
        assert [await texts(session) for session in sessions] == [expected, expected]
        assert [info.id async for info in service.sessions()] == ["a", "b"]
