"""What happens to others, or goes wrong, in the moment of a handover."""

from __future__ import annotations

import asyncio

import pytest

from session_actor import (
    HandoverFailed,
    InvalidArgument,
    LevelUnreachable,
    MemoryStore,
    ServiceClosed,
    SessionCrashed,
    SessionDeleted,
    SessionService,
)
from session_actor.handover import values
from session_actor.service.population import Population
from session_actor.supervisors import swap

from ..conftest import Poison
from .handing import children_of, generations, inputs

SESSIONS = 30


async def crowd(service) -> list:
    return [await service.session(f"s{number:02}", create=True) for number in range(SESSIONS)]


async def test_a_session_that_is_deleted_meanwhile_can_be_made_anew():
    deleting: list[asyncio.Task] = []

    def delete(version: int, value: dict) -> dict:
        if not deleting:
            deleting.append(asyncio.create_task(lives.service.delete("s29")))
        return value

    async with generations(MemoryStore()) as lives:
        sessions = await crowd(lives.service)
        await lives.next(code_change=delete)
        await deleting[0]
        with pytest.raises(SessionDeleted):
            await sessions[29].push("x")
        assert (await (await lives.service.session("s29", create=True)).push("y")).id == 1


async def test_a_session_that_the_new_generation_woke_and_that_crashed_there_stays_there():
    meddling: list[asyncio.Task] = []

    async def meddle(session) -> None:
        assert await lives.service._lifetime.population._passivate(session._cell)
        with pytest.raises(SessionCrashed):
            await session.send(Poison("x"))

    def begin(version: int, value: dict) -> dict:
        if not meddling:
            meddling.append(asyncio.create_task(meddle(sessions[29])))
        return value

    async with generations(MemoryStore()) as lives:
        sessions = await crowd(lives.service)
        await lives.next(code_change=begin, max_restarts=0)
        await meddling[0]
        assert lives.service.health().quarantined == ("s29",)
        lives.service.release("s29")
        assert (await sessions[29].push("y")).id == 1


async def test_a_service_that_is_being_closed_is_not_taken(folder):
    for turns in range(4):
        first = SessionService.open(folder)
        await first.start()
        session = await first.session("a", create=True)
        handover = await first.handover()
        closing = asyncio.create_task(first.close())
        for _ in range(turns):
            await asyncio.sleep(0)
        heir = SessionService.take(handover)
        if turns:
            with pytest.raises(ServiceClosed):
                await heir.start()
            await closing
            with pytest.raises(ServiceClosed):
                await session.push("late")
        else:  # it came first
            await heir.start()
            assert (await session.push("x")).id == 1
        await closing
        await heir.close()


async def test_a_handover_that_begins_while_closing_waits_for_the_last_one_is_waited_for(folder):
    first = SessionService.open(folder)
    await first.start()
    sessions = await crowd(first)
    with pytest.raises(HandoverFailed):
        await SessionService.take(await first.handover(), code_change=lambda version, value: None).start()
    closing = asyncio.create_task(first.close())  # what could not take over is being stopped
    heir = SessionService.take(await first.handover())
    taking = asyncio.create_task(heir.start())
    done, _ = await asyncio.wait([taking])
    await closing
    assert done == {taking}
    if taking.exception() is None:
        assert (await sessions[3].push("x")).id == 1
    else:
        assert isinstance(taking.exception(), ServiceClosed)
    await heir.close()


async def test_a_level_that_the_store_cannot_promise_is_refused_and_nothing_has_moved():
    async with generations(MemoryStore()) as lives:
        session = await lives.service.session("a", create=True)
        server = session._cell.ref.slot.server
        with pytest.raises(LevelUnreachable):
            await lives.next(durability="synced")
        assert session._cell.ref.slot.server is server
        assert (await session.push("x")).id == 1


async def test_a_code_change_that_is_no_plain_function_is_refused_at_once():
    async def change(version: int, value: dict) -> dict:
        return value

    async with generations(MemoryStore()) as lives:
        for wrong in (change, 3):
            with pytest.raises(InvalidArgument, match="code_change must be a function"):
                SessionService.take(await lives.service.handover(), code_change=wrong)


@pytest.mark.parametrize(
    "wrong",
    [{"saved_seq": 10**9}, {"saved_seq": -1}, {"saved_seq": None}, {"seq": True}, {"birth": 1}, {"session": None}],
)
async def test_a_value_that_is_not_whole_is_refused(wrong):
    async with generations(MemoryStore()) as lives:
        session = await lives.service.session("a", create=True)
        with pytest.raises(HandoverFailed, match="as handed over"):
            await lives.next(code_change=lambda version, value: value | wrong)
        with pytest.raises(HandoverFailed, match="as handed over"):
            await lives.next(code_change=lambda version, value: {"state": None})
        assert (await session.push("x")).id == 1


