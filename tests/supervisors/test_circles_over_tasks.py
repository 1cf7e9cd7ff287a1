"""Circles over the tasks that a handler makes: found where only they can let it go on, and nowhere else."""

from __future__ import annotations

import asyncio
import sys
import time
from typing import Any

import pytest

from session_actor.supervisors import CallTimeout, DeadlockError, Supervisor

from .support import Add, Get, Hold, Life, RunAsync, eager_task, turns


def in_gather(*calls: Any) -> Any:
    return asyncio.gather(*calls)


def in_gather_with_results(*calls: Any) -> Any:
    return asyncio.gather(*calls, return_exceptions=True)


def in_wait_for(call: Any) -> Any:
    return asyncio.wait_for(call, 30)


async def in_group(*calls: Any) -> None:
    async with asyncio.TaskGroup() as group:
        for call in calls:
            group.create_task(call)


async def in_task(call: Any) -> Any:
    return await asyncio.ensure_future(call)


async def in_task_that_is_awaited_later(call: Any) -> Any:
    task = asyncio.ensure_future(call)
    for _ in range(3):
        await asyncio.sleep(0)
    return await task


async def in_eager_task(call: Any) -> Any:
    return await eager_task(asyncio.get_running_loop(), call)


async def in_tasks(call: Any) -> Any:
    return await asyncio.create_task(asyncio.wait_for(in_task(call), 30))


@pytest.mark.parametrize("way", [in_wait_for, in_task, in_tasks])
@pytest.mark.parametrize("kept", [False, True])
async def test_a_self_call_in_a_task_that_the_handler_awaits_raises_soon(life: Life, way: Any, kept: bool) -> None:
    async def call(server: Any) -> Any:
        return await (server.ref.dispatch(Add(), None).wait_keeping() if kept else server.ref.call(Add(), None))

    async def handler(server: Any) -> Any:
        begun_s = time.process_time()
        with pytest.raises(DeadlockError) as caught:
            await way(call(server))
        return time.process_time() - begun_s, caught.value.chain

    async with Supervisor([life.spec()]) as root:
        found = [await root.child("server").call(RunAsync(handler), None) for _ in range(5)]
        assert [chain for _, chain in found] == [("server", "server")] * 5
        assert min(cpu_s for cpu_s, _ in found) < 0.01
        assert await root.child("server").call(Get()) == 0  # never run


EAGER = [in_eager_task] if sys.version_info >= (3, 12) else []


@pytest.mark.parametrize("way", [in_gather, in_gather_with_results, in_group, in_task_that_is_awaited_later, *EAGER])
async def test_where_others_may_let_the_handler_go_on_a_self_call_is_left_to_its_timeout(life: Life, way: Any) -> None:
    errors: list[type] = []

    async def call(server: Any) -> None:
        try:
            await server.ref.call(Add(), 0.03)
        except (CallTimeout, DeadlockError) as error:
            errors.append(type(error))

    async def handler(server: Any) -> None:
        await way(call(server))

    async with Supervisor([life.spec()]) as root:
        await root.child("server").call(RunAsync(handler), None)
        assert errors == [CallTimeout]
        assert await root.child("server").call(Get()) == 0


async def test_a_circle_over_a_task_is_found_by_the_server_that_closes_it() -> None:
    lives = {name: Life() for name in "abc"}

    async def back(_: Any) -> Any:
        with pytest.raises(DeadlockError) as caught:
            await root.child("a").call(Get(), timeout_s=None)
        return caught.value.chain

    async def first(_: Any) -> Any:
        await root.child("c").call(Hold(), None)
        return await asyncio.wait_for(root.child("b").call(RunAsync(back), None), 30)

    async with Supervisor([lives[name].spec(name) for name in "abc"]) as root:
        running = asyncio.create_task(root.child("a").call(RunAsync(first), None))
        await lives["c"].held.wait()
        await turns()
        lives["c"].gate.set()
        assert await running == ("b", "a", "b")


async def test_a_gather_that_another_task_may_end_is_no_circle(life: Life) -> None:
    async def other(_: Any) -> None:
        await life.gate.wait()
        raise KeyError

    tasks: list[Any] = []

    async def handler(server: Any) -> None:
        tasks.append(asyncio.create_task(server.ref.call(Add(5), None)))
        with pytest.raises(KeyError):
            await asyncio.gather(tasks[0], other(server))

    async with Supervisor([life.spec()]) as root:
        running = asyncio.create_task(root.child("server").call(RunAsync(handler), None))
        await asyncio.sleep(0.03)  # it was looked at several times
        life.gate.set()
        await running
        assert await tasks[0] == 5


async def shielded(task: Any) -> None:
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(asyncio.shield(task), 0.03)


async def first_of_several(task: Any) -> None:
    await asyncio.wait([task], timeout=0.03)


async def first_done(task: Any) -> None:
    await asyncio.wait([task, asyncio.create_task(asyncio.sleep(0.03))], return_when=asyncio.FIRST_COMPLETED)


async def left_alone(_: Any) -> None:
    await asyncio.sleep(0.03)


@pytest.mark.parametrize("way", [shielded, first_of_several, first_done, left_alone])
async def test_a_task_that_outlives_the_handler_closes_no_circle(life: Life, way: Any) -> None:
    tasks: list[Any] = []

    async def handler(server: Any) -> None:
        tasks.append(asyncio.create_task(server.ref.call(Add(5), None)))
        await way(tasks[0])

    async with Supervisor([life.spec()]) as root:
        await root.child("server").call(RunAsync(handler), None)
        assert await tasks[0] == 5


async def test_a_group_whose_body_still_runs_does_not_wait_yet(life: Life) -> None:
    async def handler(server: Any) -> None:
        async with asyncio.TaskGroup() as group:
            task = group.create_task(server.ref.call(Add(5), None))
            await asyncio.sleep(0.03)
            assert not task.done()
            task.cancel()

    async with Supervisor([life.spec()]) as root:
        await root.child("server").call(RunAsync(handler), None)
        assert await root.child("server").call(Get()) == 0
