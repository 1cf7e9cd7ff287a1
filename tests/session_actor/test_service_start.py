"""A start that is cancelled or fails, at whatever step, leaves neither tasks nor an open store."""

from __future__ import annotations

import asyncio
import threading
import types
from pathlib import Path
from typing import Any

import pytest

from session_actor import Hook, InvalidArgument, MemoryStore, ServiceClosed, SessionService, WrongLoop
from session_actor.errors import SessionActorError
from session_actor.hooks.service_hooks import ServiceHooks
from session_actor.supervisors import Supervisor

STEPS = 1000
"""More than a start has."""


def left() -> list[asyncio.Task[Any]]:
    return [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]


async def none_left() -> bool:
    for _ in range(5):
        await asyncio.sleep(0)
    return not left()


async def cancelled_at(coroutine, *waits: int) -> int:
    """Runs it in this task, which is cancelled at those of its waits, counted from 0; returns how often it waited."""

    @types.coroutine
    def counting():
        steps, count, throw = coroutine.__await__(), 0, None
        while True:
            try:
                waited_for = steps.send(None) if throw is None else steps.throw(throw)
            except StopIteration:
                return count
            throw = None
            if count in waits:
                asyncio.current_task().cancel()
            count += 1
            try:
                yield waited_for
            except BaseException as error:  # noqa: BLE001  what is thrown in goes on inside
                throw = error

    return await counting()


async def stopped_at(coroutine, wait: int, there: asyncio.Event) -> Any:
    """Runs it in this task, and tells when it is in that one of its waits, counted from 0."""

    @types.coroutine
    def telling():
        steps, count, throw = coroutine.__await__(), 0, None
        while True:
            try:
                waited_for = steps.send(None) if throw is None else steps.throw(throw)
            except StopIteration as stop:
                return stop.value
            throw = None
            if count == wait:
                there.set()
            count += 1
            try:
                yield waited_for
            except BaseException as error:  # noqa: BLE001  what is thrown in goes on inside
                throw = error

    return await telling()


async def is_whole(service: SessionService) -> None:
    """Starts it, and serves a session."""
    async with service:
        session = await service.session("a", create=True)
        await session.push("1", "2")
    assert await none_left()


async def ending(_context) -> None:
    """A hook that has a book made of what is pending."""


def services(store) -> SessionService:
    return SessionService.open(store, hooks=[Hook("ending", ending, "ended", mandatory=True)])


async def test_a_start_that_is_cancelled_after_any_turn_leaves_nothing_and_can_be_repeated():
    for turns in range(STEPS):
        service = services(MemoryStore())
        starting = asyncio.ensure_future(service.start())
        for _ in range(turns):
            await asyncio.sleep(0)
        if starting.done():
            break
        starting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await starting
        assert await none_left(), turns
        await is_whole(service)
    assert 10 < turns < STEPS
    await service.close()


@pytest.mark.parametrize("again", [False, True], ids=["once", "twice"])
async def test_a_start_on_a_directory_that_is_cancelled_at_any_wait_lets_go_of_it(tmp_path: Path, again: bool):
    for wait in range(STEPS):
        folder = tmp_path / str(wait)
        service = services(folder)
        starting = asyncio.ensure_future(cancelled_at(service.start(), wait, *([wait + 1] if again else [])))
        await asyncio.wait([starting])
        if not starting.cancelled():
            break
        assert await none_left(), wait
        await is_whole(services(folder))
        await is_whole(service)
    assert 5 < wait < STEPS
    assert starting.result() == wait
    await service.close()


async def test_a_body_whose_service_takes_too_long_to_start_is_never_entered_and_nothing_is_left(monkeypatch):
    async def forever(_self) -> None:
        await asyncio.Event().wait()

    monkeypatch.setattr(Supervisor, "start", forever)
    entered = False
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.01), services(store := MemoryStore()):
            entered = True
    assert not entered
    monkeypatch.undo()
    assert await none_left()
    await is_whole(services(store))


