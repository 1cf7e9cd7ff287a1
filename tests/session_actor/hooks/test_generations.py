"""Hooks over a handover to the next generation of the code, in the same process."""

from __future__ import annotations

import asyncio

import pytest

from session_actor import FileStore, Hook, HookContext, SessionService
from session_actor.hooks import mandatory
from session_actor.hooks.hook import by_phase
from session_actor.hooks.service_hooks import ServiceHooks
from session_actor.supervisors import ChildSpec

from ...persistence.disks import TroubledDisk
from .conftest import Calls, idle, turns, until


async def test_what_is_pending_is_run_once_over_a_handover(store):
    before, after = Calls(), Calls()
    before.gates["bill"] = asyncio.Event()
    old = SessionService.open(store, hooks=[before.must("bill"), before.hook("on", "activated")])
    await old.start()
    for name in ("running", "later"):
        await old.session(name, create=True)
    await old.end("running")
    await until(lambda: "bill" in before.names)
    async with SessionService.take(await old.handover(), hooks=[after.must("bill"), after.must("learn")]) as new:
        assert [hook.name for hook in new.hooks.pending()] == ["bill"]
        await new.end("later")
        await until(lambda: sorted(after.names) == ["bill", "learn"])
        before.gates["bill"].set()
        await idle(new)
        await turns()
        assert [ctx.session_id for ctx in before.contexts if ctx.phase == "ended"] == ["running"]
        assert {ctx.session_id for ctx in after.contexts} == {"later"}
    async with SessionService.open(store, hooks=[after.must("bill"), after.must("learn")]) as service:
        assert service.hooks.pending() == []
    assert asyncio.all_tasks() == {asyncio.current_task()}


async def test_a_generation_with_hooks_may_follow_one_without(store):
    calls = Calls()
    old = SessionService.open(store)
    await old.start()
    session = await old.session("user-42", create=True)
    async with SessionService.take(await old.handover(), hooks=[calls.must("bill")]) as new:
        await session.push("hello", "hi")
        await new.end("user-42")
        await idle(new)
        assert calls.names == ["bill"]


@pytest.mark.parametrize("mandatory", [True, False])
async def test_a_hook_that_an_earlier_generation_began_is_waited_for_when_the_service_closes(calls, store, mandatory):
    begun, gate, ended = asyncio.Event(), asyncio.Event(), list[str]()

    async def bill(ctx: HookContext) -> None:
        begun.set()
        await gate.wait()
        ended.append(ctx.session_id)

    old = SessionService.open(store, hooks=[Hook("bill", bill, "ended", mandatory=mandatory)])
    await old.start()
    await old.session("user-42", create=True)
    await old.end("user-42")
    await begun.wait()
    new = SessionService.take(await old.handover(), hooks=[calls.must("bill")])
    await new.start()
    newest = SessionService.take(await new.handover(), hooks=[calls.must("bill")])
    await newest.start()
    closing = asyncio.create_task(newest.close())
    await asyncio.wait([closing], timeout=0.4)  # longer than a try that is cancelled may take to end
    gate.set()
    await closing
    assert ended == ["user-42"]
    async with SessionService.open(store, hooks=[calls.must("bill")]) as service:
        assert service.hooks.pending() == []
    assert calls.names == []
    assert asyncio.all_tasks() == {asyncio.current_task()}


async def test_a_hook_of_a_change_that_waits_for_the_disk_is_called_over_a_handover(calls, tmp_path):
    disk = TroubledDisk()
    hooks = [calls.hook("on", "created"), calls.hook("bill")]
    old = SessionService.open(FileStore(tmp_path / "store", disk=disk), hooks=hooks, durability="synced")
    await old.start()
    await old.session("ends", create=True)
    await until(lambda: calls.names == ["on"])
    gate = disk.hold("sync")
    waiting = [asyncio.create_task(old.end("ends")), asyncio.create_task(old.session("comes", create=True))]
    await turns()
    async with SessionService.take(await old.handover(), hooks=hooks, durability="synced"):
        await turns()
        assert calls.names == ["on"]
        gate.set()
        await asyncio.gather(*waiting)
        await until(lambda: len(calls.names) == 3)
    assert sorted(calls.names) == ["bill", "on", "on"]


async def test_a_hook_that_two_generations_begin_in_the_same_turn_runs_once(calls, store, monkeypatch):
    monkeypatch.setattr(mandatory, "_WAIT_S", 0.01)
    async with SessionService.open(store, hooks=[calls.must("bill")]) as service:
        await service.session("user-42", create=True)
        people = service._people()
        heir = ServiceHooks(people, by_phase([calls.must("bill")]), people.hooks.keeper.level)
        await people.root.start_child(ChildSpec("heir", start=lambda: heir.tries.supervisor, shutdown_s=None))
        await heir.share(people.hooks)
        started = people.hooks.tries.start

        def start(*arguments) -> bool:
            """The next generation takes over when the try has its task, which has not run yet."""
            answer = started(*arguments)
            heir.take_over(people.hooks)
            return answer

        monkeypatch.setattr(people.hooks.tries, "start", start)
        calls.gates["bill"] = asyncio.Event()
        await service.end("user-42")
        await turns(200)
        calls.gates["bill"].set()
        await until(lambda: not service.hooks.pending())
        await until(lambda: not heir.tries.busy and not heir.mandatory._jobs)
    assert calls.names == ["bill"]
