"""Elixir's supervisor_test.exs: a supervisor with children in a list, and the life of one child under it."""

import asyncio
from typing import Any

import pytest

from session_actor.supervisors import (
    ChildExists,
    ChildNotFound,
    ChildSpec,
    InitFailed,
    Intensity,
    ManualClock,
    Registry,
    Supervisor,
    SupervisorError,
)

from .support import SHORT, Boom, Leave, Life, Ping, crash_and_restart, pass_time, until


def root(clock: ManualClock, *specs: ChildSpec, **options: Any) -> Supervisor:
    return Supervisor(children=specs, clock=clock, backoff=SHORT, **options)


async def test_the_default_strategy_restarts_only_the_child_that_ended(clock: ManualClock) -> None:
    async with root(clock, Life("a").spec(), Life("b").spec()) as supervisor:
        await crash_and_restart(clock, supervisor.child("a"))
        assert await supervisor.child("a").call(Ping()) == 2
        assert await supervisor.child("b").call(Ping()) == 1


async def test_strategy_and_limits_are_what_was_given(clock: ManualClock) -> None:
    options: dict[str, Any] = {"strategy": "one_for_all", "intensity": Intensity(max_restarts=1, max_seconds=2.0)}
    supervisor = root(clock, Life("a").spec(), Life("b").spec(), **options)
    await supervisor.start()
    await crash_and_restart(clock, supervisor.child("a"))
    assert await supervisor.child("b").call(Ping()) == 2
    await pass_time(clock, 2.0)
    await crash_and_restart(clock, supervisor.child("a"))
    assert await supervisor.child("b").call(Ping()) == 3
    supervisor.child("a").kill()
    await until(lambda: not supervisor.alive)
    with pytest.raises(SupervisorError):
        await supervisor.stop()


def test_an_unknown_strategy_is_refused() -> None:
    with pytest.raises(ValueError, match="strategy"):
        Supervisor(children=[], strategy="some_for_some")  # type: ignore[arg-type]


async def test_a_supervisor_may_start_without_children(clock: ManualClock) -> None:
    async with root(clock) as supervisor:
        assert list(supervisor.which_children()) == []
        assert supervisor.alive


async def test_a_child_under_a_name_answers_there_again_after_its_restart(clock: ManualClock) -> None:
    registry = Registry()
    async with root(clock, Life("stack").spec()) as supervisor:
        registry.register("the stack", supervisor.child("stack"))
        found = registry.whereis("the stack")
        assert found is not None
        assert await found.call(Leave()) == "leaving"
        await pass_time(clock)
        again = registry.whereis("the stack")
        assert again is found
        assert await again.call(Ping()) == 2
    assert registry.whereis("the stack") is None


async def test_a_name_must_be_usable_as_a_key(clock: ManualClock) -> None:
    registry = Registry()
    async with root(clock, Life("a").spec()) as supervisor:
        with pytest.raises(TypeError):
            registry.register(["a", "list"], supervisor.child("a"))  # type: ignore[arg-type]
        assert list(registry.names()) == []


async def test_two_children_of_the_same_class_need_two_ids(clock: ManualClock) -> None:
    async with root(clock, Life("stack").spec(), Life("old stack").spec()) as supervisor:
        assert supervisor.child("stack") is not supervisor.child("old stack")
    with pytest.raises((ValueError, ChildExists)):
        await root(clock, Life("stack").spec(), Life("stack").spec()).start()


async def test_a_server_and_a_task_can_be_added_later(clock: ManualClock) -> None:
    done = asyncio.Event()

    async def job() -> None:
        done.set()

    async with root(clock) as supervisor:
        server = await supervisor.start_child(Life("server").spec())
        await supervisor.start_child(ChildSpec("task", task=job, restart="temporary"))
        assert await server.call(Ping()) == 1
        await until(done.is_set)


async def test_a_child_that_cannot_start_is_refused_and_not_kept(clock: ManualClock) -> None:
    async with root(clock) as supervisor:
        with pytest.raises(InitFailed) as failure:
            await supervisor.start_child(Life("a", script=[Boom()]).spec())
        assert isinstance(failure.value.__cause__, Boom)
        assert list(supervisor.which_children()) == []
        assert await (await supervisor.start_child(Life("a").spec())).call(Ping()) == 1


async def test_the_life_of_a_child_from_start_to_delete(clock: ManualClock) -> None:
    life = Life("stack")
    async with root(clock) as supervisor:
        assert supervisor.count_children() == (0, 0, 0, 0)
        ref = await supervisor.start_child(life.spec())
        [info] = supervisor.which_children()
        assert (info.id, info.ref, info.kind, info.phase) == ("stack", ref, "worker", "running")
        counts = supervisor.count_children()
        assert (counts.specs, counts.active, counts.supervisors, counts.workers) == (1, 1, 0, 1)
        with pytest.raises(SupervisorError):
            supervisor.delete_child("stack")

        await supervisor.terminate_child("stack")
        assert supervisor.count_children().active == 0
        assert [info.id for info in supervisor.which_children()] == ["stack"]
        await supervisor.restart_child("stack")
        assert await supervisor.child("stack").call(Ping()) == 2

        await supervisor.terminate_child("stack")
        supervisor.delete_child("stack")
        assert supervisor.count_children().specs == 0
        with pytest.raises(ChildNotFound):
            supervisor.child("stack")
