"""OTP's supervisor_SUITE: starting and stopping, looking after children, and specs that are refused."""

import asyncio
from functools import partial
from typing import Any

import pytest

from session_actor.supervisors import (
    ChildExists,
    ChildNotFound,
    ChildSpec,
    DynamicSupervisor,
    InitFailed,
    ManualClock,
    ServerError,
    ServerRef,
    Supervisor,
    SupervisorError,
)

from .support import SHORT, Boom, Hold, HoldThenLeave, Leave, Life, Ping, crash, pass_time, settle


def root(clock: ManualClock, *specs: ChildSpec, **options: Any) -> Supervisor:
    return Supervisor(children=specs, clock=clock, backoff=SHORT, **options)


def numbers(supervisor: Supervisor | DynamicSupervisor) -> tuple[int, int, int, int]:
    counts = supervisor.count_children()
    return counts.specs, counts.active, counts.supervisors, counts.workers


def root_cause(error: BaseException) -> BaseException:
    while error.__cause__ is not None:
        error = error.__cause__
    return error


def kind(ref: ServerRef) -> str:
    return "alive" if ref.reason is None else ref.reason.kind


# Start


async def test_a_supervisor_starts_and_ends_cleanly(clock: ManualClock) -> None:
    supervisor = root(clock)
    assert not supervisor.alive
    await supervisor.start()
    assert supervisor.alive
    await supervisor.stop()
    assert not supervisor.alive
    assert supervisor.reason is not None
    assert not supervisor.reason.abnormal


async def test_a_first_start_that_fails_stops_the_earlier_children_in_reverse_and_raises(
    clock: ManualClock, log: list[str]
) -> None:
    bad = Life("c", log, script=[Boom()])
    supervisor = root(clock, Life("a", log).spec(), Life("b", log).spec(), bad.spec(), Life("d", log).spec())
    before = asyncio.all_tasks()
    with pytest.raises(InitFailed) as failure:
        await supervisor.start()
    assert isinstance(root_cause(failure.value), Boom)
    assert log == ["a init", "b init", "c init", "b terminate", "a terminate"]
    assert not supervisor.alive
    await pass_time(clock, 60.0)
    assert bad.starts == 1
    assert asyncio.all_tasks() == before


async def test_the_body_of_a_supervisor_that_cannot_start_is_never_entered(clock: ManualClock) -> None:
    entered = False
    with pytest.raises(InitFailed):
        async with root(clock, Life("a", script=[Boom()]).spec()):
            entered = True
    assert not entered


async def test_a_start_function_that_raises_or_returns_no_server_is_a_failed_start(clock: ManualClock) -> None:
    def raises() -> Any:
        raise Boom

    def wrong() -> Any:
        return "not a server"

    async with root(clock) as supervisor:
        for start in (raises, wrong):
            with pytest.raises(InitFailed):
                await supervisor.start_child(ChildSpec("child", start=start))
        assert list(supervisor.which_children()) == []


async def test_a_restart_by_hand_that_fails_raises_and_keeps_the_spec(clock: ManualClock) -> None:
    life = Life("child", script=[None, Boom(), None])
    async with root(clock, life.spec()) as supervisor:
        await supervisor.terminate_child("child")
        with pytest.raises(InitFailed):
            await supervisor.restart_child("child")
        assert [info.id for info in supervisor.which_children()] == ["child"]
        assert numbers(supervisor) == (1, 0, 0, 1)
        await supervisor.restart_child("child")
        assert await supervisor.child("child").call(Ping()) == 3


async def test_a_spec_has_defaults_and_they_can_be_read(clock: ManualClock) -> None:
    spec = Life("a").spec()
    assert (spec.id, spec.restart, spec.shutdown_s) == ("a", "permanent", 5.0)
    inner = ChildSpec("inner", start=DynamicSupervisor)
    async with root(clock, spec, Life("b").spec(restart="transient"), inner) as supervisor:
        assert [(info.id, info.kind, info.restart) for info in supervisor.which_children()] == [
            ("a", "worker", "permanent"),
            ("b", "worker", "transient"),
            ("inner", "supervisor", "permanent"),
        ]
        with pytest.raises(ChildNotFound):
            supervisor.child("another")


# Stop


