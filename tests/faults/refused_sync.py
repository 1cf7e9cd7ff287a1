"""Run as a process of its own: works with a store while one of its syncs fails, SQLite's own included.

    python refused_sync.py FOLDER NUMBER…

It has imported everything and forks a worker for each number: the worker stops itself until strace is there, which has
the sync of that number fail. All jobs of the store's threads run in one thread, so that the n-th sync is the same at
every run. Compares what was acknowledged with what is there afterwards, and looks for damage. Prints how many lives it
led, as JSON.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path

from forked import fork, freeze, wait
from kill_points import InlineDisk
from tracing import PATIENCE_S, stop, trace

from session_actor import FileStore, Session, SessionActorError, SessionService
from session_actor.persistence.checking.verify import check
from session_actor.persistence.cutting import cutter

PUSHES = 24
TRIES = 100


def opened(folder: Path) -> SessionService:
    store = FileStore(folder, segment_bytes=4_000, journal_bytes=5_000, disk=InlineDisk())
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


async def live(folder: Path, begin: Callable[[], None]) -> None:
    """Everything that is pushed is there, once."""
    async with opened(folder) as service:
        await push(await service.session("a", create=True), "first")
        begin()
        for number in range(PUSHES):
            await push(await service.session("a"), str(number))
        async with asyncio.timeout(20):
            while service.health().store.live_segments > 1:  # noqa: ASYNC110 - nobody tells
                await asyncio.sleep(0.01)
    async with opened(folder) as service:
        stack = await (await (await service.session("a")).stack()).load()
    assert [frame.user_input for frame in stack] == ["first", *map(str, range(PUSHES))]


def live_refused(folder: Path, number: int) -> None:
    """Lead a life whose sync of that number is refused."""

    def work(pipe: int) -> None:
        asyncio.run(live(folder, stop))
        os.write(pipe, b"!")

    pid, reader = fork(work)
    with trace(pid, "fsync,fdatasync", f"error=EIO:when={number}") as strace:
        ended = wait(pid, reader)
        strace.wait(PATIENCE_S)
    assert ended == (0, b"!"), f"sync {number}"
    findings = [str(finding) for finding in check(folder).list if finding.severity != "note"]
    assert findings == [], (number, findings)


if __name__ == "__main__":
    cutter.RETRY_S = 0.05  # type: ignore[misc]
    numbers = [int(number) for number in sys.argv[2:]]
    with contextlib.redirect_stdout(None):  # where the store's log lines go
        asyncio.run(live(Path(sys.argv[1]) / "whole", lambda: None))  # what is made at first use need not be made again
        freeze()
        for each in numbers:
            live_refused(Path(sys.argv[1]) / str(each), each)
    print(json.dumps({"lives": len(numbers)}))  # noqa: T201
