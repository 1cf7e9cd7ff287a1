"""Handing over: how long a session, or a service, cannot answer; in one process, between two, and after a kill."""

from __future__ import annotations

import asyncio
import shutil
import sys
import tempfile
from pathlib import Path
from time import monotonic, perf_counter, process_time, sleep
from typing import TYPE_CHECKING

from bench.children import ROOT, start
from bench.floors import ASSISTANT_OUTPUT, USER_INPUT
from bench.harness import OURS, Options, Report, Sample, percentile, shown, table
from bench.targets import limit
from session_actor import HandedOver, SessionService, telemetry
from session_actor.handover.ready import import_all

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from session_actor import Session

IN_PROCESS_US = 1_000.0
ACROSS_MS = 100.0
AFTER_KILL_MS = 200.0
FRAMES = 20  # of each session that is handed over
SESSIONS = 100


def run(options: Options) -> Report:
    """Run this bench."""
    report = Report("handover")
    sessions: int = options.pick(SESSIONS, 20)
    with tempfile.TemporaryDirectory(prefix="bench-handover-", dir=options.directory) as directory:
        root = Path(directory)
        asyncio.run(in_process(root / "process", sessions, options, report))
        across = [asyncio.run(between(root / f"across-{turn}", sessions)) for turn in range(options.pick(7, 1))]
        note_across(across, sessions, report)
        after_kill(root, options, report)
    return report


# --- in one process ---


async def in_process(root: Path, sessions: int, options: Options, report: Report) -> None:
    """Hand a service over again and again, while each session is pushed to; the round that was disturbed least counts.

    A processor that is taken away for some milliseconds stops whatever runs, a handover, too.
    """
    rounds: list[tuple[list[float], list[float]]] = []
    gaps: list[float] = []
    waits: list[float] = []
    enough = asyncio.Event()

    def hear(_name: Sequence[str], measurements: Mapping[str, float], _metadata: Mapping[str, object]) -> None:
        gaps.append(measurements["gap_us"])

    async def push(session: Session) -> None:
        while not enough.is_set():
            begun_s = perf_counter()
            await session.push(USER_INPUT, ASSISTANT_OUTPUT)
            waits.append((perf_counter() - begun_s) * 1e6)
            await asyncio.sleep(0.01)

    service = SessionService.open(root, idle_timeout_s=None)
    await service.start()
    detach = telemetry.attach(("session_actor", "handover", "session"), hear)
    pushing = [asyncio.create_task(push(session)) for session in await filled(service, sessions)]
    for _ in range(options.pick(8, 1)):
        gaps.clear()
        waits.clear()
        for _ in range(options.pick(5, 2)):
            heir = SessionService.take(await service.handover(), idle_timeout_s=None)
            await heir.start()
            service = heir
            await asyncio.sleep(0.02)
        rounds.append((sorted(gaps), sorted(waits)))
    enough.set()
    await asyncio.gather(*pushing)
    detach()
    await service.close()
    best_gaps, best_waits = min(rounds, key=lambda one: percentile(one[0], 99))
    gap = add(report, "gap of a session", "in process", sessions, best_gaps)
    add(report, "push meanwhile", "in process", sessions, best_waits)
    report.judge(limit("gap of a session in process, p99", gap.p99_us, at_most=IN_PROCESS_US, unit=" us"))


async def filled(service: SessionService, sessions: int) -> list[Session]:
    """Return sessions with some frames each."""
    made = [await service.session(f"s{number}", create=True) for number in range(sessions)]
    for session in made:
        for _ in range(FRAMES):
            await session.push(USER_INPUT, ASSISTANT_OUTPUT)
    return made


def add(report: Report, op: str, variant: str, depth: int, microseconds: list[float]) -> Sample:
    """Add single times."""
    ordered = sorted(microseconds)
    mean = sum(ordered) / len(ordered)
    sample = Sample(len(ordered), percentile(ordered, 50), mean, percentile(ordered, 99))
    return report.add(OURS, op, variant, depth, sample)


# --- between two processes ---


