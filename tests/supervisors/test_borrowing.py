"""Borrowing a leaf: each bar of inline calls, and that nothing else tells it from a call."""

import asyncio
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from math import inf
from typing import Any

import pytest

from session_actor.supervisors import (
    BUSY,
    NO_REPLY,
    ChildSpec,
    PendingReply,
    Refusal,
    ServerCrashed,
    ServerRef,
    Supervisor,
    monitor,
    resume,
    statistics,
    suspend,
    trace,
)

from .support import AT_ONCE, Add, Boom, Crash, Get, Hold, Life, No, Note, Refuse, Run, Server, idle, turns


class Leaf(Server):
    """Lends itself to functions."""

    leaf = True

    def lent(self, content: Any) -> Any:
        return content(self)


def one(server: Any) -> int:
    return server.add(Add(1))


def crash(_: Any) -> None:
    raise Boom("the user's secret")


def refuse(_: Any) -> None:
    raise No("not today")


@asynccontextmanager
async def leaf(life: Life, kind: type[Server] = Leaf) -> AsyncIterator[ServerRef]:
    async with Supervisor([ChildSpec("server", start=lambda: kind(life))], backoff=AT_ONCE) as root:
        yield await idle(root.child("server"))


async def test_an_idle_leaf_is_lent_in_its_borrowers_task_without_suspending(life: Life) -> None:
    async with leaf(life) as ref:
        assert ref.borrow(one) == 1
        assert ref.borrow(lambda _: asyncio.current_task()) is asyncio.current_task()
        assert ref.borrow(lambda _: None) is None
        assert ref.dispatch(Get()) == 1


async def test_what_is_no_leaf_is_not_lent(life: Life) -> None:
    class Plain(Leaf):
        leaf = False

    async with leaf(life, Plain) as ref:
        assert ref.borrow(one) is BUSY
        assert life.log == []


async def test_a_leaf_that_does_not_say_what_it_is_lent_for_refuses_and_lives(life: Life) -> None:
    class Silent(Server):
        leaf = True

    async with leaf(life, Silent) as ref:
        with pytest.raises(Refusal, match="'server' is not lent"):
            ref.borrow(one)
        assert ref.dispatch(Add()) == 1


async def test_a_busy_leaf_is_not_lent(life: Life) -> None:
    async with leaf(life) as ref:
        held = ref.dispatch(Hold())
        await life.held.wait()
        assert ref.borrow(one) is BUSY
        life.gate.set()
        assert await held.wait() == 1


async def test_behind_a_waiting_message_a_leaf_is_not_lent_so_that_order_holds(life: Life) -> None:
    async with leaf(life) as ref:
        ref.cast(Note(1))
        assert ref.borrow(one) is BUSY
        await turns()
        assert life.log == [1]


async def test_a_leaf_is_not_lent_while_it_is_suspended(life: Life) -> None:
    async with leaf(life) as ref:
        await suspend(ref)
        assert ref.borrow(one) is BUSY
        await resume(ref)
        await idle(ref)
        assert ref.borrow(one) == 1


async def test_a_leaf_is_not_lent_while_it_is_traced(life: Life) -> None:
    async with leaf(life) as ref:
        trace(ref, lambda _: None)
        await turns()
        assert ref.borrow(one) is BUSY
        trace(ref, None)
        await idle(ref)
        assert ref.borrow(one) == 1


async def test_a_leaf_is_not_lent_before_its_start_or_after_its_end(life: Life) -> None:
    async with Supervisor([ChildSpec("server", start=lambda: Leaf(life))], backoff=AT_ONCE) as root:
        ref = await idle(root.child("server"))
        await ref.call(Add(5))
        with pytest.raises(ServerCrashed):
            ref.dispatch(Crash())
        assert ref.borrow(one) is BUSY
        await idle(ref)
        stopping = asyncio.ensure_future(ref.stop(drain=True))
        await asyncio.sleep(0)
        assert ref.borrow(one) is BUSY
        await stopping
        assert ref.borrow(one) is BUSY
    assert life.log == [5, "crash"]


async def test_when_the_budget_of_the_turn_is_spent_a_leaf_is_not_lent(life: Life) -> None:
    async with leaf(life) as ref:
        budget = ref.slot.floor.budget
        budget.check_at = -inf
        assert budget.admits(0.0)
        budget.check_at = -inf
        assert ref.borrow(one) is BUSY
        await turns()
        assert ref.borrow(one) == 1


async def test_a_leaf_is_not_lent_to_its_own_code(life: Life) -> None:
    async with leaf(life) as ref:
        assert ref.borrow(lambda _: ref.borrow(one)) is BUSY
        assert ref.dispatch(Run(lambda _: ref.borrow(one))) is BUSY
        assert ref.borrow(one) == 1


