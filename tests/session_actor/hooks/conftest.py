"""Services with hooks, and a clock that only moves when a test says so."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from session_actor import Hook, HookContext, MemoryStore, SessionService
from session_actor.hooks import mandatory
from session_actor.supervisors.clock import ManualClock


@dataclass
class Calls:
    """Hooks that note how they were called, and do what they are told."""

    contexts: list[HookContext] = field(default_factory=list)
    fails: dict[str, int] = field(default_factory=dict)
    """How often the hook of a name fails from now on; -1: always."""
    gates: dict[str, asyncio.Event] = field(default_factory=dict)
    """What the hook of a name waits for."""

    def hook(self, name: str, phase: Any = "ended", *, mandatory: bool = False, **options: Any) -> Hook:
        async def fn(ctx: HookContext) -> None:
            self.contexts.append(ctx)
            self.names.append(name)
            if name in self.gates:
                await self.gates[name].wait()
            if self.fails.get(name, 0):
                self.fails[name] -= 1
                raise ValueError("secret: a canary")

        return Hook(name, fn, phase, mandatory=mandatory, **options)

    def must(self, name: str, **options: Any) -> Hook:
        return self.hook(name, mandatory=True, **options)

    names: list[str] = field(default_factory=list)


@pytest.fixture
def calls() -> Calls:
    return Calls()


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture(params=["memory", "file"])
def store(request: pytest.FixtureRequest, tmp_path):
    """Where a service keeps its sessions, from one opening to the next."""
    return MemoryStore() if request.param == "memory" else tmp_path / "conversations"


@pytest.fixture
def evenly(monkeypatch: pytest.MonkeyPatch) -> None:
    """Backoff without chance."""
    monkeypatch.setattr(mandatory, "BACKOFF", replace(mandatory.BACKOFF, jitter=0.0))


@asynccontextmanager
async def opened(store, *hooks: Hook, clock: ManualClock | None = None, **options: Any):
    """A running service with these hooks."""
    service = SessionService.open(store, hooks=hooks, **options)
    service._options = replace(service._options, clock=clock)
    async with service:
        yield service


async def until(condition) -> None:
    """Let the loop turn until it is so."""
    async with asyncio.timeout(20):
        while not condition():  # noqa: ASYNC110 - any condition
            await asyncio.sleep(0)


async def idle(service: SessionService) -> None:
    """Until no hook is pending and none runs."""
    await until(lambda: not service.hooks.pending() and not service._people().hooks.tries.supervisor.which_children())


async def pass_time(clock: ManualClock, condition) -> None:
    """Move the clock on until it is so."""
    async with asyncio.timeout(20):
        while not condition():
            clock.advance(100)
            await turns(5)


async def turns(count: int = 50) -> None:
    """So many turns of the loop."""
    for _ in range(count):
        await asyncio.sleep(0)
