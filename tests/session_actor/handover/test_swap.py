"""A single session is paused, shown as a plain value, and goes on: with a new server, or as it was."""

from __future__ import annotations

import asyncio
import json

import pytest

from session_actor import HandoverFailed, SessionDeleted, SwappedSession

from .handing import inputs


async def waiting(session, *texts: str) -> list[asyncio.Task]:
    tasks = [asyncio.create_task(session.push(text)) for text in texts]
    await asyncio.sleep(0)
    return tasks


async def test_messages_wait_for_the_new_server_and_reads_go_on(session):
    await session.push("0")
    swapped = await session.swap()
    pushes = await waiting(session, "1", "2")
    server = session._cell.ref.slot.server
    assert isinstance(swapped, SwappedSession)
    assert swapped.paused
    assert await inputs(session) == ["0"]
    assert not any(push.done() for push in pushes)
    await swapped.take()

    assert [frame.id for frame in await asyncio.gather(*pushes)] == [2, 3]
    assert session._cell.ref.slot.server is not server
    assert not swapped.paused
    assert await inputs(session) == ["0", "1", "2"]


async def test_a_value_is_json_and_no_larger_for_a_longer_conversation(session):
    sizes = []
    for count in (5, 200):
        for _ in range(count):
            await session.push("x" * 100, "y" * 100)
        swapped = await session.swap()
        swapped.resume()
        sizes.append(len(json.dumps(swapped.value)))
        assert json.loads(json.dumps(swapped.value)) == swapped.value
        assert swapped.version == 1
    assert sizes[1] < sizes[0] + 20


async def test_a_code_change_that_raises_resumes_the_old_server(session):
    def refuse(version: int, value: dict) -> dict:
        value["state"].clear()
        raise RuntimeError("no")

    await session.push("0")
    swapped = await session.swap()
    pushes = await waiting(session, "1")
    server = session._cell.ref.slot.server
    session._cell.home.code_change = refuse
    with pytest.raises(HandoverFailed, match="RuntimeError"):
        await swapped.take()
    session._cell.home.code_change = None

    assert (await pushes[0]).id == 2
    assert session._cell.ref.slot.server is server
    with pytest.raises(HandoverFailed, match="not paused any more"):
        await swapped.take()
    assert await inputs(session) == ["0", "1"]


async def test_a_value_that_is_not_of_the_session_as_it_is_now_is_refused(session, service):
    other = await service.session("other", create=True)
    swapped, taken = await session.swap(), await other.swap()
    taken.value.update(swapped.value)
    with pytest.raises(HandoverFailed, match="not of session 'other' as it is now"):
        await taken.take()
    swapped.resume()

    assert (await other.push("x")).id == (await session.push("x")).id == 1


async def test_a_session_that_is_not_loaded_is_loaded_and_a_deleted_one_is_refused(service, session):
    await session.push("x")
    assert await service._lifetime.population._passivate(session._cell)
    (await session.swap()).resume()
    await service.delete(session.id)
    with pytest.raises(SessionDeleted):
        await session.swap()
