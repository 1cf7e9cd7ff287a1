"""Who waits for an exchange is told at once when none can begin any more, and waits on while one still can."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager, suppress

import pytest

from session_actor import (
    HandedOver,
    Hook,
    MemoryStore,
    ServiceClosed,
    ServiceDown,
    SessionBusy,
    SessionCrashed,
    SessionDeleted,
    SessionEnded,
    SessionFenced,
    SessionQuarantined,
    SessionService,
)
from session_actor.supervisors import Backoff

from .conftest import Poison
from .handover.handing import generations
from .handover.test_foreign_start import offered
from .test_exchange import enter
from .test_passivation import until
from .test_trouble import Failing

FOREVER_S = 3600.0


@asynccontextmanager
async def held(session, waiting: int = 2):
    """An exchange of another task that is not left before the end, and so many that wait for it."""
    leave, inside = asyncio.Event(), asyncio.Event()

    async def hold() -> None:
        async with session.exchange():
            inside.set()
            await leave.wait()

    holder = asyncio.create_task(hold())
    await inside.wait()
    waiters = [asyncio.create_task(enter(session, FOREVER_S)) for _ in range(waiting)]
    await asyncio.sleep(0)
    try:
        yield waiters
    finally:
        leave.set()
        for task in (holder, *waiters):
            with suppress(Exception):
                await task


async def all_told(waiters, error: type[Exception]) -> None:
    """All are told, a new error each, while the exchange that they wait for goes on."""
    done, pending = await asyncio.wait(waiters, timeout=10.0)
    assert not pending
    errors = [task.exception() for task in done]
    assert {type(one) for one in errors} == {error}
    assert len({id(one) for one in errors}) == len(waiters)


async def test_a_service_that_begins_to_close_tells_who_waits_and_who_comes(service, session):
    async with held(session) as waiters:
        closing = asyncio.create_task(service.close())
        await all_told(waiters, ServiceClosed)
        with pytest.raises(ServiceClosed):
            await enter(session, FOREVER_S)
        await closing


async def test_who_comes_while_what_was_said_is_still_being_written_is_told_of_the_closing_at_once(service, session):
    async with held(session, waiting=0):
        closing = asyncio.create_task(service.close())
        await asyncio.sleep(0)
        assert session._cell.state is not None, "it can still be read"
        with pytest.raises(ServiceClosed):
            await enter(session, FOREVER_S)
        await closing


@pytest.mark.parametrize("way", ["process", "library"])
async def test_a_handover_to_others_tells_who_waits(folder, way):
    async with SessionService.open(folder) as service:
        session = await service.session("user-42", create=True)
        async with held(session) as waiters:
            if way == "process":
                await service.handover("process")
                await all_told(waiters, HandedOver)
            else:
                async with SessionService.take(await offered(service)):
                    await all_told(waiters, HandedOver)


async def test_a_handover_to_the_next_generation_keeps_the_place_of_who_waits(folder):
    async with generations(folder) as lives:
        session = await lives.service.session("user-42", create=True)
        async with held(session) as waiters:
            await lives.next()
            await asyncio.sleep(0)
            assert not any(task.done() for task in waiters)
        assert [task.result() for task in waiters] == ["entered"] * 2


async def test_deleting_ending_and_losing_a_session_tells_who_waits(service):
    for name, error in (("deleted", SessionDeleted), ("ended", SessionEnded), ("fenced", SessionFenced)):
        session = await service.session(name, create=True)
        async with held(session) as waiters:
            if name == "deleted":
                await service.delete(name)
            elif name == "ended":
                await service.end(name)
            else:
                await service._store.acquire(name, create=False)
                with pytest.raises(SessionFenced):
                    await session.push("1", "")
            await all_told(waiters, error)


@pytest.mark.parametrize("mandatory", [False, True])
async def test_ending_a_session_that_hooks_are_told_of_tells_who_waits(folder, mandatory):
    async def told(_context) -> None:
        """Is called."""

    async with SessionService.open(folder, hooks=[Hook("told", told, "ended", mandatory=mandatory)]) as service:
        session = await service.session("user-42", create=True)
        async with held(session) as waiters:
            await service.end("user-42")
            await all_told(waiters, SessionEnded)


async def test_a_quarantined_session_tells_who_waits_and_who_comes_until_it_is_released():
    async with SessionService.open(MemoryStore(), max_restarts=0) as service:
        session = await service.session("user-42", create=True)
        async with held(session) as waiters:
            with pytest.raises(SessionCrashed):
                await session.send(Poison())
            await all_told(waiters, SessionQuarantined)
            with pytest.raises(SessionQuarantined):
                await enter(session, FOREVER_S)
        service.release("user-42")
        assert await enter(session) == "entered"


@pytest.mark.parametrize("how", ["crashed", "killed"])
async def test_who_waits_keeps_its_place_when_the_session_crashes_or_is_killed_and_comes_back(service, session, how):
    async with held(session) as waiters:
        if how == "killed":
            session.ref.kill()
        else:
            with pytest.raises(SessionCrashed):
                await session.send(Poison())
        await session.push("goes on", timeout_s=None)
        assert not any(task.done() for task in waiters)
    assert [task.result() for task in waiters] == ["entered"] * 2


async def test_a_service_that_gives_up_tells_who_waits(monkeypatch):
    monkeypatch.setattr(Backoff, "delay_s", lambda *_: 0.0)
    store = Failing()
    service = SessionService.open(store)
    await service.start()
    session = await service.session("user-42", create=True)
    async with held(session) as waiters:
        store.fails.set()
        await all_told(waiters, ServiceDown)
    with pytest.raises(ServiceDown):
        await service.close()


async def test_exchanges_begin_in_the_order_of_arrival_and_pass_over_who_gave_up(session):
    entered: list[int] = []

    async def wait(number: int) -> None:
        async with session.exchange(FOREVER_S):
            entered.append(number)
            await asyncio.sleep(0)

    async with held(session, waiting=0):
        tasks = [asyncio.create_task(wait(number)) for number in range(5)]
        await asyncio.sleep(0)
        tasks[1].cancel()
        with pytest.raises(SessionBusy):
            await asyncio.create_task(enter(session, 0.001))
    await asyncio.wait(tasks)
    assert entered == [0, 2, 3, 4]
    assert not session._cell.exchange_lock.locked()


async def test_a_place_that_is_given_to_a_task_that_is_cancelled_at_that_moment_goes_to_the_next(session):
    leave = session.exchange()
    await leave.__aenter__()
    first, second = (asyncio.create_task(enter(session, FOREVER_S)) for _ in range(2))
    await asyncio.sleep(0)
    await leave.__aexit__(None, None, None)
    first.cancel()
    await until(second.done)
    assert first.cancelled()
    assert second.result() == "entered"
    assert not session._cell.exchange_lock.locked()
