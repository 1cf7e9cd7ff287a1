"""Elixir's dynamic_supervisor_test.exs: how children end when the supervisor ends, and one by one."""

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from session_actor.supervisors import ChildNotFound, DynamicSupervisor, ExitReason, Intensity, ManualClock, ServerRef

from .support import SHORT, STEP_S, Boom, Hold, HoldThenLeave, Life, crash, pass_time, settle

MANY = Intensity(max_restarts=100_000, max_seconds=5.0)


async def three(clock: ManualClock, lives: list[Life], **options: Any) -> tuple[DynamicSupervisor, list[ServerRef]]:
    supervisor = DynamicSupervisor(clock=clock, backoff=SHORT, intensity=MANY)
    await supervisor.start()
    return supervisor, [await supervisor.start_child(life.spec(**options)) for life in lives]


def lives_of_three() -> list[Life]:
    return [Life(name) for name in "abc"]


async def hold_all(lives: list[Life], refs: list[ServerRef], message: Any = Hold()) -> Sequence[asyncio.Future[Any]]:  # noqa: B008
    calls = [asyncio.ensure_future(ref.call(message, timeout_s=None)) for ref in refs]
    for life in lives:
        await life.held.wait()
    return calls


def kinds(refs: list[ServerRef]) -> list[str]:
    return [ref.reason.kind if ref.reason is not None else "alive" for ref in refs]


async def test_with_kill_the_children_end_at_once_even_in_the_middle_of_a_message(clock: ManualClock) -> None:
    lives = lives_of_three()
    supervisor, refs = await three(clock, lives, shutdown_s="kill")
    calls = await hold_all(lives, refs)
    await supervisor.stop()
    assert kinds(refs) == ["killed"] * 3
    assert all(isinstance(result, Exception) for result in await asyncio.gather(*calls, return_exceptions=True))


async def test_without_a_limit_the_supervisor_waits_for_the_last_child(clock: ManualClock) -> None:
    lives = lives_of_three()
    supervisor, refs = await three(clock, lives, shutdown_s=None)
    calls = await hold_all(lives, refs)
    stopping = asyncio.ensure_future(supervisor.stop())
    await pass_time(clock, 86_400.0)
    assert not stopping.done()
    for life in lives:
        life.gate.set()
    await stopping
    assert kinds(refs) == ["parent"] * 3
    assert await asyncio.gather(*calls) == ["held"] * 3


@pytest.mark.parametrize("shutdown_s", [None, 1.0])
async def test_a_child_whose_terminate_raises_still_ends_and_its_reason_tells(
    clock: ManualClock, shutdown_s: float | None
) -> None:
    lives = lives_of_three()

    def raise_boom() -> None:
        raise Boom

    for life in lives:
        life.at_terminate = raise_boom
    supervisor, refs = await three(clock, lives, shutdown_s=shutdown_s)
    await supervisor.stop()
    assert kinds(refs) == ["crashed"] * 3
    assert [life.starts for life in lives] == [1, 1, 1]


async def test_within_the_shutdown_time_the_children_end_by_themselves(clock: ManualClock) -> None:
    lives = lives_of_three()
    supervisor, refs = await three(clock, lives, shutdown_s=1.0)
    await supervisor.stop()
    assert kinds(refs) == ["parent"] * 3
    assert [[reason.kind for reason in life.reasons] for life in lives] == [["parent"]] * 3


async def test_at_the_end_of_the_shutdown_time_only_the_stuck_child_is_killed(clock: ManualClock) -> None:
    lives = lives_of_three()
    supervisor, refs = await three(clock, lives, shutdown_s=STEP_S)
    call = (await hold_all(lives[1:2], refs[1:2]))[0]
    stopping = asyncio.ensure_future(supervisor.stop())
    await pass_time(clock, STEP_S / 2)
    assert not stopping.done()
    await pass_time(clock, STEP_S)
    await settle()
    assert stopping.done()
    assert kinds(refs) == ["parent", "killed", "parent"]
    assert isinstance((await asyncio.gather(call, return_exceptions=True))[0], Exception)


async def test_a_permanent_child_that_ends_by_itself_during_the_stop_is_not_restarted(clock: ManualClock) -> None:
    lives = lives_of_three()
    supervisor, refs = await three(clock, lives, shutdown_s=None, restart="permanent")
    calls = await hold_all(lives, refs, HoldThenLeave())
    stopping = asyncio.ensure_future(supervisor.stop())
    await settle()
    for life in lives:
        life.gate.set()
    await stopping
    await asyncio.gather(*calls, return_exceptions=True)
    await pass_time(clock, 60.0)
    assert [life.starts for life in lives] == [1, 1, 1]
    assert set(kinds(refs)) <= {"normal", "parent"}


async def test_each_child_ends_by_its_own_shutdown_rule(clock: ManualClock) -> None:
    patient, brutal = Life("patient"), Life("brutal")
    supervisor, [first] = await three(clock, [patient], shutdown_s=None)
    second = await supervisor.start_child(brutal.spec(shutdown_s="kill"))
    await hold_all([brutal], [second])
    await supervisor.stop()
    assert kinds([first, second]) == ["parent", "killed"]


@pytest.mark.parametrize(("shutdown_s", "kind"), [("kill", "killed"), (1.0, "parent")])
async def test_a_terminated_child_is_gone(clock: ManualClock, shutdown_s: Any, kind: str) -> None:
    life = Life("a")
    supervisor, [ref] = await three(clock, [life], shutdown_s=shutdown_s)
    await supervisor.terminate_child("a")
    assert kinds([ref]) == [kind]
    with pytest.raises(ChildNotFound):
        await supervisor.terminate_child("a")
    counts = supervisor.count_children()
    assert (counts.workers, counts.active) == (0, 0)
    await supervisor.stop()


async def test_terminating_a_child_between_two_lives_ends_the_restarts(clock: ManualClock) -> None:
    life = Life("a", script=[None, *[Boom()] * 50])
    supervisor, [ref] = await three(clock, [life])
    await crash(ref)
    await pass_time(clock)
    assert (life.starts, ref.phase) == (2, "backoff")
    await supervisor.terminate_child("a")
    await pass_time(clock, 60.0)
    assert life.starts == 2
    with pytest.raises(ChildNotFound):
        await supervisor.terminate_child("a")
    assert supervisor.count_children().workers == 0
    assert isinstance(ref.reason, ExitReason)
    await supervisor.stop()
