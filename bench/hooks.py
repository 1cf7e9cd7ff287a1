"""Hooks: what they cost a push and an end, how soon and how many run, and a restart that finds some pending."""

from __future__ import annotations

import asyncio
import tempfile
from itertools import count
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Final

from bench.floors import USER_INPUT
from bench.harness import OURS, Options, Plan, Report, Work, alternate, shown, side, table
from bench.targets import limit, ratio
from session_actor import FileStore, Hook, SessionService

if TYPE_CHECKING:
    from session_actor import HookContext
    from session_actor.hooks.hook import Phase

PHASES: Final[tuple[Phase, ...]] = (
    *("created", "activated", "passivated", "before_compaction", "after_compaction", "ended"),
)
PUSH_RATIO: Final = 1.5
RESTART_S: Final = 0.25
PENDING: Final = 10


async def nothing(ctx: HookContext) -> None:
    """A hook that costs nothing itself."""


def must(number: int) -> list[Hook]:
    """So many hooks that must run."""
    return [Hook(f"must-{each}", nothing, "ended", mandatory=True) for each in range(number)]


HOOKS: Final = {
    "none": [],
    "one of each phase": [Hook(phase, nothing, phase) for phase in PHASES],
    "three mandatory": must(3),
}


def run(options: Options) -> Report:
    """Run this bench."""
    report = Report("hooks")
    with tempfile.TemporaryDirectory(prefix="bench-hooks-", dir=options.directory) as directory:
        asyncio.run(measure(report, Path(directory), options))
        asyncio.run(restart(report, Path(directory) / "restart", options))
    return report


async def measure(report: Report, root: Path, options: Options) -> None:
    """Push and end, without hooks and with them, by turns; then many ends at once."""
    services = {name: SessionService.open(root / name, hooks=hooks) for name, hooks in HOOKS.items()}
    for service in services.values():
        await service.start()
    plan = options.plan
    pushes = {name: side(await pushing(service), plan) for name, service in services.items()}
    for name, found in (await alternate(pushes, plan.rounds)).items():
        report.add(OURS, "push", name, 1, found)
    few = Plan(options.pick(20, 5), options.pick(10, 2), options.pick(200, 10), plan.rounds)
    ends = {name: side(ending(service), few) for name, service in services.items()}
    for name, found in (await alternate(ends, few.rounds)).items():
        report.add(OURS, "end, written", name, 1, found)
    pushed = [report.p50(OURS, "push", name, 1) for name in ("one of each phase", "none")]
    report.judge(ratio("push with hooks / without", pushed[0], pushed[1], at_most=PUSH_RATIO))
    await drained(report, services["three mandatory"], options.pick(1_000, 50))
    for service in services.values():
        await service.close()


async def pushing(service: SessionService) -> Work:
    """Pushes to one session."""
    session = await service.session("pushed", create=True)

    async def settle(_count: int) -> None:
        await session.flush("written")

    return Work(lambda: session.push(USER_INPUT), settle, settle)


def ending(service: SessionService) -> Work:
    """Ends of sessions that are loaded."""
    made, used = count(), count()

    async def make(number: int) -> None:
        for _ in range(number):
            await service.session(f"ended-{next(made)}", create=True)
        await idle(service)

    async def wait(_count: int) -> None:
        await idle(service)

    return Work(lambda: service.end(f"ended-{next(used)}", durability="written"), make, wait)


async def idle(service: SessionService) -> None:
    """Wait until nothing is pending."""
    while service.health().hooks.pending:  # noqa: ASYNC110 - what is measured is the service without a listener
        await asyncio.sleep(0)


async def drained(report: Report, service: SessionService, sessions: int) -> None:
    """Many sessions that end at once, until all of their hooks are done."""
    for number in range(sessions):
        await service.session(f"many-{number}", create=True)
    begin = perf_counter()
    await asyncio.gather(*(service.end(f"many-{number}", timeout_s=None) for number in range(sessions)))
    await idle(service)
    spent = perf_counter() - begin
    report.rate(OURS, "end and run, many at once", "three mandatory", sessions, n=3 * sessions, seconds=spent)


async def restart(report: Report, root: Path, options: Options) -> None:
    """Open a store of many sessions of which a few have pending hooks, until these are done."""
    sessions: int = options.pick(10_000, 200)

    async def fail(ctx: HookContext) -> None:
        raise RuntimeError(ctx.phase)

    async with SessionService.open(
        FileStore(root, cut_at_close=2 * sessions),  # all in their journals: what is timed is the hooks, not the log
        hooks=[Hook("must-0", fail, "ended", mandatory=True)],
        close_timeout_s=60.0,
    ) as service:
        for number in range(sessions):
            await service.session(f"user-{number}", create=True)
        for number in range(PENDING):
            await service.end(f"user-{number}")
    begin = perf_counter()
    async with SessionService.open(root) as service:
        opened = perf_counter() - begin
    async with SessionService.open(root, hooks=must(1)) as service:
        begin = perf_counter()
        await idle(service)
        spent = perf_counter() - begin
    report.rate(OURS, "open", "no hooks", sessions, n=1, seconds=opened)
    report.rate(OURS, "run what is pending, once open", f"{PENDING} pending", sessions, n=1, seconds=spent)
    report.judge(limit(f"run {PENDING} pending among {sessions:,} sessions", spent, at_most=RESTART_S, unit=" s"))


def tables(report: Report) -> str:
    """Return the times as one table."""
    rows = [
        [
            result.op,
            result.variant,
            f"{result.depth:,}",
            shown(result.p50_us),
            shown(result.mean_us),
            shown(result.p99_us),
        ]
        for result in report.results
    ]
    return table("hooks: microseconds", ["what", "hooks", "sessions", "p50", "mean", "p99"], rows)
