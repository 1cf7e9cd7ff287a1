"""The pure restart policy, and crashes seen through it."""

import asyncio
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from session_actor.supervisors import (
    Backoff,
    ChildSpec,
    DynamicSupervisor,
    Exhausted,
    ExitReason,
    GenServer,
    InitFailed,
    Intensity,
    Restart,
    ServerCrashed,
    ServerDown,
    ServerQuarantined,
    Supervisor,
    next_restart,
    statistics,
    wants_restart,
)

from .support import AT_ONCE, Add, Boom, Crash, CrashNote, Get, Hold, Life, No, Note, idle, turns, until

CRASHED = ExitReason("crashed", Boom())


@pytest.mark.parametrize(
    ("kind", "normal", "crashed"), [("permanent", True, True), ("transient", False, True), ("temporary", False, False)]
)
def test_restart_kinds_are_those_of_otp(kind: Any, normal: bool, crashed: bool) -> None:
    assert wants_restart(kind, ExitReason("normal")) is normal
    assert wants_restart(kind, ExitReason("stopped")) is normal
    assert wants_restart(kind, CRASHED) is crashed
    assert wants_restart(kind, ExitReason("killed")) is crashed


@given(limit=st.integers(0, 20), lives=st.lists(st.floats(0, 4.99), max_size=60))
def test_a_child_that_never_lives_long_enough_gets_exactly_its_restarts(limit: int, lives: list[float]) -> None:
    attempt, restarts = 0, 0
    for lived_s in lives:
        decision = next_restart(attempt, lived_s, Intensity(limit, 5.0), Backoff(), lambda: 0.5)
        if isinstance(decision, Exhausted):
            break
        attempt, restarts = decision.attempt, restarts + 1
    assert restarts == min(limit, len(lives))


@given(lived_s=st.floats(5.0, 1e9), attempt=st.integers(0, 100))
def test_a_life_of_max_seconds_wipes_the_slate(lived_s: float, attempt: int) -> None:
    decision = next_restart(attempt, lived_s, Intensity(3, 5.0), Backoff(), lambda: 0.5)
    assert isinstance(decision, Restart)
    assert decision.attempt == 1


@given(
    attempt=st.integers(1, 10_000),
    jitter=st.floats(0, 1),
    draw=st.floats(0, 1, exclude_max=True),
    first_s=st.floats(0, 10),
    factor=st.floats(1, 10),
)
def test_a_delay_grows_to_its_maximum_and_stays_within_the_jitter(
    attempt: int, jitter: float, draw: float, first_s: float, factor: float
) -> None:
    backoff = Backoff(initial_s=first_s, factor=factor, max_s=20.0, jitter=jitter)
    plain = Backoff(initial_s=first_s, factor=factor, max_s=20.0, jitter=0.0)
    middle_s = plain.delay_s(attempt, lambda: draw)
    assert plain.delay_s(attempt + 1, lambda: draw) >= middle_s
    assert middle_s <= 20.0
    delay_s = backoff.delay_s(attempt, lambda: draw)
    assert middle_s * (1 - jitter) - 1e-9 <= delay_s <= middle_s * (1 + jitter) + 1e-9


@pytest.mark.parametrize("make", [lambda: Intensity(-1), lambda: Intensity(3, 0), lambda: Intensity(3, float("nan"))])
def test_an_intensity_that_limits_nothing_is_refused(make: Any) -> None:
    with pytest.raises(ValueError, match="intensity"):
        make()


@pytest.mark.parametrize("options", [{"initial_s": -1}, {"factor": 0.5}, {"jitter": 2}, {"max_s": float("nan")}])
def test_a_backoff_that_shrinks_or_is_negative_is_refused(options: Any) -> None:
    with pytest.raises(ValueError, match="backoff"):
        Backoff(**options)


