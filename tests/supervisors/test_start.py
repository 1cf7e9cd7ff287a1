"""Starts that are cancelled, fail or are stopped half-way: nothing is left, and nobody waits for ever."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from session_actor.supervisors import (
    Call,
    ChildSpec,
    DynamicSupervisor,
    GenServer,
    InitFailed,
    Intensity,
    ManualClock,
    ServerCrashed,
    ServerRef,
    ServerStopped,
    Supervisor,
    SupervisorError,
    get_state,
    handles,
)

from .support import AT_ONCE, Boom, turns, until

Step = Callable[[], Awaitable[None]]


class Crash(Call[None]):
    """Crashes in the handler."""


class Child(GenServer):
    """Takes two turns to start, or what the step makes of it."""

    def __init__(self, name: str, log: list[str], step: Step | None = None) -> None:
        self.name, self.log, self.step = name, log, step

    async def init(self) -> None:
        await turns(2)
        if self.step is not None:
            await self.step()
        self.log.append(f"{self.name} up")

    async def terminate(self, reason: Any) -> None:
        self.log.append(f"{self.name} down")

    @handles(Crash)
    def crash(self, message: Crash) -> None:
        raise Boom


def child(name: str, log: list[str], step: Step | None = None, **options: Any) -> ChildSpec:
    return ChildSpec(name, start=lambda: Child(name, log, step), **options)


async def forever() -> None:
    await asyncio.Event().wait()


def hanging_at(number: int) -> Step:
    """A step that hangs at this start, counted from 1, of all that share it."""
    starts: list[None] = []

    async def step() -> None:
        starts.append(None)
        if len(starts) == number:
            await forever()

    return step


def tree(log: list[str], clock: ManualClock, failing: str = "") -> Supervisor:
    """Five servers in three supervisors, and a task."""

    async def fail() -> None:
        raise Boom

    a, b, c, d = (child(name, log, fail if name == failing else None) for name in "abcd")
    inner = Supervisor([b, ChildSpec("pool", start=DynamicSupervisor), c], name="inner")
    return Supervisor(
        [a, ChildSpec("inner", start=lambda: inner), ChildSpec("task", task=forever), d], clock=clock, backoff=AT_ONCE
    )


def left() -> set[asyncio.Task[Any]]:
    return {task for task in asyncio.all_tasks() if task is not asyncio.current_task()}


def up_and_down(log: list[str]) -> bool:
    """Whether what came up went down again, in reverse order."""
    ups = [entry[0] for entry in log if entry.endswith("up")]
    downs = [entry[0] for entry in log if entry.endswith("down")]
    return downs == ups[::-1] and log == [*(f"{name} up" for name in ups), *(f"{name} down" for name in downs)]


async def test_a_start_that_is_cancelled_after_any_turn_leaves_nothing_and_can_be_repeated(clock: ManualClock) -> None:
    count = 0
    log: list[str] = []
    for count in range(1000):
        log = []
        root = tree(log, clock)
        starting = asyncio.ensure_future(root.start())
        await turns(count)
        if starting.done():
            await root.stop()
            break
        starting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await starting
        await turns()
        assert not left(), count
        assert up_and_down(log), (count, log)
        assert not root.alive
        log.clear()
        async with root:
            assert [entry for entry in log if entry.endswith("up")] == ["a up", "b up", "c up", "d up"]
        assert up_and_down(log)
    assert count > 20
    assert up_and_down(log)


@pytest.mark.parametrize("failing", list("abcd"))
async def test_a_start_that_fails_at_any_child_leaves_nothing(failing: str, clock: ManualClock) -> None:
    log: list[str] = []
    root = tree(log, clock, failing)
    with pytest.raises(InitFailed):
        await root.start()
    await turns()
    assert not left()
    assert up_and_down(log)
    assert [entry[0] for entry in log if entry.endswith("up")] == list("abcd".split(failing, maxsplit=1)[0])


async def test_the_body_of_a_tree_whose_start_takes_too_long_is_never_entered_and_nothing_is_left() -> None:
    entered: list[None] = []

    async def run() -> None:
        async with (
            asyncio.timeout(0.01),
            Supervisor([child("up", []), child("hanging", [], forever, shutdown_s=None)]),
        ):
            entered.append(None)

    with pytest.raises(TimeoutError):
        await run()
    await turns()
    assert not left()
    assert not entered


async def test_a_start_that_is_cancelled_twice_kills_what_does_not_stop(clock: ManualClock) -> None:
    class Slow(Child):
        async def terminate(self, reason: Any) -> None:
            self.log.append("asked")
            await forever()

    log: list[str] = []
    slow = ChildSpec("slow", start=lambda: Slow("slow", log), shutdown_s=None)
    root = Supervisor([slow, child("hanging", log, forever)], clock=clock)
    starting = asyncio.ensure_future(root.start())
    await until(lambda: "slow up" in log)
    await turns()
    starting.cancel()
    await until(lambda: "asked" in log)
    await turns()
    assert not starting.done()
    starting.cancel()
    for _ in range(8):
        await turns()
        clock.advance(0.25)
    with pytest.raises(asyncio.CancelledError):
        await starting
    await turns()
    assert not left()


async def test_a_stop_passes_an_init_that_hangs_at_the_first_start(clock: ManualClock) -> None:
    log: list[str] = []
    inner = Supervisor([child("hanging", log, forever, shutdown_s=1.0), child("later", log)], name="inner")
    root = Supervisor([child("up", log), ChildSpec("inner", start=lambda: inner, shutdown_s=None)], clock=clock)
    starting = asyncio.ensure_future(root.start())
    await until(lambda: "up up" in log)
    await turns(20)
    stopping = asyncio.ensure_future(root.stop())
    await turns(20)
    assert not stopping.done()  # it has its second to start, and to stop
    clock.advance(1.0)
    await stopping
    with pytest.raises(ServerStopped):
        await starting
    assert log == ["up up", "up down"]
    assert root.reason is not None
    assert root.reason.kind == "stopped"
    assert not left()


async def stopped_in_a_restart(
    root: Supervisor,
    crashing: ServerRef,
    log: list[str],
    clock: ManualClock,
    error: type[SupervisorError] = ServerCrashed,
) -> None:
    """Crash a child, whose restart comes to an `init` that hangs, and stop the tree then."""
    with pytest.raises(error):
        await crashing.call(Crash())
    await until(lambda: log.count("a up") == 2)
    await turns(20)
    stopping = asyncio.ensure_future(root.stop())
    await turns(20)
    clock.advance(1.0)
    await stopping


@pytest.mark.parametrize("strategy", ["one_for_all", "rest_for_one"])
async def test_a_stop_passes_an_init_that_hangs_in_a_group_restart(strategy: Any, clock: ManualClock) -> None:
    log: list[str] = []
    specs = [child("a", log), child("b", log, hanging_at(2), shutdown_s=1.0), child("c", log)]
    root = Supervisor(specs, strategy=strategy, clock=clock, backoff=AT_ONCE)
    await root.start()
    await stopped_in_a_restart(root, root.child("a"), log, clock)
    assert log.count("a down") == 2
    assert log.count("c up") == 1
    assert root.reason is not None
    assert root.reason.kind == "stopped"
    assert not left()


async def test_a_stop_passes_an_init_that_hangs_in_the_restart_of_a_nested_supervisor(clock: ManualClock) -> None:
    log: list[str] = []
    specs = [child("a", log), child("b", log, hanging_at(2), shutdown_s=1.0)]
    inner = Supervisor(specs, name="inner", intensity=Intensity(0, 1.0))
    root = Supervisor([ChildSpec("inner", start=lambda: inner, shutdown_s=None)], clock=clock, backoff=AT_ONCE)
    await root.start()
    await stopped_in_a_restart(root, inner.child("a"), log, clock, SupervisorError)
    assert not left()


async def test_a_supervisor_whose_child_used_its_restarts_does_not_wait_for_an_init_that_hangs(
    clock: ManualClock,
) -> None:
    log: list[str] = []
    once = Intensity(0, 1.0)
    specs = [child("a", log, intensity=once), child("hanging", log, forever, shutdown_s=1.0)]
    root = Supervisor(specs, clock=clock, backoff=AT_ONCE)
    starting = asyncio.ensure_future(root.start())
    await until(lambda: "a up" in log)
    await turns(20)
    with pytest.raises(ServerCrashed):
        await root.child("a").call(Crash())
    await turns(20)
    clock.advance(1.0)
    with pytest.raises(InitFailed):
        await starting
    assert not left()


async def test_a_group_restart_does_not_lose_a_nested_supervisor_that_was_starting(clock: ManualClock) -> None:
    log: list[str] = []
    inner = Supervisor([child("b", log, hanging_at(1), shutdown_s=1.0)], name="inner")
    root = Supervisor([child("a", log)], strategy="one_for_all", clock=clock, backoff=AT_ONCE)
    await root.start()
    adding = asyncio.ensure_future(root.start_child(ChildSpec("inner", start=lambda: inner, shutdown_s=None)))
    await turns(20)
    with pytest.raises(ServerCrashed):
        await root.child("a").call(Crash())
    await turns(20)
    clock.advance(1.0)
    assert await adding == root.child("inner")
    assert log == ["a up", "a down", "a up", "b up"]
    await root.stop()
    assert not left()


async def test_the_refs_of_children_that_a_restart_did_not_come_to_stay_good(clock: ManualClock) -> None:
    async def fail_once() -> None:
        starts.append(None)
        if len(starts) == 2:
            raise Boom

    starts: list[None] = []
    log: list[str] = []
    specs = [child("a", log), child("b", log, fail_once), child("c", log)]
    inner = Supervisor(specs, name="inner", intensity=Intensity(0, 1.0))
    async with Supervisor([ChildSpec("inner", start=lambda: inner)], clock=clock, backoff=AT_ONCE):
        c = inner.child("c")
        with pytest.raises(SupervisorError):
            await inner.child("a").call(Crash())
        await until(lambda: log.count("c up") == 2)
        assert inner.child("c") is c
        assert (await get_state(c))["name"] == "c"
