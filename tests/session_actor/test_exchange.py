"""Entering an exchange: once a task, and only where something can still be said."""

from __future__ import annotations

import asyncio

import pytest

from session_actor import ServiceClosed, SessionBusy, SessionDeleted, SessionEnded, SessionService
from session_actor.supervisors import resume, suspend

from .test_passivation import until


async def enter(session, wait_s: float | None = None) -> str:
    async with session.exchange(wait_s):
        return "entered"


async def test_a_task_that_is_in_an_exchange_is_told_so_at_once(session):
    async with session.exchange():
        with pytest.raises(SessionBusy, match="it is this task that is in it"):
            await enter(session, float("inf"))
        with pytest.raises(SessionBusy, match="answer the caller 'busy'"):
            await asyncio.create_task(enter(session))
    assert await enter(session) == "entered"


async def test_handles_of_different_branches_share_the_exchange(session):
    await session.push("one", "1")
    idea = await session.branch_off("idea")
    async with session.exchange():
        with pytest.raises(SessionBusy):
            await asyncio.create_task(enter(idea))


@pytest.mark.parametrize("loaded", [True, False])
async def test_no_exchange_begins_in_a_session_that_has_ended(tmp_path, loaded):
    async with SessionService.open(tmp_path, idle_timeout_s=None if loaded else 0.01) as service:
        session = await service.session("user-42", create=True)
        await session.push("one", "1")
        await service.end("user-42")
        if not loaded:
            await until(lambda: service.health().live == 0)
        with pytest.raises(SessionEnded):
            await enter(session)
        with pytest.raises(SessionEnded):
            await enter(session, 5.0)


async def test_no_exchange_begins_in_a_deleted_session_or_a_closed_service(service, session):
    other = await service.session("other", create=True)
    await service.delete("other")
    with pytest.raises(SessionDeleted):
        await enter(other)
    await service.close()
    with pytest.raises(ServiceClosed):
        await enter(session)


async def test_who_waited_for_a_session_that_ends_meanwhile_does_not_enter_and_holds_up_nobody(service, session):
    async with session.exchange():
        waiting = [asyncio.create_task(enter(session, 5.0)) for _ in range(2)]
        await asyncio.sleep(0)
        await service.end("user-42")
    for task in waiting:
        with pytest.raises(SessionEnded):
            await task
    assert session._cell.exchange_lock.locked() is False


async def test_an_exchange_begins_while_the_session_is_held_up(session):
    await suspend(session.ref)
    assert await enter(session) == "entered"
    await resume(session.ref)
