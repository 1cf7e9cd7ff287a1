"""Elixir's task/supervisor_test.exs, for children that are bare coroutine functions."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from session_actor.supervisors import (
    ChildExists,
    ChildNotFound,
    ChildSpec,
    DynamicSupervisor,
    ManualClock,
    ServerRef,
    Supervisor,
    TooManyChildren,
    monitor,
)

from .support import SHORT, Boom, pass_time, settle, until


class Job:
    """A coroutine function that waits for a gate, then returns or raises, and remembers what happened to it."""

    def __init__(self, error: BaseException | None = None) -> None:
        self.error = error
        self.gate = asyncio.Event()
        self.starts = 0
        self.ends: list[str] = []

    async def __call__(self) -> None:
        self.starts += 1
        try:
            await self.gate.wait()
        except asyncio.CancelledError:
            self.ends.append("cancelled")
            raise
        if self.error is not None:
            self.ends.append("raised")
            raise self.error
        self.ends.append("done")


def temporary(name: str, job: Callable[[], Awaitable[object]], **options: object) -> ChildSpec:
    return ChildSpec(name, task=job, restart="temporary", **options)  # type: ignore[arg-type]


@pytest.fixture
async def supervisor(clock: ManualClock):
    async with DynamicSupervisor(clock=clock, backoff=SHORT) as running:
        yield running


async def begin(supervisor: DynamicSupervisor, name: str, job: Job) -> ServerRef:
    ref = await supervisor.start_child(temporary(name, job))
    await until(lambda: job.starts > 0)
    return ref


async def test_tasks_can_be_supervised_directly(clock: ManualClock) -> None:
    job = Job()
    async with Supervisor(children=[temporary("job", job)], clock=clock):
        await until(lambda: job.starts == 1)
    assert job.ends == ["cancelled"]


async def test_two_supervisors_of_tasks_do_not_mix_their_ids(clock: ManualClock) -> None:
    async with DynamicSupervisor(clock=clock) as one, DynamicSupervisor(clock=clock) as two:
        await begin(one, "job", Job())
        await begin(two, "job", Job())
        with pytest.raises(ChildExists):
            await one.start_child(temporary("job", Job()))
        assert one.count_children().active == two.count_children().active == 1


async def test_counts_and_returns_its_tasks(supervisor: DynamicSupervisor) -> None:
    assert list(supervisor.which_children()) == []
    counts = supervisor.count_children()
    assert (counts.specs, counts.active, counts.supervisors, counts.workers) == (0, 0, 0, 0)
    ref = await begin(supervisor, "job", Job())
    assert [info.ref for info in supervisor.which_children()] == [ref]
    assert supervisor.count_children().workers == 1


async def test_a_task_runs_to_its_end_and_its_monitor_says_normal(supervisor: DynamicSupervisor) -> None:
    job = Job()
    ref = await begin(supervisor, "job", job)
    watch = monitor(ref)
    job.gate.set()
    down = await watch
    assert (down.ref, down.reason.kind) == (ref, "normal")
    assert job.ends == ["done"]
    assert list(supervisor.which_children()) == []


async def test_a_task_that_must_be_killed_at_once_is_cancelled_at_once(clock: ManualClock) -> None:
    job = Job()
    supervisor = DynamicSupervisor(clock=clock)
    await supervisor.start()
    ref = await supervisor.start_child(temporary("job", job, shutdown_s="kill"))
    await until(lambda: job.starts == 1)
    await supervisor.stop()
    assert job.ends == ["cancelled"]
    assert ref.reason is not None
    assert ref.reason.kind in ("killed", "parent")


async def test_no_task_is_started_above_max_children(clock: ManualClock) -> None:
    job = Job()
    async with DynamicSupervisor(clock=clock, max_children=1) as supervisor:
        await begin(supervisor, "first", Job())
        with pytest.raises(TooManyChildren):
            supervisor.spawn(temporary("second", job))
        await settle()
        assert job.starts == 0


async def test_who_starts_a_task_is_not_linked_to_it(supervisor: DynamicSupervisor) -> None:
    job = Job(error=Boom())
    await begin(supervisor, "job", job)
    job.gate.set()
    await until(lambda: job.ends == ["raised"])
    await settle()
    task = asyncio.current_task()
    assert task is not None
    assert task.cancelling() == 0
    assert supervisor.alive


async def test_the_end_of_who_started_a_task_does_not_end_the_task(supervisor: DynamicSupervisor) -> None:
    job = Job()
    starter = asyncio.ensure_future(begin(supervisor, "job", job))
    ref = await starter
    assert starter.done()
    await settle()
    assert ref.alive
    job.gate.set()
    await until(lambda: job.ends == ["done"])


async def test_a_permanent_task_is_started_again_when_it_ends(
    supervisor: DynamicSupervisor, clock: ManualClock
) -> None:
    job = Job()
    job.gate.set()
    await supervisor.start_child(ChildSpec("job", task=job, restart="permanent"))
    await until(lambda: job.starts == 1)
    job.gate.clear()
    await pass_time(clock)
    assert job.starts == 2
    assert supervisor.count_children().active == 1


async def test_a_transient_task_is_started_again_only_when_it_raised(
    supervisor: DynamicSupervisor, clock: ManualClock
) -> None:
    job = Job(error=Boom())
    await supervisor.start_child(ChildSpec("job", task=job, restart="transient"))
    await until(lambda: job.starts == 1)
    job.gate.set()
    await until(lambda: job.ends == ["raised"])
    job.error = None
    await pass_time(clock)
    assert (job.starts, job.ends) == (2, ["raised", "done"])
    await pass_time(clock, 60.0)
    assert job.starts == 2
    assert list(supervisor.which_children()) == []


async def test_a_task_is_terminated_by_its_id_once(supervisor: DynamicSupervisor) -> None:
    job = Job()
    await begin(supervisor, "job", job)
    await supervisor.terminate_child("job")
    assert job.ends == ["cancelled"]
    assert list(supervisor.which_children()) == []
    with pytest.raises(ChildNotFound):
        await supervisor.terminate_child("job")


async def test_giving_up_the_wait_for_a_task_leaves_the_task_alone(supervisor: DynamicSupervisor) -> None:
    job = Job()
    ref = await begin(supervisor, "job", job)
    watch = monitor(ref)

    async def waits() -> object:
        return await watch

    waiting = asyncio.ensure_future(waits())
    await settle()
    waiting.cancel()
    await asyncio.gather(waiting, return_exceptions=True)
    assert ref.alive
    job.gate.set()
    assert (await monitor(ref)).reason.kind == "normal"


async def test_a_task_that_raises_tells_its_monitor_what(supervisor: DynamicSupervisor) -> None:
    job = Job(error=Boom())
    ref = await begin(supervisor, "job", job)
    watch = monitor(ref)
    job.gate.set()
    down = await watch
    assert down.reason.kind == "crashed"
    assert "Boom" in repr(down.reason)
    assert not down.restarting


async def test_a_task_cancelled_by_a_stranger_ends_as_killed(supervisor: DynamicSupervisor, clock: ManualClock) -> None:
    inner: list[asyncio.Task[object]] = []

    async def job() -> None:
        task = asyncio.current_task()
        assert task is not None
        inner.append(task)
        await asyncio.Event().wait()

    ref = await supervisor.start_child(temporary("job", job))
    await until(lambda: bool(inner))
    inner[0].cancel()
    assert (await monitor(ref)).reason.kind == "killed"
    await pass_time(clock, 60.0)
    assert len(inner) == 1


async def test_no_task_is_left_when_the_supervisor_has_stopped(clock: ManualClock) -> None:
    before = asyncio.all_tasks()
    async with DynamicSupervisor(clock=clock) as supervisor:
        jobs = [Job() for _ in range(50)]
        for number, job in enumerate(jobs):
            supervisor.spawn(temporary(f"job-{number}", job))
        await until(lambda: all(job.starts for job in jobs))
    assert asyncio.all_tasks() == before
    assert [job.ends for job in jobs] == [["cancelled"]] * 50
