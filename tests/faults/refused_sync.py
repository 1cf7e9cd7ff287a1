"""Run as a process of its own: works with a store while one of its syncs fails, SQLite's own included.

    python refused_sync.py FOLDER

Stops itself until strace is there; prints as JSON what was acknowledged, and what is there afterwards. All jobs of the
store's threads run in one thread, so that the n-th sync is the same at every run.
"""

from __future__ import annotations

import asyncio
import json
import sys

from kill_points import InlineDisk
from tracing import stop

from session_actor import FileStore, Session, SessionActorError, SessionService
from session_actor.persistence import cutter

PUSHES = 24
TRIES = 100


def opened() -> SessionService:
    store = FileStore(sys.argv[1], segment_bytes=4_000, journal_bytes=5_000, disk=InlineDisk())
    return SessionService.open(store, durability="synced", idle_timeout_s=None)


async def push(session: Session, text: str) -> None:
    """Until it is acknowledged."""
    for _ in range(TRIES):
        try:
            await session.push(text, "x" * 500, key=text)
        except SessionActorError:
            await asyncio.sleep(0.02)
        else:
            return
    raise TimeoutError(text)


async def main() -> None:
    async with opened() as service:
        await push(await service.session("a", create=True), "first")
        stop()
        for number in range(PUSHES):
            await push(await service.session("a"), str(number))
        async with asyncio.timeout(20):
            while service.health().store.live_segments > 1:  # noqa: ASYNC110 - nobody tells
                await asyncio.sleep(0.01)
    async with opened() as service:
        stack = await (await (await service.session("a")).stack()).load()
    print(json.dumps([["first", *map(str, range(PUSHES))], [frame.user_input for frame in stack]]))  # noqa: T201


cutter.RETRY_S = 0.05
asyncio.run(main())
