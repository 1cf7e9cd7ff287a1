"""OTP's supervisor_SUITE: trees, counting, order, restarts that hang, and how it scales."""

import asyncio
import gc
import sys
import weakref
from types import FrameType
from typing import Any

import pytest

from session_actor.supervisors import (
    ChildExists,
    ChildSpec,
    DynamicSupervisor,
    GenServer,
    Intensity,
    ManualClock,
    Registry,
    Supervisor,
    SupervisorError,
)

from .support import SHORT, Boom, Leave, Life, Ping, crash, crash_and_restart, pass_time, settle, until

FOUR = Intensity(max_restarts=4, max_seconds=3600.0)
MANY = Intensity(max_restarts=100_000, max_seconds=3600.0)


def numbers(supervisor: Supervisor | DynamicSupervisor) -> tuple[int, int, int, int]:
    counts = supervisor.count_children()
    return counts.specs, counts.active, counts.supervisors, counts.workers


# Trees


async def test_a_tree_restarts_what_ended_and_when_a_branch_gives_up_the_whole_tree_without_added_children(
    clock: ManualClock,
) -> None:
    lives = {name: Life(name) for name in ("child1", "child2", "child4")}
    lives["child3"] = Life("child3", script=[None, *[Boom()] * 4, *[Boom()] * 50])
    fixed = Supervisor(children=[lives["child1"].spec(), lives["child2"].spec()], intensity=FOUR, backoff=SHORT)
    grown = Supervisor(children=[], intensity=FOUR, backoff=SHORT)
    stopped = Supervisor(children=[], intensity=FOUR, backoff=SHORT)
    specs = [
        ChildSpec("sup1", start=lambda: fixed, shutdown_s=None),
        ChildSpec("sup2", start=lambda: grown, shutdown_s=None),
        ChildSpec("sup3", start=lambda: stopped, shutdown_s=None, restart="transient"),
    ]
    async with Supervisor(children=specs, strategy="one_for_all", intensity=FOUR, backoff=SHORT, clock=clock) as top:
        await top.terminate_child("sup3")
        assert numbers(top) == (3, 2, 3, 0)
        assert (numbers(fixed), numbers(grown)) == ((2, 2, 0, 2), (0, 0, 0, 0))
        child3 = await grown.start_child(lives["child3"].spec())
        child4 = await grown.start_child(lives["child4"].spec())

        await crash_and_restart(clock, child4)
        assert await child4.call(Ping()) == 2
        assert [life.starts for life in lives.values()] == [1, 1, 2, 1]

        await crash(child3)
        for _ in range(12):
            await pass_time(clock)
        assert [lives[name].starts for name in ("child1", "child2")] == [2, 2]
        assert (numbers(fixed), numbers(grown)) == ((2, 2, 0, 2), (0, 0, 0, 0))
        assert numbers(top)[0] == 3
        assert lives["child4"].starts == 2
        assert not child4.alive


@pytest.mark.parametrize("outer", [Supervisor, DynamicSupervisor])
@pytest.mark.parametrize(("options", "kind"), [({}, "parent"), ({"shutdown_s": 5.0}, "killed")])
async def test_a_supervisor_as_a_child_has_no_limit_but_its_childrens_unless_one_is_given(
    clock: ManualClock, outer: type[Supervisor | DynamicSupervisor], options: dict[str, Any], kind: str
) -> None:
    async def slow() -> None:
        over = asyncio.Event()
        clock.call_later(3.0, over.set)
        await over.wait()

    lives = [Life(name, at_terminate=slow) for name in "abc"]
    inner = Supervisor([life.spec() for life in lives])
    supervisor = outer(clock=clock)
    await supervisor.start()
    await supervisor.start_child(ChildSpec("inner", start=lambda: inner, **options))
    stopping = asyncio.ensure_future(supervisor.stop())
    for _ in range(12):
        await pass_time(clock, 1.0)
    assert stopping.done()
    await stopping
    assert [life.reasons[0].kind for life in lives] == [kind, "parent", "parent"]


async def test_a_supervisor_that_is_killed_is_restarted_with_its_children(clock: ManualClock) -> None:
    registry, life = Registry(), Life("server")
    middle = Supervisor(children=[life.spec()], strategy="one_for_all", backoff=SHORT)
    async with Supervisor(children=[ChildSpec("middle", start=lambda: middle)], backoff=SHORT, clock=clock) as top:
        registry.register("middle", top.child("middle"))
        top.child("middle").kill()
        await pass_time(clock)
        await until(lambda: life.starts == 2)
        await settle()
        assert await middle.child("server").call(Ping()) == 2
        assert registry.whereis("middle") is top.child("middle")
    assert list(registry.names()) == []


