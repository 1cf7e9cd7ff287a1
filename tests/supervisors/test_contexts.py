"""Context variables: the start of a server sees those of who asks for it, and nothing that goes on keeps them."""

import asyncio
import gc
import weakref
from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from typing import Any

import pytest

from session_actor.supervisors import ChildSpec, DynamicSupervisor, GenServer, Supervisor, handles, resume, suspend
from session_actor.supervisors.clock import ManualClock

from .support import AT_ONCE, WHO, Add, Defer, Life, Run, Server, idle, turns, until


class Body:
    """What a request holds on to."""


BODY: ContextVar[Body] = ContextVar("body")


async def as_request(do: Callable[[], Awaitable[Any]]) -> weakref.ref[Body]:
    """Do it in a task and a context of its own."""

    async def request() -> weakref.ref[Body]:
        body = Body()
        BODY.set(body)
        WHO.set("request")
        await do()
        return weakref.ref(body)

    return await asyncio.create_task(request())


async def is_gone(body: weakref.ref[Body]) -> bool:
    await turns(20)
    gc.collect()
    return body() is None


@pytest.mark.parametrize("kind", ["server", "task", "tree", "static"])
async def test_what_a_request_starts_does_not_keep_its_context(life: Life, kind: str) -> None:
    async def forever() -> None:
        await asyncio.sleep(3600)

    specs = {
        "server": life.spec("it"),
        "static": life.spec("it"),
        "task": ChildSpec("it", task=forever),
        "tree": ChildSpec("it", start=lambda: Supervisor([life.spec()])),
    }
    async with DynamicSupervisor() as dynamic, Supervisor(name="other") as static:
        root = static if kind == "static" else dynamic
        body = await as_request(lambda: root.start_child(specs[kind]))
        assert await is_gone(body)
        assert root.child("it").phase == "running"


async def test_init_sees_the_context_of_who_has_it_started_and_no_later_life_does() -> None:
    seen: list[tuple[str, str]] = []

    class Seeing(GenServer):
        async def init(self) -> None:
            await asyncio.sleep(0)
            seen.append(("init", WHO.get()))

        async def terminate(self, reason: Any) -> None:
            seen.append(("terminate", WHO.get()))

    async with DynamicSupervisor(backoff=AT_ONCE) as root:
        await as_request(lambda: root.start_child(ChildSpec("it", start=Seeing)))
        root.child("it").kill()
        await until(lambda: len(seen) == 3)
        await idle(root.child("it"))
        await root.terminate_child("it")
    assert seen == [("init", "request"), ("terminate", "nobody"), ("init", "nobody"), ("terminate", "nobody")]


async def test_what_is_told_of_an_end_is_told_in_no_requests_context(life: Life) -> None:
    told: list[tuple[str, str]] = []
    async with DynamicSupervisor(on_event=lambda event: told.append((event.kind, WHO.get()))) as root:
        await as_request(lambda: root.start_child(life.spec()))
        await root.terminate_child("server")
    assert told[-1] == ("stopped", "nobody")


async def test_a_server_that_sends_itself_messages_on_and_on_keeps_no_context() -> None:
    seen: list[str] = []

    class Ticking(GenServer):
        @handles(Add)
        def add(self, message: Add) -> int:
            self.send_after(0.0, "tick")
            return 1

        async def handle_info(self, message: Any) -> None:
            seen.append(WHO.get())
            self.send_after(0.0, "tick")

    async with DynamicSupervisor() as root:
        ref = await idle(root.spawn(ChildSpec("it", start=Ticking)))
        body = await as_request(lambda: ref.call(Add()))
        await until(lambda: len(seen) > 3)
        assert await is_gone(body)
        assert set(seen) == {"nobody"}


async def test_a_call_that_is_given_up_keeps_no_context_though_its_reply_is_still_owed(life: Life) -> None:
    async with DynamicSupervisor() as root:
        ref = await idle(root.spawn(life.spec()))
        bodies: list[weakref.ref[Body]] = []

        async def give_up(*, queued: bool) -> None:
            if queued:
                await suspend(ref, timeout_s=None)  # a deadline would be kept until its tick, 5 ms away
            asking = asyncio.create_task(ref.call(Defer(), timeout_s=None))
            await turns(2)
            if queued:
                ref.slot.suspended = frozenset()
                ref.slot.interrupt = True
                ref.slot.wake()
            await until(lambda: len(life.deferred) == 1 + queued)
            asking.cancel()
            await asyncio.wait([asking])

        for queued in (False, True):
            bodies.append(await as_request(lambda queued=queued: give_up(queued=queued)))
            await idle(ref)
        assert len(life.deferred) == 2
        assert [await is_gone(body) for body in bodies] == [True, True]
        for owed in life.deferred:
            owed.reply("late")


async def test_deadlines_that_are_armed_again_and_again_keep_no_context(life: Life) -> None:
    async with DynamicSupervisor() as root:
        ref = await idle(root.spawn(life.spec()))
        owed = asyncio.create_task(as_request(lambda: ref.call(Defer(), timeout_s=3600.0)))
        await turns()
        others = [asyncio.create_task(ref.call(Defer(), timeout_s=3600.0)) for _ in range(3)]
        await asyncio.sleep(0.02)  # the sweep is armed for them, too
        for deferred in life.deferred:
            deferred.reply("now")
        body = await owed
        await asyncio.gather(*others)
        assert ref.slot.floor.deadlines._heap
        assert await is_gone(body)
        assert await ref.call(Run(lambda server: isinstance(server, Server)))


async def test_an_answered_call_whose_timeout_goes_on_keeps_no_context(life: Life) -> None:
    async with DynamicSupervisor(clock=ManualClock()) as root:
        ref = await idle(root.spawn(life.spec()))
        await suspend(ref)
        owed = asyncio.create_task(as_request(lambda: ref.call(Add(1), timeout_s=5.0)))
        await turns()
        assert not owed.done()
        await resume(ref)
        body = await owed
        assert ref.slot.floor.deadlines._heap
        assert await is_gone(body)
