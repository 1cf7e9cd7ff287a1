"""Hooks that do what no hook should, at moments that nobody would choose."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from session_actor import Hook, InsideHook, InvalidArgument, MemoryStore, SessionService
from session_actor.hooks import mandatory
from session_actor.hooks.mandatory import Mandatory
from session_actor.hooks.server import HookedServer
from session_actor.service import endings

from .conftest import idle, opened, pass_time, turns, until


class Odd(BaseException):
    """No Exception, as libraries that cancel by themselves raise it."""


@pytest.mark.parametrize("kind", [Odd, GeneratorExit])
async def test_what_is_no_exception_is_a_failure_like_any_other(store, clock, kind):
    tries: list[int] = []

    async def fn(ctx) -> None:
        tries.append(ctx.attempt)
        if ctx.attempt < 3:
            raise kind

    async with opened(store, Hook("odd", fn, "ended", mandatory=True), clock=clock) as service:
        await service.session("user-42", create=True)
        await service.end("user-42")
        await until(lambda: service.hooks.pending() and service.hooks.pending()[0].error == kind.__name__)
        await pass_time(clock, lambda: not service.hooks.pending())
        assert service.hooks.dead_letters() == []
    assert tries == [1, 2, 3]


@pytest.mark.parametrize("waits", ["sleeps", "does not wait", "waits for another"])
async def test_a_hook_that_cancels_its_own_task_has_failed_and_is_tried_again(store, clock, waits):
    tries: list[int] = []

    async def fn(ctx) -> None:
        tries.append(ctx.attempt)
        if ctx.attempt < 3:
            asyncio.current_task().cancel()
            if waits == "sleeps":
                await asyncio.sleep(0)
            elif waits == "waits for another":
                await asyncio.gather(asyncio.sleep(60))
            raise ValueError

    async with opened(store, Hook("odd", fn, "ended", mandatory=True), clock=clock) as service:
        await service.session("user-42", create=True)
        await service.end("user-42")
        await until(lambda: service.hooks.pending() and service.hooks.pending()[0].error)
        assert service.hooks.pending()[0].error == ("ValueError" if waits == "does not wait" else "HookCancelled")
        await pass_time(clock, lambda: not service.hooks.pending())
        await service.delete("user-42")
    assert tries == [1, 2, 3]


def test_a_hook_that_runs_when_its_loop_is_gone_is_taken_apart_and_no_failure():
    ended: list[str] = []

    async def fn(_ctx) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.append("taken apart")

    async def begin() -> tuple[SessionService, asyncio.Task]:
        service = SessionService.open(MemoryStore(), hooks=[Hook("hangs", fn, "ended", mandatory=True)])
        await service.start()
        await service.session("user-42", create=True)
        await service.end("user-42")
        await until(lambda: mandatory._active)
        return service, next(iter(mandatory._active.values()))

    loop = asyncio.new_event_loop()
    service, task = loop.run_until_complete(begin())
    task.get_coro().close()
    assert ended == ["taken apart"]
    book = service._lifetime.population.hooks.keeper.book
    assert [(due.name, due.error) for due in book.entries["user-42"].hooks.values()] == [("hangs", None)]
    for left in asyncio.all_tasks(loop) - {task}:
        left.cancel()
    loop.run_until_complete(asyncio.sleep(0))
    task._log_destroy_pending = False
    loop.close()


async def test_what_closing_cuts_short_was_no_try_whatever_the_hook_makes_of_it(store):
    tries: list[int] = []

    async def fn(ctx) -> None:
        tries.append(ctx.attempt)
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            raise ConnectionError from None

    for life in range(3):
        async with opened(store, Hook("cut", fn, "ended", mandatory=True), close_timeout_s=0.02) as service:
            await service.session("user-42", create=True)
            await service.end("user-42")
            await until(lambda life=life: len(tries) > life)
    assert tries == [1, 1, 1]


async def test_a_deletion_comes_when_the_hook_that_it_waits_for_is_finished_by_an_earlier_generation(calls, store):
    gate = calls.gates["bill"] = asyncio.Event()
    old = SessionService.open(store, hooks=[calls.must("bill")])
    await old.start()
    await old.session("user-42", create=True)
    deleting = asyncio.ensure_future(old.delete("user-42", timeout_s=None))
    await until(lambda: calls.names)
    middle = SessionService.take(await old.handover(), hooks=[calls.must("bill")])
    await middle.start()
    async with SessionService.take(await middle.handover(), hooks=[calls.must("bill")]) as new:
        gate.set()
        async with asyncio.timeout(20):
            await deleting
        assert [info.id async for info in new.sessions()] == []
        assert new.health().hooks.deletions == 0
    assert calls.names == ["bill"]


async def test_a_hook_of_an_earlier_generation_cannot_have_its_session_deleted(store):
    said: list[type[BaseException]] = []
    gate = asyncio.Event()
    services: list[SessionService] = []

    async def fn(ctx) -> None:
        await gate.wait()
        try:
            await services[-1].delete(ctx.session_id)
        except InsideHook as error:
            said.append(type(error))

    hook = Hook("deletes", fn, "ended", mandatory=True)
    old = SessionService.open(store, hooks=[hook])
    await old.start()
    await old.session("user-42", create=True)
    await old.end("user-42")
    await turns()
    async with SessionService.take(await old.handover(), hooks=[hook]) as new:
        services.append(new)
        gate.set()
        await until(lambda: said)
        await idle(new)
        assert new.health().hooks.deletions == 0
        assert await (await new.session("user-42")).ended() == "done"


async def test_a_hook_cannot_pause_its_session(store):
    said: list[InsideHook] = []

    async def fn(ctx) -> None:
        with pytest.raises(InsideHook) as caught:
            await (await service.session(ctx.session_id)).swap()
        said.append(caught.value)

    async with opened(store, Hook("swaps", fn, "created")) as service:
        await service.session("user-42", create=True)
        await until(lambda: said)


async def test_an_end_that_comes_while_an_earlier_one_is_found_void_has_its_hooks(calls, store):
    hooks = [calls.must("bill", priority=90), calls.must("export")]
    async with opened(store, *hooks) as service:
        cell = (await service.session("user-42", create=True))._cell
        service._people().hooks.promise(cell.lease, cell.state, "never came", delete=False)
    async with opened(store, *hooks) as service:
        await service.end("user-42", "came")
        await idle(service)
    assert [(ctx.reason, ctx.attempt) for ctx in calls.contexts] == [("came", 1)] * 2
    assert calls.names == ["bill", "export"]


async def test_what_follows_a_hook_of_an_end_that_never_came_is_forgotten_with_it(calls, store, monkeypatch):
    """It would begin beside the first hook of an end that comes just then, and not behind it."""
    queued: list[str] = []
    queue = Mandatory._queue

    def noted(self: Mandatory, job: Any) -> None:
        queued.append(job.name)
        queue(self, job)

    hooks = [calls.must("bill", priority=90), calls.must("export")]
    async with opened(store, *hooks) as service:
        cell = (await service.session("user-42", create=True))._cell
        service._people().hooks.promise(cell.lease, cell.state, "never came", delete=False)
    monkeypatch.setattr(Mandatory, "_queue", noted)
    async with opened(store, *hooks) as service:
        await idle(service)
        assert queued == ["bill"]
        await service.end("user-42", "came")
        await idle(service)
    assert queued == ["bill", "bill", "export"]
    assert calls.names == ["bill", "export"]


async def test_a_session_whose_server_cannot_start_makes_its_hook_a_dead_letter(calls, store, clock, monkeypatch):
    async with opened(store, calls.must("bill")) as service:
        await service.session("user-42", create=True)
        service._people().hooks.tries.leaving = True
        await service.end("user-42")

    async def init(_server) -> None:
        raise RuntimeError

    monkeypatch.setattr(HookedServer, "init", init)
    async with opened(store, calls.must("bill"), clock=clock) as service:
        await pass_time(clock, service.hooks.dead_letters)
    assert calls.names == []


async def test_what_waits_for_a_hook_that_is_not_registered_is_looked_at_once(calls, monkeypatch):
    store = MemoryStore()
    async with opened(store, calls.must("bill", priority=90), calls.must("export")) as service:
        service._people().hooks.tries.leaving = True
        for number in range(40):
            await service.session(f"user-{number}", create=True)
            await service.end(f"user-{number}")
    looked: list[object] = []
    go_on = Mandatory._go_on

    def counted(self: Mandatory, job: Any) -> None:
        looked.append(job)
        go_on(self, job)

    monkeypatch.setattr(Mandatory, "_go_on", counted)
    async with opened(store, calls.must("export")) as service:
        await until(lambda: all(hook.name == "bill" for hook in service.hooks.pending()))
        assert service.health().hooks.unregistered == ("bill",)
    assert calls.names == ["export"] * 40
    assert len(looked) == 2 * 40


async def test_what_is_said_while_a_session_is_looked_at_keeps_it_from_being_ended(store, monkeypatch):
    last_frame_us = endings._last_frame_us

    async def and_a_push(state) -> int:
        found = await last_frame_us(state)
        await (await service.session("user-42")).push("wait", "yes?")
        return found

    async with opened(store) as service:
        await (await service.session("user-42", create=True)).push("hello", "hi")
    async with opened(store) as service:
        await asyncio.sleep(0.01)
        with monkeypatch.context() as patch:
            patch.setattr(endings, "_last_frame_us", and_a_push)
            assert await service.end_idle(0.005) == []
        assert await (await service.session("user-42")).ended() is None


@pytest.mark.parametrize("wrong", [None, 5, Hook("alone", print, "ended")])
def test_hooks_that_are_no_list_are_refused_by_name(wrong, tmp_path):
    with pytest.raises(InvalidArgument, match="hooks must be a list of hooks"):
        SessionService.open(tmp_path, hooks=wrong)
