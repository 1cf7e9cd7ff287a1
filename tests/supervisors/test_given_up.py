"""A call that is cancelled before its message has started is never run, in whichever turn of the loop that is."""

import asyncio
from typing import Any

import pytest

from session_actor.supervisors import (
    DynamicSupervisor,
    ServerRef,
    get_state,
    replace_state,
    resume,
    statistics,
    suspend,
)

from .support import Add, Get, Hold, Life, Note, Run, RunAsync, idle, turns

WAYS = ["call", "wait", "async", "keeping", "nobody"]


async def ask(ref: ServerRef, way: str) -> Any:
    """Send something that adds 10 to the log, and wait for it."""

    async def later(server: Any) -> int:
        return int(server.add(Add(10)))

    if way == "async":
        return await ref.call(RunAsync(later), timeout_s=None)
    if way == "call":
        return await ref.call(Add(10), timeout_s=None)
    pending = ref.dispatch(Add(10), None)
    if way == "keeping":
        return await pending.wait_keeping()
    return await (pending.wait() if way == "wait" else pending.future)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("after", range(4))
async def test_a_call_that_is_cancelled_in_any_turn_is_run_only_when_it_had_started(
    life: Life, way: str, after: int
) -> None:
    async with DynamicSupervisor() as root:
        ref = await idle(root.spawn(life.spec()))
        await suspend(ref)
        waiting = asyncio.create_task(ask(ref, way))
        await turns(2)
        ref.cast(Note(1))
        resuming = asyncio.create_task(resume(ref))
        await turns(after)
        started = life.log[:1] == [10]
        waiting.cancel()
        await asyncio.wait([waiting])
        await resuming
        await idle(ref)
        keeps = way in ("keeping", "nobody")
        assert life.log == ([10, 1] if started or keeps else [1])
        assert (statistics(ref).mailbox_length, ref.slot.mailbox.abandoned) == (0, 0)


async def test_one_that_is_cancelled_in_the_turn_before_that_of_its_start_is_not_run(life: Life) -> None:
    async with DynamicSupervisor() as root:
        ref = await idle(root.spawn(life.spec()))
        held = asyncio.create_task(ref.call(Hold(), timeout_s=None))
        await life.held.wait()
        waiting = [asyncio.create_task(ref.call(Add(n), timeout_s=None)) for n in (10, 20, 30)]
        await turns(2)
        life.gate.set()
        assert life.log == []
        waiting[1].cancel()
        await asyncio.wait(waiting)
        await held
        assert life.log == ["held", 10, 30]
        assert (statistics(ref).mailbox_length, ref.slot.mailbox.abandoned) == (0, 0)


async def test_a_handler_that_cancels_a_call_behind_it_keeps_it_from_being_run(life: Life) -> None:
    async with DynamicSupervisor() as root:
        ref = await idle(root.spawn(life.spec()))
        await suspend(ref)
        first = asyncio.create_task(ref.call(Run(lambda _: second.cancel()), timeout_s=None))
        second = asyncio.create_task(ref.call(Add(10), timeout_s=None))
        await turns(2)
        await resume(ref)
        assert await first
        assert second.cancelled() or await asyncio.wait([second])
        assert (await ref.call(Get()), life.log) == (0, [])


async def test_a_new_state_that_is_cancelled_in_the_turn_before_it_would_be_set_is_not_set(life: Life) -> None:
    async with DynamicSupervisor() as root:
        ref = await idle(root.spawn(life.spec()))
        held = asyncio.create_task(ref.call(Hold(), timeout_s=None))
        await life.held.wait()

        def change(state: dict[str, Any]) -> dict[str, Any]:
            life.log.append("changed")
            return state

        waiting = asyncio.create_task(replace_state(ref, change, None))
        await turns(2)
        life.gate.set()
        waiting.cancel()
        await held
        assert (await get_state(ref))["n"] == 1
        assert life.log == ["held"]
