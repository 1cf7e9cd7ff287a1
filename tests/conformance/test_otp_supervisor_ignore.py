"""OTP's supervisor_SUITE: children whose init says that they do not want to run, which is no fault."""

import asyncio
from typing import Any

import pytest

from session_actor.supervisors import (
    IGNORE,
    ChildNotFound,
    DynamicSupervisor,
    ManualClock,
    Registry,
    StartIgnored,
    Supervisor,
)

from .support import SHORT, Life, Ping, crash_and_restart, pass_time, settle


def numbers(supervisor: Supervisor | DynamicSupervisor) -> tuple[int, int, int, int]:
    counts = supervisor.count_children()
    return counts.specs, counts.active, counts.supervisors, counts.workers


async def test_a_child_that_ignores_its_start_is_kept_and_can_be_started_later(clock: ManualClock) -> None:
    ignoring, calm = Life("ignoring", script=[IGNORE, None]), Life("calm")
    async with Supervisor(clock=clock, backoff=SHORT) as supervisor:
        with pytest.raises(StartIgnored):
            await supervisor.start_child(ignoring.spec())
        await supervisor.start_child(calm.spec())
        assert [(info.id, info.phase) for info in supervisor.which_children()] == [
            ("ignoring", "ended"),
            ("calm", "running"),
        ]
        assert numbers(supervisor) == (2, 1, 0, 2)
        await pass_time(clock, 60.0)
        assert ignoring.starts == 1
        await supervisor.restart_child("ignoring")
        assert await supervisor.child("ignoring").call(Ping()) == 2


@pytest.mark.parametrize("restart", ["permanent", "transient", "temporary"])
async def test_an_ignored_start_does_not_keep_the_others_from_starting(
    clock: ManualClock, log: list[str], restart: Any
) -> None:
    ignoring, calm = Life("ignoring", log, script=[IGNORE]), Life("calm", log)
    async with Supervisor(children=[ignoring.spec(restart=restart), calm.spec()], clock=clock) as supervisor:
        assert await supervisor.child("calm").call(Ping()) == 1
        kept = 0 if restart == "temporary" else 1
        assert numbers(supervisor) == (kept + 1, 1, 0, kept + 1)
    assert log == ["ignoring init", "calm init", "calm terminate"]


async def test_a_temporary_child_that_ignores_its_start_is_not_kept(clock: ManualClock) -> None:
    async with Supervisor(clock=clock) as supervisor:
        with pytest.raises(StartIgnored):
            await supervisor.start_child(Life("ignoring", script=[IGNORE]).spec(restart="temporary"))
        assert list(supervisor.which_children()) == []
        with pytest.raises(ChildNotFound):
            await supervisor.restart_child("ignoring")


@pytest.mark.parametrize("restart", ["permanent", "transient", "temporary"])
async def test_a_dynamic_supervisor_keeps_no_child_that_ignores_its_start(clock: ManualClock, restart: Any) -> None:
    ignoring = Life("ignoring", script=[IGNORE])
    async with DynamicSupervisor(clock=clock, backoff=SHORT) as supervisor:
        ref = supervisor.spawn(ignoring.spec(restart=restart))
        call = asyncio.ensure_future(ref.call(Ping()))
        with pytest.raises(StartIgnored):
            await ref.started()
        with pytest.raises(StartIgnored):
            await call
        with pytest.raises(StartIgnored):
            await ref.call(Ping())
        await pass_time(clock, 60.0)
        assert (ignoring.starts, ignoring.reasons) == (1, [])
        assert numbers(supervisor) == (0, 0, 0, 0)
        assert await (await supervisor.start_child(ignoring.spec())).call(Ping()) == 2


async def test_a_restart_that_is_ignored_ends_the_child_and_nobody_else(clock: ManualClock) -> None:
    ignoring = Life("ignoring", script=[None, IGNORE])
    async with Supervisor(children=[ignoring.spec(), Life("calm").spec()], clock=clock, backoff=SHORT) as supervisor:
        await crash_and_restart(clock, supervisor.child("ignoring"))
        await pass_time(clock, 60.0)
        assert ignoring.starts == 2
        assert numbers(supervisor) == (2, 1, 0, 2)
        with pytest.raises(StartIgnored):
            await supervisor.child("ignoring").call(Ping())
        assert supervisor.alive


async def test_a_restart_that_is_ignored_takes_the_child_out_of_a_dynamic_supervisor(clock: ManualClock) -> None:
    ignoring = Life("ignoring", script=[None, IGNORE])
    async with DynamicSupervisor(clock=clock, backoff=SHORT) as supervisor:
        ref = await supervisor.start_child(ignoring.spec())
        await crash_and_restart(clock, ref)
        await pass_time(clock, 60.0)
        assert ignoring.starts == 2
        assert numbers(supervisor) == (0, 0, 0, 0)
        with pytest.raises(StartIgnored):
            await ref.call(Ping())
        assert await (await supervisor.start_child(ignoring.spec())).call(Ping()) == 3


@pytest.mark.parametrize("strategy", ["one_for_all", "rest_for_one"])
async def test_a_group_restart_goes_on_past_a_child_that_ignores_it(clock: ManualClock, strategy: Any) -> None:
    lives = [Life("a"), Life("ignoring", script=[None, IGNORE]), Life("c")]
    specs = [life.spec() for life in lives]
    async with Supervisor(children=specs, strategy=strategy, clock=clock, backoff=SHORT) as supervisor:
        await crash_and_restart(clock, supervisor.child("a"))
        assert [info.phase for info in supervisor.which_children()] == ["running", "ended", "running"]
        assert await supervisor.child("c").call(Ping()) == 2


async def test_an_ignored_start_leaves_no_name_behind(clock: ManualClock) -> None:
    registry = Registry()
    async with DynamicSupervisor(clock=clock) as supervisor:
        for _ in range(50):
            registry.register("name", supervisor.spawn(Life("a", script=[IGNORE]).spec()))
            await settle()
            assert registry.whereis("name") is None
