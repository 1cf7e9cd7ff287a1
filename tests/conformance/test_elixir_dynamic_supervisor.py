"""Elixir's dynamic_supervisor_test.exs: starting children, restarting them, and the limits of both."""

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from session_actor.supervisors import (
    Backoff,
    ChildExists,
    ChildSpec,
    DynamicSupervisor,
    GenServer,
    InitFailed,
    Intensity,
    MailboxSpec,
    ManualClock,
    NotStarted,
    Registry,
    RestartsExhausted,
    ServerDown,
    ServerError,
    Supervisor,
    TooManyChildren,
)

from .support import SHORT, STEP_S, Boom, Leave, Life, Ping, crash, crash_and_restart, ended, pass_time, settle, until

MANY = Intensity(max_restarts=100_000, max_seconds=5.0)


def dynamic(clock: ManualClock, **options: Any) -> DynamicSupervisor:
    return DynamicSupervisor(clock=clock, backoff=SHORT, **options)


async def test_a_dynamic_supervisor_is_a_child_like_any_other_and_starts_empty(clock: ManualClock) -> None:
    inner = DynamicSupervisor()
    async with Supervisor(children=[ChildSpec("inner", start=lambda: inner)], clock=clock):
        assert list(inner.which_children()) == []
        ref = await inner.start_child(Life("a").spec())
        assert await ref.call(Ping()) == 1
    assert not ref.alive


async def test_several_dynamic_supervisors_live_side_by_side_and_a_taken_id_is_refused(clock: ManualClock) -> None:
    inner = [DynamicSupervisor() for _ in range(3)]
    specs = [ChildSpec(f"inner-{n}", start=partial(inner.__getitem__, n)) for n in range(3)]
    async with Supervisor(children=specs[:2], clock=clock) as root:
        await root.start_child(specs[2])
        refs = [await supervisor.start_child(Life("same id").spec()) for supervisor in inner]
        assert len(set(refs)) == 3
        with pytest.raises(ChildExists):
            await root.start_child(specs[2])
        assert [info.id for info in root.which_children()] == ["inner-0", "inner-1", "inner-2"]


async def test_the_defaults_are_three_restarts_in_five_seconds_and_any_number_of_children(clock: ManualClock) -> None:
    life = Life("a")
    supervisor = dynamic(clock)
    await supervisor.start()
    for n in range(100):
        supervisor.spawn(Life(f"many-{n}").spec())
    ref = await supervisor.start_child(life.spec())
    for _ in range(3):
        await crash_and_restart(clock, ref)
    assert life.starts == 4
    await crash(ref)
    await until(lambda: not supervisor.alive)
    assert life.starts == 4
    with pytest.raises(ServerDown):
        await supervisor.stop()


@pytest.mark.parametrize(
    "build",
    [
        pytest.param(lambda: Intensity(max_restarts=-1, max_seconds=5.0), id="negative restarts"),
        pytest.param(lambda: Intensity(max_restarts=3, max_seconds=0.0), id="no window"),
        pytest.param(lambda: Intensity(max_restarts=3, max_seconds=float("nan")), id="window is no number"),
        pytest.param(lambda: Backoff(initial_s=float("nan")), id="delay is no number"),
        pytest.param(lambda: Backoff(factor=0.5), id="shrinking delays"),
        pytest.param(lambda: MailboxSpec(limit=0), id="no room"),
        pytest.param(lambda: MailboxSpec(overflow="unknown"), id="unknown overflow"),  # type: ignore[arg-type]
        pytest.param(lambda: DynamicSupervisor(max_children=-1), id="negative children"),
        pytest.param(lambda: DynamicSupervisor(on_exhausted="unknown"), id="unknown policy"),  # type: ignore[arg-type]
    ],
)
def test_impossible_options_are_refused_where_they_are_written(build: Callable[[], object]) -> None:
    with pytest.raises(
        ValueError, match=r"max_restarts|max_seconds|max_children|on_exhausted|initial_s|factor|limit|overflow"
    ):
        build()


async def test_a_registered_child_is_found_by_its_name_and_can_be_stopped_there(clock: ManualClock) -> None:
    registry = Registry()
    async with dynamic(clock) as supervisor:
        registry.register("the name", supervisor.spawn(Life("a").spec()))
        found = registry.whereis("the name")
        assert found is not None
        await found.stop()
        assert registry.whereis("the name") is None
        assert supervisor.count_children().active == 0


async def test_starts_a_server_and_a_task_from_a_spec(clock: ManualClock) -> None:
    started = asyncio.Event()

    async def job() -> None:
        started.set()
        await asyncio.Event().wait()

    async with dynamic(clock) as supervisor:
        server = await supervisor.start_child(Life("server").spec())
        task = await supervisor.start_child(ChildSpec("task", task=job))
        await until(started.is_set)
        assert await server.call(Ping()) == 1
        assert task.alive
        assert supervisor.count_children().active == 2