async def between(root: Path, sessions: int) -> tuple[float, float, float, float]:
    """Hand a service over to a process that waits for it.

    Returns milliseconds since the last answer of the old one: until the new one had the store, until it had answered a
    call, and until it had answered one of each session; and the processor time that both took for it: on a machine with
    nothing else to do it takes little longer.
    """
    service = SessionService.open(root, idle_timeout_s=None)
    await service.start()
    made = await filled(service, sessions)
    heir = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "bench.handover", root, str(sessions), cwd=ROOT, stdout=asyncio.subprocess.PIPE
    )
    out = heir.stdout
    assert out is not None  # noqa: S101 - it was asked for
    await out.readline()
    await asyncio.sleep(0.05)
    begun_cpu_s = process_time()
    handing = asyncio.create_task(service.handover("process"))
    answered_s = await until_refused(made[0])
    await handing
    spent_s = process_time() - begun_cpu_s
    await service.close()
    opened_s, first_s, all_s, heir_cpu_s = (float(word) for word in (await out.readline()).split())
    await heir.wait()
    spent = (opened_s - answered_s, first_s - answered_s, all_s - answered_s, spent_s + heir_cpu_s)
    return spent[0] * 1e3, spent[1] * 1e3, spent[2] * 1e3, spent[3] * 1e3


async def until_refused(session: Session) -> float:
    """Push until the service is handed over; return when the last answer came [seconds]."""
    answered_s = monotonic()
    while True:
        try:
            await session.push(USER_INPUT, ASSISTANT_OUTPUT)
        except HandedOver:
            return answered_s
        answered_s = monotonic()
        await asyncio.sleep(0.001)


async def be_heir(root: str, sessions: int) -> None:
    """Wait for the store, push once to each session, and print when that was, by the clock that all processes share."""
    import_all()
    print("ready", flush=True)
    begun_cpu_s = process_time()
    async with SessionService.open(root, idle_timeout_s=None, lock_timeout_s=60) as service:
        opened_s = monotonic()
        ended: list[float] = []

        async def push(name: str) -> None:
            await (await service.session(name)).push(USER_INPUT, ASSISTANT_OUTPUT)
            ended.append(monotonic())

        await asyncio.gather(*(push(f"s{number}") for number in range(sessions)))
        print(opened_s, min(ended), max(ended), process_time() - begun_cpu_s, flush=True)


def note_across(across: list[tuple[float, float, float, float]], sessions: int, report: Report) -> None:
    """Add the best of the turns, which says least of what else the machine did."""
    best = min(across, key=lambda turn: turn[2])
    ops = ("until it is open", "until a call is answered", "until all are", "processor time of both")
    for op, spent_ms in zip(ops, best, strict=True):
        report.rate(OURS, op, "across processes", sessions, n=1, seconds=spent_ms / 1e3)
    name = f"gap across processes until {sessions} live sessions have all answered"
    report.judge(limit(name, best[2], at_most=ACROSS_MS, unit=" ms"))


# --- after a kill ---


def after_kill(root: Path, options: Options, report: Report) -> None:
    """Kill a process that pushed, and time until its session answers in another one."""
    frames = options.pick(1_000, 200)
    start("kill", "written", frames, root / "killed", killed=True)
    spent: list[float] = []
    for turn in range(options.pick(5, 1)):
        copy = Path(shutil.copytree(root / "killed", root / f"killed-{turn}"))
        sleep(0.1)
        spent.append(asyncio.run(answer_ms(copy)))
    report.rate(OURS, "until a call is answered", "after kill -9", frames, n=1, seconds=min(spent) / 1e3)
    name = f"from opening to an answer after kill -9, a session of {frames:,} frames"
    report.judge(limit(name, min(spent), at_most=AFTER_KILL_MS, unit=" ms"))


async def answer_ms(root: Path) -> float:
    """Return the milliseconds from opening the store to the answer of a push."""
    begun_s = perf_counter()
    async with SessionService.open(root, idle_timeout_s=None) as service:
        await (await service.session("kill")).push(USER_INPUT, ASSISTANT_OUTPUT)
        return (perf_counter() - begun_s) * 1e3


def tables(report: Report) -> str:
    """Return the times as tables."""
    single = [
        [one.op, one.variant, f"{one.depth:,}", f"{one.n:,}", shown(one.p50_us), shown(one.p99_us)]
        for one in report.results
        if one.p99_us is not None
    ]
    whole = [
        [one.op, one.variant, f"{one.depth:,}", shown((one.mean_us or 0) / 1e3)]
        for one in report.results
        if one.p99_us is None
    ]
    first = table("handover: microseconds", ["what", "how", "sessions", "n", "p50", "p99"], single)
    return f"{first}\n{table('handover: milliseconds', ['what', 'how', 'sessions or frames', 'ms'], whole)}"


if __name__ == "__main__":
    asyncio.run(be_heir(sys.argv[1], int(sys.argv[2])))
