"""How long one push at `written` holds the event loop: quiet, beside constant syncs, and while segments are cut."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from time import perf_counter_ns
from typing import TYPE_CHECKING, Any

from bench.harness import OURS, Options, Report, Sample, percentile
from bench.stores import disk_service, pusher
from bench.targets import limit

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Coroutine, Generator

    from session_actor import SessionService

HELD_US = 1_000.0
STORM_SESSIONS = 50
CUT_SEGMENT_BYTES = 256 * 1024


class Held:
    """Awaits a coroutine and notes the nanoseconds of its first step: until it ends or gives the loop away."""

    def __init__(self, work: Coroutine[Any, Any, object], spent: list[int]) -> None:
        """Wrap `work`; the time goes to `spent`."""
        self._work = work
        self._spent = spent

    def __await__(self) -> Generator[Any, Any, object]:
        """Step the coroutine, timing the first step."""
        steps = self._work.__await__()
        begin = perf_counter_ns()
        try:
            waited_for = steps.send(None)
        except StopIteration as done:
            self._spent.append(perf_counter_ns() - begin)
            return done.value
        self._spent.append(perf_counter_ns() - begin)
        while True:
            try:
                waited_for = steps.send((yield waited_for))
            except StopIteration as done:
                return done.value


async def measure(report: Report, options: Options) -> None:
    """Measure all three situations, each in a store of its own."""
    async with disk_service(options) as service:
        await holds_of(report, service, "quiet", options)
    async with disk_service(options) as service, pushing(service, "synced"):
        await holds_of(report, service, "sync storm", options)
    async with disk_service(options, segment_bytes=CUT_SEGMENT_BYTES) as service, pushing(service, "async"):
        await holds_of(report, service, "during cuts", options)


@asynccontextmanager
async def pushing(service: SessionService, level: str) -> AsyncIterator[None]:
    """Let many other sessions push at a level all the time."""

    async def one(push: Callable[[], Coroutine[Any, Any, object]]) -> None:
        while True:
            await push()
            await asyncio.sleep(0.001 if level == "async" else 0)

    opened = [await service.session(f"other-{number}", create=True) for number in range(STORM_SESSIONS)]
    tasks = [asyncio.ensure_future(one(pusher(session, level))) for session in opened]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def holds_of(report: Report, service: SessionService, variant: str, options: Options) -> None:
    """Push at written, one push a turn of the loop, and add how long each held it."""
    push = pusher(await service.session("held", create=True), "written")
    spent: list[int] = []
    for _ in range(options.pick(10_000, 100)):
        await Held(push(), spent)
        await asyncio.sleep(0)
    ordered = sorted(spent)
    p50, p999 = percentile(ordered, 50) / 1e3, percentile(ordered, 99.9) / 1e3
    mean, p99 = sum(ordered) / len(ordered) / 1e3, percentile(ordered, 99) / 1e3
    report.add(OURS, "loop held by a push at written", variant, 1, Sample(len(ordered), p50, mean, p99))
    report.count(OURS, "loop held, p99.9 [us]", variant, 1, round(p999))
    report.count(OURS, "loop held, longest [us]", variant, 1, round(ordered[-1] / 1e3))
    report.judge(limit(f"loop held by a push at written, p99.9, {variant}", p999, at_most=HELD_US, unit=" us"))
