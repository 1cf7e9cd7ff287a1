"""OTP's gen_server_SUITE, what needs no second node: start, stop, crash and call."""

import asyncio
from typing import Any

import pytest

from session_actor.supervisors import (
    AlreadyReplied,
    CallTimeout,
    ChildExists,
    ChildSpec,
    DynamicSupervisor,
    GenServer,
    InitFailed,
    ManualClock,
    Registry,
    ServerCrashed,
    ServerStopped,
    UnknownMessage,
    monitor,
    statistics,
)

from .listener import Ask, Listener, Unheard, Words
from .support import SHORT, Boom, Crash, Hold, Leave, Life, Ping, crash, pass_time, settle


@pytest.fixture
async def supervisor(clock: ManualClock):
    async with DynamicSupervisor(clock=clock, backoff=SHORT) as running:
        yield running


# Start


async def test_a_started_server_answers_and_a_stopped_one_says_so(supervisor: DynamicSupervisor) -> None:
    ref = await supervisor.start_child(Life("a").spec())
    assert await ref.call(Ping()) == 1
    await ref.stop()
    with pytest.raises(ServerStopped):
        await ref.call(Ping(), timeout_s=0.001)


async def test_a_failed_init_fails_the_start_and_every_call_that_waited_for_it(supervisor: DynamicSupervisor) -> None:
    ref = supervisor.spawn(Life("a", script=[Boom()]).spec())
    calls = [asyncio.ensure_future(ref.call(Ping())) for _ in range(3)]
    with pytest.raises(InitFailed):
        await ref.started()
    failures = await asyncio.gather(*calls, return_exceptions=True)
    assert [type(failure) for failure in failures] == [InitFailed] * 3
    assert len(set(map(id, failures))) == 3


async def test_an_init_that_takes_too_long_fails_the_start_and_is_a_crash_at_a_restart(
    supervisor: DynamicSupervisor, clock: ManualClock
) -> None:
    starts = 0

    class Slow(GenServer):
        async def init(self) -> None:
            nonlocal starts
            starts += 1
            if starts in (1, 3):
                await asyncio.Event().wait()

    spec = ChildSpec("slow", start=Slow, init_timeout_s=1.0)
    starting = asyncio.ensure_future(supervisor.start_child(spec))
    await pass_time(clock, 0.5)
    assert not starting.done()
    await pass_time(clock, 1.0)
    with pytest.raises(InitFailed):
        await starting
    assert list(supervisor.which_children()) == []

    ref = await supervisor.start_child(spec)
    ref.kill()
    await pass_time(clock)
    assert (starts, ref.phase) == (3, "starting")
    await pass_time(clock, 1.0)
    await pass_time(clock)
    assert (starts, ref.phase) == (4, "running")


async def test_an_id_in_use_is_refused_and_free_again_after_the_end(supervisor: DynamicSupervisor) -> None:
    first = await supervisor.start_child(Life("name").spec())
    with pytest.raises(ChildExists):
        await supervisor.start_child(Life("name").spec())
    assert await first.call(Ping()) == 1
    await first.stop()
    assert await (await supervisor.start_child(Life("name").spec())).call(Ping()) == 1


async def test_a_monitor_of_a_server_hears_of_its_end(supervisor: DynamicSupervisor) -> None:
    ref = await supervisor.start_child(Life("a").spec())
    watch = monitor(ref)
    await ref.stop()
    down = await watch
    assert (down.ref, down.reason.kind, down.restarting) == (ref, "stopped", False)


async def test_a_failed_start_never_leaves_its_name_behind(supervisor: DynamicSupervisor) -> None:
    registry = Registry()
    for _ in range(50):
        ref = supervisor.spawn(Life("a", script=[Boom()]).spec())
        registry.register("name", ref)
        with pytest.raises(InitFailed):
            await ref.started()
        assert registry.whereis("name") is None


# Stop


async def test_stop_ends_the_server_before_it_returns(supervisor: DynamicSupervisor) -> None:
    life = Life("a")
    ref = await supervisor.start_child(life.spec())
    await ref.stop()
    assert (ref.alive, [reason.kind for reason in life.reasons]) == (False, ["stopped"])


