"""OTP's supervisor_SUITE: who is restarted, by which strategy, and when a supervisor gives up."""

from typing import Any

import pytest

from session_actor.supervisors import (
    ChildNotFound,
    DynamicSupervisor,
    Intensity,
    ManualClock,
    RestartsExhausted,
    ServerDown,
    Supervisor,
)

from .support import SHORT, Boom, Leave, Life, Ping, crash, crash_and_restart, ended, pass_time, settle, until

TWO = Intensity(max_restarts=2, max_seconds=3600.0)
FOUR = Intensity(max_restarts=4, max_seconds=3600.0)


def root(clock: ManualClock, lives: list[Life], strategy: Any = "one_for_one", **options: Any) -> Supervisor:
    options.setdefault("intensity", TWO)
    return Supervisor(
        children=[life.spec() for life in lives], clock=clock, backoff=SHORT, strategy=strategy, **options
    )


def counted(supervisor: Supervisor) -> tuple[int, int]:
    counts = supervisor.count_children()
    return counts.specs, counts.active


async def end_child(clock: ManualClock, supervisor: Supervisor, name: str, end: str) -> None:
    ref = supervisor.child(name)
    if end == "crash":
        await crash(ref)
    elif end == "kill":
        ref.kill()
    else:
        await ref.call(Leave(end))
    await pass_time(clock)


async def gave_up(supervisor: Supervisor | DynamicSupervisor) -> None:
    """Waits until the supervisor has ended by itself, and checks that it says why, and to whoever stops it, too."""
    await until(lambda: supervisor.reason is not None)
    assert supervisor.reason is not None
    assert not supervisor.alive
    assert supervisor.reason.kind == "crashed"
    assert isinstance(supervisor.reason.error, RestartsExhausted)
    with pytest.raises(ServerDown):
        await supervisor.stop()


# Permanent, transient, temporary


@pytest.mark.parametrize("end", ["normal", "stopped", "crash", "kill"])
async def test_a_permanent_child_is_always_restarted(clock: ManualClock, end: str) -> None:
    async with root(clock, [Life("child")]) as supervisor:
        await end_child(clock, supervisor, "child", end)
        assert await supervisor.child("child").call(Ping()) == 2
        assert counted(supervisor) == (1, 1)


@pytest.mark.parametrize("end", ["normal", "stopped"])
async def test_a_transient_child_that_leaves_is_not_restarted_but_can_be_by_hand(clock: ManualClock, end: str) -> None:
    life = Life("child")
    async with root(clock, []) as supervisor:
        await supervisor.start_child(life.spec(restart="transient"))
        await end_child(clock, supervisor, "child", end)
        assert life.starts == 1
        assert counted(supervisor) == (1, 0)
        await supervisor.restart_child("child")
        assert await supervisor.child("child").call(Ping()) == 2


@pytest.mark.parametrize("end", ["crash", "kill"])
async def test_a_transient_child_that_crashes_is_restarted(clock: ManualClock, end: str) -> None:
    async with root(clock, []) as supervisor:
        await supervisor.start_child(Life("child").spec(restart="transient"))
        await end_child(clock, supervisor, "child", end)
        assert await supervisor.child("child").call(Ping()) == 2
        assert counted(supervisor) == (1, 1)


@pytest.mark.parametrize("end", ["normal", "stopped", "crash", "kill", "terminate"])
async def test_a_temporary_child_is_never_restarted_and_its_spec_goes_with_it(clock: ManualClock, end: str) -> None:
    life = Life("child")
    async with root(clock, []) as supervisor:
        for starts in (1, 2):
            await supervisor.start_child(life.spec(restart="temporary"))
            if end == "terminate":
                await supervisor.terminate_child("child")
            else:
                await end_child(clock, supervisor, "child", end)
            await pass_time(clock, 60.0)
            assert life.starts == starts
            assert counted(supervisor) == (0, 0)
            with pytest.raises(ChildNotFound):
                await supervisor.restart_child("child")


@pytest.mark.parametrize("strategy", ["one_for_all", "rest_for_one"])
async def test_a_temporary_sibling_hit_by_a_group_restart_is_not_started_again(
    clock: ManualClock, strategy: str
) -> None:
    bystander = Life("temporary")
    async with root(clock, [Life("permanent")], strategy) as supervisor:
        ref = await supervisor.start_child(bystander.spec(restart="temporary"))
        await crash_and_restart(clock, supervisor.child("permanent"))
        await pass_time(clock, 60.0)
        assert not ref.alive
        assert bystander.starts == 1
        assert [info.id for info in supervisor.which_children()] == ["permanent"]
        assert supervisor.alive