async def test_a_leaf_is_not_lent_to_another_thread_or_loop(life: Life) -> None:
    async with leaf(life) as ref:
        seen: list[Any] = []

        async def elsewhere() -> None:
            seen.append(ref.borrow(one))

        thread = threading.Thread(target=lambda: (seen.append(ref.borrow(one)), asyncio.run(elsewhere())))
        thread.start()
        await asyncio.to_thread(thread.join)
        assert [answer is BUSY for answer in seen] == [True, True]
        assert life.log == []


async def test_a_refusal_is_raised_and_the_leaf_lives(life: Life) -> None:
    async with leaf(life) as ref:
        with pytest.raises(No, match="not today"):
            ref.borrow(refuse)
        assert ref.borrow(one) == 1
        assert (statistics(ref).handled, statistics(ref).crashes) == (2, 0)


async def test_a_crash_is_told_to_who_waits_and_goes_to_the_supervisor(life: Life) -> None:
    other = Life()
    children = [ChildSpec("server", start=lambda: Leaf(life)), ChildSpec("other", start=lambda: Leaf(other))]
    async with Supervisor(children, backoff=AT_ONCE) as root:
        ref, sibling = await idle(root.child("server")), await idle(root.child("other"))
        watched = monitor(ref)
        sibling.borrow(one)
        ref.borrow(one)
        crashed = ref.borrow(crash)
        assert isinstance(crashed, PendingReply)
        assert crashed is not BUSY
        with pytest.raises(ServerCrashed, match="Boom") as caught:
            await crashed.wait_keeping()
        assert "secret" not in str(caught.value)
        assert (await watched).reason.kind == "crashed"
        assert await ref.call(Get()) == 0
        assert statistics(ref).crashes == statistics(ref).restarts == 1
        assert (await sibling.call(Get()), statistics(sibling).restarts) == (1, 0)


@pytest.mark.parametrize("stop", [KeyboardInterrupt, SystemExit])
async def test_an_interrupt_goes_through_and_ends_the_leaf(life: Life, stop: type[BaseException]) -> None:
    def interrupted(_: Any) -> None:
        raise stop

    async with leaf(life) as ref:
        with pytest.raises(stop):
            ref.borrow(interrupted)
        assert ref.borrow(one) is BUSY


async def test_a_borrowed_leaf_may_answer_later(life: Life) -> None:
    def later(server: Any) -> Any:
        life.deferred.append(server.defer())
        return NO_REPLY

    async with leaf(life) as ref:
        pending = ref.borrow(later)
        assert isinstance(pending, PendingReply)
        assert pending is not BUSY
        assert ref.borrow(one) == 1
        life.deferred[0].reply("late")
        assert await pending.wait() == "late"


async def test_a_borrowed_leaf_that_never_answers_crashes(life: Life) -> None:
    async with leaf(life) as ref:
        pending = ref.borrow(lambda _: NO_REPLY)
        with pytest.raises(ServerCrashed, match="TypeError"):
            await pending.wait()
        assert await ref.call(Get()) == 0
        assert statistics(ref).crashes == 1


async def test_a_leaf_that_was_woken_or_killed_meanwhile_is_not_lent_again_at_once(life: Life) -> None:
    async with leaf(life) as ref:
        assert ref.borrow(lambda server: server.ref.cast(Note(1))) is None
        assert ref.borrow(one) is BUSY
        await idle(ref)
        assert life.log == [1]
        ref.borrow(lambda server: server.ref.kill())
        assert ref.borrow(one) is BUSY
        assert await ref.call(Get()) == 0


@pytest.mark.parametrize("borrowed", [False, True])
async def test_the_figures_are_the_same_borrowed_and_called(life: Life, borrowed: bool) -> None:
    async with leaf(life) as ref:
        seen: list[float] = []
        for _ in range(9):
            assert (ref.borrow(lambda server: server.n) if borrowed else ref.dispatch(Get())) == 0
            seen.append(statistics(ref).handler_time_s)
        used_s = ref.used_s
        with pytest.raises(No):
            ref.borrow(refuse) if borrowed else ref.dispatch(Refuse())
        figures = statistics(ref)
    assert (figures.handled, figures.dropped, figures.crashes, figures.mailbox_length) == (10, 0, 0, 0)
    assert 0 < seen[0] == seen[7] < seen[8] < figures.handler_time_s
    assert ref.used_s > used_s


def test_busy_shows_that_nobody_waits() -> None:
    assert repr(BUSY) == "<PendingReply of nobody>"
