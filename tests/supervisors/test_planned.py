"""Calls that wait in an idle server: the loop runs them without waking the server's task, and nobody can tell."""

import asyncio
from typing import Any

import pytest

from session_actor.supervisors import (
    PendingReply,
    ServerCrashed,
    ServerKilled,
    ServerRef,
    ServerStopped,
    Supervisor,
    resume,
    statistics,
    suspend,
)

from .support import AT_ONCE, Add, Crash, Defer, Get, Life, No, Note, Refuse, Run, RunAsync, idle, turns


def queue(ref: ServerRef, message: Any) -> PendingReply[Any]:
    """Put a call into the mailbox although the server is idle, as a spent budget does."""
    return ref.slot.enqueue_call(message, None)


async def test_what_waits_runs_in_order_in_the_next_turn_and_the_server_is_idle_again(life: Life) -> None:
    async with Supervisor([life.spec()]) as root:
        ref = await idle(root.child("server"))
        waker = ref.slot.waker
        pending = [queue(ref, Add(n)) for n in (1, 2, 3)]
        ref.cast(Note(4))
        assert life.log == []
        await turns(3)
        assert life.log == [1, 2, 3, 4]
        assert [await each.wait() for each in pending] == [1, 3, 6]
        await idle(ref)
        again = ref.slot.waker
        await queue(ref, Add(5)).wait()
        assert ref.slot.waker is again is not waker  # the cast woke the task, the call did not


async def test_a_refusal_and_a_reply_that_comes_later_reach_their_callers(life: Life) -> None:
    async with Supervisor([life.spec()]) as root:
        ref = await idle(root.child("server"))
        refused, later = queue(ref, Refuse()), queue(ref, Defer())
        with pytest.raises(No):
            await refused.wait()
        life.deferred[0].reply("late")
        assert await later.wait() == "late"


async def test_an_async_handler_behind_it_runs_in_the_servers_task_and_order_holds(life: Life) -> None:
    async def look(server: Any) -> object:
        await asyncio.sleep(0)
        return server.n, asyncio.current_task() is server.ref.slot.task

    async with Supervisor([life.spec()]) as root:
        ref = await idle(root.child("server"))
        pending = queue(ref, Add(1)), queue(ref, RunAsync(look)), queue(ref, Add(1))
        assert [await each.wait() for each in pending] == [1, (1, True), 2]


async def test_a_crash_fails_its_own_call_and_the_rest_runs_after_the_restart(life: Life) -> None:
    async with Supervisor([life.spec()], backoff=AT_ONCE) as root:
        ref = await idle(root.child("server"))
        before, crash, after = queue(ref, Add(5)), queue(ref, Crash()), queue(ref, Add(1))
        assert await before.wait() == 5
        with pytest.raises(ServerCrashed, match="Boom"):
            await crash.wait()
        assert await after.wait() == 1
        assert statistics(ref).crashes == statistics(ref).restarts == 1
        assert [reason.kind for reason in life.ends] == ["crashed"]


@pytest.mark.parametrize("how", ["kill", "stop"])
async def test_an_end_that_comes_before_it_fails_it(life: Life, how: str) -> None:
    async with Supervisor([life.spec(restart="temporary")]) as root:
        ref = await idle(root.child("server"))
        pending = queue(ref, Add())
        if how == "kill":
            ref.kill()
        else:
            await ref.stop()
        with pytest.raises((ServerKilled, ServerStopped)):
            await pending.wait()
        await turns()
        assert life.log == []


async def test_a_server_that_is_suspended_before_it_keeps_it(life: Life) -> None:
    async with Supervisor([life.spec()]) as root:
        ref = await idle(root.child("server"))
        pending = queue(ref, Add())
        await suspend(ref)
        later = queue(ref, Add())
        await turns()
        assert not pending.done()
        await resume(ref)
        assert (await pending.wait(), await later.wait()) == (1, 2)


async def test_a_caller_that_gives_up_before_it_leaves_the_server_idle(life: Life) -> None:
    async with Supervisor([life.spec()]) as root:
        ref = await idle(root.child("server"))
        queue(ref, Add()).forget_in_queue()
        await turns()
        assert ref.dispatch(Get()) == 0


async def test_what_a_handler_sends_to_its_own_server_comes_behind_what_waited(life: Life) -> None:
    async with Supervisor([life.spec()]) as root:
        ref = await idle(root.child("server"))
        pending = queue(ref, Run(lambda server: server.ref.cast(Note(1)))), queue(ref, Add(2))
        for each in pending:
            await each.wait()
        await turns()
        assert life.log == [2, 1]


async def test_a_server_that_stops_itself_there_still_answers_and_ends(life: Life) -> None:
    async with Supervisor([life.spec(restart="temporary")]) as root:
        ref = await idle(root.child("server"))
        assert await queue(ref, Run(lambda server: server.stop_self() or "bye")).wait() == "bye"
        await turns()
        assert ref.phase == "ended"


def test_an_exit_of_the_process_there_resolves_every_caller_and_propagates() -> None:
    life, found = [], []

    def leave(_: Any) -> None:
        raise SystemExit(3)

    async def main() -> None:
        life.append(Life())
        root = Supervisor([life[0].spec()])
        await root.start()
        ref = await idle(root.child("server"))
        found.extend([queue(ref, Run(leave)), queue(ref, Add())])
        await asyncio.sleep(5)

    with pytest.raises(SystemExit):
        asyncio.run(main())
    assert all(pending.done() for pending in found)
    assert life[0].log == []
