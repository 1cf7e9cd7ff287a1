"""How long one push at `written` holds the event loop: quiet, beside constant syncs, and while segments are cut."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from time import perf_counter_ns
from typing import TYPE_CHECKING, Any

from bench.harness import FLOOR, OURS, Options, Report, Sample, percentile
from bench.stores import disk_service, pusher
from bench.targets import limit

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Coroutine, Generator

    from session_actor import SessionService
    from session_actor.persistence import Level

HELD_US = 1_000.0
STORM_SESSIONS = 50
CUT_SEGMENT_BYTES = 256 * 1024
SPIN_NS = 30_000


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
    """Measure all three situations in turns, each in a store of its own; the best round of each counts.

    Other processes take the CPU away for milliseconds, whatever the loop does: a floor beside it spins as long as a
    push and touches no disk.
    """
    best: dict[tuple[str, str], list[int]] = {}
    for _ in range(options.pick(3, 1)):
        async with disk_service(options) as service:
            keep_best(best, (OURS, "quiet"), await held(service, options))
        async with disk_service(options) as service, pushing(service, "synced"):
            keep_best(best, (OURS, "sync storm"), await held(service, options))
        async with disk_service(options, segment_bytes=CUT_SEGMENT_BYTES) as service, pushing(service, "async"):
            keep_best(best, (OURS, "during cuts"), await held(service, options))
        keep_best(best, (FLOOR, "spinning"), spun(options))
    for (peer, variant), ordered in best.items():
        add(report, peer, variant, ordered)


def keep_best(best: dict[tuple[str, str], list[int]], key: tuple[str, str], ordered: list[int]) -> None:
    """Keep the round with the lowest p99.9."""
    if key not in best or percentile(ordered, 99.9) < percentile(best[key], 99.9):
        best[key] = ordered


def spun(options: Options) -> list[int]:
    """Return the nanoseconds of spins that should take `SPIN_NS` each, sorted."""
    spent: list[int] = []
    for _ in range(options.pick(5_000, 100)):
        begin = perf_counter_ns()
        while perf_counter_ns() - begin < SPIN_NS:
            pass
        spent.append(perf_counter_ns() - begin)
    return sorted(spent)


@asynccontextmanager
async def pushing(service: SessionService, level: Level) -> AsyncIterator[None]:
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


async def held(service: SessionService, options: Options) -> list[int]:
    """Push at written, one push a turn of the loop, and return the nanoseconds that each held it, sorted."""
    push = pusher(await service.session("held", create=True), "written")
    spent: list[int] = []
    for _ in range(options.pick(5_000, 100)):
        await Held(push(), spent)
        await asyncio.sleep(0)
    return sorted(spent)


def add(report: Report, peer: str, variant: str, ordered: list[int]) -> None:
    """Add what was found in one situation."""
    p50, p99, p999 = (percentile(ordered, percent) / 1e3 for percent in (50, 99, 99.9))
    mean = sum(ordered) / len(ordered) / 1e3
    report.add(peer, "loop held by a push at written", variant, 1, Sample(len(ordered), p50, mean, p99))
    report.count(peer, "loop held, p99.9 [us]", variant, 1, round(p999))
    report.count(peer, "loop held, longest [us]", variant, 1, round(ordered[-1] / 1e3))
    if peer == OURS:
        report.judge(limit(f"loop held by a push at written, p99.9, {variant}", p999, at_most=HELD_US, unit=" us"))
