"""When the budget of a turn is spent: who must wait stands in one line, and calls of leaf servers run all the same."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from session_actor.supervisors import (
    ChildSpec,
    DynamicSupervisor,
    PendingReply,
    ServerCrashed,
    ServerRef,
    Supervisor,
    statistics,
)
from session_actor.supervisors.fairness import OVERDRAFT_S, SLICE_S, WAKES_PER_TURN, FairnessBudget
from session_actor.supervisors.floor import Floor

from .support import AT_ONCE, Add, Crash, Defer, Get, Life, No, Refuse, Run, RunAsync, Server, idle, turns, until


class Time:
    def __init__(self) -> None:
        self.now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


class Leaf(Server):
    leaf = True


@pytest.fixture
async def time(monkeypatch: Any) -> Time:
    """The loop's budget and its servers read a clock that only handlers move."""
    time = Time()
    for module in ("serving", "ref", "incarnation"):
        monkeypatch.setattr(f"session_actor.supervisors.{module}.perf_counter", time)
    Floor.current().budget = FairnessBudget(asyncio.get_running_loop(), time)
    return time


@asynccontextmanager
async def leaf(life: Life) -> AsyncGenerator[ServerRef]:
    async with Supervisor([ChildSpec("server", start=lambda: Leaf(life))], backoff=AT_ONCE) as root:
        yield await idle(root.child("server"))


def spend(time: Time) -> FairnessBudget:
    """Let handlers use the whole budget of this turn."""
    budget = Floor.current().budget
    for _ in range(2):
        time.now_s += 2 * SLICE_S
        budget.admits(time.now_s)
    assert budget.check_at < 0
    return budget


async def test_a_call_of_a_leaf_is_run_and_its_caller_lets_the_loop_go(life: Life, time: Time) -> None:
    async with leaf(life) as ref:
        spend(time)
        pending: Any = ref.dispatch(Add(3))
        assert isinstance(pending, PendingReply)
        assert (life.log, ref.slot.mailbox.length, pending.done()) == ([3], 0, False)
        seen: list[str] = []
        asyncio.get_running_loop().call_soon(seen.append, "another")
        assert await pending.wait() == 3
        assert seen == ["another"]
        assert (statistics(ref).handled, statistics(ref).mailbox_length) == (1, 0)


async def test_a_refusal_is_raised_after_the_turn_so_that_a_caller_who_tries_again_holds_nobody(
    life: Life, time: Time
) -> None:
    async with leaf(life) as ref:
        spend(time)
        pending: Any = ref.dispatch(Refuse())
        with pytest.raises(No):
            await pending.wait()
        spend(time)
        with pytest.raises(No):
            await ref.call(Refuse())
        assert ref.dispatch(Add()) == 1
        assert statistics(ref).crashes == 0


async def test_a_crash_is_one_as_ever(life: Life, time: Time) -> None:
    async with leaf(life) as ref:
        budget = spend(time)
        with pytest.raises(ServerCrashed, match="Boom"):
            ref.dispatch(Crash())
        assert budget.check_at < 0
        assert await ref.call(Get()) == 0
        assert statistics(ref).restarts == 1


async def test_a_reply_that_comes_later_comes_when_it_is_given(life: Life, time: Time) -> None:
    async with leaf(life) as ref:
        spend(time)
        pending: Any = ref.dispatch(Defer())
        await turns(4)
        assert not pending.done()
        life.deferred[0].reply("late")
        assert await pending.wait() == "late"


async def test_a_caller_that_gives_up_in_the_line_takes_nobodys_place(life: Life, time: Time) -> None:
    async with leaf(life) as ref:
        spend(time)
        pending: list[Any] = [ref.dispatch(Add()) for _ in range(WAKES_PER_TURN + 3)]
        callers = [asyncio.create_task(each.wait()) for each in pending[-3:]]
        await turns(1)
        assert [each.done() for each in pending].count(True) == WAKES_PER_TURN
        callers[1].cancel()
        await asyncio.wait(callers)
        assert [caller.cancelled() for caller in callers] == [False, True, False]
        assert ref.dispatch(Get()) == len(life.log) == WAKES_PER_TURN + 3


async def test_beyond_the_overdraft_a_call_of_a_leaf_is_queued_as_any_other(life: Life, time: Time) -> None:
    async with leaf(life) as ref:
        spend(time)
        time.now_s += OVERDRAFT_S
        pending: Any = ref.dispatch(Add())
        assert (life.log, ref.slot.mailbox.length) == ([], 1)
        assert await pending.wait() == 1


