"""Servers and helpers that these tests share."""

import asyncio
from collections.abc import Callable
from contextvars import ContextVar
from math import inf
from time import perf_counter
from typing import Any

import msgspec

from session_actor.supervisors import (
    NO_REPLY,
    Backoff,
    Call,
    Cast,
    ChildSpec,
    Deferred,
    GenServer,
    Refusal,
    ServerRef,
    handles,
)

AT_ONCE = Backoff(initial_s=0.0, max_s=0.0)
WHO: ContextVar[str] = ContextVar("who", default="nobody")


class Boom(Exception):
    """A crash on purpose; its text must not travel."""


class No(Refusal):
    """A refusal on purpose."""


class Add(msgspec.Struct, Call[int], frozen=True):
    n: int = 1


class Get(msgspec.Struct, Call[int], frozen=True):
    pass


class Note(msgspec.Struct, Cast, frozen=True):
    n: int = 1


class Crash(msgspec.Struct, Call[None], frozen=True):
    pass


class CrashLater(msgspec.Struct, Call[None], frozen=True):
    """Crashes in an async handler, after a turn."""


class CrashNote(msgspec.Struct, Cast, frozen=True):
    pass


class Refuse(msgspec.Struct, Call[None], frozen=True):
    pass


class Hold(msgspec.Struct, Call[int], frozen=True):
    """Answers when the gate is opened."""


class Defer(msgspec.Struct, Call[str], frozen=True):
    pass


class Run(Call[Any]):
    """Runs a function in a sync handler, with the server."""

    def __init__(self, function: Callable[[Any], Any]) -> None:
        self.function = function


class RunAsync(Run):
    """Awaits a function in an async handler."""


class Stubborn(msgspec.Struct, Call[None], frozen=True):
    """Swallows cancellation until the gate is opened."""


class Life:
    """What a server's incarnations leave behind for the test."""

    def __init__(self) -> None:
        self.starts = 0
        self.log: list[Any] = []
        self.ends: list[Any] = []
        self.gate = asyncio.Event()
        self.held = asyncio.Event()
        self.deferred: list[Deferred[str]] = []

    def spec(self, name: Any = "server", **options: Any) -> ChildSpec:
        return ChildSpec(name, start=lambda: Server(self), **options)


class Server(GenServer):
    def __init__(self, life: Life) -> None:
        self.life = life
        self.n = 0

    async def init(self) -> None:
        self.life.starts += 1

    async def terminate(self, reason: Any) -> None:
        self.life.ends.append(reason)

    @handles(Add)
    def add(self, message: Add) -> int:
        self.n += message.n
        self.life.log.append(message.n)
        return self.n

    @handles(Get)
    def get(self, message: Get) -> int:
        return self.n

    @handles(Note)
    def note(self, message: Note) -> None:
        self.n += message.n
        self.life.log.append(message.n)

    @handles(Crash, CrashNote)
    def crash(self, message: object) -> None:
        self.life.log.append("crash")
        raise Boom("the user's secret")

    @handles(CrashLater)
    async def crash_later(self, message: object) -> None:
        await asyncio.sleep(0)
        raise Boom("the user's secret")

    @handles(Refuse)
    def refuse(self, message: Refuse) -> None:
        raise No("not today")

    @handles(Hold)
    async def hold(self, message: Hold) -> int:
        self.life.held.set()
        await self.life.gate.wait()
        self.n += 1
        self.life.log.append("held")
        return self.n

    @handles(Stubborn)
    async def stubborn(self, message: Stubborn) -> None:
        self.life.held.set()
        while not self.life.gate.is_set():
            try:
                await self.life.gate.wait()
            except asyncio.CancelledError:
                self.life.log.append("swallowed")

    @handles(Defer)
    def later(self, message: Defer) -> Any:
        self.life.deferred.append(self.defer())
        return NO_REPLY

    @handles(Run)
    def run(self, message: Run) -> Any:
        return message.function(self)

    @handles(RunAsync)
    async def run_async(self, message: RunAsync) -> Any:
        return await message.function(self)


def eager_task(loop: asyncio.AbstractEventLoop, coroutine: Any, **given: Any) -> asyncio.Task[Any]:
    """`asyncio.eager_task_factory` (Python 3.12); before 3.13.3 that takes less than uvloop gives it on 3.13."""
    given["eager_start"] = True
    return asyncio.Task(coroutine, loop=loop, **given)


async def turns(count: int = 5) -> None:
    """Let the loop turn."""
    for _ in range(count):
        await asyncio.sleep(0)


async def until(condition: Callable[[], bool], limit: int = 2000) -> None:
    """Let the loop turn until the condition holds."""
    for _ in range(limit):
        if condition():
            return
        await asyncio.sleep(0)
    raise AssertionError("the condition never came true")


async def idle(ref: ServerRef) -> ServerRef:
    """Wait until the server would take an inline call, and let it, however long a busy machine makes this turn."""
    await ref.started()
    await until(lambda: ref.slot.door == 0)
    budget = ref.slot.floor.budget
    if budget._now is perf_counter:  # else the test moves the clock
        budget.check_at = inf
    return ref