@pytest.mark.parametrize("turns", range(3))
async def test_a_session_that_is_being_moved_when_the_handover_is_cancelled_comes_back(folder, turns, monkeypatch):
    monkeypatch.setattr(values, "may_be_saved", lambda state: False)  # its records are read again: that takes time
    async with generations(folder) as lives:
        session = await lives.service.session("a", create=True)
        await session.push("0")
        heir = SessionService.take(await lives.service.handover())
        taking = asyncio.create_task(heir.start())
        for _ in range(1_000):
            if session._cell.home is not lives.service._lifetime.population:
                break
            await asyncio.sleep(0)
        for _ in range(turns):
            taking.cancel()
            await asyncio.sleep(0)
        taking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await taking
        assert (await session.push("1")).id == 2
        assert await inputs(session) == ["0", "1"]
        assert children_of(lives.service) == ["a"]
        assert session._cell.home is lives.service._lifetime.population


@pytest.mark.parametrize("turns", range(5))
async def test_a_swap_that_is_cancelled_leaves_nobody_paused(service, session, turns):
    swapping = asyncio.create_task(swap(session._cell.ref, None, None))
    for _ in range(turns):
        await asyncio.sleep(0)
    if swapping.cancel():
        with pytest.raises(asyncio.CancelledError):
            await swapping
    else:
        swapping.result().resume()
    async with asyncio.timeout(5):
        assert (await session.push("x")).id == 1


@pytest.mark.parametrize("idle", [True, False])
@pytest.mark.parametrize("kind", [asyncio.CancelledError, GeneratorExit, BaseException])
async def test_whatever_a_code_change_raises_leaves_the_old_generation_with_all_sessions(kind, idle):
    def refuse(_version: int, _value: dict) -> dict:
        raise kind("secret")

    async with generations(MemoryStore()) as lives:
        session = await lives.service.session("user-42", create=True)
        if not idle:
            await session.swap(pause_s=0.05)
        heir = SessionService.take(await lives.service.handover(), code_change=refuse)
        with pytest.raises(HandoverFailed, match=f"{kind.__name__} raised in refuse") as caught:
            await heir.start()
        assert "secret" not in str(caught.value)
        assert session._cell.home is lives.service._lifetime.population
        assert session._cell.ref.slot.crashes == 0
        assert (await session.push("hello", "hi")).depth == 1


async def test_a_session_whose_code_change_ends_the_process_stays_with_the_old_generation():
    def leave(_version: int, _value: dict) -> dict:
        raise SystemExit(3)

    async with generations(MemoryStore()) as lives:
        session = await lives.service.session("user-42", create=True)
        heir = SessionService.take(await lives.service.handover(), code_change=leave)
        with pytest.raises(SystemExit):
            await heir.start()
        assert session._cell.home is lives.service._lifetime.population
        assert (await session.push("hello", "hi")).depth == 1


async def test_a_session_that_is_asked_for_while_it_goes_back_is_the_one_that_is_there(folder):
    def refuse_the_last(_version: int, value: dict) -> dict:
        if value["session"] == f"s{SESSIONS - 1:02}":
            raise ValueError("not this one")
        return value

    async def ask(service, number: int) -> None:
        while not done.is_set():
            session = await service.session(f"s{number:02}")
            asked.append((await session.push("x"), session))
            await asyncio.sleep(0)

    async with generations(folder) as lives:
        sessions, done, asked = await crowd(lives.service), asyncio.Event(), []
        asking = [asyncio.create_task(ask(lives.service, number)) for number in range(SESSIONS)]
        heir = SessionService.take(await lives.service.handover(), code_change=refuse_the_last)
        with pytest.raises(HandoverFailed):
            await heir.start()
        done.set()
        await asyncio.gather(*asking)
        cells = {session.id: session._cell for session in sessions}
        assert {session._cell for _, session in asked} == set(cells.values())
        for session in sessions:
            assert session._cell.home is lives.service._lifetime.population
            assert len(await inputs(session)) == sum(one.id == session.id for _, one in asked)
        assert children_of(lives.service) == sorted(cells)


async def test_a_session_that_is_woken_while_the_sessions_go_back_is_served_by_the_old_generation():
    async with generations(MemoryStore()) as lives:
        session = await lives.service.session("user-42", create=True)
        former = lives.service._lifetime.population
        heir = Population(former.store, former._options)
        heir.root = former.root
        await former.rest("user-42")
        heir.take_in(session._cell)
        former.leave(session._cell)
        former.source = heir
        again = await lives.service.session("user-42")
        assert again._cell is session._cell
        assert session._cell.home is former
        assert heir.cells() == ([], [])
        assert (await session.push("x")).depth == 1