async def test_queued_messages_survive_a_crash_and_the_crashing_one_is_never_run_again(life: Life) -> None:
    async with Supervisor([life.spec()], backoff=AT_ONCE) as root:
        ref = await idle(root.child("server"))
        ref.cast(Note(1))
        crash = ref.dispatch(Crash())
        after = ref.dispatch(Add(2), None)
        ref.cast(Note(3))
        with pytest.raises(ServerCrashed):
            await crash.wait()
        assert await after.wait() == 2
        assert await ref.call(Get()) == 5
        assert life.log == [1, "crash", 2, 3]


async def test_a_queued_message_times_out_while_its_server_is_down(life: Life, clock: Any) -> None:
    async with Supervisor([life.spec()], clock=clock, backoff=Backoff(initial_s=10, jitter=0)) as root:
        ref = await idle(root.child("server"))
        ref.cast(CrashNote())
        await turns()
        late = asyncio.create_task(ref.call(Add(), timeout_s=3.0))
        await turns()
        clock.advance(3.0)
        with pytest.raises(TimeoutError):
            await late
        clock.advance(7.0)
        assert await ref.call(Get()) == 0


class Failing(GenServer):
    """Starts once, then crashes in every continue."""

    def __init__(self, times: list[float], clock: Any) -> None:
        self.times = times
        self.clock = clock

    async def init(self) -> Any:
        from session_actor.supervisors import Continue

        self.times.append(self.clock.monotonic())
        return Continue()

    async def handle_continue(self, argument: Any) -> None:
        raise Boom


async def test_an_always_failing_child_starts_a_few_times_with_growing_delays_and_then_escalates(clock: Any) -> None:
    times: list[float] = []
    root = Supervisor(
        [ChildSpec("failing", start=lambda: Failing(times, clock))],
        intensity=Intensity(max_restarts=5, max_seconds=10),
        backoff=Backoff(initial_s=1.0, factor=2.0, max_s=100, jitter=0.0),
        clock=clock,
    )
    await root.start()
    for _ in range(100):
        await turns()
        clock.advance(1.0)
    await turns()
    assert [later - before for before, later in pairwise(times)] == [1, 2, 4, 8, 16]
    assert not root.alive
    with pytest.raises(ServerDown):
        root.child("failing").cast(Note())
    with pytest.raises(ServerDown):
        await root.stop()


async def test_a_root_that_gives_up_never_cancels_the_embedders_code(life: Life) -> None:
    done = []

    async def embedder() -> None:
        async with Supervisor([life.spec()], intensity=Intensity(max_restarts=0)) as root:
            with pytest.raises(ServerCrashed):
                await root.child("server").call(Crash())
            await turns()
            with pytest.raises(ServerDown):
                await root.child("server").call(Get())
            await asyncio.sleep(0)
            done.append(True)

    with pytest.raises(ServerDown):
        await embedder()
    assert done == [True]


async def test_five_siblings_that_fail_once_each_spend_nobodys_restarts() -> None:
    lives = [Life() for _ in range(5)]
    async with Supervisor(
        [life.spec(number) for number, life in enumerate(lives)], intensity=Intensity(max_restarts=1), backoff=AT_ONCE
    ) as root:
        for number in range(5):
            with pytest.raises(ServerCrashed):
                await root.child(number).call(Crash())
        for number in range(5):
            assert await root.child(number).call(Add()) == 1
        assert [life.starts for life in lives] == [2] * 5


async def test_one_for_one_never_touches_a_sibling(life: Life) -> None:
    other = Life()
    async with Supervisor([life.spec(1), other.spec(2)], backoff=AT_ONCE) as root:
        held = asyncio.create_task(root.child(2).call(Hold()))
        await other.held.wait()
        for _ in range(3):
            with pytest.raises(ServerCrashed):
                await root.child(1).call(Crash())
        other.gate.set()
        assert await held == 1
        assert (other.starts, other.ends) == (1, [])


