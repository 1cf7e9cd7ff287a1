"""What belongs to the event loop of a service is refused by name elsewhere, and nobody is harmed by that."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest

from session_actor import MemoryStore, SessionService, WrongLoop
from session_actor.errors import SessionActorError
from session_actor.server import snapshots


async def elsewhere(use: Callable[[], Coroutine[Any, Any, object]]) -> BaseException | None:
    """What `use` raises on an event loop of another thread, within a second."""

    def run() -> BaseException | None:
        try:
            asyncio.run(asyncio.wait_for(use(), 1))
        except Exception as error:  # noqa: BLE001 - it is looked at
            return error
        return None

    return await asyncio.to_thread(run)


async def test_a_feed_is_read_in_no_other_thread_and_the_session_lives_on():
    """In debug mode a future of another loop cannot be resolved: the session that told its change had crashed."""
    asyncio.get_running_loop().set_debug(True)
    async with SessionService.open(MemoryStore()) as service:
        session = await service.session("user-42", create=True)
        feed = session.changes()
        reading = asyncio.ensure_future(elsewhere(lambda: anext(feed)))
        while not reading.done():
            await session.push("tide", "")
            await asyncio.sleep(0.001)
        assert isinstance(await reading, WrongLoop)
        async with feed:
            assert (await anext(feed)).kind == "pushed"


async def test_a_feed_is_neither_made_nor_closed_in_another_thread():
    async with SessionService.open(MemoryStore()) as service:
        session = await service.session("user-42", create=True)

        async def make() -> None:
            session.changes()

        feed = session.changes()
        for use in (make, feed.aclose):
            refused = await elsewhere(use)
            assert isinstance(refused, WrongLoop)
            assert isinstance(refused, SessionActorError)
        await session.push("tide", "")
        assert (await anext(feed)).kind == "pushed"


async def test_a_cold_frame_is_read_on_no_other_loop_and_where_it_belongs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(snapshots, "RESTING_RECORDS", 2)
    async with SessionService.open(tmp_path) as service:
        session = await service.session("user-42", create=True)
        for number in range(100):
            await session.push(str(number), "")
    async with SessionService.open(tmp_path) as service:
        session = await service.session("user-42")
        stack = await session.stack()
        for use in (lambda: session.get(5), stack.load):
            assert isinstance(await elsewhere(use), WrongLoop)
        assert (await session.get(5)).user_input == "4"
        assert len(list(await stack.load())) == 100


async def test_what_is_in_memory_is_read_in_any_thread(tmp_path: Path):
    async with SessionService.open(tmp_path) as service:
        session = await service.session("user-42", create=True)
        await session.push("tide", "")
        assert await elsewhere(lambda: session.get(1)) is None
        assert await elsewhere(session.stack) is None