async def test_the_start_function_carries_what_the_child_needs_at_every_start(clock: ManualClock) -> None:
    life = Life("a")
    seen: list[str] = []

    def start(extra: str) -> GenServer:
        seen.append(extra)
        return life.server()

    async with dynamic(clock) as supervisor:
        ref = await supervisor.start_child(ChildSpec("a", start=partial(start, "extra"), restart="transient"))
        await crash_and_restart(clock, ref)
        assert await ref.call(Ping()) == 2
    assert seen == ["extra", "extra"]


@pytest.mark.parametrize(
    "options",
    [
        pytest.param({}, id="nothing to start"),
        pytest.param({"start": "not callable"}, id="start is no function"),
        pytest.param({"start": GenServer, "restart": "sometimes"}, id="unknown restart"),
        pytest.param({"start": GenServer, "shutdown_s": -1}, id="negative shutdown"),
        pytest.param({"start": GenServer, "shutdown_s": "brutal"}, id="unknown shutdown"),
        pytest.param({"start": GenServer, "shutdown_s": float("nan")}, id="shutdown is no number"),
        pytest.param({"start": GenServer, "task": asyncio.sleep}, id="two things to start"),
        pytest.param({"task": 7}, id="task is no function"),
        pytest.param({"start": GenServer, "init_timeout_s": -1}, id="negative init time"),
    ],
)
def test_impossible_specs_are_refused_where_they_are_written(options: dict[str, Any]) -> None:
    with pytest.raises((ValueError, TypeError), match=r"start|task|restart|shutdown_s|init_timeout_s"):
        ChildSpec("a", **options)


async def test_a_start_that_fails_in_any_way_reaches_the_starter_and_leaves_no_child(clock: ManualClock) -> None:
    def raises() -> GenServer:
        raise Boom

    def wrong() -> GenServer:
        return "not a server"  # type: ignore[return-value]

    async with dynamic(clock) as supervisor:
        for spec in (
            Life("init", script=[Boom()]).spec(),
            ChildSpec("raises", start=raises),
            ChildSpec("wrong", start=wrong),
        ):
            with pytest.raises(InitFailed) as failure:
                await supervisor.start_child(spec)
            assert spec.id in str(failure.value)
        assert list(supervisor.which_children()) == []
        await pass_time(clock, 60.0)
        assert supervisor.alive


async def test_an_init_that_cancels_itself_fails_the_start_and_hangs_nobody(clock: ManualClock) -> None:
    async with dynamic(clock) as supervisor:
        ref = supervisor.spawn(Life("a", script=[asyncio.CancelledError()]).spec())
        waiting = asyncio.ensure_future(ref.call(Ping()))
        await settle()
        assert waiting.done()
        with pytest.raises(ServerError):
            await waiting
        assert list(supervisor.which_children()) == []


async def test_no_child_is_started_above_max_children(clock: ManualClock) -> None:
    life = Life("a")
    async with dynamic(clock, max_children=0) as supervisor:
        with pytest.raises(TooManyChildren):
            await supervisor.start_child(life.spec())
        with pytest.raises(TooManyChildren):
            supervisor.spawn(life.spec())
        assert life.starts == 0


async def test_nothing_starts_under_a_supervisor_that_is_not_running(clock: ManualClock) -> None:
    supervisor = dynamic(clock)
    with pytest.raises(NotStarted):
        supervisor.spawn(Life("a").spec())
    async with supervisor:
        pass
    with pytest.raises(NotStarted):
        supervisor.spawn(Life("a").spec())


async def test_a_temporary_child_is_not_restarted_whatever_the_reason(clock: ManualClock) -> None:
    async with dynamic(clock) as supervisor:
        for end in ("normal", "stopped", "crash", "kill"):
            life = Life("a")
            ref = await supervisor.start_child(life.spec(restart="temporary"))
            if end == "crash":
                await crash(ref)
            elif end == "kill":
                ref.kill()
            else:
                assert await ref.call(Leave(end)) == "leaving"
            await pass_time(clock, 60.0)
            assert life.starts == 1
            counts = supervisor.count_children()
            assert (counts.workers, counts.active) == (0, 0)


async def test_a_transient_child_is_restarted_only_after_a_crash_or_a_kill(clock: ManualClock) -> None:
    async with dynamic(clock) as supervisor:
        for end in ("normal", "stopped"):
            life = Life("a")
            ref = await supervisor.start_child(life.spec(restart="transient"))
            await ref.call(Leave(end))
            await pass_time(clock, 60.0)
            assert life.starts == 1
            assert supervisor.count_children().workers == 0
        life = Life("a")
        ref = await supervisor.start_child(life.spec(restart="transient"))
        await crash_and_restart(clock, ref)
        assert await ref.call(Ping()) == 2
        ref.kill()
        await pass_time(clock)
        assert await ref.call(Ping()) == 3
        assert supervisor.count_children().active == 1


