"""A session crashes, and nothing is lost but the message that crashed it."""

from __future__ import annotations

import asyncio

import pytest

from session_actor import MemoryStore, SessionService
from session_actor.commands import Push
from session_actor.service_errors import SessionCrashed, SessionQuarantined
from session_actor.supervisors import statistics

from ..unhurried import unhurried
from .conftest import Poison, seen


async def test_the_caller_of_a_crashing_message_is_told_at_once_and_the_session_comes_back(session):
    for number in range(3):
        await session.push(f"q{number}", f"a{number}")
    before = [seen(frame) for frame in await session.stack()]
    with pytest.raises(SessionCrashed):
        await session.send(Poison("boom"), timeout_s=None)
    assert [seen(frame) for frame in await session.stack()] == before
    assert (await session.push("again", "")).id == 4


async def test_what_was_not_yet_written_survives_a_crash(session):
    frames = [await session.push(f"q{number}", "") for number in range(200)]
    with pytest.raises(SessionCrashed):
        await session.send(Poison())
    assert [frame.id for frame in await session.stack()] == [frame.id for frame in frames]


async def test_messages_that_were_queued_behind_a_crash_run_after_the_restart_in_their_order(session):
    await session.push("first", "")
    ref = session.ref
    ref.cast(Poison())
    queued = [asyncio.ensure_future(session.push(f"q{number}", "")) for number in range(20)]
    assert [(await push).user_input for push in queued] == [f"q{number}" for number in range(20)]
    assert [frame.user_input for frame in await session.stack()] == ["first", *(f"q{number}" for number in range(20))]


async def test_branches_checkpoints_and_detachment_survive_a_crash(session):
    for number in range(4):
        await session.push(f"q{number}", "")
    await session.checkpoint("two", 2)
    await session.fork(3, user_input="other", branch="idea")
    await session.goto("two")
    with pytest.raises(SessionCrashed):
        await session.send(Poison())
    assert await session.branches() == {"main": 4, "idea": 5}
    assert await session.checkpoints() == {"two": 2}
    assert await session.head() == 2
    assert await session.branch() is None


async def test_a_read_during_the_restart_waits_for_it(session):
    await session.push("q", "a")
    session.ref.cast(Poison())
    await asyncio.sleep(0)
    assert (await session.get(1)).user_input == "q"
    assert len(await session.stack()) == 1


async def test_a_stack_that_was_taken_is_the_same_after_crash_pop_and_restart(session):
    for number in range(5):
        await session.push(f"q{number}", "")
    stack = await session.stack()
    await session.pop(4)
    with pytest.raises(SessionCrashed):
        await session.send(Poison())
    assert [frame.id for frame in stack] == [1, 2, 3, 4, 5]
    assert [frame.id for frame in await session.stack()] == [1]


async def test_popped_frames_do_not_come_back_by_a_restart_and_stay_readable_by_id(session):
    for number in range(3):
        await session.push(f"q{number}", "")
    await session.pop(2)
    with pytest.raises(SessionCrashed):
        await session.send(Poison())
    assert [frame.id for frame in await session.stack()] == [1]
    assert (await session.get(3)).user_input == "q2"


async def test_a_session_that_keeps_crashing_is_quarantined_and_the_others_go_on():
    async with SessionService.open(MemoryStore(), max_restarts=2) as service:
        poisoned = await service.session("poisoned", create=True)
        healthy = await service.session("healthy", create=True)
        for _ in range(3):
            with pytest.raises(SessionCrashed):
                await poisoned.send(Poison(), timeout_s=None)
        with pytest.raises(SessionQuarantined, match="release"):
            await poisoned.push("a", "b")
        with pytest.raises(SessionQuarantined):
            await poisoned.stack()
        assert service.health().quarantined == ("poisoned",)
        assert (await healthy.push("a", "b")).id == 1
        service.release("poisoned")
        assert (await poisoned.push("a", "b")).id == 1
        assert service.health().quarantined == ()


async def test_a_quarantined_session_can_be_deleted():
    async with SessionService.open(MemoryStore(), max_restarts=0) as service:
        poisoned = await service.session("poisoned", create=True)
        with pytest.raises(SessionCrashed):
            await poisoned.send(Poison())
        await service.delete("poisoned")
        assert [info.id async for info in service.sessions()] == []


async def test_five_sessions_that_crash_once_each_stop_nobody():
    async with SessionService.open(MemoryStore(), max_restarts=1) as service:
        sessions = [await service.session(f"s{number}", create=True) for number in range(5)]
        for session in sessions:
            with pytest.raises(SessionCrashed):
                await session.send(Poison())
        for session in sessions:
            assert (await session.push("on", "")).id == 1


async def test_a_killed_session_comes_back_whole(session):
    await session.push("q", "a")
    session.ref.kill()
    assert (await session.push("on", "")).id == 2
    assert len(await session.stack()) == 2


async def test_a_cancelled_caller_gives_up_the_wait_and_not_the_record(service, session):
    async def turn() -> None:
        await session.push("the client left", "", durability="async")

    task = asyncio.ensure_future(turn())
    await asyncio.sleep(0)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    assert [frame.user_input for frame in await session.stack()] == ["the client left"]


async def test_a_request_that_is_cancelled_before_its_push_begins_to_wait_has_pushed(session):
    async def turn() -> None:
        unhurried(session.ref)
        asyncio.current_task().cancel()
        await session.push("one", "")
        await session.push("two", "")
        await asyncio.sleep(1)

    with pytest.raises(asyncio.CancelledError):
        await asyncio.ensure_future(turn())
    assert [frame.user_input for frame in await session.stack()] == ["one", "two"]


async def test_the_public_messages_do_what_the_methods_do(session):
    frame = await session.ref.call(Push("by message", ""))
    session.ref.cast(Push("by cast", ""))
    assert frame.id == 1
    await session.flush("async")
    assert [frame.user_input for frame in await session.stack()] == ["by message", "by cast"]
    assert statistics(session.ref).handled >= 2


async def test_an_error_raised_to_many_callers_is_a_new_object_for_each():
    async with SessionService.open(MemoryStore(), max_restarts=0) as service:
        session = await service.session("poisoned", create=True)
        with pytest.raises(SessionCrashed):
            await session.send(Poison())
        errors = await asyncio.gather(*(session.push("a", "b") for _ in range(3)), return_exceptions=True)
        assert len({id(error) for error in errors}) == 3
        assert all(isinstance(error, SessionQuarantined) for error in errors)