@pytest.mark.parametrize(("strategy", "restarted"), [("one_for_all", [2, 2, 2]), ("rest_for_one", [1, 2, 2])])
async def test_group_strategies_restart_their_group_and_keep_its_queues(strategy: Any, restarted: list[int]) -> None:
    lives = [Life() for _ in range(3)]
    specs = [life.spec(number) for number, life in enumerate(lives)]
    async with Supervisor(specs, strategy=strategy, backoff=AT_ONCE) as root:
        held = asyncio.create_task(root.child(2).call(Hold(), timeout_s=None))
        await lives[2].held.wait()
        queued = asyncio.create_task(root.child(2).call(Add(7), timeout_s=None))
        await turns()
        with pytest.raises(ServerCrashed):
            await root.child(1).call(Crash())
        await turns()
        lives[2].gate.set()
        assert await held == 1
        assert await queued == 7
        assert [life.starts for life in lives] == restarted


async def test_a_session_that_keeps_crashing_is_quarantined_alone_until_released(life: Life) -> None:
    events: list[Any] = []
    other = Life()
    async with DynamicSupervisor(
        on_exhausted="quarantine", intensity=Intensity(max_restarts=2), backoff=AT_ONCE, on_event=events.append
    ) as root:
        ref, sibling = root.spawn(life.spec("bad")), root.spawn(other.spec("good"))
        for _ in range(3):
            with pytest.raises(ServerCrashed):
                await ref.call(Crash())
        await turns()
        queued = [ref.phase, root.quarantined(), ref.alive]
        assert queued == ["quarantined", ("bad",), False]
        with pytest.raises(ServerQuarantined, match="release"):
            await ref.call(Get())
        assert await sibling.call(Add()) == 1
        assert root.release("bad") is ref
        assert ref.dispatch(Add(), None) is not None
        assert await ref.call(Get()) == 1
        assert (life.starts, other.starts) == (4, 1)
        assert "quarantined" in [event.kind for event in events]
        assert "released" in [event.kind for event in events]


async def test_quarantine_fails_everything_that_waits_at_once(life: Life) -> None:
    async with DynamicSupervisor(on_exhausted="quarantine", intensity=Intensity(max_restarts=0)) as root:
        ref = await idle(root.spawn(life.spec()))
        ref.cast(CrashNote())
        calls = [asyncio.create_task(ref.call(Add(), timeout_s=None)) for _ in range(3)]
        results = await asyncio.gather(*calls, return_exceptions=True)
        assert [type(result) for result in results] == [ServerQuarantined] * 3
        assert statistics(ref).restarts == 0


@pytest.mark.parametrize("error", [Boom, asyncio.CancelledError, GeneratorExit])
async def test_an_event_hook_that_raises_is_detached_and_nothing_else_happens(
    life: Life, error: type[BaseException]
) -> None:
    def hook(_: Any) -> None:
        raise error

    async with Supervisor([life.spec()], on_event=hook) as root:
        assert root.on_event is None
        assert await root.child("server").call(Add()) == 1


async def test_a_nested_supervisor_that_gives_up_is_restarted_with_its_refs_still_good(life: Life) -> None:
    inner = Supervisor([life.spec()], intensity=Intensity(max_restarts=0), name="inner")
    async with Supervisor([ChildSpec("inner", start=lambda: inner, shutdown_s=None)], backoff=AT_ONCE):
        ref = inner.child("server")
        with pytest.raises(ServerCrashed):
            await ref.call(Crash())
        await until(lambda: life.starts == 2)
        await ref.started()
        assert await ref.call(Add()) == 1


class Unwilling(GenServer):
    async def init(self) -> None:
        raise No


async def test_a_first_start_that_is_refused_is_an_init_failure_and_no_crash() -> None:
    seen: list[str] = []
    async with Supervisor() as root:
        dynamic = DynamicSupervisor(on_event=lambda event: seen.append(event.kind))
        await root.start_child(ChildSpec("dynamic", start=lambda: dynamic))
        ref = dynamic.spawn(ChildSpec("unwilling", start=Unwilling))
        with pytest.raises(InitFailed) as failed:
            await ref.started()
        assert isinstance(failed.value.__cause__, No)
        assert statistics(ref).crashes == 0
        assert "crashed" not in seen