async def test_many_callers_of_leaves_leave_the_loop_to_others(time: Time) -> None:
    worst_s = 0.0

    def work(_: Any) -> None:
        time.now_s += SLICE_S / 10

    async def caller(ref: ServerRef) -> None:
        for _ in range(20):
            await ref.call(Run(work), timeout_s=None)

    async def watch() -> None:
        nonlocal worst_s
        while True:
            before_s = time.now_s
            await asyncio.sleep(0)
            worst_s = max(worst_s, time.now_s - before_s)

    life = Life()
    async with DynamicSupervisor() as root:
        refs = [await idle(root.spawn(ChildSpec(n, start=lambda: Leaf(life)))) for n in range(500)]
        watcher = asyncio.create_task(watch())
        await asyncio.gather(*(caller(ref) for ref in refs))
        watcher.cancel()
        assert SLICE_S < worst_s <= OVERDRAFT_S + 3 * SLICE_S


async def test_callers_queued_calls_and_tasks_of_servers_go_on_in_the_order_in_which_they_came(
    life: Life, time: Time
) -> None:
    order: list[str] = []

    async def note(_: Any) -> None:
        order.append("task")

    async def wait(pending: Any) -> None:
        await pending.wait()
        order.append("caller")

    async with leaf(life) as ref, DynamicSupervisor() as root:
        first = await idle(root.spawn(life.spec(1)))
        second = await idle(root.spawn(ChildSpec(2, start=lambda: Leaf(life))))
        spend(time)
        replies: list[Any] = [ref.dispatch(Add()), first.dispatch(RunAsync(note))]
        tasks = [asyncio.create_task(wait(reply)) for reply in replies]
        second.dispatch(Run(lambda _: order.append("queued")))
        await asyncio.gather(*tasks)
        await until(lambda: len(order) == 4)
        assert order.index("queued") == 0  # the loop ran it itself, the others took a turn more to wake
        assert order[1:] == ["caller", "task", "caller"]


async def test_queued_calls_of_idle_leaves_are_run_by_the_loop_as_far_as_a_slice_goes(time: Time) -> None:
    served: list[int] = []

    def work(server: Any) -> None:
        served.append(server.ref.id)
        time.now_s += SLICE_S / 10

    life = Life()
    async with DynamicSupervisor() as root:
        specs = [ChildSpec(n, start=lambda: Leaf(life)) for n in range(3 * WAKES_PER_TURN)]
        refs = [await idle(root.spawn(spec)) for spec in specs]
        wakers = [ref.slot.waker for ref in refs]
        spend(time)
        pending = [ref.slot.enqueue_call(Run(work), None) for ref in refs]
        await turns(1)
        assert 0 < len(served) <= 12
        for each in pending:
            await each.wait()
        assert served == list(range(3 * WAKES_PER_TURN))
        assert [ref.slot.waker for ref in refs] == wakers  # no task was woken


async def test_what_does_not_fit_into_the_slice_of_a_server_stays_in_line(time: Time, life: Life) -> None:
    def work(_: Any) -> None:
        time.now_s += SLICE_S

    async with DynamicSupervisor() as root:
        ref = await idle(root.spawn(ChildSpec("server", start=lambda: Leaf(life))))
        waker = ref.slot.waker
        spend(time)
        pending = [ref.slot.enqueue_call(Run(work), None) for _ in range(5)]
        assert [await each.wait() for each in pending] == [None] * 5
        await turns(2)
        assert ref.slot.waker is waker
        assert ref.dispatch(Get()) == 0


def test_an_exit_of_the_process_in_the_line_keeps_nobody_behind_it_waiting() -> None:
    found: list[PendingReply[Any]] = []

    def leave(_: Any) -> None:
        raise SystemExit(3)

    async def main() -> None:
        life, time = Life(), Time()
        Floor.current().budget = FairnessBudget(asyncio.get_running_loop(), time)
        root = Supervisor([life.spec(1), life.spec(2)])
        await root.start()
        one, two = await idle(root.child(1)), await idle(root.child(2))
        spend(time)
        found.extend([one.slot.enqueue_call(Run(leave), None), two.slot.enqueue_call(Add(), None)])
        await asyncio.sleep(5)

    with pytest.raises(SystemExit):
        asyncio.run(main())
    assert all(pending.done() for pending in found)
