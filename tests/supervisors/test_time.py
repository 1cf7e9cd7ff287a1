"""The hand-moved clock, and the one sweep of all deadlines."""

import asyncio
from contextvars import copy_context
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from session_actor.supervisors import (
    CallTimeout,
    ChildSpec,
    DynamicSupervisor,
    GenServer,
    LoopClock,
    ManualClock,
    PendingReply,
    Supervisor,
    statistics,
)
from session_actor.supervisors.deadlines import COMPACT_ABOVE, TICK_S, Deadlines

from .support import Add, Get, Hold, Life, turns


@given(delays=st.lists(st.floats(0, 100), max_size=30), step=st.floats(0.1, 50))
def test_a_manual_clock_runs_what_is_due_in_order_and_nothing_else(delays: list[float], step: float) -> None:
    clock = ManualClock()
    start_s = clock.monotonic()
    ran: list[float] = []
    for delay_s in delays:
        clock.call_later(delay_s, lambda due_s=start_s + delay_s: ran.append(due_s))
    clock.advance(step)
    assert ran == sorted(start_s + delay_s for delay_s in delays if start_s + delay_s <= start_s + step)
    clock.advance(200)
    assert len(ran) == len(delays)


def test_a_manual_clock_never_goes_back_and_forgets_what_was_cancelled() -> None:
    clock = ManualClock()
    ran: list[int] = []
    clock.call_later(1.0, lambda: ran.append(1)).cancel()
    clock.call_later(2.0, lambda: clock.call_later(1.0, lambda: ran.append(2)))
    clock.advance(1.9)
    assert ran == []
    clock.advance(1.1)
    assert ran == [2]
    with pytest.raises(ValueError, match="back"):
        clock.advance(-1)


class CountingClock(LoopClock):
    """Counts its timers; time is moved by hand."""

    def __init__(self) -> None:
        super().__init__(asyncio.get_running_loop())
        self.inner = ManualClock()
        self.timers = 0
        self.monotonic = self.inner.monotonic

    def call_later(self, delay_s: float, callback: Any) -> Any:
        self.timers += 1
        return self.inner.call_later(delay_s, callback)


async def test_a_burst_of_answered_calls_costs_one_timer(life: Life) -> None:
    clock = CountingClock()
    async with Supervisor([life.spec()], clock=clock) as root:
        ref = root.child("server")
        for _ in range(100):
            ref.slot.wake()
            await ref.call(Add())
            await turns(1)
            ref.slot.wake()
        assert clock.timers <= 1


async def test_fresh_calls_expire_after_their_timeout_and_at_most_a_tick_later(life: Life) -> None:
    clock = CountingClock()
    async with Supervisor([life.spec()], clock=clock) as root:
        ref = root.child("server")
        held = asyncio.create_task(ref.call(Hold(), timeout_s=None))
        await life.held.wait()
        late = [asyncio.create_task(ref.call(Get(), timeout_s=timeout_s)) for timeout_s in (1.0, 2.0, 0.01)]
        await turns()
        clock.inner.advance(0.01)
        await turns()
        assert [call.done() for call in late] == [False, False, True]
        clock.inner.advance(0.989)
        await turns()
        assert not late[0].done()
        clock.inner.advance(TICK_S + 0.001)
        await turns()
        assert [call.done() for call in late] == [True, False, True]
        clock.inner.advance(1.0)
        results = await asyncio.gather(*late, return_exceptions=True)
        assert [type(result) for result in results] == [CallTimeout] * 3
        life.gate.set()
        await held


async def test_calls_that_wait_over_a_tick_are_one_entry_for_each_timeout_and_all_expire(life: Life) -> None:
    clock = CountingClock()
    async with Supervisor([life.spec()], clock=clock) as root:
        ref = root.child("server")
        held = asyncio.create_task(ref.call(Hold(), timeout_s=None))
        await life.held.wait()
        late = [asyncio.create_task(ref.call(Get(), timeout_s=1.0 + number % 2)) for number in range(100)]
        await turns()
        clock.inner.advance(TICK_S)
        assert len(ref.slot.floor.deadlines._heap) == 2
        clock.inner.advance(1.0)
        await turns()
        assert [call.done() for call in late] == [True, False] * 50
        clock.inner.advance(1.0)
        results = await asyncio.gather(*late, return_exceptions=True)
        assert [type(result) for result in results] == [CallTimeout] * 100
        life.gate.set()
        await held


async def test_answered_calls_do_not_pile_up_behind_one_that_waits(life: Life, clock: ManualClock) -> None:
    async with Supervisor([life.spec()]) as root:
        slot = root.child("server").slot
        deadlines = Deadlines(clock)

        def pending() -> PendingReply[Any]:
            future = asyncio.get_running_loop().create_future()
            return PendingReply(slot, Get(), copy_context(), future, 5.0)

        waiting = pending()
        deadlines.add(waiting, 5.0)
        for _ in range(5 * COMPACT_ABOVE):
            answered = pending()
            deadlines.add(answered, 5.0)
            answered.succeed(None)
        assert len(deadlines._heap) <= COMPACT_ABOVE + 1
        clock.advance(5.0)
        assert isinstance(waiting.future.exception(), CallTimeout)


class Slow(GenServer):
    """Starts when it may."""

    may = asyncio.Event()

    async def init(self) -> None:
        await self.may.wait()


async def test_who_waits_too_long_for_a_start_gives_up_and_the_start_goes_on() -> None:
    clock, Slow.may = ManualClock(), asyncio.Event()
    async with DynamicSupervisor(clock=clock) as root:
        ref = root.spawn(ChildSpec("slow", start=Slow))
        late, patient = asyncio.ensure_future(ref.started(2.0)), asyncio.ensure_future(ref.started(9.0))
        await turns()
        clock.advance(5.0)
        with pytest.raises(CallTimeout):
            await late
        Slow.may.set()
        await patient
        clock.advance(5.0)
        assert ref.phase == "running"
        assert statistics(ref).mailbox_length == 0
        with pytest.raises(ValueError, match="timeout_s"):
            await ref.started(-1.0)
