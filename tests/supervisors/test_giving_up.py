"""Who gives up holding a server still, or changing its code, leaves it as it was: in whatever moment that is."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from session_actor.supervisors import (
    CallTimeout,
    ChildSpec,
    GenServer,
    ManualClock,
    ServerRef,
    Supervisor,
    SwapOver,
    change_code,
    handles,
    resume,
    suspend,
    swap,
)

from .support import Add, turns, until


class Counter(GenServer):
    def __init__(self) -> None:
        super().__init__()
        self.total = 0

    @handles(Add)
    def add(self, message: Add) -> int:
        self.total += message.n
        return self.total


class Slow(Counter):
    """Its code_change waits for `gate`."""

    version = 2
    gate: asyncio.Event

    async def code_change(self, old_version: int, state: Any) -> Any:
        await self.gate.wait()
        return {"total": state["total"] + 100}


@pytest.fixture
async def ref(clock: ManualClock):
    Slow.gate = asyncio.Event()
    async with Supervisor([ChildSpec("counter", start=Counter)], clock=clock) as root:
        await root.child("counter").call(Add())
        yield root.child("counter")


async def given_up_in_its_moment(ref: ServerRef, work: Coroutine[Any, Any, Any]) -> None:
    """Cancel `work` when it has taken hold, and its caller does not know it yet."""
    task = asyncio.create_task(work)
    await until(lambda: ref.phase == "suspended")
    assert not task.done()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


@pytest.mark.parametrize("holding", [suspend, swap])
async def test_a_server_is_not_held_by_who_was_cancelled_in_that_moment(
    ref: ServerRef, holding: Callable[[ServerRef], Coroutine[Any, Any, Any]]
) -> None:
    await given_up_in_its_moment(ref, holding(ref))

    assert ref.phase == "running"
    assert await ref.call(Add()) == 2


async def test_who_gives_up_lets_nobody_else_s_server_go_on(ref: ServerRef) -> None:
    first = asyncio.create_task(suspend(ref))
    await until(lambda: ref.phase == "suspended")
    first.cancel()
    await suspend(ref)
    await asyncio.wait([first])
    assert first.cancelled()
    assert ref.phase == "suspended"

    second = asyncio.create_task(suspend(ref))
    await asyncio.sleep(0)
    second.cancel()
    await asyncio.wait([second])
    assert ref.phase == "suspended"

    call = asyncio.create_task(ref.call(Add()))
    await asyncio.sleep(0)
    assert not call.done()
    await resume(ref)
    assert await call == 2


async def test_a_server_that_was_suspended_stays_so_when_a_swap_is_over(ref: ServerRef) -> None:
    await suspend(ref)
    (await swap(ref)).resume()
    assert ref.phase == "suspended"
    await (await swap(ref)).take(Counter)
    assert ref.phase == "suspended"

    await resume(ref)
    assert await ref.call(Add()) == 2


async def test_a_server_that_was_resumed_is_not_paused_for_a_swap_any_more(ref: ServerRef) -> None:
    swapped = await swap(ref)
    await resume(ref)
    assert await ref.call(Add()) == 2
    assert not swapped.paused

    with pytest.raises(SwapOver):
        await swapped.take(Counter)
    assert await ref.call(Add()) == 3


async def taking(ref: ServerRef, timeout_s: float | None) -> None:
    await (await swap(ref)).take(Slow, timeout_s)


async def changing(ref: ServerRef, timeout_s: float | None) -> None:
    await change_code(ref, Slow, timeout_s)


@pytest.mark.parametrize("how", ["cancelled", "timed out"])
@pytest.mark.parametrize("change", [taking, changing])
async def test_code_that_is_given_up_before_it_has_the_state_is_not_put_in_place(
    ref: ServerRef, clock: ManualClock, change: Callable[..., Coroutine[Any, Any, None]], how: str
) -> None:
    task = asyncio.create_task(change(ref, 3))
    await turns()
    call = asyncio.create_task(ref.call(Add(), None))
    if how == "cancelled":
        task.cancel()
    else:
        clock.advance(4)
    with pytest.raises(asyncio.CancelledError if how == "cancelled" else CallTimeout):
        await task
    Slow.gate.set()

    assert await call == 2
    assert await ref.call(Add()) == 3
    await change(ref, 3)
    assert await ref.call(Add()) == 104


async def test_a_swap_that_is_resumed_while_the_new_code_takes_its_time_goes_on_as_it_was(ref: ServerRef) -> None:
    swapped = await swap(ref)
    task = asyncio.create_task(swapped.take(Slow))
    await turns()
    swapped.resume()
    Slow.gate.set()

    with pytest.raises(SwapOver):
        await task
    assert await ref.call(Add()) == 2


async def test_a_pause_does_not_end_while_the_new_code_takes_the_state(ref: ServerRef, clock: ManualClock) -> None:
    swapped = await swap(ref, pause_s=5)
    task = asyncio.create_task(swapped.take(Slow, None))
    await turns()
    clock.advance(6)
    Slow.gate.set()
    await task

    assert await ref.call(Add()) == 102