# Restart limits


async def test_a_child_may_crash_for_ever_if_it_lives_long_enough_in_between(clock: ManualClock) -> None:
    async with root(clock, [Life("child")], intensity=Intensity(max_restarts=1, max_seconds=1.0)) as supervisor:
        for restarts in range(1, 6):
            await crash_and_restart(clock, supervisor.child("child"))
            await pass_time(clock, 1.0)
            assert await supervisor.child("child").call(Ping()) == restarts + 1
        await supervisor.terminate_child("child")
        supervisor.delete_child("child")
        assert supervisor.alive


@pytest.mark.parametrize("strategy", ["one_for_one", "one_for_all", "rest_for_one"])
async def test_one_crash_too_many_ends_the_supervisor_and_all_its_children(clock: ManualClock, strategy: str) -> None:
    lives = [Life("a"), Life("b")]
    supervisor = root(clock, lives, strategy)
    await supervisor.start()
    refs = [supervisor.child("a"), supervisor.child("b")]
    await crash_and_restart(clock, refs[0])
    await crash_and_restart(clock, refs[0])
    assert supervisor.alive
    await crash(refs[0])
    await gave_up(supervisor)
    assert (await ended(refs[1])).kind == "parent"
    for ref in refs:
        with pytest.raises(ServerDown):
            await ref.call(Ping())


async def test_one_poisoned_child_does_not_spend_the_restarts_of_another(clock: ManualClock) -> None:
    """OTP counts restarts for the whole supervisor; here every child has its own count."""
    async with root(clock, [Life("a"), Life("b"), Life("c")]) as supervisor:
        for name in "abcabc":
            await crash_and_restart(clock, supervisor.child(name))
        assert [await supervisor.child(name).call(Ping()) for name in "abc"] == [3, 3, 3]


@pytest.mark.parametrize("strategy", ["one_for_one", "one_for_all", "rest_for_one"])
async def test_a_restart_that_never_succeeds_ends_the_supervisor(clock: ManualClock, strategy: str) -> None:
    failing = Life("failing", script=[None, *[Boom()] * 50])
    supervisor = root(clock, [failing, Life("calm")], strategy, intensity=FOUR)
    await supervisor.start()
    calm = supervisor.child("calm")
    await crash(supervisor.child("failing"))
    for _ in range(10):
        await pass_time(clock)
    await gave_up(supervisor)
    assert failing.starts == 1 + 4
    assert (await ended(calm)).kind == "parent"


@pytest.mark.parametrize("strategy", ["one_for_all", "rest_for_one"])
async def test_a_group_restart_that_another_child_keeps_failing_ends_the_supervisor(
    clock: ManualClock, strategy: str
) -> None:
    calm, failing = Life("calm"), Life("failing", script=[None, *[Boom()] * 50])
    supervisor = root(clock, [calm, failing], strategy, intensity=FOUR)
    await supervisor.start()
    await crash(supervisor.child("calm"))
    for _ in range(30):
        await pass_time(clock)
    await gave_up(supervisor)
    assert failing.starts <= 1 + 4 + 1
    assert calm.starts <= 1 + 4 + 1


# Strategies


async def test_one_for_one_touches_no_sibling(clock: ManualClock, log: list[str]) -> None:
    async with root(clock, [Life("a", log), Life("b", log), Life("c", log)]) as supervisor:
        log.clear()
        await crash_and_restart(clock, supervisor.child("b"))
        assert log == ["b terminate", "b init"]
        assert counted(supervisor) == (3, 3)


async def test_one_for_all_stops_all_in_reverse_and_starts_all_in_order(clock: ManualClock, log: list[str]) -> None:
    async with root(clock, [Life("a", log), Life("b", log), Life("c", log)], "one_for_all") as supervisor:
        log.clear()
        await crash_and_restart(clock, supervisor.child("b"))
        assert log == ["b terminate", "c terminate", "a terminate", "a init", "b init", "c init"]
        assert [await supervisor.child(name).call(Ping()) for name in "abc"] == [2, 2, 2]
        assert counted(supervisor) == (3, 3)


