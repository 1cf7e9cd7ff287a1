"""The server that the conformance tests start, crash and stop, and helpers that move turns and time by hand."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import msgspec
import pytest

from session_actor.supervisors import (
    Backoff,
    Call,
    Cast,
    ChildSpec,
    ExitReason,
    GenServer,
    ManualClock,
    ServerCrashed,
    ServerRef,
    handles,
)

STEP_S = 0.01
SHORT = Backoff(initial_s=STEP_S, factor=1.0, max_s=STEP_S, jitter=0.0)
"""Every restart comes one step after the crash, so that a test knows when."""


class Boom(Exception):
    """The crash that the tests ask for."""


class Ping(msgspec.Struct, Call[int], frozen=True):
    """Answered with the number of the incarnation, the first is 1."""


class Crash(msgspec.Struct, Call[None], frozen=True):
    """Raises Boom in the handler."""


class CrashCast(msgspec.Struct, Cast, frozen=True):
    """Raises Boom in the handler, with nobody waiting."""


class Leave(msgspec.Struct, Call[str], frozen=True):
    """The server stops itself with this reason, and still answers."""

    reason: Literal["normal", "stopped"] = "normal"


class Hold(msgspec.Struct, Call[str], frozen=True):
    """The handler waits until the test opens the gate."""


class HoldThenLeave(msgspec.Struct, Call[None], frozen=True):
    """The handler waits until the test opens the gate, then the server stops itself."""


@dataclass
class Life:
    """One child as the test sees it: what each init in turn shall do, and what happened.

    script: one entry an init, used up in order: None starts well, an exception is raised, anything else is returned.
        Past its end all start well.
    """

    name: str
    log: list[str] = field(default_factory=list)
    script: Sequence[Any] = ()
    starts: int = 0
    reasons: list[ExitReason] = field(default_factory=list)
    at_terminate: Callable[[], Any] | None = None
    gate: asyncio.Event = field(default_factory=asyncio.Event)
    held: asyncio.Event = field(default_factory=asyncio.Event)

    def server(self) -> "Worker":
        return Worker(self)

    def spec(self, **options: Any) -> ChildSpec:
        return ChildSpec(self.name, start=self.server, **options)


class Worker(GenServer):
    """Lives as its Life says."""

    def __init__(self, life: Life) -> None:
        self.life = life
        self.number = 0

    async def init(self) -> Any:
        life = self.life
        life.starts += 1
        self.number = life.starts
        life.log.append(f"{life.name} init")
        step = life.script[life.starts - 1] if life.starts <= len(life.script) else None
        if isinstance(step, BaseException):
            raise step
        return step

    async def terminate(self, reason: ExitReason) -> None:
        self.life.log.append(f"{self.life.name} terminate")
        self.life.reasons.append(reason)
        if self.life.at_terminate is not None:
            result = self.life.at_terminate()
            if asyncio.iscoroutine(result):
                await result

    @handles(Ping)
    def ping(self, _: Ping) -> int:
        return self.number

    @handles(Crash)
    def crash(self, _: Crash) -> None:
        raise Boom

    @handles(CrashCast)
    def crash_cast(self, _: CrashCast) -> None:
        raise Boom

    @handles(Leave)
    def leave(self, message: Leave) -> str:
        self.stop_self(message.reason)
        return "leaving"

    @handles(Hold)
    async def hold(self, _: Hold) -> str:
        self.life.held.set()
        await self.life.gate.wait()
        return "held"

    @handles(HoldThenLeave)
    async def hold_then_leave(self, _: HoldThenLeave) -> None:
        self.life.held.set()
        await self.life.gate.wait()
        self.stop_self("normal")


async def settle(turns: int = 120) -> None:
    """Lets everything run that can run without time passing."""
    for _ in range(turns):
        await asyncio.sleep(0)


async def until(condition: Callable[[], bool], turns: int = 2000) -> None:
    """Runs the loop until the condition holds; fails after so many turns."""
    for _ in range(turns):
        if condition():
            return
        await asyncio.sleep(0)
    pytest.fail("the awaited condition did not come")


async def pass_time(clock: ManualClock, seconds: float = STEP_S) -> None:
    """Lets what is running finish, moves the clock, lets what became due run."""
    await settle()
    clock.advance(seconds)
    await settle()


async def crash(ref: ServerRef) -> None:
    """Crashes the running incarnation; its supervisor has not restarted it yet."""
    with pytest.raises(ServerCrashed):
        await ref.call(Crash())


async def crash_and_restart(clock: ManualClock, ref: ServerRef) -> None:
    """Crashes the running incarnation and lets the time of the backoff pass."""
    await crash(ref)
    await pass_time(clock)


async def ended(ref: ServerRef) -> ExitReason:
    """Waits until the child is over for good, and says why."""
    await until(lambda: ref.reason is not None)
    assert ref.reason is not None
    return ref.reason
