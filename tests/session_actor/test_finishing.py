"""Work that is done to its end, whatever becomes of who waits for it."""

from __future__ import annotations

import asyncio
import gc

import pytest

from session_actor.service.finishing import to_its_end


async def test_what_the_work_returns_is_returned():
    async def work() -> str:
        await asyncio.sleep(0)
        return "done"

    assert await to_its_end(work()) == "done"


async def test_what_the_work_raises_is_raised():
    async def work() -> None:
        raise LookupError("it had to happen")

    with pytest.raises(LookupError, match="it had to happen"):
        await to_its_end(work())


async def test_however_often_the_caller_is_cancelled_the_work_is_done_and_then_that_is_raised():
    go_on, done = asyncio.Event(), asyncio.Event()

    async def work() -> None:
        await go_on.wait()
        done.set()

    caller = asyncio.create_task(to_its_end(work()))
    for _ in range(3):
        await asyncio.sleep(0)
        caller.cancel()
    await asyncio.sleep(0)
    assert not caller.done()
    go_on.set()
    with pytest.raises(asyncio.CancelledError):
        await caller
    assert done.is_set()


async def test_work_that_nobody_waits_for_any_more_is_not_collected():
    done = asyncio.Event()

    async def work() -> None:
        await asyncio.sleep(0)
        done.set()

    waiting = to_its_end(work())
    waiting.send(None)
    waiting.close()
    del waiting
    gc.collect()
    await done.wait()
