"""Many tasks that push at once: what asyncio itself takes for them, and what Python's garbage collector adds."""

from __future__ import annotations

import asyncio
import gc
from contextlib import contextmanager
from time import perf_counter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Generator


@contextmanager
def frozen_heap() -> Generator[None]:
    """Keep the collector from walking over all that lives now, as it is where full collections are rare."""
    gc.collect()
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()


async def futures_of_batches(tasks: int, each: int) -> float:
    """Return the seconds for each time that one of many tasks awaits a future, which a callback a turn resolves."""
    loop = asyncio.get_running_loop()
    waiting: list[asyncio.Future[None]] = []

    def resolve() -> None:
        nonlocal waiting
        batch, waiting = waiting, []
        for future in batch:
            future.set_result(None)

    async def one() -> None:
        for _ in range(each):
            future = loop.create_future()
            if not waiting:
                loop.call_soon(resolve)
            waiting.append(future)
            await future

    begin = perf_counter()
    await asyncio.gather(*(one() for _ in range(tasks)))
    return (perf_counter() - begin) / (tasks * each)