async def test_stopping_without_a_limit_waits_for_workers_and_supervisors(clock: ManualClock) -> None:
    leaf, worker, inner = Life("leaf"), Life("worker"), DynamicSupervisor()
    supervisor = root(clock, ChildSpec("inner", start=lambda: inner, shutdown_s=None), worker.spec(shutdown_s=None))
    await supervisor.start()
    ref = await inner.start_child(leaf.spec(shutdown_s=None))
    calls = [asyncio.ensure_future(r.call(Hold(), timeout_s=None)) for r in (ref, supervisor.child("worker"))]
    await leaf.held.wait()
    await worker.held.wait()
    stopping = asyncio.ensure_future(supervisor.stop())
    await pass_time(clock, 86_400.0)
    assert not stopping.done()
    worker.gate.set()
    await settle()
    assert not stopping.done()
    leaf.gate.set()
    await stopping
    assert await asyncio.gather(*calls) == ["held", "held"]
    assert (kind(ref), leaf.reasons[0].kind, worker.reasons[0].kind) == ("parent", "parent", "parent")


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("shutdown_s", [1.0, "kill"])
async def test_a_child_that_does_not_end_in_time_is_killed_and_its_siblings_are_not(
    clock: ManualClock,
    dynamic: bool,
    shutdown_s: Any,
) -> None:
    calm, stuck = Life("calm"), Life("stuck")
    supervisor = DynamicSupervisor(clock=clock) if dynamic else root(clock)
    await supervisor.start()
    calm_ref = await supervisor.start_child(calm.spec(shutdown_s=1.0))
    stuck_ref = await supervisor.start_child(stuck.spec(shutdown_s=shutdown_s))
    call = asyncio.ensure_future(stuck_ref.call(Hold(), timeout_s=None))
    await stuck.held.wait()
    stopping = asyncio.ensure_future(supervisor.stop())
    await settle()
    assert stopping.done() is (shutdown_s == "kill")
    await pass_time(clock, 1.0)
    await stopping
    assert (kind(calm_ref), kind(stuck_ref)) == ("parent", "killed")
    with pytest.raises(ServerError):
        await call


async def test_children_that_end_by_themselves_during_the_stop_do_not_disturb_it(clock: ManualClock) -> None:
    lives = [
        Life(f"{restart} {end}") for restart in ("temporary", "transient", "permanent") for end in ("leave", "raise")
    ]
    last = Life("last")
    supervisor = root(
        clock, Life("first").spec(), *[life.spec(restart=life.name.split()[0]) for life in lives], last.spec()
    )
    await supervisor.start()
    holding = asyncio.ensure_future(supervisor.child("last").call(Hold()))
    calls: list[asyncio.Future[Any]] = []
    for life in lives:
        calls.append(asyncio.ensure_future(supervisor.child(life.name).call(HoldThenLeave())))
        await life.held.wait()
        if "raise" in life.name:
            life.at_terminate = partial(_raise, Boom())
    await last.held.wait()
    stopping = asyncio.ensure_future(supervisor.stop())
    await settle()
    for life in lives:
        life.gate.set()
    await settle()
    last.gate.set()
    await stopping
    await asyncio.gather(holding, *calls, return_exceptions=True)
    await pass_time(clock, 60.0)
    assert [life.starts for life in lives] == [1] * len(lives)
    assert [len(life.reasons) for life in lives] == [1] * len(lives)
    assert supervisor.reason is not None
    assert not supervisor.reason.abnormal


def _raise(error: Exception) -> None:
    raise error


@pytest.mark.parametrize("restart", ["temporary", "transient", "permanent"])
async def test_a_dynamic_supervisor_ends_cleanly_whatever_its_children_do_in_terminate(
    clock: ManualClock, restart: Any
) -> None:
    supervisor = DynamicSupervisor(clock=clock, backoff=SHORT)
    await supervisor.start()
    lives = [Life("calm"), Life("raises", at_terminate=partial(_raise, Boom()))]
    refs = [await supervisor.start_child(life.spec(restart=restart)) for life in lives]
    await supervisor.stop()
    assert [kind(ref) for ref in refs] == ["parent", "crashed"]
    assert supervisor.reason is not None
    assert not supervisor.reason.abnormal
    assert [life.starts for life in lives] == [1, 1]


# Looking after children


async def test_start_terminate_restart_and_delete_say_what_is_wrong_and_change_nothing_then(clock: ManualClock) -> None:
    life = Life("child")
    async with root(clock, life.spec()) as supervisor:
        assert numbers(supervisor) == (1, 1, 0, 1)
        with pytest.raises(ChildExists):
            await supervisor.start_child(life.spec())
        for action in (supervisor.terminate_child, supervisor.restart_child):
            with pytest.raises(ChildNotFound):
                await action("another")
        with pytest.raises(ChildNotFound):
            supervisor.delete_child("another")
        with pytest.raises(SupervisorError):
            await supervisor.restart_child("child")
        with pytest.raises(SupervisorError):
            supervisor.delete_child("child")
        assert await supervisor.child("child").call(Ping()) == 1
        assert numbers(supervisor) == (1, 1, 0, 1)


