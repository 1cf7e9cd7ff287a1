"""What is no number of seconds is refused, and harms nobody else."""

import asyncio
from decimal import Decimal
from fractions import Fraction
from functools import partial
from typing import Any

import pytest

from session_actor.supervisors import (
    Backoff,
    CallTimeout,
    GenServer,
    ManualClock,
    ServerCrashed,
    Supervisor,
    get_state,
    statistics,
)
from session_actor.supervisors.swapping import swap

from .support import AT_ONCE, Add, Defer, Get, Hold, Life, Note, Run, idle, turns

NO_TIMES = [Decimal("0.2"), Fraction(1, 5), 10**400, -(10**400), True, "1", -1.0, float("nan")]


@pytest.mark.parametrize("timeout_s", NO_TIMES, ids=lambda value: type(value).__name__)
async def test_what_is_no_number_of_seconds_is_refused_and_the_timeouts_of_others_run(
    life: Life, timeout_s: Any, clock: ManualClock
) -> None:
    async with Supervisor([life.spec()], clock=clock) as root:
        ref = await idle(root.child("server"))
        held = asyncio.create_task(ref.call(Hold(), timeout_s=None))
        await life.held.wait()
        late = [asyncio.create_task(ref.call(Get(), timeout_s=1.0)) for _ in range(3)]
        await turns()
        for refused in (
            lambda: ref.call(Add(), timeout_s=timeout_s),
            lambda: get_state(ref, timeout_s=timeout_s),
            lambda: ref.started(timeout_s),
            lambda: ref.stop(timeout_s=timeout_s),
            lambda: swap(ref, pause_s=timeout_s),
        ):
            with pytest.raises((TypeError, ValueError), match=r"_s (is|must)"):
                await refused()
        clock.advance(1.0)
        results = await asyncio.gather(*late, return_exceptions=True)
        assert [type(result) for result in results] == [CallTimeout] * 3
        life.gate.set()
        assert (await held, await ref.call(Get(), timeout_s=float("inf"))) == (1, 1)


async def test_a_deferred_reply_of_a_call_with_no_time_is_dropped_and_others_time_out(
    life: Life, clock: ManualClock
) -> None:
    async with Supervisor([life.spec()], clock=clock) as root:
        ref = await idle(root.child("server"))
        late = asyncio.create_task(ref.call(Defer(), timeout_s=1))
        await turns()
        with pytest.raises(TypeError, match="Decimal"):
            ref.dispatch(Defer(), timeout_s=Decimal(1))  # type: ignore[call-overload]
        life.deferred[1].reply("for nobody")
        clock.advance(1.0)
        with pytest.raises(CallTimeout):
            await late
        assert (statistics(ref).dropped, statistics(ref).crashes) == (1, 0)


async def test_a_timer_that_cannot_be_set_is_a_crash_and_the_server_comes_back(life: Life) -> None:
    async with Supervisor([life.spec()], backoff=AT_ONCE) as root:
        ref = await idle(root.child("server"))
        delays: tuple[Any, ...] = (10**400, "soon")
        for delay_s in delays:
            with pytest.raises(ServerCrashed):
                await ref.call(Run(partial(GenServer.send_after, delay_s=delay_s, message=Note())))
            assert await ref.call(Get(), timeout_s=1.0) == 0
        assert life.starts == 3


def test_a_backoff_is_made_of_real_numbers_and_grows_to_its_limit_whatever_its_factor() -> None:
    for initial_s in (Decimal("0.1"), Fraction(1, 10), float("nan")):
        with pytest.raises(ValueError, match="backoff"):
            Backoff(initial_s=initial_s)  # type: ignore[arg-type]
    assert Backoff(factor=1e200, jitter=0.0).delay_s(3, lambda: 0.5) == 10.0
