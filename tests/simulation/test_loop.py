"""Time in a simulation: all of the library's waits run by it, and take none of the world's."""

from __future__ import annotations

import asyncio
import time

import pytest

from session_actor import MemoryStore, SessionService
from session_actor.supervisors import Call, CallTimeout, ChildSpec, DynamicSupervisor, GenServer, handles
from session_actor.supervisors.deadlines import TICK_S

from .loop import simulated

AN_HOUR_S = 3600.0


class Hello(Call[str]):
    """Answered after an hour."""


class Slow(GenServer):
    """Takes an hour to start, too."""

    async def init(self) -> None:
        await asyncio.sleep(AN_HOUR_S)

    @handles(Hello)
    async def hello(self, message: Hello) -> str:
        await asyncio.sleep(AN_HOUR_S)
        return "hello"


def in_a_simulation(scenario):
    """Run it; the world's clock hardly moves."""
    begun_s = time.monotonic()
    with simulated(1) as (loop, _):
        loop.run(scenario(loop))
    assert time.monotonic() - begun_s < AN_HOUR_S / 60


@pytest.mark.parametrize("timeout_s", [0.01, 2.0, 1800.0])
def test_a_start_and_a_call_time_out_by_the_loop_s_time(timeout_s):
    async def scenario(loop):
        async with DynamicSupervisor() as root:
            ref = root.spawn(ChildSpec("slow", start=Slow))
            for wait in (lambda: ref.started(timeout_s), lambda: ref.call(Hello(), timeout_s=timeout_s)):
                begun_s = loop.time()
                with pytest.raises(CallTimeout):
                    await wait()
                assert timeout_s <= loop.time() - begun_s + 1e-6 <= timeout_s + 2 * TICK_S
            await ref.started()
            assert await ref.call(Hello(), timeout_s=None) == "hello"

    in_a_simulation(scenario)


def test_a_session_that_is_idle_is_unloaded_by_the_loop_s_time():
    async def scenario(loop):
        async with SessionService.open(MemoryStore(), idle_timeout_s=600) as service:
            session = await service.session("user-42", create=True)
            await session.push("hello", "")
            await asyncio.sleep(500)
            assert service.health().live == 1
            await asyncio.sleep(500)
            assert service.health().live == 0
            assert len(await session.stack()) == 1

    in_a_simulation(scenario)


def test_what_waits_for_nothing_is_told():
    async def scenario(loop):
        await loop.create_future()

    with pytest.raises(AssertionError, match="hangs"):
        in_a_simulation(scenario)
