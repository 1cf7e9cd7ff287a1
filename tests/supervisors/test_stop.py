"""Stop, drain, kill, and what the end leaves behind."""

import asyncio
import gc
import subprocess
import sys
import weakref
from typing import Any

import pytest

from session_actor.supervisors import (
    ChildSpec,
    DynamicSupervisor,
    GenServer,
    MailboxSpec,
    ServerKilled,
    ServerStopped,
    Supervisor,
    handles,
    statistics,
)

from .support import AT_ONCE, Add, Boom, Get, Hold, Life, Note, Run, RunAsync, Stubborn, idle, turns, until


async def test_stop_is_seen_after_the_running_message_and_before_all_queued_ones(life: Life) -> None:
    async with DynamicSupervisor() as root:
        ref = root.spawn(life.spec())
        held = asyncio.create_task(ref.call(Hold()))
        await life.held.wait()
        for _ in range(1000):
            ref.cast(Note())
        call = asyncio.create_task(ref.call(Add(), timeout_s=None))
        await turns(1)
        stopping = asyncio.create_task(ref.stop())
        await turns()
        life.gate.set()
        await stopping
        assert await held == 1
        assert life.log == ["held"]
        with pytest.raises(ServerStopped):
            await call
        assert statistics(ref).dropped == 1000
        assert [reason.kind for reason in life.ends] == ["stopped"]


async def test_stop_behind_100_000_queued_messages_is_seen_after_at_most_one_of_them(life: Life) -> None:
    async with DynamicSupervisor() as root:
        ref = await idle(root.spawn(life.spec(mailbox=MailboxSpec(limit=200_000))))
        for _ in range(100_000):
            ref.cast(Note())
        ref.slot.floor.budget.check_at = 0.0  # which `idle` took away
        await until(lambda: bool(life.log))
        handled = len(life.log)
        assert handled < 100_000
        await ref.stop()
        assert len(life.log) - handled <= 1
        assert statistics(ref).dropped == 100_000 - len(life.log)


async def test_a_server_that_stops_itself_runs_none_of_the_messages_behind(life: Life) -> None:
    async with DynamicSupervisor() as root:
        ref = await idle(root.spawn(life.spec(restart="temporary")))
        ref.cast(Run(lambda server: server.stop_self()))
        for _ in range(1000):
            ref.cast(Note())
        await until(lambda: ref.phase == "ended")
        assert (life.log, statistics(ref).dropped) == ([], 1000)


async def test_stop_ends_a_permanent_server_for_good_and_again_is_nothing(life: Life) -> None:
    async with Supervisor([life.spec(restart="permanent")]) as root:
        ref = root.child("server")
        await ref.stop()
        await ref.stop()
        await turns()
        assert (ref.phase, life.starts, len(life.ends)) == ("ended", 1, 1)
        with pytest.raises(ServerStopped):
            await ref.call(Get())


async def test_many_who_stop_at_once_all_see_the_end(life: Life) -> None:
    async with DynamicSupervisor() as root:
        ref = root.spawn(life.spec())
        await asyncio.gather(*(ref.stop() for _ in range(5)), root.terminate_child("server"))
        assert (ref.phase, len(life.ends)) == ("ended", 1)


async def test_a_wedged_handler_is_killed_at_the_deadline_and_siblings_are_untouched(life: Life, clock: Any) -> None:
    other = Life()
    async with Supervisor([life.spec(1), other.spec(2)], clock=clock) as root:
        ref = root.child(1)
        call = asyncio.create_task(ref.call(Hold(), timeout_s=None))
        await life.held.wait()
        stopping = asyncio.create_task(ref.stop(timeout_s=3.0))
        await turns()
        clock.advance(2.9)
        await turns()
        assert not call.done()
        clock.advance(0.1)
        await stopping
        with pytest.raises(ServerKilled):
            await call
        assert [reason.kind for reason in life.ends] == ["killed"]
        assert (other.starts, other.ends) == (1, [])
        assert await root.child(2).call(Add()) == 1


