"""Cases that the lists suggest but do not name: who restarts nobody, bodies that fail, what monitors hear."""

import asyncio
import contextlib
from typing import Any

import pytest

from session_actor.supervisors import (
    ChildSpec,
    DynamicSupervisor,
    InitFailed,
    Intensity,
    ManualClock,
    ServerDown,
    ServerError,
    ServerQuarantined,
    ServerStopped,
    Supervisor,
    monitor,
)

from .support import SHORT, Boom, Hold, Leave, Life, Ping, crash, crash_and_restart, pass_time, settle, until

FOUR = Intensity(max_restarts=4, max_seconds=3600.0)


def dynamic(clock: ManualClock, **options: Any) -> DynamicSupervisor:
    return DynamicSupervisor(clock=clock, backoff=SHORT, **options)


def root(clock: ManualClock, *specs: ChildSpec, **options: Any) -> Supervisor:
    options.setdefault("intensity", FOUR)
    return Supervisor(children=specs, clock=clock, backoff=SHORT, **options)


# Who is no reason for a group restart


@pytest.mark.parametrize("strategy", ["one_for_all", "rest_for_one"])
@pytest.mark.parametrize(("restart", "end"), [("temporary", "crash"), ("temporary", "normal"), ("transient", "normal")])
async def test_a_child_that_is_not_restarted_does_not_restart_its_siblings(
    clock: ManualClock, strategy: Any, restart: Any, end: str
) -> None:
    sibling = Life("sibling")
    async with root(clock, Life("a").spec(restart=restart), sibling.spec(), strategy=strategy) as supervisor:
        if end == "crash":
            await crash(supervisor.child("a"))
        else:
            await supervisor.child("a").call(Leave())
        await pass_time(clock, 60.0)
        assert sibling.starts == 1


async def test_with_no_restarts_allowed_the_first_crash_ends_the_supervisor(clock: ManualClock) -> None:
    supervisor = root(clock, Life("a").spec(), intensity=Intensity(max_restarts=0, max_seconds=5.0))
    await supervisor.start()
    await crash(supervisor.child("a"))
    await until(lambda: supervisor.reason is not None)
    with pytest.raises(ServerDown):
        await supervisor.stop()


# Bodies, monitors, timers


async def test_an_error_in_the_body_passes_and_the_children_are_stopped(clock: ManualClock) -> None:
    life = Life("a")
    with pytest.raises(Boom):
        async with root(clock, life.spec()):
            raise Boom
    assert [reason.kind for reason in life.reasons] == ["parent"]


async def test_a_cancelled_body_still_stops_its_children_in_order(clock: ManualClock, log: list[str]) -> None:
    entered = asyncio.Event()

    async def body() -> None:
        async with root(clock, Life("a", log).spec(), Life("b", log).spec()):
            entered.set()
            await asyncio.Event().wait()

    task = asyncio.ensure_future(body())
    await entered.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert log == ["a init", "b init", "b terminate", "a terminate"]


async def test_a_supervisor_that_gives_up_does_not_cancel_the_body(clock: ManualClock) -> None:
    supervisor = root(clock, Life("a").spec(), intensity=Intensity(max_restarts=0, max_seconds=5.0))

    async def body() -> str:
        async with supervisor:
            await crash(supervisor.child("a"))
            await settle()
            went_on.set()
        return "left"

    went_on = asyncio.Event()
    with pytest.raises(ServerDown):
        await body()
    assert went_on.is_set()


async def test_a_monitor_of_an_ended_server_answers_at_once(clock: ManualClock) -> None:
    async with dynamic(clock) as supervisor:
        ref = await supervisor.start_child(Life("a").spec())
        await ref.stop()
        assert (await monitor(ref)).reason.kind == "stopped"


