"""The raw limits of this machine, measured in the same run as what stands on them."""

from __future__ import annotations

import asyncio
import os
from collections import deque
from time import perf_counter, perf_counter_ns, time_ns
from typing import TYPE_CHECKING, Any

import orjson

from session_actor import Frame

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from pathlib import Path

USER_INPUT = "How do I keep a conversation when the process dies?"
ASSISTANT_OUTPUT = "Write every change to a log before the next one, and replay the log at the start."
ASSUMPTIONS = ("one process per store",)
DECISIONS = ("append only",)


def new_frame(number: int) -> Frame:
    """Create the frame that a push of the reference's four fields makes."""
    at_us = time_ns() // 1000
    return Frame(number, number - 1 or None, number, at_us, USER_INPUT, ASSISTANT_OUTPUT, ASSUMPTIONS, DECISIONS)


class AwaitFloor:
    """Await of an empty coroutine: what any call of an async method costs."""

    async def get(self, _id: int) -> None:
        """Do nothing with one argument."""

    async def take(self) -> None:
        """Do nothing."""


class PushFloor:
    """What no push can do without: create the frame, add it to a table, append it to a queue, one await."""

    def __init__(self) -> None:
        """Start with an empty table."""
        self.table: list[Frame] = []
        self.queue: deque[Frame] = deque()
        self.head = 0

    async def push(self) -> Frame:
        """Push one frame."""
        frame = new_frame(self.head + 1)
        self.table.append(frame)
        self.queue.append(frame)
        self.head = frame.id
        return frame

    async def drain(self, _count: int) -> None:
        """Forget the queue, as a writer would."""
        self.queue.clear()


class ListFloor:
    """A conversation without table, log or actor: frames in a list behind one await."""

    def __init__(self, depth: int) -> None:
        """Start with so many frames."""
        self._frames = [new_frame(number) for number in range(1, depth + 1)]

    async def push(self) -> Frame:
        """Make a frame and add it."""
        frame = new_frame(len(self._frames) + 1)
        self._frames.append(frame)
        return frame

    async def pop(self) -> Frame:
        """Take the newest frame away."""
        return self._frames.pop()

    async def get(self, index: int) -> Frame:
        """Return a frame."""
        return self._frames[index]

    async def stack(self) -> list[Frame]:
        """Return the frames, as a copy that the caller may keep."""
        return self._frames.copy()

    async def push_many(self, count: int) -> None:
        """Push so many frames."""
        for _ in range(count):
            await self.push()

    async def pop_many(self, count: int) -> None:
        """Pop so many frames."""
        del self._frames[-count:]


class RawServer:
    """A deque and a Future per call, one task that serves: the least that a queued call can be."""

    def __init__(self, *, asynchronous: bool = False) -> None:
        """Start the serving task on the running loop; `asynchronous`: with an async handler."""
        self._queue: deque[tuple[object, asyncio.Future[object]]] = deque()
        self._loop = asyncio.get_running_loop()
        self._waiter: asyncio.Future[None] | None = None
        self._task = self._loop.create_task(self._serve_async() if asynchronous else self._serve())

    async def call(self) -> object:
        """Send one message and wait for its reply."""
        future: asyncio.Future[object] = self._loop.create_future()
        self._queue.append(("echo", future))
        if self._waiter is not None:
            self._waiter.set_result(None)
            self._waiter = None
        return await future

    async def close(self) -> None:
        """Cancel the serving task and wait for its end."""
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)

    async def _serve(self) -> None:
        queue = self._queue
        while True:
            if not queue:
                self._waiter = self._loop.create_future()
                await self._waiter
            message, future = queue.popleft()
            if not future.done():
                future.set_result(_echo(message))

    async def _serve_async(self) -> None:
        queue = self._queue
        while True:
            if not queue:
                self._waiter = self._loop.create_future()
                await self._waiter
            message, future = queue.popleft()
            if not future.done():
                future.set_result(await _async_echo(message))


def _echo(message: object) -> object:
    return message


async def _async_echo(message: object) -> object:
    return message


def raw_cast_seconds(count: int, limit: int, handler: Callable[[Any], object]) -> float:
    """Return the seconds for `count` messages through a bounded deque into a handler."""
    queue: deque[object] = deque()
    start = perf_counter()
    for number in range(count):
        if len(queue) >= limit:
            while queue:
                handler(queue.popleft())
        queue.append(number)
    while queue:
        handler(queue.popleft())
    return perf_counter() - start


def write_seconds(path: Path, batches: Iterable[bytes], *, sync: bool) -> float:
    """Return the seconds for writing pre-encoded batches to one file, each followed by fdatasync when `sync`."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    try:
        start = perf_counter()
        for batch in batches:
            os.write(descriptor, batch)
            if sync:
                os.fdatasync(descriptor)
        return perf_counter() - start
    finally:
        os.close(descriptor)


def lone_sync_ns(path: Path, line: bytes, count: int) -> list[int]:
    """Return the nanoseconds of each of `count` single records written and synced in this thread."""
    spent: list[int] = []
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    try:
        for _ in range(count):
            start = perf_counter_ns()
            os.write(descriptor, line)
            os.fdatasync(descriptor)
            spent.append(perf_counter_ns() - start)
    finally:
        os.close(descriptor)
    return spent


def file_per_session_seconds(directory: Path, line: bytes, sessions: int) -> float:
    """Return the seconds for one record to each of `sessions` files, each with its own fdatasync."""
    paths = [directory / f"session-{number}" for number in range(sessions)]
    for path in paths:
        path.touch()
    start = perf_counter()
    for path in paths:
        descriptor = os.open(path, os.O_WRONLY | os.O_APPEND)
        os.write(descriptor, line)
        os.fdatasync(descriptor)
        os.close(descriptor)
    return perf_counter() - start


def read_and_parse_seconds(paths: Sequence[Path]) -> tuple[int, float]:
    """Return how many lines the files hold and the seconds to read them and to parse each with orjson.

    NUL begins what was preallocated and never written.
    """
    start = perf_counter()
    lines = 0
    for path in paths:
        for line in path.read_bytes().partition(b"\0")[0].splitlines():
            value: Any = orjson.loads(line)
            lines += value is not None
    return lines, perf_counter() - start