async def test_close_kills_a_wedged_child_at_its_deadline(life: Life, clock: Any) -> None:
    root = Supervisor([life.spec(shutdown_s=2.0)], clock=clock)
    await root.start()
    call = asyncio.create_task(root.child("server").call(Hold(), timeout_s=None))
    await life.held.wait()
    closing = asyncio.create_task(root.stop())
    await turns(10)
    assert not closing.done()
    clock.advance(2.0)
    await closing
    with pytest.raises(ServerKilled):
        await call


async def test_drain_runs_what_is_queued_and_refuses_what_comes(life: Life) -> None:
    async with DynamicSupervisor() as root:
        ref = root.spawn(life.spec())
        held = asyncio.create_task(ref.call(Hold()))
        await life.held.wait()
        call = asyncio.create_task(ref.call(Add(), timeout_s=None))
        await turns()
        stopping = asyncio.create_task(ref.stop(drain=True))
        await turns()
        assert ref.phase == "draining"
        with pytest.raises(ServerStopped):
            ref.cast(Note())
        life.gate.set()
        await stopping
        assert (await held, await call) == (1, 2)


async def test_a_supervisor_drains_the_children_that_ask_for_it(life: Life) -> None:
    async with Supervisor([life.spec(drain=True)]) as root:
        ref = root.child("server")
        for n in range(50):
            ref.cast(Note(n))
    assert life.log == list(range(50))


class Slow(GenServer):
    """Its terminate waits for a gate."""

    def __init__(self, life: Life) -> None:
        self.life = life

    @handles(Get)
    def get(self, message: Get) -> int:
        return 0

    async def terminate(self, reason: Any) -> None:
        self.life.held.set()
        await self.life.gate.wait()
        self.life.ends.append(reason)


async def test_terminate_is_shielded_from_a_foreign_cancellation(life: Life) -> None:
    async with DynamicSupervisor() as root:
        ref = await idle(root.spawn(ChildSpec("slow", start=lambda: Slow(life))))
        task = ref.slot.task
        stopping = asyncio.create_task(ref.stop())
        await life.held.wait()
        assert task is not None
        task.cancel()
        await turns()
        assert life.ends == []
        life.gate.set()
        await stopping
        assert [reason.kind for reason in life.ends] == ["stopped"]


async def test_terminate_that_takes_too_long_is_cut_at_the_deadline(life: Life, clock: Any) -> None:
    async with DynamicSupervisor(clock=clock) as root:
        ref = await idle(root.spawn(ChildSpec("slow", start=lambda: Slow(life))))
        stopping = asyncio.create_task(ref.stop(timeout_s=1.0))
        await life.held.wait()
        clock.advance(1.0)
        await stopping
        assert (ref.phase, life.ends) == ("ended", [])


async def test_a_swallowed_kill_leaves_a_leaked_task_whose_reply_is_ignored(life: Life, clock: Any) -> None:
    events: list[Any] = []
    async with DynamicSupervisor(clock=clock, on_event=events.append) as root:
        ref = root.spawn(life.spec(shutdown_s="kill"))
        call = asyncio.create_task(ref.call(Stubborn(), timeout_s=None))
        await life.held.wait()
        task = ref.slot.task
        ending = asyncio.create_task(root.terminate_child("server"))
        await turns()
        clock.advance(1.0)
        await ending
        with pytest.raises(ServerKilled):
            await call
        assert [event.id for event in events if event.kind == "leaked"] == ["server"]
        assert root.which_children() == []
        again = await root.start_child(life.spec())
        life.gate.set()
        assert task is not None
        await asyncio.wait([task])
        assert await again.call(Add()) == 1