async def test_a_terminated_child_keeps_its_spec_until_it_is_deleted(clock: ManualClock) -> None:
    life = Life("child")
    async with root(clock, life.spec()) as supervisor:
        await supervisor.terminate_child("child")
        assert [reason.kind for reason in life.reasons] == ["stopped"] or life.reasons[0].kind == "parent"
        assert numbers(supervisor) == (1, 0, 0, 1)
        await supervisor.terminate_child("child")
        with pytest.raises(ChildExists):
            await supervisor.start_child(life.spec())
        await supervisor.restart_child("child")
        assert await supervisor.child("child").call(Ping()) == 2
        assert numbers(supervisor) == (1, 1, 0, 1)

        await supervisor.terminate_child("child")
        supervisor.delete_child("child")
        with pytest.raises(ChildNotFound):
            await supervisor.restart_child("child")
        assert numbers(supervisor) == (0, 0, 0, 0)
        again = await supervisor.start_child(life.spec())
        assert await again.call(Ping()) == 3


async def test_a_child_restarted_by_hand_is_supervised_as_before(clock: ManualClock) -> None:
    life = Life("child")
    async with root(clock, life.spec()) as supervisor:
        await supervisor.terminate_child("child")
        await supervisor.restart_child("child")
        await crash(supervisor.child("child"))
        await pass_time(clock)
        assert await supervisor.child("child").call(Ping()) == 3


async def test_a_supervisor_that_has_stopped_refuses_at_once(clock: ManualClock) -> None:
    supervisor = root(clock, Life("child").spec())
    await supervisor.start()
    await supervisor.stop()
    with pytest.raises(SupervisorError):
        await supervisor.restart_child("child")
    with pytest.raises(SupervisorError):
        await supervisor.start_child(Life("another").spec())
    await supervisor.terminate_child("child")
    assert supervisor.count_children().active == 0


async def test_a_dynamic_supervisor_forgets_a_child_when_it_has_ended(clock: ManualClock) -> None:
    async with DynamicSupervisor(clock=clock) as supervisor:
        assert numbers(supervisor) == (0, 0, 0, 0)
        first = await supervisor.start_child(Life("first").spec())
        second = await supervisor.start_child(Life("second").spec())
        assert {info.ref for info in supervisor.which_children()} == {first, second}
        await supervisor.terminate_child("first")
        assert [info.ref for info in supervisor.which_children()] == [second]
        assert numbers(supervisor) == (1, 1, 0, 1)
        assert not first.alive
        with pytest.raises(ChildNotFound):
            await supervisor.terminate_child("first")
        with pytest.raises(ChildNotFound):
            await supervisor.terminate_child(second)
        assert second.alive


# Specs


async def test_children_with_the_same_id_in_one_list_are_refused_and_none_starts(clock: ManualClock) -> None:
    lives = [Life("same"), Life("other"), Life("same")]
    with pytest.raises((ValueError, ChildExists), match="same"):
        await root(clock, *[life.spec() for life in lives]).start()
    assert [life.starts for life in lives] == [0, 0, 0]


@pytest.mark.parametrize("child", ["a word", None, 7])
async def test_what_is_no_spec_is_refused_and_nothing_changes(clock: ManualClock, child: Any) -> None:
    async with root(clock) as supervisor:
        with pytest.raises((TypeError, ValueError, SupervisorError)):
            await supervisor.start_child(child)
        assert numbers(supervisor) == (0, 0, 0, 0)
        assert supervisor.alive


@pytest.mark.parametrize("shutdown_s", [None, 0, 1.0, "kill"])
@pytest.mark.parametrize("restart", ["permanent", "transient", "temporary"])
def test_every_pair_of_restart_and_shutdown_is_a_spec(restart: Any, shutdown_s: Any) -> None:
    spec = Life("a").spec(restart=restart, shutdown_s=shutdown_s)
    assert (spec.restart, spec.shutdown_s) == (restart, shutdown_s)


async def test_a_child_may_leave_while_it_is_being_terminated(clock: ManualClock) -> None:
    """OTP's naughty child: it goes by its own way in the same moment, and the supervisor does not hang."""
    life = Life("naughty")
    async with root(clock, life.spec(), Life("other").spec()) as supervisor:
        ref = supervisor.child("naughty")
        call = asyncio.ensure_future(ref.call(HoldThenLeave()))
        await life.held.wait()
        ending = asyncio.ensure_future(supervisor.terminate_child("naughty"))
        await settle()
        life.gate.set()
        await ending
        await asyncio.gather(call, return_exceptions=True)
        await pass_time(clock, 60.0)
        assert life.starts == 1
        assert await supervisor.child("other").call(Ping()) == 1


async def test_a_child_may_ask_its_supervisor_about_its_siblings(clock: ManualClock) -> None:
    async with root(clock, Life("a").spec(), Life("b").spec(restart="transient")) as supervisor:
        await supervisor.child("b").call(Leave())
        await settle()
        assert numbers(supervisor) == (2, 1, 0, 2)
        assert [info.phase for info in supervisor.which_children()] == ["running", "ended"]
