"""Cases that the lists suggest but do not name: two things happen to one child or supervisor in one moment."""

import asyncio
import contextlib
from typing import Any

import pytest

from session_actor.supervisors import (
    ChildSpec,
    DynamicSupervisor,
    GenServer,
    InitFailed,
    Intensity,
    ManualClock,
    ServerError,
    ServerKilled,
    Supervisor,
    SupervisorError,
)

from .support import SHORT, Boom, Hold, Leave, Life, Ping, crash, pass_time, settle, until

FOUR = Intensity(max_restarts=4, max_seconds=3600.0)


class SlowStart(GenServer):
    """Waits in init until the test opens the gate of its Life."""

    def __init__(self, life: Life) -> None:
        self.life = life

    async def init(self) -> None:
        self.life.starts += 1
        self.life.held.set()
        await self.life.gate.wait()

    async def terminate(self, reason: object) -> None:
        self.life.log.append("terminate")


def slow(life: Life, **options: Any) -> ChildSpec:
    return ChildSpec(life.name, start=lambda: SlowStart(life), **options)


def dynamic(clock: ManualClock, **options: Any) -> DynamicSupervisor:
    return DynamicSupervisor(clock=clock, backoff=SHORT, **options)


def root(clock: ManualClock, *specs: ChildSpec, **options: Any) -> Supervisor:
    options.setdefault("intensity", FOUR)
    return Supervisor(children=specs, clock=clock, backoff=SHORT, **options)


# A child that is starting


async def test_a_child_killed_in_its_first_init_fails_its_starter_and_is_not_restarted(clock: ManualClock) -> None:
    life = Life("slow")
    async with dynamic(clock) as supervisor:
        ref = supervisor.spawn(slow(life))
        starting = asyncio.ensure_future(ref.started())
        await life.held.wait()
        ref.kill()
        with pytest.raises(ServerError):
            await starting
        await pass_time(clock, 60.0)
        assert (life.starts, life.log) == (1, [])
        assert list(supervisor.which_children()) == []


@pytest.mark.parametrize("way", ["stop", "terminate"])
async def test_a_child_stopped_in_its_first_init_fails_its_starter_when_the_time_is_over(
    clock: ManualClock, way: str
) -> None:
    life = Life("slow")
    async with dynamic(clock) as supervisor:
        starting = asyncio.ensure_future(supervisor.start_child(slow(life, shutdown_s=1.0)))
        await life.held.wait()
        ref = supervisor.child("slow")
        ending = asyncio.ensure_future(ref.stop(timeout_s=1.0) if way == "stop" else supervisor.terminate_child("slow"))
        await pass_time(clock, 1.0)
        assert ending.done()
        with pytest.raises(ServerError):
            await starting
        assert not ref.alive
        assert life.log == []


async def test_a_supervisor_stopped_while_it_starts_ends_and_its_starter_hears_of_it(clock: ManualClock) -> None:
    first, life = Life("first"), Life("slow")
    supervisor = root(clock, first.spec(), slow(life, shutdown_s=1.0))
    starting = asyncio.ensure_future(supervisor.start())
    await life.held.wait()
    stopping = asyncio.ensure_future(supervisor.stop(timeout_s=2.0))
    await pass_time(clock, 1.0)
    await pass_time(clock, 2.0)
    assert stopping.done()
    await asyncio.gather(stopping, return_exceptions=True)
    with pytest.raises(SupervisorError):
        await starting
    assert first.log == ["first init", "first terminate"]
    assert not supervisor.alive


async def test_giving_up_the_wait_for_a_start_leaves_the_child_starting(clock: ManualClock) -> None:
    life = Life("slow")
    async with dynamic(clock) as supervisor:
        starting = asyncio.ensure_future(supervisor.start_child(slow(life)))
        await life.held.wait()
        starting.cancel()
        await settle()
        life.gate.set()
        await supervisor.child("slow").started()
        assert supervisor.count_children().active == 1


