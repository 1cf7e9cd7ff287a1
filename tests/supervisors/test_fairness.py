"""The loop is never held: one budget per loop, by time, and few wake-ups per turn."""

import asyncio
from math import inf
from typing import Any

import pytest

from session_actor.supervisors import ChildSpec, DynamicSupervisor, MailboxSpec, PendingReply, ServerKilled, statistics
from session_actor.supervisors.fairness import SLICE_S, WAKES_PER_TURN, FairnessBudget
from session_actor.supervisors.floor import Floor

from .support import AT_ONCE, Add, Life, Note, Run, RunAsync, Server, idle, turns, until


class Time:
    def __init__(self) -> None:
        self.now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


async def test_the_budget_asks_for_a_turn_after_one_slice_and_is_spent_after_two() -> None:
    time = Time()
    budget = FairnessBudget(asyncio.get_running_loop(), time)
    assert time.now_s < budget.check_at
    time.now_s += SLICE_S
    assert budget.admits(time.now_s)
    assert budget.check_at == time.now_s + SLICE_S
    time.now_s += SLICE_S
    assert not budget.admits(time.now_s)
    assert budget.check_at == -inf
    await turns(2)
    assert budget.check_at == time.now_s + SLICE_S


async def test_a_turn_in_between_gives_the_whole_budget_back() -> None:
    time = Time()
    budget = FairnessBudget(asyncio.get_running_loop(), time)
    for _ in range(10):
        time.now_s += SLICE_S
        assert budget.admits(time.now_s)
        await turns(2)


async def test_parked_servers_go_on_first_come_first_served_a_few_per_turn() -> None:
    budget = FairnessBudget(asyncio.get_running_loop())
    order: list[int] = []

    async def server(number: int) -> None:
        await budget.park()
        order.append(number)

    tasks = [asyncio.create_task(server(number)) for number in range(3 * WAKES_PER_TURN)]
    await turns(1)
    assert order == []
    await turns(2)
    assert len(order) <= WAKES_PER_TURN
    await asyncio.gather(*tasks)
    assert order == list(range(3 * WAKES_PER_TURN))


async def test_a_cancelled_parked_server_takes_nobodys_place() -> None:
    budget = FairnessBudget(asyncio.get_running_loop())

    async def server() -> None:
        await budget.park()

    tasks = [asyncio.create_task(server()) for _ in range(3)]
    await turns(1)
    tasks[0].cancel()
    await asyncio.wait(tasks)
    assert [task.cancelled() for task in tasks] == [True, False, False]


@pytest.fixture
async def hand_moved(monkeypatch: Any) -> Time:
    """The loop's budget and its servers read a clock that only handlers move."""
    time = Time()
    monkeypatch.setattr("session_actor.supervisors.serving.perf_counter", time)
    monkeypatch.setattr("session_actor.supervisors.ref.perf_counter", time)
    monkeypatch.setattr("session_actor.supervisors.incarnation.perf_counter", time)
    Floor.current().budget = FairnessBudget(asyncio.get_running_loop(), time)
    return time


class Watch:
    """Another coroutine: how much time handlers took at most between two of its turns."""

    def __init__(self, time: Time) -> None:
        self.worst_s = 0.0
        self.time = time
        self.task = asyncio.create_task(self.run())

    async def run(self) -> None:
        while True:
            before_s = self.time.now_s
            await asyncio.sleep(0)
            self.worst_s = max(self.worst_s, self.time.now_s - before_s)

    async def stop(self) -> None:
        self.task.cancel()
        await asyncio.wait([self.task])


async def test_a_long_queue_is_drained_in_slices_and_others_run_in_between(life: Life, hand_moved: Time) -> None:
    def work(_: Any) -> None:
        hand_moved.now_s += SLICE_S / 10

    async with DynamicSupervisor() as root:
        ref = await idle(root.spawn(life.spec(mailbox=MailboxSpec(limit=100_000))))
        watch = Watch(hand_moved)
        for _ in range(1000):
            ref.cast(Run(work))
        await until(lambda: statistics(ref).mailbox_length == 0)
        await watch.stop()
        assert 0 < watch.worst_s <= 3 * SLICE_S


async def test_two_hundred_inline_callers_leave_the_loop_to_others(hand_moved: Time) -> None:
    def work(_: Any) -> None:
        hand_moved.now_s += SLICE_S / 100

    async def caller(ref: Any) -> None:
        for _ in range(50):
            await ref.call(Run(work))

    async with DynamicSupervisor() as root:
        refs = [await idle(root.spawn(Life().spec(number))) for number in range(20)]
        watch = Watch(hand_moved)
        await asyncio.gather(*(caller(refs[number % len(refs)]) for number in range(200)))
        await watch.stop()
        assert 0 < watch.worst_s <= 5 * SLICE_S


