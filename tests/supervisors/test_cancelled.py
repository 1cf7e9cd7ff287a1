"""Cancelling a server's task from outside ends it as cancelled, whatever its code makes of the cancellation."""

import asyncio
from typing import Any

import pytest

from session_actor.supervisors import (
    ChildSpec,
    DynamicSupervisor,
    InitFailed,
    Refusal,
    ServerCrashed,
    ServerKilled,
    ServerRef,
    statistics,
)

from .support import AT_ONCE, Boom, Get, Hold, Life, No, RunAsync, Server, idle, turns, until


def cancel(ref: ServerRef) -> None:
    """Be a stranger."""
    assert ref.slot.task is not None
    ref.slot.task.cancel()


@pytest.mark.parametrize(
    ("then", "told"),
    [
        ("returns", None),
        ("goes on", None),
        ("refuses", No),
        ("fails", ServerKilled),
        ("raises it again", ServerKilled),
    ],
)
async def test_a_server_whose_handler_swallows_a_cancellation_from_outside_ends_as_cancelled(
    life: Life, then: str, told: Any
) -> None:
    async def handler(_: Any) -> str:
        try:
            life.held.set()
            await asyncio.sleep(3600)
        except asyncio.CancelledError:
            if then == "raises it again":
                raise
            if then == "fails":
                raise Boom from None
            if then == "refuses":
                raise No from None
        if then == "goes on":
            await asyncio.sleep(0)
        return "done"

    async with DynamicSupervisor(backoff=AT_ONCE) as root:
        ref = await idle(root.spawn(life.spec()))
        running = asyncio.create_task(ref.call(RunAsync(handler), timeout_s=None))
        await life.held.wait()
        waiting = ref.dispatch(Get(), None)
        cancel(ref)
        if told is None:
            assert await running == "done"
        else:
            with pytest.raises(told):
                await running
        with pytest.raises(ServerKilled):
            await waiting.wait()
        await until(lambda: ref.phase == "ended")
        assert statistics(ref).crashes == 0
        assert [reason.kind for reason in life.ends] == ["killed"]
        assert life.starts == 1


@pytest.mark.parametrize("where", ["init", "control", "continue"])
async def test_nor_does_it_live_on_when_the_swallowing_is_done_elsewhere(life: Life, where: str) -> None:
    async def swallow() -> None:
        try:
            life.held.set()
            await asyncio.sleep(3600)
        except asyncio.CancelledError:
            life.log.append("swallowed")

    class Swallows(Server):
        async def init(self) -> None:
            await super().init()
            if where == "init":
                await swallow()

        async def handle_continue(self, argument: Any) -> None:
            await swallow()

    async with DynamicSupervisor(backoff=AT_ONCE) as root:
        ref = root.spawn(ChildSpec("server", start=lambda: Swallows(life)))
        if where == "continue":
            (await idle(ref)).slot.enqueue_control(lambda slot: slot.server.handle_continue(None), None)
        elif where == "control":
            (await idle(ref)).slot.enqueue_control(lambda _: swallow(), None)
        await life.held.wait()
        pending = ref.dispatch(Get(), None)
        cancel(ref)
        with pytest.raises(ServerKilled):
            await pending.wait()
        await until(lambda: ref.phase == "ended")
        assert life.log == ["swallowed"]
        assert [reason.kind for reason in life.ends] == ["killed"]
        assert life.starts == 1


async def test_a_bare_task_that_swallows_it_is_not_started_again() -> None:
    begun: list[int] = []

    async def body() -> None:
        begun.append(1)
        try:
            await asyncio.sleep(3600)
        except asyncio.CancelledError:
            return

    async with DynamicSupervisor(backoff=AT_ONCE) as root:
        ref = root.spawn(ChildSpec("task", task=body))
        await until(lambda: bool(begun))
        cancel(ref)
        await until(lambda: ref.phase == "ended")
        assert ref.reason is not None
        assert ref.reason.kind == "killed"
        assert begun == [1]


async def one_fails(group: asyncio.TaskGroup) -> None:
    async def fail() -> None:
        await asyncio.sleep(0)
        raise Boom

    group.create_task(fail())


@pytest.mark.parametrize("where", ["body", "end"])
async def test_what_a_handler_cancels_in_itself_and_takes_back_is_no_cancellation(life: Life, where: str) -> None:
    async def with_group(_: Any) -> str:
        try:
            async with asyncio.TaskGroup() as group:
                await one_fails(group)
                if where == "body":
                    await asyncio.sleep(3600)
        except* Boom:
            pass
        return "through"

    async def with_timeout(_: Any) -> str:
        try:
            async with asyncio.timeout(0):
                await asyncio.sleep(3600)
        except TimeoutError:
            pass
        return "through"

    async def cancelled_itself(_: Any) -> None:
        raise asyncio.CancelledError

    async with DynamicSupervisor(backoff=AT_ONCE) as root:
        ref = await idle(root.spawn(life.spec()))
        for handler in (with_group, with_timeout):
            assert await ref.call(RunAsync(handler)) == "through"
        assert life.starts == 1
        with pytest.raises(ServerCrashed):
            await ref.call(RunAsync(cancelled_itself))
        await until(lambda: life.starts == 2)
        assert await ref.call(Get()) == 0
        assert [reason.kind for reason in life.ends] == ["crashed"]


async def test_an_init_that_swallows_the_end_of_its_time_has_failed_all_the_same(life: Life, clock: Any) -> None:
    class Stubborn(Server):
        async def init(self) -> None:
            await super().init()
            try:
                await asyncio.sleep(3600)
            except asyncio.CancelledError:
                self.life.log.append("swallowed")

    async with DynamicSupervisor(backoff=AT_ONCE, clock=clock) as root:
        ref = root.spawn(ChildSpec("server", start=lambda: Stubborn(life), init_timeout_s=1.0))
        await until(lambda: life.starts == 1)
        await turns()
        clock.advance(1.0)
        with pytest.raises(InitFailed, match="server") as caught:
            await ref.started()
        assert isinstance(caught.value.__cause__, TimeoutError)
        assert life.log == ["swallowed"]
        assert life.ends == []


async def test_a_kill_that_a_handler_swallows_is_a_kill_and_a_restart(life: Life) -> None:
    async def swallow(_: Any) -> None:
        try:
            life.held.set()
            await asyncio.sleep(3600)
        except asyncio.CancelledError as error:
            raise Refusal("no") from error

    async with DynamicSupervisor(backoff=AT_ONCE) as root:
        ref = await idle(root.spawn(life.spec()))
        running = asyncio.create_task(ref.call(RunAsync(swallow), timeout_s=None))
        await life.held.wait()
        ref.kill()
        with pytest.raises(ServerKilled):
            await running
        await until(lambda: life.starts == 2)
        life.gate.set()
        assert await ref.call(Hold()) == 1
