"""Typed messages find their handlers, and what a handler may do with a call."""

import asyncio
from typing import Any

import pytest

from session_actor.supervisors import (
    NO_REPLY,
    AlreadyReplied,
    Call,
    Cast,
    ChildSpec,
    GenServer,
    Refusal,
    ServerCrashed,
    Supervisor,
    UnknownMessage,
    WrongLoop,
    handles,
    statistics,
)

from .support import AT_ONCE, Add, Boom, Defer, Get, Hold, Life, No, Note, Refuse, Run, RunAsync, idle, turns


class Base(Call[str]):
    pass


class Derived(Base):
    pass


class Stray(Cast):
    pass


class Parent(GenServer):
    def __init__(self) -> None:
        self.info: list[Any] = []

    @handles(Base)
    def base(self, message: Base) -> str:
        return "parent"

    async def handle_info(self, message: Any) -> None:
        self.info.append(type(message).__name__)


class Child(Parent):
    def base(self, message: Base) -> str:
        return "child"


async def test_a_message_finds_the_handler_of_its_base_class_and_an_override_takes_it_over() -> None:
    async with Supervisor([ChildSpec(1, start=Parent), ChildSpec(2, start=Child)]) as root:
        assert await root.child(1).call(Derived()) == "parent"
        assert await root.child(2).call(Base()) == "child"
        assert await root.child(2).call(Derived()) == "child"


async def test_a_call_without_handler_is_an_error_for_the_caller_and_nothing_for_the_server(life: Life) -> None:
    async with Supervisor([life.spec()]) as root:
        ref = root.child("server")
        with pytest.raises(UnknownMessage, match="Base"):
            await ref.call(Base())
        assert await ref.call(Get()) == 0
        assert statistics(ref).crashes == 0


async def test_a_cast_without_handler_goes_to_handle_info() -> None:
    server = Parent()
    async with Supervisor([ChildSpec(1, start=lambda: server)]) as root:
        root.child(1).cast(Stray())
        await turns()
        assert server.info == ["Stray"]


@pytest.mark.parametrize("queued", [False, True])
async def test_a_refusal_reaches_the_caller_and_the_server_lives(life: Life, queued: bool) -> None:
    async with Supervisor([life.spec()]) as root:
        ref = await idle(root.child("server"))
        if queued:
            ref.cast(Note())
        with pytest.raises(No, match="not today"):
            await ref.call(Refuse())
        assert await ref.call(Add()) == 1 + queued
        assert life.starts == 1


async def test_one_refusal_object_raised_many_times_does_not_grow_its_traceback(life: Life) -> None:
    constant = Refusal("always the same")

    def refuse(_: Any) -> None:
        raise constant

    def depth(error: BaseException) -> int:
        trace, count = error.__traceback__, 0
        while trace is not None:
            trace, count = trace.tb_next, count + 1
        return count

    depths = []
    async with Supervisor([life.spec()]) as root:
        ref = await idle(root.child("server"))
        for number in range(20):
            if number % 2:
                ref.cast(Note())
            with pytest.raises(Refusal) as caught:
                await ref.call(Run(refuse))
            depths.append(depth(caught.value))
    assert max(depths[2:]) <= max(depths[:2])


async def test_a_refused_cast_is_dropped_and_counted(life: Life) -> None:
    async with Supervisor([life.spec()]) as root:
        ref = root.child("server")
        ref.cast(Refuse())
        assert await ref.call(Get()) == 0
        assert statistics(ref).dropped == 1


@pytest.mark.parametrize("queued", [False, True])
async def test_a_deferred_reply_comes_when_it_is_given(life: Life, queued: bool) -> None:
    async with Supervisor([life.spec()]) as root:
        ref = await idle(root.child("server"))
        if queued:
            ref.cast(Note())
        caller = asyncio.create_task(ref.call(Defer()))
        await turns()
        assert not caller.done()
        assert await ref.call(Get()) == queued
        life.deferred[0].reply("late")
        assert await caller == "late"
        with pytest.raises(AlreadyReplied):
            life.deferred[0].reply("again")


async def test_a_deferred_call_can_be_failed_with_any_error(life: Life) -> None:
    async with Supervisor([life.spec()]) as root:
        ref = await idle(root.child("server"))
        caller = asyncio.create_task(ref.call(Defer()))
        await turns()
        life.deferred[0].fail(Boom("told"))
        with pytest.raises(Boom, match="told"):
            await caller


class Stopped(StopIteration):
    """Could be set on a future; the one who awaits it would return."""


@pytest.mark.parametrize("error", [StopIteration(), Stopped(), "a text", None, ValueError])
async def test_what_cannot_be_raised_at_a_caller_is_refused_and_the_deferred_stays_good(life: Life, error: Any) -> None:
    async with Supervisor([life.spec()]) as root:
        ref = await idle(root.child("server"))
        caller = asyncio.create_task(ref.call(Defer()))
        await turns()
        with pytest.raises(TypeError, match="exception"):
            life.deferred[0].fail(error)
        assert life.deferred[0].waiting
        life.deferred[0].reply("in the end")
        assert await caller == "in the end"


