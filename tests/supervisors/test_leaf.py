"""Leaf servers: their inline calls take a shorter way, and nothing else can be observed."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from session_actor.supervisors import (
    NO_REPLY,
    ChildSpec,
    PendingReply,
    ServerCrashed,
    ServerKilled,
    ServerRef,
    Supervisor,
    change_code,
    statistics,
)

from .support import AT_ONCE, Add, Crash, Defer, Get, Hold, Life, No, Note, Refuse, Run, Server, idle, turns


class Leaf(Server):
    """The server of these tests as a leaf."""

    leaf = True


@asynccontextmanager
async def leaf(life: Life) -> AsyncIterator[ServerRef]:
    async with Supervisor([ChildSpec("server", start=lambda: Leaf(life))], backoff=AT_ONCE) as root:
        yield await idle(root.child("server"))


async def test_an_idle_leaf_answers_in_the_callers_task_without_suspending(life: Life) -> None:
    async with leaf(life) as ref:
        tasks: list[Any] = []
        assert ref.dispatch(Add(3)) == 3
        assert ref.dispatch(Run(lambda _: tasks.append(asyncio.current_task()))) is None
        assert tasks == [asyncio.current_task()]


async def test_a_busy_leaf_queues_and_an_async_handler_is_never_run_inline(life: Life) -> None:
    async with leaf(life) as ref:
        held = ref.dispatch(Hold())
        await life.held.wait()
        pending = ref.dispatch(Get())
        assert isinstance(pending, PendingReply)
        life.gate.set()
        assert (await held.wait(), await pending.wait()) == (1, 1)


async def test_a_leaf_refuses_and_lives(life: Life) -> None:
    async with leaf(life) as ref:
        with pytest.raises(No):
            ref.dispatch(Refuse())
        assert ref.dispatch(Add()) == 1
        assert (statistics(ref).handled, statistics(ref).crashes) == (2, 0)


async def test_a_crash_of_a_leaf_goes_to_its_supervisor(life: Life) -> None:
    async with leaf(life) as ref:
        await ref.call(Add(5))
        with pytest.raises(ServerCrashed, match="Boom"):
            await ref.call(Crash())
        assert await ref.call(Get()) == 0
        assert statistics(ref).crashes == statistics(ref).restarts == 1


async def test_a_leaf_answers_later(life: Life) -> None:
    async with leaf(life) as ref:
        pending = ref.dispatch(Defer())
        assert isinstance(pending, PendingReply)
        assert ref.dispatch(Add()) == 1
        life.deferred[0].reply("late")
        assert await pending.wait() == "late"


async def test_a_leaf_that_was_woken_meanwhile_may_still_answer_later(life: Life) -> None:
    def cast_and_defer(server: Any) -> Any:
        server.ref.cast(Note(1))
        life.deferred.append(server.defer())
        return NO_REPLY

    async with leaf(life) as ref:
        pending = ref.dispatch(Run(cast_and_defer))
        assert isinstance(ref.dispatch(Add(2)), PendingReply)
        life.deferred[0].reply("late")
        assert await pending.wait() == "late"
        await turns()
        assert life.log == [1, 2]


async def test_a_leaf_that_is_killed_meanwhile_takes_no_further_inline_call(life: Life) -> None:
    async with leaf(life) as ref:
        ref.dispatch(Run(lambda server: server.ref.kill()))
        pending = ref.dispatch(Add())
        assert isinstance(pending, PendingReply)
        assert await pending.wait() == 1
        assert [reason.kind for reason in life.ends] == ["killed"]


async def test_what_a_leaf_answers_later_fails_with_its_incarnation(life: Life) -> None:
    async with leaf(life) as ref:
        pending = ref.dispatch(Defer())
        ref.kill()
        with pytest.raises(ServerKilled):
            await pending.wait()


async def test_of_the_inline_calls_of_a_leaf_one_in_eight_is_timed_for_all(life: Life) -> None:
    async with leaf(life) as ref:
        seen: list[float] = []
        for _ in range(17):
            ref.dispatch(Get())
            seen.append(statistics(ref).handler_time_s)
    assert seen[0] == seen[7] > 0
    assert seen[7] < seen[8] == seen[15] < seen[16]


async def test_changed_code_decides_anew_whether_a_server_is_a_leaf(life: Life) -> None:
    class Changed(Server):
        async def code_change(self, old_version: int, state: Any) -> Any:
            return state

    async with leaf(life) as ref:
        await change_code(ref, lambda: Changed(life))
        await idle(ref)
        before_s = statistics(ref).handler_time_s
        assert ref.dispatch(Get()) == 0
        assert ref.dispatch(Get()) == 0
        first_s = statistics(ref).handler_time_s
        assert before_s < first_s