@pytest.mark.parametrize("owner", [ServiceHooks, Supervisor])
@pytest.mark.parametrize("late", [False, True], ids=["before", "after"])
async def test_a_start_that_fails_at_any_step_leaves_nothing(monkeypatch, folder, owner, late: bool):
    name = "open" if owner is ServiceHooks else "start"
    real = getattr(owner, name)

    async def failing(self) -> None:
        if late:
            await real(self)
        raise RuntimeError("on purpose")

    service = services(folder)
    monkeypatch.setattr(owner, name, failing)
    with pytest.raises(RuntimeError, match="on purpose"):
        await service.start()
    monkeypatch.undo()
    assert await none_left()
    await is_whole(services(folder))
    await is_whole(service)


async def test_a_start_that_fails_when_all_is_up_takes_it_down_again(monkeypatch, folder):
    def failing(_self) -> None:
        raise RuntimeError("on purpose")

    service = services(folder)
    monkeypatch.setattr(ServiceHooks, "begin", failing)
    with pytest.raises(RuntimeError, match="on purpose"):
        await service.start()
    monkeypatch.undo()
    assert await none_left()
    await is_whole(service)


async def test_of_two_starts_at_once_one_is_refused_and_the_other_serves(folder):
    service = services(folder)
    results = await asyncio.gather(service.start(), service.start(), return_exceptions=True)
    assert sum(isinstance(result, SessionActorError) for result in results) == 1
    assert results.count(None) == 1
    session = await service.session("a", create=True)
    await session.push("1", "2")
    await service.close()
    assert await none_left()


@pytest.mark.parametrize("how", ["once", "twice at once", "given up"])
async def test_a_close_at_any_wait_of_a_start_breaks_it_off_and_nothing_is_left(tmp_path: Path, how: str):
    for wait in range(STEPS):
        folder = tmp_path / str(wait)
        service, there = services(folder), asyncio.Event()
        starting = asyncio.ensure_future(stopped_at(service.start(), wait, there))
        told = asyncio.ensure_future(there.wait())
        await asyncio.wait([starting, told], return_when=asyncio.FIRST_COMPLETED)
        if not there.is_set():
            told.cancel()
            await service.close()
            break
        with pytest.raises(InvalidArgument):
            await service.start()
        closing = [asyncio.ensure_future(service.close()) for _ in range(2 if how == "twice at once" else 1)]
        await asyncio.sleep(0)
        if how == "given up":
            closing[0].cancel()
        else:
            await asyncio.gather(*closing)
            assert starting.done() or service._starting is None
        await asyncio.wait([starting, *closing])
        assert isinstance(starting.exception(), ServiceClosed) or starting.result() is None
        await service.close()
        assert await none_left(), wait
        await is_whole(services(folder))
        await is_whole(service)
    assert 5 < wait < STEPS


async def test_who_cancels_a_start_that_is_closed_has_it_cancelled():
    service, there = services(MemoryStore()), asyncio.Event()
    starting = asyncio.ensure_future(stopped_at(service.start(), 0, there))
    await there.wait()
    starting.cancel()
    await service.close()
    with pytest.raises(asyncio.CancelledError):
        await starting
    assert await none_left()


async def test_a_task_whose_start_was_broken_off_goes_on_uncancelled(tmp_path: Path):
    holder = SessionService.open(tmp_path)
    waiting = SessionService.open(tmp_path, lock_timeout_s=None)

    async def life() -> str:
        try:
            async with waiting:
                return "entered"
        except ServiceClosed:
            await asyncio.sleep(0)
            return f"closed, {asyncio.current_task().cancelling()}"

    async with holder:
        task = asyncio.ensure_future(life())
        await asyncio.sleep(0.05)
        await asyncio.wait_for(waiting.close(), 5)  # though it would wait for the lock for ever
        assert await task == "closed, 0"


async def test_a_start_on_another_loop_is_not_broken_off_from_here(tmp_path: Path):
    service = SessionService.open(tmp_path, lock_timeout_s=None)
    async with SessionService.open(tmp_path):
        begun, over = threading.Event(), threading.Event()

        async def other() -> None:
            task = asyncio.ensure_future(service.start())
            await asyncio.sleep(0.05)
            begun.set()
            await asyncio.to_thread(over.wait)
            await service.close()
            with pytest.raises(ServiceClosed):
                await task

        thread = asyncio.ensure_future(asyncio.to_thread(asyncio.run, other()))
        await asyncio.to_thread(begun.wait)
        with pytest.raises(WrongLoop):
            await service.close()
        over.set()
        await thread