async def test_stop_with_a_reason_gives_it_to_terminate_and_to_the_monitor(supervisor: DynamicSupervisor) -> None:
    life = Life("a")
    ref = await supervisor.start_child(life.spec())
    watch = monitor(ref)
    await ref.stop("normal", timeout_s=None)
    assert (await watch).reason.kind == "normal"
    assert [reason.kind for reason in life.reasons] == ["normal"]


@pytest.mark.parametrize("timeout_s", [-1.0, float("nan"), "soon"])
async def test_stop_with_an_impossible_timeout_is_refused_and_the_server_lives(
    supervisor: DynamicSupervisor, timeout_s: Any
) -> None:
    ref = await supervisor.start_child(Life("a").spec())
    with pytest.raises((ValueError, TypeError)):
        await ref.stop(timeout_s=timeout_s)
    assert ref.alive
    assert await ref.call(Ping()) == 1


@pytest.mark.parametrize("reason", ["whatever", "crashed", "parent", None])
async def test_a_reason_outside_the_list_is_refused_and_the_server_lives(
    supervisor: DynamicSupervisor, reason: Any
) -> None:
    ref = await supervisor.start_child(Life("a").spec(restart="temporary"))
    with pytest.raises((ValueError, TypeError)):
        await ref.stop(reason)
    assert ref.alive
    assert await ref.call(Ping()) == 1


async def test_a_server_may_be_stopped_through_its_name(supervisor: DynamicSupervisor) -> None:
    registry = Registry()
    registry.register("to stop", await supervisor.start_child(Life("a").spec()))
    found = registry.whereis("to stop")
    assert found is not None
    await found.stop()
    assert not found.alive
    assert registry.whereis("to stop") is None


async def test_a_server_that_leaves_in_a_call_still_answers_it(supervisor: DynamicSupervisor) -> None:
    life = Life("a")
    ref = await supervisor.start_child(life.spec(restart="transient"))
    watch = monitor(ref)
    assert await ref.call(Leave("normal")) == "leaving"
    assert (await watch).reason.kind == "normal"
    assert [reason.kind for reason in life.reasons] == ["normal"]


async def test_without_a_terminate_of_its_own_a_server_ends_with_the_given_reason(
    supervisor: DynamicSupervisor,
) -> None:
    for reason in ("normal", "stopped"):
        ref = await supervisor.start_child(ChildSpec(reason, start=GenServer))
        watch = monitor(ref)
        await ref.stop(reason)
        assert (await watch).reason.kind == reason


async def test_a_terminate_that_raises_ends_the_server_as_crashed_and_stop_still_returns(
    supervisor: DynamicSupervisor,
) -> None:
    life = Life("a")

    def raise_boom() -> None:
        raise Boom

    life.at_terminate = raise_boom
    ref = await supervisor.start_child(life.spec())
    watch = monitor(ref)
    await asyncio.gather(ref.stop(), return_exceptions=True)
    down = await watch
    assert down.reason.kind == "crashed"
    assert "Boom" in repr(down.reason)
    assert not ref.alive


# Crash


async def test_the_caller_of_a_crash_learns_where_and_what_kind_but_not_the_content(
    supervisor: DynamicSupervisor,
) -> None:
    ref = await supervisor.start_child(Life("a").spec(restart="temporary"))
    watch = monitor(ref)
    with pytest.raises(ServerCrashed) as failure:
        await ref.call(Crash())
    assert "Boom" in str(failure.value.__cause__)
    assert (await watch).reason.kind == "crashed"


async def test_terminate_runs_once_after_a_crash_and_knows_the_reason(
    supervisor: DynamicSupervisor, clock: ManualClock
) -> None:
    life = Life("a")
    ref = await supervisor.start_child(life.spec(restart="temporary"))
    await crash(ref)
    await pass_time(clock)
    assert [reason.kind for reason in life.reasons] == ["crashed"]
    assert isinstance(life.reasons[0].error, Exception)


# Call


