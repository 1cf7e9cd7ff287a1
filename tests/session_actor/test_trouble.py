"""Trouble around sessions: a store that cannot be read or is slow, a service that gives up."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress

import pytest

from session_actor import MemoryStore, SessionService
from session_actor.commands import Push
from session_actor.handle.handle import Session, SessionRef
from session_actor.persistence import LEVELS, Lease, Level, LoadedSession, Reached, StoreDegraded
from session_actor.service_errors import ServiceDown, SessionCrashed
from session_actor.supervisors import Backoff

from .conftest import Poison
from .test_passivation import until

OUTAGES = [StoreDegraded("the disk is away"), OSError(5, "input/output error")]


class Unreadable(MemoryStore):
    """Its next loads fail, as often as the test says."""

    def __init__(self, error: Exception) -> None:
        super().__init__()
        self.error = error
        self.failures = 0

    async def load(self, lease: Lease, **options) -> LoadedSession:
        if self.failures:
            self.failures -= 1
            raise self.error
        return await super().load(lease, **options)


@pytest.mark.parametrize("error", OUTAGES, ids=["degraded", "os error"])
async def test_an_outage_of_the_store_during_a_restart_is_waited_out_and_no_crash(error):
    store = Unreadable(error)
    async with SessionService.open(store, max_restarts=1) as service:
        session = await service.session("user-42", create=True)
        await session.push("before", "")
        store.failures = 3
        with pytest.raises(SessionCrashed):
            await session.send(Poison())
        assert (await session.push("after", "")).id == 2
        assert store.failures == 0
        assert service.health().quarantined == ()
        assert [frame.user_input for frame in await session.stack()] == ["before", "after"]


async def test_an_outage_of_the_store_while_a_resting_session_is_woken_is_waited_out():
    store = Unreadable(OUTAGES[0])
    async with SessionService.open(store) as service:
        await (await service.session("user-42", create=True)).push("before", "")
    async with SessionService.open(store, max_restarts=0) as service:
        store.failures = 3
        assert (await (await service.session("user-42")).push("after", "")).id == 2
        assert store.failures == 0


class Failing(MemoryStore):
    """Its one worker raises again and again once it is told to."""

    def __init__(self) -> None:
        super().__init__()
        self.fails = asyncio.Event()
        self.starts = 0

    def workers(self) -> Mapping[str, Callable[[], Awaitable[None]]]:
        return {"writer": self.work}

    async def work(self) -> None:
        self.starts += 1
        await self.fails.wait()
        raise RuntimeError("broken")


def is_down(service: SessionService) -> bool:
    with suppress(ServiceDown):
        service.health()
        return False
    return True


async def what_calls_say(service: SessionService, session: Session, ref: SessionRef) -> set[type]:
    """The types of what a service's calls return or raise."""
    uses = (
        session.push("a", "b"),
        session.stack(),
        session.get(1),
        session.flush("async"),
        service.session("user-42"),
        service.session("another", create=True),
        service.delete("user-42"),
        ref.call(Push("a", "b")),
    )
    return {type(outcome) for outcome in await asyncio.gather(*uses, return_exceptions=True)}


async def test_a_service_that_gives_up_says_so_to_every_call_and_at_its_end_and_never_cancels_the_body(monkeypatch):
    monkeypatch.setattr(Backoff, "delay_s", lambda *_: 0.0)
    store = Failing()
    said: set[type] = set()

    async def body() -> None:
        async with SessionService.open(store) as service:
            session = await service.session("user-42", create=True)
            ref = session.ref
            await session.push("a", "b")
            store.fails.set()
            await until(lambda: is_down(service) and ref.phase == "ended")
            said.update(await what_calls_say(service, session, ref))
            assert asyncio.current_task().cancelling() == 0

    with pytest.raises(ServiceDown):
        await body()
    assert said == {ServiceDown}
    assert store.starts == 11  # its first start, and ten restarts
    assert asyncio.all_tasks() == {asyncio.current_task()}


async def test_a_service_that_gave_up_does_not_hide_the_error_of_the_body(monkeypatch):
    monkeypatch.setattr(Backoff, "delay_s", lambda *_: 0.0)
    store = Failing()

    async def body() -> None:
        async with SessionService.open(store) as service:
            store.fails.set()
            await until(lambda: is_down(service))
            raise KeyError("mine")

    with pytest.raises(KeyError):
        await body()


class SlowToSync(MemoryStore):
    """Written at once, synced when the test says so."""

    def __init__(self) -> None:
        super().__init__()
        self.synced = 0
        self.waiting: list[Reached] = []
        self.flushes = 0

    @property
    def written_position(self) -> int:
        return self.health().appended_position

    @property
    def synced_position(self) -> int:
        return self.synced

    async def open(self) -> None:
        await super().open()
        self.admitted = LEVELS

    def admit(self, level: Level) -> None:
        assert level in LEVELS

    def when(self, level: Level, position: int, callback: Reached) -> None:
        if level == "synced" and position > self.synced:
            self.waiting.append(callback)
        else:
            callback(None)

    async def flush(self, level: Level, position: int | None = None) -> None:
        self.flushes += 1

    def sync(self) -> None:
        self.synced = self.written_position
        waiting, self.waiting = self.waiting, []
        for callback in waiting:
            callback(None)


async def test_a_session_that_holds_a_reply_back_is_not_unloaded():
    store = SlowToSync()
    async with SessionService.open(store, idle_timeout_s=0.005) as service:
        session = await service.session("user-42", create=True)
        ref = session.ref
        reply = asyncio.ensure_future(session.push("a", "b", durability="synced"))
        await until(lambda: bool(store.waiting))
        seen = store.flushes
        await until(lambda: store.flushes >= seen + 3 or not ref.alive)  # the sweeper flushes before it unloads
        assert ref.alive
        assert not reply.done()
        store.sync()
        assert (await reply).id == 1
        await until(lambda: not ref.alive)
        assert service.health().live == 0