async def test_rest_for_one_restarts_the_child_and_those_after_it(clock: ManualClock, log: list[str]) -> None:
    async with root(clock, [Life(name, log) for name in "abcd"], "rest_for_one") as supervisor:
        log.clear()
        await crash_and_restart(clock, supervisor.child("b"))
        assert log == ["b terminate", "d terminate", "c terminate", "b init", "c init", "d init"]
        assert [await supervisor.child(name).call(Ping()) for name in "abcd"] == [1, 2, 2, 2]
        assert counted(supervisor) == (4, 4)


async def test_a_group_restart_is_one_restart_not_one_for_each_child(clock: ManualClock) -> None:
    async with root(clock, [Life(name) for name in "abcdefgh"], "one_for_all", intensity=FOUR) as supervisor:
        for restarts in range(1, 5):
            await crash_and_restart(clock, supervisor.child("a"))
            assert await supervisor.child("h").call(Ping()) == restarts + 1


async def test_one_for_all_stops_the_restarted_ones_again_when_another_fails_to_start(
    clock: ManualClock, log: list[str]
) -> None:
    lives = [Life("a", log), Life("b", log, script=[None, Boom(), None]), Life("c", log)]
    async with root(clock, lives, "one_for_all", intensity=FOUR) as supervisor:
        log.clear()
        await crash_and_restart(clock, supervisor.child("a"))
        await pass_time(clock)
        ends = ["a terminate", "c terminate", "b terminate"]
        assert log == [*ends, "a init", "b init", "a terminate", "a init", "b init", "c init"]  # c has waited for b
        assert [await supervisor.child(name).call(Ping()) for name in "abc"] == [3, 3, 2]


async def test_rest_for_one_leaves_the_restarted_ones_alone_when_a_later_one_fails_to_start(
    clock: ManualClock, log: list[str]
) -> None:
    lives = [Life("a", log), Life("b", log, script=[None, Boom(), None]), Life("c", log)]
    async with root(clock, lives, "rest_for_one", intensity=FOUR) as supervisor:
        log.clear()
        await crash_and_restart(clock, supervisor.child("a"))
        await pass_time(clock)
        ends = ["a terminate", "c terminate", "b terminate"]
        assert log == [*ends, "a init", "b init", "b init", "c init"]  # c has waited for b
        assert [await supervisor.child(name).call(Ping()) for name in "abc"] == [2, 3, 2]


async def test_a_second_crash_during_a_group_restart_is_not_lost(clock: ManualClock) -> None:
    lives = [Life("a"), Life("b"), Life("c")]
    async with root(clock, lives, "one_for_all", intensity=FOUR) as supervisor:
        await crash(supervisor.child("a"))
        supervisor.child("c").kill()
        for _ in range(4):
            await pass_time(clock)
        assert counted(supervisor) == (3, 3)
        numbers = [await supervisor.child(name).call(Ping()) for name in "abc"]
        assert min(numbers) >= 2
        assert max(numbers) <= 3


async def test_a_stopped_sibling_stays_stopped_when_the_group_restarts(clock: ManualClock) -> None:
    lives = [Life("a"), Life("stopped")]
    async with root(clock, lives, "one_for_all") as supervisor:
        await supervisor.terminate_child("stopped")
        await crash_and_restart(clock, supervisor.child("a"))
        await settle()
        assert await supervisor.child("a").call(Ping()) == 2
        assert lives[1].starts in (1, 2)
        assert counted(supervisor)[0] == 2


# Dynamic


async def test_a_dynamic_supervisor_restarts_only_the_child_that_crashed(clock: ManualClock) -> None:
    async with DynamicSupervisor(clock=clock, backoff=SHORT, intensity=TWO) as supervisor:
        first = await supervisor.start_child(Life("first").spec())
        second = await supervisor.start_child(Life("second").spec())
        await crash_and_restart(clock, first)
        assert (await first.call(Ping()), await second.call(Ping())) == (2, 1)
        assert supervisor.count_children().active == 2


async def test_a_dynamic_supervisor_gives_up_after_one_crash_too_many(clock: ManualClock) -> None:
    supervisor = DynamicSupervisor(clock=clock, backoff=SHORT, intensity=TWO)
    await supervisor.start()
    first = await supervisor.start_child(Life("first").spec())
    second = await supervisor.start_child(Life("second").spec())
    await crash_and_restart(clock, first)
    await crash_and_restart(clock, first)
    await crash(first)
    await gave_up(supervisor)
    assert (await ended(second)).kind == "parent"