@pytest.mark.parametrize("kind", [Run, RunAsync])
async def test_no_server_waits_while_others_are_served_again_and_again(hand_moved: Time, kind: Any) -> None:
    served: list[int] = []

    def work(number: int) -> Any:
        def run(_: Any) -> None:
            served.append(number)
            hand_moved.now_s += SLICE_S / 5

        async def run_async(server: Any) -> None:
            run(server)

        return kind(run if kind is Run else run_async)

    async def caller(number: int) -> None:
        for _ in range(10):
            await root.child(number).call(work(number), timeout_s=None)

    async with DynamicSupervisor() as root:
        for number in range(6 * WAKES_PER_TURN):
            await idle(root.spawn(Life().spec(number)))
        await asyncio.gather(*(caller(number) for number in range(6 * WAKES_PER_TURN)))
        last_first = max(served.index(number) for number in range(6 * WAKES_PER_TURN))
        assert last_first < 0.2 * len(served)


async def test_async_handlers_that_never_wait_leave_the_loop_to_others(life: Life, hand_moved: Time) -> None:
    async def work(_: Any) -> None:
        hand_moved.now_s += SLICE_S / 10

    async with DynamicSupervisor() as root:
        ref = await idle(root.spawn(life.spec()))
        watch = Watch(hand_moved)
        for _ in range(500):
            ref.cast(RunAsync(work))
        await until(lambda: statistics(ref).mailbox_length == 0)
        await watch.stop()
        assert 0 < watch.worst_s <= 3 * SLICE_S


async def test_a_thousand_that_start_and_start_again_at_once_leave_the_loop_to_others(hand_moved: Time) -> None:
    life = Life()

    class Slow(Server):
        async def init(self) -> None:
            await super().init()
            hand_moved.now_s += SLICE_S / 10

    async with DynamicSupervisor(backoff=AT_ONCE) as root:
        watch = Watch(hand_moved)
        refs = [root.spawn(ChildSpec(number, start=lambda: Slow(life))) for number in range(1000)]
        await until(lambda: life.starts == 1000)
        for ref in refs:
            ref.kill()
        await until(lambda: life.starts == 2000)
        await watch.stop()
        assert 0 < watch.worst_s <= 2 * SLICE_S + WAKES_PER_TURN * SLICE_S / 10
        assert {ref.phase for ref in refs} == {"running"}


async def test_a_server_that_is_stopped_while_its_start_waits_for_its_turn_ends(life: Life, hand_moved: Time) -> None:
    async with DynamicSupervisor(backoff=AT_ONCE) as root:
        first = [root.spawn(life.spec(number)) for number in range(3)]
        Floor.current().budget.check_at = -inf
        Floor.current().budget.admits(hand_moved.now_s)
        Floor.current().budget.check_at = -inf
        await turns(1)
        pending = first[0].dispatch(Add(), None)
        first[0].kill()
        stopped = asyncio.create_task(first[1].stop())
        with pytest.raises(ServerKilled):
            await pending.wait()
        await stopped
        await until(lambda: first[2].phase == "running")
        assert first[1].phase == "ended"
        assert await first[2].call(Add()) == 1


async def test_when_the_budget_is_spent_a_call_is_queued_and_answered_after_the_turn(life: Life) -> None:
    async with DynamicSupervisor() as root:
        ref = await idle(root.spawn(life.spec()))
        ref.slot.floor.budget.check_at = 0.0
        results = []
        while not results or not isinstance(results[-1], PendingReply):
            results.append(ref.dispatch(Add()))
        assert ref.slot.mailbox.length == 1
        assert await results[-1].wait() == len(results)
        await turns()
        assert isinstance(ref.dispatch(Add()), int)


async def test_two_thousand_servers_with_one_message_each_all_get_their_turn(life: Life) -> None:
    async with DynamicSupervisor() as root:
        refs = [root.spawn(life.spec(number)) for number in range(2000)]
        await asyncio.gather(*(ref.started() for ref in refs))
        await turns()
        for ref in refs:
            ref.cast(Note())
        await turns(2)
        done = len(life.log)
        assert 0 < done < len(refs)
        await until(lambda: len(life.log) == len(refs))
