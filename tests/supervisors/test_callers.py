"""No caller can hurt a server: what timeouts and cancellations of callers do, and what they do not do."""

import asyncio
import gc
from typing import Any

import pytest

from session_actor.supervisors import (
    CallTimeout,
    Supervisor,
    get_state,
    statistics,
)

from .support import (
    AT_ONCE,
    Add,
    Crash,
    Get,
    Hold,
    Life,
    Note,
    idle,
    turns,
)


async def test_a_callers_timeout_neither_ends_nor_restarts_nor_wipes_the_server(life: Life, clock: Any) -> None:
    async with Supervisor([life.spec()], clock=clock) as root:
        ref = root.child("server")
        await ref.call(Add(5))
        held = asyncio.create_task(ref.call(Hold(), timeout_s=1.0))
        await life.held.wait()
        clock.advance(1.0)
        with pytest.raises(CallTimeout):
            await held
        life.gate.set()
        assert await ref.call(Get()) == 6
        assert life.starts == 1


async def test_a_cancelled_caller_does_not_cut_a_handler_half_way(life: Life) -> None:
    async with Supervisor([life.spec()]) as root:
        ref = root.child("server")
        held = asyncio.create_task(ref.call(Hold()))
        await life.held.wait()
        held.cancel()
        await turns()
        assert held.cancelled()
        life.gate.set()
        assert await ref.call(Get()) == 1
        assert life.log == ["held"]


@pytest.mark.parametrize("give_up", ["cancel", "timeout"])
async def test_a_call_given_up_before_it_starts_is_never_run(life: Life, clock: Any, give_up: str) -> None:
    async with Supervisor([life.spec()], clock=clock) as root:
        ref = root.child("server")
        held = asyncio.create_task(ref.call(Hold(), timeout_s=None))
        await life.held.wait()
        waiting = asyncio.create_task(ref.call(Add(10), timeout_s=1.0))
        await turns()
        if give_up == "cancel":
            waiting.cancel()
        else:
            clock.advance(1.0)
        await asyncio.wait([waiting])
        life.gate.set()
        await held
        assert await ref.call(Get()) == 1
        assert life.log == ["held"]


async def test_a_kept_call_runs_although_its_caller_was_cancelled(life: Life) -> None:
    async with Supervisor([life.spec()]) as root:
        ref = root.child("server")
        held = asyncio.create_task(ref.call(Hold()))
        await life.held.wait()
        pending = ref.dispatch(Add(10))
        waiting = asyncio.create_task(pending.wait_keeping())
        await turns()
        waiting.cancel()
        await turns()
        assert waiting.cancelled()
        life.gate.set()
        await held
        assert await ref.call(Get()) == 11


async def test_a_kept_call_that_times_out_before_it_starts_is_never_run(life: Life, clock: Any) -> None:
    async with Supervisor([life.spec()], clock=clock) as root:
        ref = root.child("server")
        held = asyncio.create_task(ref.call(Hold(), timeout_s=None))
        await life.held.wait()
        waiting = asyncio.create_task(ref.dispatch(Add(10), 1.0).wait_keeping())
        await turns()
        clock.advance(1.0)
        with pytest.raises(CallTimeout, match="not run"):
            await waiting
        life.gate.set()
        assert (await held, await ref.call(Get())) == (1, 1)


async def test_a_dispatched_call_that_nobody_awaits_runs_and_fails_without_noise(life: Life) -> None:
    problems: list[Any] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: problems.append(context))
    async with Supervisor([life.spec()], backoff=AT_ONCE) as root:
        ref = await idle(root.child("server"))
        ref.cast(Note())
        ref.dispatch(Add(2))
        ref.dispatch(Crash())
        await turns(10)
        assert life.log == [1, 2, "crash"]
    gc.collect()
    await turns()
    assert problems == []


async def test_late_replies_are_dropped_and_counted(life: Life, clock: Any) -> None:
    async with Supervisor([life.spec()], clock=clock) as root:
        ref = root.child("server")
        held = asyncio.create_task(ref.call(Hold(), timeout_s=1.0))
        await life.held.wait()
        clock.advance(2.0)
        with pytest.raises(CallTimeout, match="outcome is unknown"):
            await held
        life.gate.set()
        await ref.call(Get())
        assert statistics(ref).dropped == 1


async def test_a_timeout_covers_the_wait_in_the_queue(life: Life, clock: Any) -> None:
    async with Supervisor([life.spec()], clock=clock) as root:
        ref = root.child("server")
        held = asyncio.create_task(ref.call(Hold(), timeout_s=None))
        await life.held.wait()
        late = asyncio.create_task(ref.call(Get(), timeout_s=0.01))
        await turns()
        clock.advance(0.009)
        await turns()
        assert not late.done()
        clock.advance(0.001)
        await turns(2)
        assert late.done()
        with pytest.raises(CallTimeout):
            await late
        life.gate.set()
        await held


async def test_a_short_timeout_works_on_the_loops_own_clock(life: Life) -> None:
    async with Supervisor([life.spec()]) as root:
        ref = root.child("server")
        held = asyncio.create_task(ref.call(Hold(), timeout_s=None))
        await life.held.wait()
        with pytest.raises(CallTimeout):
            await ref.call(Get(), timeout_s=0.01)
        pending = ref.dispatch(Get(), 0.11)
        with pytest.raises(TimeoutError):
            await pending.wait()
        life.gate.set()
        assert await held == 1


async def test_a_call_leaves_the_other_messages_in_the_mailbox_alone(life: Life) -> None:
    async with Supervisor([life.spec()]) as root:
        ref = root.child("server")
        for n in range(10):
            ref.cast(Note(n))
        assert await ref.call(Get()) == 45
        assert life.log == list(range(10))


@pytest.mark.parametrize("timeout_s", [-1.0, float("nan"), "soon"])
async def test_an_impossible_timeout_is_refused_and_nothing_is_sent(life: Life, timeout_s: Any) -> None:
    async with Supervisor([life.spec()]) as root:
        ref = root.child("server")
        ref.cast(Note())
        with pytest.raises((ValueError, TypeError)):
            await ref.call(Add(10), timeout_s=timeout_s)
        assert await ref.call(Get()) == 1


async def test_control_calls_of_a_wedged_server_time_out(life: Life, clock: Any) -> None:
    async with Supervisor([life.spec()], clock=clock) as root:
        ref = root.child("server")
        held = asyncio.create_task(ref.call(Hold(), timeout_s=None))
        await life.held.wait()
        asked = asyncio.create_task(get_state(ref, timeout_s=1.0))
        await turns()
        clock.advance(1.0)
        with pytest.raises(CallTimeout):
            await asked
        life.gate.set()
        assert await held == 1


async def test_many_given_up_calls_do_not_fill_the_mailbox_of_a_wedged_server(life: Life) -> None:
    async with Supervisor([life.spec()]) as root:
        ref = root.child("server")
        held = asyncio.create_task(ref.call(Hold(), timeout_s=None))
        await life.held.wait()
        for _ in range(500):
            given_up = asyncio.create_task(ref.call(Add()))
            await turns(1)
            given_up.cancel()
            await turns(2)
        lane = ref.slot.mailbox.user
        assert lane is not None
        assert len(lane) < 200
        assert statistics(ref).mailbox_length == 0
        life.gate.set()
        await held