async def test_a_kill_restarts_a_permanent_server_with_a_new_state(life: Life) -> None:
    async with Supervisor([life.spec()], backoff=AT_ONCE) as root:
        ref = await idle(root.child("server"))
        await ref.call(Add(5))
        waiting = ref.dispatch(Hold(), None)
        queued = ref.dispatch(Add(), None)
        await life.held.wait()
        ref.kill()
        for pending in (waiting, queued):
            with pytest.raises(ServerKilled):
                await pending.wait()
        await ref.started()
        assert await ref.call(Get()) == 0
        assert life.starts == 2


async def lonely_root(kind: str, futures: list[Any]) -> Any:
    """A root that nobody holds, with a child that nobody holds, either waiting for what nobody holds."""

    async def wait_alone(_: Any = None) -> None:
        future = asyncio.get_running_loop().create_future()
        futures.append(weakref.ref(future))
        await future
        futures.append("went on")

    root = DynamicSupervisor()
    await root.start()
    if kind == "task":
        root.spawn(ChildSpec("child", task=wait_alone))
    else:
        ref = await idle(root.spawn(Life().spec("child")))
        if kind == "busy server":
            ref.cast(RunAsync(wait_alone))
    await until(lambda: len(futures) == (kind != "idle server"))
    return weakref.ref(root)


@pytest.mark.parametrize("kind", ["idle server", "busy server", "task"])
async def test_what_nobody_holds_survives_a_collection_in_the_middle_of_its_work(kind: str) -> None:
    futures: list[Any] = []
    root = await lonely_root(kind, futures)
    gc.collect()
    assert root() is not None
    for future in futures:
        future().set_result(None)
    await until(lambda: futures[1:] == ["went on"] * len(futures[:1]))
    if kind != "task":
        assert await root().which_children()[0].ref.call(Add()) == 1
    await root().stop()


async def test_after_close_only_the_callers_task_is_left(life: Life) -> None:
    before = asyncio.all_tasks()
    inner = DynamicSupervisor()
    async with Supervisor([ChildSpec("inner", start=lambda: inner, shutdown_s=None), life.spec()]) as root:
        for number in range(50):
            inner.spawn(Life().spec(number))
        await root.child("server").call(Add())
    assert asyncio.all_tasks() == before


async def test_an_impossible_timeout_of_a_stop_is_refused_and_everything_lives(life: Life) -> None:
    async with Supervisor([life.spec()]) as root:
        for stop in (root.stop, root.child("server").stop):
            with pytest.raises(ValueError, match="timeout_s"):
                await stop(timeout_s=-1.0)
        assert await root.child("server").call(Add()) == 1


async def test_start_and_stop_may_happen_in_different_tasks(life: Life) -> None:
    root = Supervisor([life.spec()])
    await asyncio.create_task(root.start())
    assert await root.child("server").call(Add()) == 1
    await asyncio.create_task(root.stop())
    assert not root.alive


async def test_a_body_that_raises_is_not_masked_and_everything_is_stopped(life: Life) -> None:
    with pytest.raises(Boom):
        async with Supervisor([life.spec()]):
            raise Boom
    assert [reason.kind for reason in life.ends] == ["parent"]


PROGRAM = """
import asyncio
from session_actor.supervisors import ChildSpec, DynamicSupervisor, GenServer, Cast, handles

class Note(Cast): pass

class Server(GenServer):
    @handles(Note)
    async def note(self, message): await asyncio.sleep(3600)

async def main():
    asyncio.get_running_loop().slow_callback_duration = 60
    root = DynamicSupervisor()
    await root.start()
    for number in range(20):
        root.spawn(ChildSpec(number, start=Server)).cast(Note())
    await asyncio.sleep(0.01)
    {last}

asyncio.run(main())
"""


@pytest.mark.parametrize("last", ["await root.stop(0.05)", "pass"])
def test_a_program_ends_without_a_warning_whether_it_closes_or_not(last: str) -> None:
    done = subprocess.run(
        [sys.executable, "-X", "dev", "-W", "error", "-c", PROGRAM.format(last=last)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