@pytest.mark.parametrize("end", ["kill", "leave", "by hand"])
async def test_a_named_worker_deep_in_a_tree_comes_back_under_its_name(clock: ManualClock, end: str) -> None:
    registry, life = Registry(), Life("server")
    middle = Supervisor(children=[life.spec()], strategy="one_for_all", backoff=SHORT)
    async with Supervisor(children=[ChildSpec("middle", start=lambda: middle)], backoff=SHORT, clock=clock):
        registry.register("server", middle.child("server"))
        if end == "kill":
            middle.child("server").kill()
            await pass_time(clock)
        elif end == "leave":
            await middle.child("server").call(Leave())
            await pass_time(clock)
        else:
            await middle.terminate_child("server")
            await middle.restart_child("server")
            if registry.whereis("server") is None:
                registry.register("server", middle.child("server"))
        found = registry.whereis("server")
        assert found is not None
        assert await found.call(Ping()) == 2
    assert list(registry.names()) == []


# Counting


@pytest.mark.parametrize("kind", ["worker", "supervisor"])
async def test_counts_agree_with_the_list_of_children_also_for_many(clock: ManualClock, kind: str) -> None:
    async with DynamicSupervisor(clock=clock) as supervisor:
        refs = []
        for number in range(200):
            start: Any = DynamicSupervisor if kind == "supervisor" else GenServer
            refs.append(supervisor.spawn(ChildSpec(number, start=start, restart="temporary")))
        await asyncio.gather(*(ref.started() for ref in refs))
        expected = (200, 200, 200, 0) if kind == "supervisor" else (200, 200, 0, 200)
        assert numbers(supervisor) == expected
        assert [info.ref for info in supervisor.which_children()] == refs
        for ref in refs:
            ref.kill()
        await until(lambda: numbers(supervisor) == (0, 0, 0, 0))


async def test_a_child_that_is_being_restarted_is_counted_but_not_active(clock: ManualClock) -> None:
    lives = [Life(name, script=[None, None, *[Boom()] * 3]) for name in "ab"] + [Life("c")]
    async with DynamicSupervisor(clock=clock, backoff=SHORT, intensity=MANY) as supervisor:
        for count, life in enumerate(lives, start=1):
            await supervisor.start_child(life.spec())
            assert numbers(supervisor) == (count, count, 0, count)
        for life in lives:
            await crash_and_restart(clock, supervisor.child(life.name))
        assert numbers(supervisor) == (3, 3, 0, 3)
        for name in "ab":
            await crash_and_restart(clock, supervisor.child(name))
        assert numbers(supervisor) == (3, 1, 0, 3)
        for _ in range(3):
            await pass_time(clock)
        assert numbers(supervisor) == (3, 3, 0, 3)
        for left, name in ((2, "c"), (1, "a"), (0, "b")):
            await supervisor.terminate_child(name)
            assert numbers(supervisor) == (left, left, 0, left)


# What is kept of ended children


@pytest.mark.parametrize("make", [DynamicSupervisor, Supervisor])
@pytest.mark.parametrize("end", ["crash", "leave", "kill", "terminate"])
async def test_nothing_of_a_temporary_child_is_kept_when_it_has_ended(clock: ManualClock, make: Any, end: str) -> None:
    class Large:
        """Stands for what a start function holds on to."""

    async with make(clock=clock) as supervisor:
        life, large = Life("child"), Large()
        seen = weakref.ref(large)

        def start(_: Large = large) -> GenServer:
            return life.server()

        ref = await supervisor.start_child(ChildSpec("child", start=start, restart="temporary"))
        if end == "crash":
            await crash(ref)
        elif end == "leave":
            await ref.call(Leave())
        elif end == "kill":
            ref.kill()
        else:
            await supervisor.terminate_child("child")
        await settle()
        life.reasons.clear()
        del ref, start, large
        gc.collect()
        assert seen() is None
        assert (await supervisor.start_child(life.spec(restart="temporary"))).alive


# Restarts that hang


@pytest.mark.parametrize("strategy", ["one_for_one", "rest_for_one"])
async def test_a_child_in_a_loop_of_failing_restarts_can_be_terminated_and_started_again(
    clock: ManualClock, strategy: Any
) -> None:
    before, after = Life("before"), Life("after")
    failing = Life("failing", script=[None, Boom(), Boom(), None])
    specs = [before.spec(), failing.spec(shutdown_s="kill"), after.spec()]
    async with Supervisor(children=specs, strategy=strategy, intensity=MANY, backoff=SHORT, clock=clock) as supervisor:
        await crash(supervisor.child("failing"))
        await pass_time(clock)
        await pass_time(clock)
        assert failing.starts == 3
        with pytest.raises(ChildExists):
            await supervisor.start_child(failing.spec())
        with pytest.raises(SupervisorError):
            await supervisor.restart_child("failing")
        with pytest.raises(SupervisorError):
            supervisor.delete_child("failing")
        phases = {info.id: info.phase for info in supervisor.which_children()}
        assert (phases["before"], phases["failing"]) == ("running", "backoff")
        assert before.starts == 1

        await supervisor.terminate_child("failing")
        await pass_time(clock, 60.0)
        assert failing.starts == 3
        await supervisor.restart_child("failing")
        assert await supervisor.child("failing").call(Ping()) == 4