async def test_messages_sent_before_the_start_run_after_it_in_order(clock: ManualClock) -> None:
    async with dynamic(clock) as supervisor:
        ref = supervisor.spawn(Life("a").spec())
        calls = [asyncio.ensure_future(ref.call(Ping())) for _ in range(3)]
        assert await asyncio.gather(*calls) == [1, 1, 1]


async def test_messages_wait_for_the_restart_and_the_one_that_crashed_is_not_run_again(clock: ManualClock) -> None:
    life = Life("a", script=[None, Boom(), None])
    async with dynamic(clock, intensity=FOUR) as supervisor:
        ref = await supervisor.start_child(life.spec())
        await crash(ref)
        calls = [asyncio.ensure_future(ref.call(Ping(), timeout_s=None)) for _ in range(3)]
        await pass_time(clock)
        assert not any(call.done() for call in calls)
        await pass_time(clock)
        assert await asyncio.gather(*calls) == [3, 3, 3]


# Two askers


async def test_two_stops_of_one_server_and_one_terminate(clock: ManualClock) -> None:
    life = Life("a")
    async with dynamic(clock) as supervisor:
        ref = await supervisor.start_child(life.spec())
        await asyncio.gather(ref.stop(), ref.stop(), supervisor.terminate_child("a"))
        assert len(life.reasons) == 1


@pytest.mark.parametrize("turns", range(6))
@pytest.mark.parametrize("busy", [False, True])
async def test_terminate_runs_once_however_close_two_kills_are(clock: ManualClock, turns: int, busy: bool) -> None:
    life = Life("a")
    async with dynamic(clock) as supervisor:
        ref = await supervisor.start_child(life.spec(restart="temporary"))
        if busy:
            holding = asyncio.ensure_future(ref.call(Hold()))
            await life.held.wait()
        ref.kill()
        for _ in range(turns):
            await asyncio.sleep(0)
        ref.kill()
        clock.advance(60.0)
        await settle()
        assert [reason.kind for reason in life.reasons] == ["killed"]
        if busy:
            with pytest.raises(ServerKilled):
                await holding


async def test_two_stops_of_one_supervisor(clock: ManualClock) -> None:
    life = Life("a")
    supervisor = root(clock, life.spec())
    await supervisor.start()
    await asyncio.gather(supervisor.stop(), supervisor.stop())
    await supervisor.stop()
    assert len(life.reasons) == 1


async def test_of_two_restarts_by_hand_one_wins(clock: ManualClock) -> None:
    life = Life("a")
    async with root(clock, life.spec()) as supervisor:
        await supervisor.terminate_child("a")
        results = await asyncio.gather(
            supervisor.restart_child("a"), supervisor.restart_child("a"), return_exceptions=True
        )
        assert sum(isinstance(result, SupervisorError) for result in results) == 1
        assert life.starts == 2


async def test_a_start_that_fails_and_another_start_of_the_same_child_leave_no_unknown_child(
    clock: ManualClock,
) -> None:
    """The second start comes in the very turn in which the first has failed, before its starter has heard of it."""
    life = Life("a", script=[Boom(), None])
    async with root(clock) as supervisor:
        first = asyncio.ensure_future(supervisor.start_child(life.spec()))
        await until(lambda: any(info.phase == "ended" for info in supervisor.which_children()) or first.done())
        with contextlib.suppress(SupervisorError):
            await supervisor.restart_child("a")
        with pytest.raises(InitFailed):
            await first
        await settle()
        known = [info.phase for info in supervisor.which_children()]
        assert known == (["running"] if life.starts == 2 else [])


async def test_a_supervisor_that_is_starting_again_starts_no_child_twice(clock: ManualClock) -> None:
    life, gate = Life("a"), Life("gate")
    inner = root(clock, slow(gate), life.spec(restart="transient"))
    gate.gate.set()
    async with Supervisor(children=[ChildSpec("inner", start=lambda: inner)], backoff=SHORT, clock=clock) as top:
        await inner.child("a").call(Leave())
        await settle()
        gate.gate.clear()
        top.child("inner").kill()
        await pass_time(clock)
        assert gate.starts == 2
        with pytest.raises(SupervisorError):
            await inner.restart_child("a")
        gate.gate.set()
        await settle()
        assert life.starts == 2
        assert await inner.child("a").call(Ping()) == 2


