"""Hooks over a handover to the next generation of the code, in the same process."""

from __future__ import annotations

import asyncio

from session_actor import SessionService

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