async def test_a_permanent_child_is_restarted_whatever_the_reason(clock: ManualClock) -> None:
    life = Life("a")
    async with dynamic(clock, intensity=MANY) as supervisor:
        ref = await supervisor.start_child(life.spec(restart="permanent"))
        for count, end in enumerate(("normal", "stopped"), start=2):
            await ref.call(Leave(end))
            await pass_time(clock)
            assert await ref.call(Ping()) == count
        await crash_and_restart(clock, ref)
        ref.kill()
        await pass_time(clock)
        assert await ref.call(Ping()) == 5
        assert supervisor.count_children().active == 1


async def test_a_restart_may_find_another_outcome_than_the_first_start(clock: ManualClock) -> None:
    """Each child starts well once; its restart then goes well, fails in init, or gets something that is no server."""
    broken: list[Any] = [Life("wrong").server(), "not a server"]
    good, failing = Life("good"), Life("failing", script=[None, *[Boom()] * 50])
    async with dynamic(clock, intensity=MANY) as supervisor:
        refs = [
            await supervisor.start_child(good.spec()),
            await supervisor.start_child(failing.spec()),
            await supervisor.start_child(
                ChildSpec("wrong", start=lambda: broken.pop(0) if len(broken) > 1 else broken[0])
            ),
        ]
        for ref in refs:
            await crash(ref)
        await pass_time(clock)
        assert await refs[0].call(Ping()) == 2
        assert {info.id: info.phase for info in supervisor.which_children()} == {
            "good": "running",
            "failing": "backoff",
            "wrong": "backoff",
        }
        counts = supervisor.count_children()
        assert (counts.workers, counts.active) == (3, 1)


@pytest.mark.parametrize(
    "script", [pytest.param([None], id="in backoff"), pytest.param([None, Boom()], id="init failed again")]
)
async def test_a_child_between_two_lives_counts_for_max_children(
    clock: ManualClock, script: list[BaseException | None]
) -> None:
    async with dynamic(clock, intensity=MANY, max_children=1) as supervisor:
        ref = await supervisor.start_child(Life("a", script=script).spec())
        await crash(ref)
        await settle()
        if len(script) > 1:
            await pass_time(clock)
        counts = supervisor.count_children()
        assert (counts.workers, counts.active) == (1, 0)
        with pytest.raises(TooManyChildren):
            supervisor.spawn(Life("b").spec())
        await pass_time(clock)
        assert supervisor.count_children().active == 1
        await supervisor.terminate_child("a")
        assert supervisor.spawn(Life("b").spec()).alive


async def test_a_restart_that_fails_is_tried_again(clock: ManualClock) -> None:
    life = Life("a", script=[None, Boom(), None])
    async with dynamic(clock, intensity=Intensity(max_restarts=2, max_seconds=5.0)) as supervisor:
        ref = await supervisor.start_child(life.spec())
        await crash_and_restart(clock, ref)
        assert (life.starts, ref.phase) == (2, "backoff")
        await pass_time(clock)
        assert await ref.call(Ping()) == 3


@pytest.mark.parametrize("max_restarts", [1, 10])
async def test_a_child_that_never_starts_again_uses_up_its_restarts_and_the_supervisor_gives_up(
    clock: ManualClock, max_restarts: int
) -> None:
    life, bystander = Life("a", script=[None, *[Boom()] * 50]), Life("b")
    supervisor = dynamic(clock, intensity=Intensity(max_restarts=max_restarts, max_seconds=5.0))
    await supervisor.start()
    other = await supervisor.start_child(bystander.spec())
    ref = await supervisor.start_child(life.spec())
    await crash(ref)
    for _ in range(max_restarts + 5):
        await pass_time(clock)
    assert life.starts == max_restarts + 1
    await until(lambda: supervisor.reason is not None)
    assert not supervisor.alive
    assert supervisor.reason is not None
    assert isinstance(supervisor.reason.error, RestartsExhausted)
    assert (await ended(other)).kind == "parent"
    with pytest.raises(ServerDown):
        await ref.call(Ping())
    with pytest.raises(ServerDown):
        await supervisor.stop()


@pytest.mark.parametrize("shutdown_s", [0.0, STEP_S, 3600.0, "kill", None])
async def test_any_sensible_shutdown_is_accepted_and_an_idle_child_ends_at_once(
    clock: ManualClock,
    shutdown_s: Any,
) -> None:
    async with dynamic(clock) as supervisor:
        ref = await supervisor.start_child(Life("a").spec(shutdown_s=shutdown_s))
    assert not ref.alive