async def test_a_reply_may_come_later_and_from_any_task(supervisor: DynamicSupervisor) -> None:
    listener = Listener()
    ref = await supervisor.start_child(ChildSpec("listener", start=lambda: listener))
    first, second = (asyncio.ensure_future(ref.call(Ask())) for _ in range(2))
    await settle()
    assert not first.done()
    assert await ref.call(Words()) == []

    async def answer() -> None:
        listener.waiting[1].reply("second")
        listener.waiting[0].reply("first")

    await asyncio.ensure_future(answer())
    assert await asyncio.gather(first, second) == ["first", "second"]
    with pytest.raises(AlreadyReplied):
        listener.waiting[0].reply("again")


async def test_a_later_reply_may_be_a_failure(supervisor: DynamicSupervisor) -> None:
    listener = Listener()
    ref = await supervisor.start_child(ChildSpec("listener", start=lambda: listener))
    call = asyncio.ensure_future(ref.call(Ask()))
    await settle()
    listener.waiting[0].fail(LookupError("not here"))
    with pytest.raises(LookupError, match="not here"):
        await call


async def test_a_call_times_out_and_the_server_goes_on(supervisor: DynamicSupervisor, clock: ManualClock) -> None:
    life = Life("a")
    ref = await supervisor.start_child(life.spec())
    call = asyncio.ensure_future(ref.call(Hold(), timeout_s=1.0))
    await life.held.wait()
    await pass_time(clock, 0.5)
    assert not call.done()
    await pass_time(clock, 1.0)
    with pytest.raises(CallTimeout):
        await call
    life.gate.set()
    await settle()
    assert await ref.call(Ping()) == 1


async def test_a_reply_after_the_timeout_reaches_nobody(supervisor: DynamicSupervisor, clock: ManualClock) -> None:
    """OTP: reply by alias. The reply of an abandoned call never comes up in a later one."""
    listener = Listener()
    ref = await supervisor.start_child(ChildSpec("listener", start=lambda: listener))
    call = asyncio.ensure_future(ref.call(Ask(), timeout_s=1.0))
    await settle()
    await pass_time(clock, 2.0)
    with pytest.raises(CallTimeout):
        await call
    dropped = statistics(ref).dropped
    later = asyncio.ensure_future(ref.call(Ask()))
    await settle()
    listener.waiting[0].reply("late")
    await settle()
    assert not later.done()
    assert statistics(ref).dropped == dropped + 1
    listener.waiting[1].reply("in time")
    assert await later == "in time"


async def test_many_requests_may_be_under_way_and_be_collected_in_any_order(supervisor: DynamicSupervisor) -> None:
    listener = Listener()
    ref = await supervisor.start_child(ChildSpec("listener", start=lambda: listener))
    pending = [ref.dispatch(Ask()) for _ in range(3)]
    await settle()
    assert not any(request.done() for request in pending)
    for number in (2, 0, 1):
        listener.waiting[number].reply(str(number))
    assert [await pending[number].wait() for number in (1, 2, 0)] == ["1", "2", "0"]


async def test_an_answer_that_nobody_handles_is_the_callers_error_not_the_servers(
    supervisor: DynamicSupervisor,
) -> None:
    """OTP: the server crashes. Here no caller can hurt a server."""
    ref = await supervisor.start_child(Life("a").spec())
    with pytest.raises(UnknownMessage, match="Unheard"):
        await ref.call(Unheard())
    assert await ref.call(Ping()) == 1


async def test_a_call_is_as_cheap_while_a_huge_queue_waits_elsewhere(supervisor: DynamicSupervisor) -> None:
    """OTP measures time; here the point is that one server's queue is no matter of another's."""
    busy, idle = Life("busy"), Life("idle")
    queue = await supervisor.start_child(busy.spec())
    holding = asyncio.ensure_future(queue.call(Hold(), timeout_s=None))
    await busy.held.wait()
    waiting = [queue.dispatch(Ping(), timeout_s=None) for _ in range(5000)]
    ref = await supervisor.start_child(idle.spec())
    answers = [ref.dispatch(Ping()) for _ in range(10)]
    assert answers == [1] * 10
    busy.gate.set()
    assert await holding == "held"
    assert await waiting[-1].wait() == 1
    assert all(request.done() for request in waiting)