@pytest.mark.parametrize("queued", [False, True])
async def test_a_refusal_that_is_a_stop_of_an_iteration_too_is_no_reply(life: Life, queued: bool) -> None:
    class Odd(Refusal, StopIteration):
        pass

    def refuse(_: Any) -> None:
        raise Odd

    async with Supervisor([life.spec()]) as root:
        ref = await idle(root.child("server"))
        if queued:
            ref.cast(Note())
        with pytest.raises(RuntimeError, match=r"raised .*(Odd|StopIteration)"):
            await ref.call(Run(refuse))


@pytest.mark.parametrize("how", ["reply", "fail"])
async def test_a_deferred_belongs_to_the_thread_of_its_server(life: Life, how: str) -> None:
    async with Supervisor([life.spec()]) as root:
        ref = await idle(root.child("server"))
        caller = asyncio.create_task(ref.call(Defer()))
        await turns()
        with pytest.raises(WrongLoop):
            await asyncio.to_thread(getattr(life.deferred[0], how), Boom("from afar"))
        life.deferred[0].reply("from here")
        assert await caller == "from here"


async def test_a_deferred_reply_that_nobody_waits_for_is_dropped_and_counted(life: Life) -> None:
    async with Supervisor([life.spec()]) as root:
        ref = await idle(root.child("server"))
        caller = asyncio.create_task(ref.call(Defer()))
        await turns()
        caller.cancel()
        await turns()
        assert not life.deferred[0].waiting
        life.deferred[0].reply("late")
        assert statistics(ref).dropped == 1


@pytest.mark.parametrize("queued", [False, True])
async def test_no_reply_without_defer_is_a_crash_and_no_hanging_caller(life: Life, queued: bool) -> None:
    async with Supervisor([life.spec()], backoff=AT_ONCE) as root:
        ref = await idle(root.child("server"))
        if queued:
            ref.cast(Note())
        with pytest.raises(ServerCrashed, match="TypeError"):
            await ref.call(Run(lambda _: NO_REPLY), timeout_s=None)
        assert await ref.call(Get()) == 0
        assert life.starts == 2


@pytest.mark.parametrize("queued", [False, True])
async def test_a_value_returned_after_defer_is_the_reply(life: Life, queued: bool) -> None:
    def both(server: Any) -> str:
        life.deferred.append(server.defer())
        return "at once"

    async with Supervisor([life.spec()]) as root:
        ref = await idle(root.child("server"))
        if queued:
            ref.cast(Note())
        assert await ref.call(Run(both)) == "at once"
        life.deferred[0].reply("too late")
        assert await ref.call(Run(lambda server: server.n)) == queued


async def test_a_message_sent_later_arrives_unless_cancelled_or_its_incarnation_ended(life: Life, clock: Any) -> None:
    def set_timers(server: Any) -> None:
        server.send_after(1.0, Note(10))
        server.send_after(1.0, Note(100)).cancel()

    async with Supervisor([life.spec()], clock=clock, backoff=AT_ONCE) as root:
        ref = await idle(root.child("server"))
        await ref.call(Run(set_timers))
        clock.advance(1.0)
        await turns()
        assert await ref.call(Get()) == 10
        await ref.call(Run(set_timers))
        ref.kill()
        await turns()
        await ref.started()
        clock.advance(5.0)
        await turns()
        assert await ref.call(Get()) == 0


async def test_continue_with_runs_before_the_next_user_message(life: Life) -> None:
    class Ordered(GenServer):
        def __init__(self) -> None:
            self.seen: list[Any] = []

        @handles(Run)
        def run(self, message: Run) -> Any:
            return message.function(self)

        async def handle_continue(self, argument: Any) -> None:
            self.seen.append(argument)

    async with Supervisor([ChildSpec(1, start=Ordered)]) as root:
        ref = await idle(root.child(1))
        ref.cast(Run(lambda server: server.continue_with("first")))
        ref.cast(Run(lambda server: server.seen.append("second")))
        assert await ref.call(Run(lambda server: server.seen)) == ["first", "second"]


async def test_an_async_handler_completes_one_message_before_the_next(life: Life) -> None:
    async with Supervisor([life.spec()]) as root:
        ref = root.child("server")
        held = asyncio.create_task(ref.call(Hold()))
        await life.held.wait()
        after = asyncio.create_task(ref.call(Add(10)))
        await turns()
        assert not after.done()
        life.gate.set()
        assert (await held, await after) == (1, 11)


async def test_the_reply_of_an_async_handler_may_be_deferred_too(life: Life) -> None:
    async def defer(server: Any) -> Any:
        deferred = server.defer()
        asyncio.get_running_loop().call_soon(deferred.reply, "from outside")
        return NO_REPLY

    async with Supervisor([life.spec()]) as root:
        assert await root.child("server").call(RunAsync(defer)) == "from outside"


@pytest.mark.parametrize("types", [(), ("Get",), (Get, 3)])
def test_handles_wants_message_classes(types: Any) -> None:
    with pytest.raises(TypeError, match="message classes"):
        handles(*types)
