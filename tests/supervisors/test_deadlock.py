"""Self-calls and circles raise with the chain at once; innocent tasks are left alone."""

import asyncio
import sys
import time
from collections.abc import Awaitable
from typing import Any

import pytest

from session_actor.supervisors import DeadlockError, Supervisor, statistics

from .support import Add, Defer, Get, Hold, Life, Note, Run, RunAsync, eager_task, idle, turns


class Watch:
    """How long a circle took to be found: turns of the loop, and seconds of the processor."""

    async def refused(self, call: Awaitable[Any]) -> tuple[object, ...]:
        """The chain of the DeadlockError that `call` raises."""
        self._going, self.turns = True, 0
        asyncio.get_running_loop().call_soon(self._turn)
        begun_s = time.process_time()
        try:
            with pytest.raises(DeadlockError) as caught:
                await call
        finally:
            self.cpu_s = time.process_time() - begun_s
            self._going = False
        return caught.value.chain

    def _turn(self) -> None:
        if self._going:
            self.turns += 1
            asyncio.get_running_loop().call_soon(self._turn)


@pytest.mark.parametrize("kept", [False, True])
async def test_a_self_call_of_an_async_handler_raises_with_the_chain_and_is_never_run(life: Life, kept: bool) -> None:
    async def call_self(server: Any) -> Any:
        with pytest.raises(DeadlockError) as caught:
            await (server.ref.dispatch(Add()).wait_keeping() if kept else server.ref.call(Add()))
        return caught.value.chain

    async with Supervisor([life.spec()]) as root:
        ref = root.child("server")
        assert await ref.call(RunAsync(call_self), timeout_s=None) == ("server", "server")
        assert await ref.call(Get()) == 0


@pytest.mark.parametrize("queued", [False, True])
async def test_a_self_call_of_a_sync_handler_raises_at_once(life: Life, queued: bool) -> None:
    def call_self(server: Any) -> Any:
        with pytest.raises(DeadlockError) as caught:
            server.ref.dispatch(Add())
        return caught.value.chain

    async with Supervisor([life.spec()]) as root:
        ref = await idle(root.child("server"))
        if queued:
            ref.cast(Note())
        assert await ref.call(Run(call_self)) == ("server", "server")


@pytest.mark.parametrize("count", [2, 3])
async def test_a_circle_of_servers_raises_with_the_whole_chain(count: int) -> None:
    names = [f"s{number}" for number in range(count)]

    def ask(position: int) -> RunAsync:
        async def run(_: Any) -> Any:
            if position == count:
                with pytest.raises(DeadlockError) as caught:
                    await root.child(names[0]).call(Get(), timeout_s=None)
                return caught.value.chain
            return await root.child(names[position]).call(ask(position + 1), timeout_s=None)

        return RunAsync(run)

    async with Supervisor([Life().spec(name) for name in names]) as root:
        chain = await root.child(names[0]).call(ask(1), timeout_s=None)
        assert chain == (names[-1], *names)
        assert statistics(root.child(names[0])).crashes == 0


@pytest.mark.parametrize("count", [1, 2, 3])
async def test_a_circle_is_found_within_three_turns_of_the_loop_and_10_ms(count: int) -> None:
    watches = [Watch() for _ in range(5)]

    def ask(position: int, watch: Watch) -> RunAsync:
        async def run(_: Any) -> Any:
            if position == count:
                return await watch.refused(root.child(0).call(Get(), timeout_s=None))
            return await root.child(position).call(ask(position + 1, watch), timeout_s=None)

        return RunAsync(run)

    async with Supervisor([Life().spec(number) for number in range(count)]) as root:
        for watch in watches:
            chain = await root.child(0).call(ask(1, watch), timeout_s=None)
            assert chain == (count - 1, *range(count))
    assert max(watch.turns for watch in watches) <= 3
    assert min(watch.cpu_s for watch in watches) < 0.01


async def test_a_circle_of_inline_calls_raises_with_the_chain() -> None:
    def back(_: Any) -> Any:
        with pytest.raises(DeadlockError) as caught:
            root.child("a").dispatch(Get())
        return caught.value.chain

    async with Supervisor([Life().spec("a"), Life().spec("b")]) as root:
        await idle(root.child("a"))
        await idle(root.child("b"))
        assert root.child("a").dispatch(Run(lambda _: root.child("b").dispatch(Run(back)))) == ("a", "b", "a")


async def test_a_task_that_a_handler_started_may_call_the_server(life: Life) -> None:
    tasks: list[Any] = []

    async def start_task(server: Any) -> None:
        tasks.append(asyncio.create_task(server.ref.call(Add(5))))
        await asyncio.sleep(0)

    async with Supervisor([life.spec()]) as root:
        await root.child("server").call(RunAsync(start_task))
        assert await tasks[0] == 5


eager = pytest.mark.skipif(sys.version_info < (3, 12), reason="eager tasks come with Python 3.12")