async def test_a_child_that_crashes_while_it_is_being_stopped_is_not_restarted(clock: ManualClock) -> None:
    life = Life("a")
    async with root(clock, life.spec(shutdown_s=None)) as supervisor:
        ref = supervisor.child("a")
        holding = asyncio.ensure_future(ref.call(Hold()))
        await life.held.wait()
        ending = asyncio.ensure_future(ref.stop(timeout_s=None))
        await settle()
        ref.kill()
        await ending
        with pytest.raises(ServerKilled):
            await holding
        await pass_time(clock, 60.0)
        assert life.starts == 1


async def test_a_child_started_while_the_supervisor_stops_is_refused_or_stopped_but_never_left(
    clock: ManualClock,
) -> None:
    held, late = Life("held"), Life("late")
    supervisor = root(clock, held.spec(shutdown_s=None))
    await supervisor.start()
    holding = asyncio.ensure_future(supervisor.child("held").call(Hold()))
    await held.held.wait()
    stopping = asyncio.ensure_future(supervisor.stop())
    await settle()
    with pytest.raises(SupervisorError):
        await supervisor.start_child(late.spec())
    held.gate.set()
    await stopping
    await holding
    assert late.starts == 0


async def test_a_supervisor_stopped_in_the_middle_of_a_group_restart_ends_at_once(clock: ManualClock) -> None:
    lives = [Life("a"), Life("b")]
    supervisor = root(clock, *[life.spec() for life in lives], strategy="one_for_all")
    await supervisor.start()
    await crash(supervisor.child("a"))
    await settle()
    await supervisor.stop()
    await pass_time(clock, 60.0)
    assert [life.starts for life in lives] == [1, 1]
    assert supervisor.reason is not None
    assert not supervisor.reason.abnormal


async def test_a_child_terminated_in_the_middle_of_a_group_restart_stays_down_and_the_others_come_back(
    clock: ManualClock,
) -> None:
    lives = [Life("a"), Life("b"), Life("c")]
    async with root(clock, *[life.spec() for life in lives], strategy="one_for_all") as supervisor:
        await crash(supervisor.child("a"))
        await settle()
        await supervisor.terminate_child("b")
        for _ in range(4):
            await pass_time(clock)
        assert [info.phase for info in supervisor.which_children()] == ["running", "ended", "running"]
        assert [await supervisor.child(name).call(Ping()) for name in "ac"] == [2, 2]


async def test_the_origin_terminated_in_the_middle_of_a_group_restart_leaves_no_sibling_down(
    clock: ManualClock,
) -> None:
    lives = [Life("a"), Life("b"), Life("c")]
    async with root(clock, *[life.spec() for life in lives], strategy="one_for_all") as supervisor:
        await crash(supervisor.child("a"))
        await settle()
        await supervisor.terminate_child("a")
        for _ in range(4):
            await pass_time(clock)
        assert [info.phase for info in supervisor.which_children()] == ["ended", "running", "running"]


async def test_a_stuck_sibling_does_not_block_a_group_restart_beyond_its_shutdown_time(clock: ManualClock) -> None:
    stuck = Life("stuck")
    async with root(clock, Life("a").spec(), stuck.spec(shutdown_s=1.0), strategy="one_for_all") as supervisor:
        holding = asyncio.ensure_future(supervisor.child("stuck").call(Hold(), timeout_s=None))
        await stuck.held.wait()
        await crash(supervisor.child("a"))
        await pass_time(clock, 0.5)
        assert not holding.done()
        for _ in range(4):
            await pass_time(clock, 1.0)
        with pytest.raises(ServerError):
            await holding
        assert [await supervisor.child(name).call(Ping()) for name in ("a", "stuck")] == [2, 2]
