"""Services and sessions for the benches, in stores of their own that are removed afterwards."""

from __future__ import annotations

import tempfile
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench.floors import ASSISTANT_OUTPUT, ASSUMPTIONS, DECISIONS, USER_INPUT
from session_actor import SessionService
from session_actor.persistence import FileStore, MemoryStore

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Coroutine

    from bench.harness import Options
    from session_actor import Frame, Session
    from session_actor.persistence import Level

GROW_STEP = 5_000


@asynccontextmanager
async def memory_service() -> AsyncIterator[SessionService]:
    """Run a service that writes nothing."""
    async with SessionService.open(MemoryStore(), idle_timeout_s=None) as service:
        yield service


@asynccontextmanager
async def disk_service(options: Options, *, segment_bytes: int | None = None) -> AsyncIterator[SessionService]:
    """Run a service on a store of its own in the folder that the command line names."""
    with tempfile.TemporaryDirectory(prefix="bench-store-", dir=options.directory) as directory:
        root = Path(directory) / "store"
        store = FileStore(root) if segment_bytes is None else FileStore(root, segment_bytes=segment_bytes)
        async with SessionService.open(store, idle_timeout_s=None) as service:
            yield service


def pusher(session: Session, durability: Level | None = None) -> Callable[..., Coroutine[Any, Any, Frame]]:
    """Return the push that every bench makes, with the reference's four fields."""
    push = partial(
        session.push,
        user_input=USER_INPUT,
        assistant_output=ASSISTANT_OUTPUT,
        assumptions=ASSUMPTIONS,
        decisions=DECISIONS,
    )
    return push if durability is None else partial(push, durability=durability)


class Subject:
    """One session of a bench: grows, drains, and remembers its depth and its head."""

    def __init__(self, session: Session, *, on_disk: bool) -> None:
        """Take a new session over a memory store or a store on disk."""
        self.session = session
        self.on_disk = on_disk
        self.depth = 0
        self.head = 0
        self.first = 0

    async def grow(self, depth: int) -> None:
        """Push in bulk until the stack is so deep, draining the store on the way."""
        push = pusher(self.session)
        while self.depth < depth:
            step = min(GROW_STEP, depth - self.depth)
            for _ in range(step):
                frame = await push()
            self.depth += step
            self.first = self.first or frame.id
            self.head = frame.id
            await self.drain()

    async def drain(self) -> None:
        """Wait until the operating system has everything, so that no writing falls into the next batch."""
        if self.on_disk:
            await self.session.flush("written")