@eager
@pytest.mark.parametrize("queued", [False, True])
@pytest.mark.parametrize("noted", [False, True])
async def test_a_task_that_a_handler_started_eagerly_may_call_the_server(
    life: Life, queued: bool, noted: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not noted:  # as since Python 3.14
        monkeypatch.setattr(asyncio.tasks, "_eager_tasks", set[object](), raising=False)
    tasks: list[Any] = []

    def start_task(server: Any) -> None:
        tasks.append(asyncio.ensure_future(server.ref.call(Add(5))))

    asyncio.get_running_loop().set_task_factory(eager_task)
    async with Supervisor([life.spec()]) as root:
        ref = await idle(root.child("server"))
        if queued:
            ref.cast(Run(start_task))
            await turns()
        else:
            await ref.call(Run(start_task))
        assert await tasks[0] == 5


@eager
async def test_a_handler_that_calls_itself_in_a_task_that_another_handler_started_eagerly_is_refused() -> None:
    tasks: list[Any] = []

    def call_self(server: Any) -> Any:
        with pytest.raises(DeadlockError) as caught:
            server.ref.dispatch(Add())
        return caught.value.chain

    async def call_b() -> Any:
        return await root.child("b").call(Run(call_self))

    asyncio.get_running_loop().set_task_factory(eager_task)
    async with Supervisor([Life().spec("a"), Life().spec("b")]) as root:
        a, _ = await idle(root.child("a")), await idle(root.child("b"))
        await a.call(Run(lambda _: tasks.append(asyncio.ensure_future(call_b()))))
        assert await tasks[0] == ("b", "b")


@pytest.mark.parametrize("inline", [False, True])
async def test_who_waits_for_a_deferred_reply_closes_no_circle(inline: bool) -> None:
    lives = {name: Life() for name in "ab"}
    async with Supervisor([lives[name].spec(name) for name in "ab"]) as root:
        a, b = await idle(root.child("a")), await idle(root.child("b"))
        if not inline:
            b.cast(Note())
        waits = asyncio.create_task(a.call(RunAsync(lambda _: b.call(Defer(), timeout_s=None)), timeout_s=None))
        await turns()
        back = asyncio.create_task(b.call(RunAsync(lambda _: a.call(Get(), timeout_s=None)), timeout_s=None))
        await turns()
        assert not back.done()
        lives["b"].deferred[0].reply("at last")
        assert await waits == "at last"
        assert await back == 0


async def test_waiting_for_a_deferred_reply_of_a_server_that_waits_for_this_one_closes_no_circle() -> None:
    lives = {name: Life() for name in "ab"}

    async def deferred(server: Any) -> Any:
        pending = root.child("b").dispatch(Defer(), None)
        server.life.held.set()
        await server.life.gate.wait()
        return await pending.wait()

    async with Supervisor([lives[name].spec(name) for name in "ab"]) as root:
        a, b = await idle(root.child("a")), await idle(root.child("b"))
        waits = asyncio.create_task(a.call(RunAsync(deferred), timeout_s=None))
        await lives["a"].held.wait()
        back = asyncio.create_task(b.call(RunAsync(lambda _: a.call(Get(), timeout_s=None)), timeout_s=None))
        await turns()
        lives["a"].gate.set()
        await turns()
        lives["b"].deferred[0].reply("at last")
        assert await waits == "at last"
        assert await back == 0


async def test_two_servers_that_call_a_third_are_no_circle() -> None:
    third = Life()

    async def ask(_: Any) -> Any:
        return await root.child("c").call(Hold())

    async with Supervisor([Life().spec("a"), Life().spec("b"), third.spec("c")]) as root:
        first = asyncio.create_task(root.child("a").call(RunAsync(ask)))
        second = asyncio.create_task(root.child("b").call(RunAsync(ask)))
        await third.held.wait()
        third.gate.set()
        assert sorted(await asyncio.gather(first, second)) == [1, 2]


async def test_a_server_that_stops_or_terminates_itself_from_a_handler_is_told_so(life: Life) -> None:
    async def stop(server: Any) -> list[type]:
        found = []
        for ending in (server.ref.stop(), root.terminate_child("server"), root.stop()):
            try:
                await ending
            except DeadlockError as error:
                found.append(type(error))
        return found

    async with Supervisor([life.spec()]) as root:
        assert await root.child("server").call(RunAsync(stop)) == [DeadlockError] * 3
        assert root.child("server").alive


async def test_a_new_child_whose_init_calls_the_server_that_waits_for_it_is_a_circle() -> None:
    from session_actor.supervisors import ChildSpec, DynamicSupervisor, GenServer, InitFailed

    class Asking(GenServer):
        async def init(self) -> None:
            await asker.call(Get(), timeout_s=None)

    async def start(_: Any) -> str:
        with pytest.raises(InitFailed) as caught:
            await root.start_child(ChildSpec("new", start=Asking))
        return type(caught.value.__cause__).__name__

    async with DynamicSupervisor() as root:
        asker = await root.start_child(Life().spec("asker"))
        assert await asker.call(RunAsync(start), timeout_s=None) == "DeadlockError"
        await turns()


async def test_one_whose_reply_was_given_waits_no_more() -> None:
    """Its task is not yet woken when the server that answered calls it."""
    lives = {name: Life() for name in "ab"}
    answers: list[Any] = []

    async def ask(_: Any) -> Any:
        return await root.child("b").call(Add(7), None)

    async def back(_: Any) -> Any:
        answers.append(await root.child("a").call(Get(), None))

    async with Supervisor([lives[name].spec(name) for name in "ab"]) as root:
        a, b = await idle(root.child("a")), await idle(root.child("b"))
        held = asyncio.create_task(b.call(Hold(), None))
        await lives["b"].held.wait()
        waits = asyncio.create_task(a.call(RunAsync(ask), None))
        await turns()
        second = asyncio.create_task(b.call(RunAsync(back), None))
        await turns()
        lives["b"].gate.set()
        await held
        assert await waits == 8
        await second
        assert answers == [0]
