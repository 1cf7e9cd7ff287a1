"""What is no number of seconds is refused before anything is done, and harms nobody else."""

from __future__ import annotations

import asyncio
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import pytest

from session_actor import InvalidArgument, MemoryStore, SessionService
from session_actor.server.snapshots import RESTING_RECORDS

if TYPE_CHECKING:
    from pathlib import Path

NO_TIMES = [Decimal("0.2"), Fraction(1, 5), 10**400, -(10**400), True, "1", -1.0, float("nan")]


@pytest.mark.parametrize("timeout_s", NO_TIMES, ids=lambda value: type(value).__name__)
async def test_no_session_is_touched_by_what_gives_no_time(timeout_s: Any) -> None:
    async with SessionService.open(MemoryStore()) as service:
        session = await service.session("s", create=True)
        frame = await session.push("a", "b")
        for refused in (
            lambda: session.push("c", timeout_s=timeout_s),
            lambda: session.flush(timeout_s=timeout_s),
            lambda: session.swap(timeout_s=timeout_s),
            lambda: session.swap(pause_s=timeout_s),
            lambda: session.exchange(timeout_s).__aenter__(),
            lambda: session.prepare_compaction(timeout_s=timeout_s),
            lambda: session.build_request("anthropic", model="claude-sonnet-4-5", timeout_s=timeout_s),
            lambda: service.session("new", create=True, timeout_s=timeout_s),
            lambda: service.fork("s", "new", timeout_s=timeout_s),
            lambda: service.end("s", timeout_s=timeout_s),
            lambda: service.delete("s", timeout_s=timeout_s),
        ):
            with pytest.raises(InvalidArgument, match="seconds"):
                await refused()
        assert await session.head() == frame.id
        assert [info.id async for info in service.sessions()] == ["s"]


@pytest.mark.parametrize("timeout_s", NO_TIMES, ids=lambda value: type(value).__name__)
async def test_a_session_on_the_disk_is_not_read_without_a_time(tmp_path: Path, timeout_s: Any) -> None:
    async with SessionService.open(tmp_path) as service:
        session = await service.session("s", create=True)
        frame = await session.push("a", "b")
        for number in range(RESTING_RECORDS):
            await session.push(f"{number}")
    async with SessionService.open(tmp_path) as service:
        session = await service.session("s")
        with pytest.raises(InvalidArgument, match="seconds"):
            await session.get(frame.id, timeout_s=timeout_s)
        assert await session.get(frame.id, timeout_s=float("inf")) == frame


async def test_a_time_without_end_is_one(tmp_path: Path) -> None:
    async with SessionService.open(tmp_path, close_timeout_s=float("inf"), idle_timeout_s=float("inf")) as service:
        session = await service.session("s", create=True, timeout_s=float("inf"))
        async with session.exchange(float("inf")):
            waiting = asyncio.create_task(session.exchange(float("inf")).__aenter__())
            await asyncio.sleep(0)
            assert (await session.push("a", timeout_s=float("inf"))).id == 1
        await waiting
