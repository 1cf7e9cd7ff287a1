"""Async handlers behind plain decorators are awaited, inline as queued."""

import asyncio
import functools
from typing import Any

import pytest

from session_actor.supervisors import (
    NO_REPLY,
    Call,
    CallTimeout,
    ChildSpec,
    GenServer,
    ServerCrashed,
    Supervisor,
    handles,
    statistics,
)

from .support import AT_ONCE, WHO, Boom, No, Run, idle


def announced(method: Any) -> Any:
    """A decorator that says whom it wraps."""

    @functools.wraps(method)
    def inner(self: Any, message: Any) -> Any:
        return method(self, message)

    return inner


def hidden(method: Any) -> Any:
    """A decorator that does not."""

    def inner(self: Any, message: Any) -> Any:
        return method(self, message)

    return inner


class Through(Call[Any]):
    """Handled by an async function behind a plain decorator, which awaits this."""

    def __init__(self, function: Any) -> None:
        self.function = function


class ThroughAgain(Through):
    """The same, by another handler."""


def wrapped(decorate: Any) -> type[GenServer]:
    class Wrapped(GenServer):
        def __init__(self) -> None:
            self.order: list[int] = []

        @handles(Through)
        @decorate
        async def through(self, message: Through) -> Any:
            return await message.function(self)

        @handles(Run)
        def run(self, message: Run) -> Any:
            return message.function(self)

        @handles(ThroughAgain)
        def forward(self, message: ThroughAgain) -> Any:
            return self.through(message)

    return Wrapped


@pytest.mark.parametrize("queued", [False, True])
@pytest.mark.parametrize("message", [Through, ThroughAgain])
@pytest.mark.parametrize("decorate", [announced, hidden])
class TestAnAsyncHandlerBehindAPlainFunction:
    async def test_is_awaited_before_the_next_message_and_in_the_context_of_its_caller(
        self, decorate: Any, message: Any, queued: bool
    ) -> None:
        async def slowly(server: Any) -> tuple[int, str]:
            await asyncio.sleep(0)
            server.order.append(1)
            return len(server.order), WHO.get()

        async with Supervisor([ChildSpec(1, start=wrapped(decorate))]) as root:
            ref = await idle(root.child(1))
            token = WHO.set("caller")
            for number in (1, 3, 5):
                if queued:
                    ref.cast(Run(lambda _: None))
                first = asyncio.create_task(ref.call(message(slowly)))
                await asyncio.sleep(0)
                second = asyncio.create_task(ref.call(Run(lambda server: server.order.append(2) or len(server.order))))
                assert await asyncio.gather(first, second) == [(number, "caller"), number + 1]
            WHO.reset(token)

    async def test_refuses_crashes_defers_and_times_out_as_others_do(
        self, decorate: Any, message: Any, queued: bool
    ) -> None:
        async def refuse(_: Any) -> None:
            raise No("not today")

        async def crash(_: Any) -> None:
            await asyncio.sleep(0)
            raise Boom

        async def defer(server: Any) -> Any:
            asyncio.get_running_loop().call_soon(server.defer().reply, "later")
            return NO_REPLY

        async def hang(_: Any) -> None:
            await asyncio.sleep(60)

        outcomes: list[Any] = []
        for function in (refuse, crash, defer, hang):
            async with Supervisor([ChildSpec(1, start=wrapped(decorate), shutdown_s="kill")], backoff=AT_ONCE) as root:
                ref = await idle(root.child(1))
                if queued:
                    ref.cast(Run(lambda _: None))
                try:
                    outcomes.append(await ref.call(message(function), timeout_s=0.02 if function is hang else None))
                except (No, ServerCrashed, CallTimeout) as error:
                    outcomes.append(type(error))
        assert outcomes == [No, ServerCrashed, "later", CallTimeout]

    async def test_is_awaited_as_a_cast_too(self, decorate: Any, message: Any, queued: bool) -> None:
        async def note(server: Any) -> None:
            server.order.append(1)

        async def refuse(server: Any) -> None:
            server.order.append(2)
            raise No

        async with Supervisor([ChildSpec(1, start=wrapped(decorate))]) as root:
            ref = await idle(root.child(1)) if queued else root.child(1)
            for function in (refuse, note, refuse):
                ref.cast(message(function))
            assert await ref.call(Run(lambda server: server.order)) == [2, 1, 2]
            assert statistics(ref).dropped == 2