@pytest.mark.parametrize("make", ["one_for_one", "rest_for_one", "one_for_all", "dynamic"])
async def test_a_supervisor_with_a_child_in_a_loop_of_failing_restarts_can_be_stopped(
    clock: ManualClock, make: Any
) -> None:
    failing = Life("failing", script=[None, *[Boom()] * 50])
    options: dict[str, Any] = {"intensity": MANY, "backoff": SHORT, "clock": clock}
    supervisor = (
        DynamicSupervisor(**options) if make == "dynamic" else Supervisor(children=[], strategy=make, **options)
    )
    await supervisor.start()
    ref = await supervisor.start_child(failing.spec())
    await crash(ref)
    await pass_time(clock)
    await supervisor.stop()
    starts = failing.starts
    await pass_time(clock, 60.0)
    assert failing.starts == starts
    assert not ref.alive


@pytest.mark.parametrize("make", ["static", "dynamic"])
async def test_an_init_that_hangs_in_a_restart_does_not_block_the_stop(clock: ManualClock, make: str) -> None:
    reached = asyncio.Event()

    class Hangs(GenServer):
        async def init(self) -> None:
            if life.starts:
                reached.set()
                await asyncio.Event().wait()
            life.starts += 1

    life = Life("hangs")
    spec = ChildSpec("hangs", start=Hangs, shutdown_s=1.0)
    supervisor = (
        DynamicSupervisor(clock=clock, backoff=SHORT)
        if make == "dynamic"
        else Supervisor(children=[], clock=clock, backoff=SHORT)
    )
    await supervisor.start()
    ref = await supervisor.start_child(spec)
    ref.kill()
    await pass_time(clock)
    await reached.wait()
    stopping = asyncio.ensure_future(supervisor.stop())
    await settle()
    await pass_time(clock, 1.0)
    await settle()
    assert stopping.done()
    await stopping
    assert not ref.alive


# Order and scale


async def test_children_start_in_order_and_stop_in_reverse(clock: ManualClock, log: list[str]) -> None:
    names = ["ch7", "ch3", "ch10", "ch2", "ch5"]
    lives = [Life(name, log) for name in names]
    supervisor = Supervisor(
        children=[life.spec() for life in lives], strategy="rest_for_one", intensity=FOUR, backoff=SHORT, clock=clock
    )
    await supervisor.start()
    assert log == [f"{name} init" for name in names]
    assert [info.id for info in supervisor.which_children()] == names

    log.clear()
    await crash_and_restart(clock, supervisor.child("ch10"))
    assert log == [f"{n} terminate" for n in ("ch10", "ch5", "ch2")] + [f"{n} init" for n in ("ch10", "ch2", "ch5")]
    assert [info.id for info in supervisor.which_children()] == names

    log.clear()
    await supervisor.stop()
    assert log == [f"{name} terminate" for name in reversed(names)]


async def test_each_child_has_ended_before_the_one_before_it_is_stopped(clock: ManualClock, log: list[str]) -> None:
    lives = [Life(name, log) for name in "abc"]
    for life in lives:
        life.at_terminate = life.gate.wait
    supervisor = Supervisor(children=[life.spec(shutdown_s=None) for life in lives], clock=clock)
    await supervisor.start()
    log.clear()
    stopping = asyncio.ensure_future(supervisor.stop())
    for stopped, life in enumerate(reversed(lives), start=1):
        await settle()
        assert len(log) == stopped
        life.gate.set()
    await stopping
    assert log == ["c terminate", "b terminate", "a terminate"]


@pytest.mark.parametrize("make", ["static", "dynamic"])
async def test_starting_and_terminating_many_children_one_by_one_stays_linear(clock: ManualClock, make: str) -> None:
    """Counted in executed lines, not in time: a search through all children would show as a square."""
    few, many = [await _lines_for(count, clock, make) for count in (25, 200)]
    assert many < 8 * few * 1.5


async def _lines_for(count: int, clock: ManualClock, make: str) -> int:
    lines = 0

    def trace(_frame: FrameType, event: str, _argument: object) -> Any:
        nonlocal lines
        lines += event == "line"
        return trace

    supervisor = DynamicSupervisor(clock=clock) if make == "dynamic" else Supervisor(children=[], clock=clock)
    await supervisor.start()
    before = sys.gettrace()
    sys.settrace(trace)
    try:
        for number in range(count):
            await supervisor.start_child(ChildSpec(number, start=GenServer))
        for number in range(count):
            await supervisor.terminate_child(number)
    finally:
        sys.settrace(before)
    await supervisor.stop()
    return lines