async def test_a_monitor_hears_of_every_incarnation_in_turn(clock: ManualClock) -> None:
    async with dynamic(clock) as supervisor:
        ref = await supervisor.start_child(Life("a").spec())
        watch = monitor(ref)
        await crash_and_restart(clock, ref)
        ref.kill()
        await pass_time(clock)
        await ref.stop()
        downs = [(down.reason.kind, down.restarting) async for down in watch]
        assert downs == [("crashed", True), ("killed", True), ("stopped", False)]


async def test_a_child_that_cannot_be_started_by_hand_twice_in_a_row_is_still_known(clock: ManualClock) -> None:
    life = Life("a", script=[None, Boom(), Boom(), None])
    async with root(clock, life.spec()) as supervisor:
        await supervisor.terminate_child("a")
        for _ in range(2):
            with pytest.raises(InitFailed):
                await supervisor.restart_child("a")
            with pytest.raises(ServerError):
                await supervisor.child("a").call(Ping())
        await supervisor.restart_child("a")
        assert await supervisor.child("a").call(Ping()) == 4


async def test_a_stopped_refs_calls_fail_as_stopped_whichever_way_they_came(clock: ManualClock) -> None:
    life = Life("a")
    async with dynamic(clock) as supervisor:
        ref = await supervisor.start_child(life.spec())
        holding = asyncio.ensure_future(ref.call(Hold()))
        await life.held.wait()
        queued = [asyncio.ensure_future(ref.call(Ping())) for _ in range(3)]
        await settle()
        stopping = asyncio.ensure_future(ref.stop(timeout_s=None))
        await settle()
        with pytest.raises(ServerStopped):
            await ref.call(Ping())
        life.gate.set()
        await stopping
        assert await holding == "held"
        assert [type(error) for error in await asyncio.gather(*queued, return_exceptions=True)] == [ServerStopped] * 3


@pytest.mark.parametrize("make", ["static", "dynamic"])
@pytest.mark.parametrize("end", ["terminate", "stop", "supervisor", "exhausted"])
async def test_calls_that_wait_for_a_restart_fail_as_soon_as_it_is_not_coming(
    clock: ManualClock, make: str, end: str
) -> None:
    life = Life("a", script=[None, Boom(), Boom(), Boom()])
    intensity = Intensity(max_restarts=2, max_seconds=3600.0)
    supervisor = dynamic(clock, intensity=intensity) if make == "dynamic" else root(clock, intensity=intensity)
    await supervisor.start()
    ref = await supervisor.start_child(life.spec())
    await crash(ref)
    calls = [asyncio.ensure_future(ref.call(Ping(), timeout_s=None)) for _ in range(3)]
    await pass_time(clock)
    assert (ref.phase, [call.done() for call in calls]) == ("backoff", [False] * 3)
    if end == "terminate":
        await supervisor.terminate_child("a")
    elif end == "stop":
        await ref.stop()
    elif end == "supervisor":
        await supervisor.stop()
    else:
        await pass_time(clock)
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert [call.done() for call in calls] == [True] * 3
    failures = await asyncio.gather(*calls, return_exceptions=True)
    assert {type(failure) for failure in failures} == {ServerDown if end == "exhausted" else ServerStopped}
    assert len(set(map(id, failures))) == 3
    with contextlib.suppress(ServerDown):
        await supervisor.stop()


async def test_calls_to_a_child_in_quarantine_fail_at_once_until_it_is_released(clock: ManualClock) -> None:
    life, calm = Life("a"), Life("calm")
    intensity = Intensity(max_restarts=0, max_seconds=3600.0)
    async with dynamic(clock, intensity=intensity, on_exhausted="quarantine") as supervisor:
        ref = await supervisor.start_child(life.spec())
        other = await supervisor.start_child(calm.spec())
        await crash(ref)
        await settle()
        with pytest.raises(ServerQuarantined):
            await ref.call(Ping())
        await pass_time(clock, 3600.0)
        assert (life.starts, supervisor.quarantined()) == (1, ("a",))
        assert await other.call(Ping()) == 1
        assert await supervisor.release("a").call(Ping()) == 2
        assert supervisor.quarantined() == ()
