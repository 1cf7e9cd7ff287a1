"""The actor runtime: calls, casts, restarts, memory, and how long others must wait; beside raw floors and pykka.

A queued call goes through the mailbox and the server's own task, like every call that cannot run at once; it is put
there by hand, since an idle server would run it inline. A call with an async handler is always queued.
"""

from __future__ import annotations

import asyncio
import importlib
import tempfile
from collections.abc import Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from functools import partial
from time import perf_counter, perf_counter_ns, thread_time_ns
from typing import TYPE_CHECKING, Any

import msgspec

from bench import pykka_peer
from bench.beam import beam
from bench.children import start
from bench.figures import PYTHON_PEERS_US, beam_p50_us
from bench.floors import AwaitFloor, RawServer, raw_cast_seconds
from bench.harness import (
    BEAM,
    FLOOR,
    OURS,
    Options,
    Plan,
    Report,
    Sample,
    Work,
    alternate,
    percentile,
    sample,
    shown,
    table,
)
from bench.targets import limit, ratio, ratio_at_least
from session_actor.supervisors import (
    Backoff,
    Call,
    Cast,
    ChildSpec,
    DynamicSupervisor,
    GenServer,
    Intensity,
    MailboxSpec,
    ServerError,
    ServerRef,
    handles,
)

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

LONGEST_WAIT_MS = 10.0
IDLE_BYTES = 4096
Watch = Callable[[], Awaitable[tuple[list[int], int]]]


class Echo(msgspec.Struct, Call[int], frozen=True, gc=False):
    """Answered at once, by a sync handler."""


class AsyncEcho(msgspec.Struct, Call[int], frozen=True, gc=False):
    """Answered by an async handler."""


class Note(msgspec.Struct, Cast, frozen=True, gc=False):
    """Sent without waiting."""


class Crash(msgspec.Struct, Cast, frozen=True, gc=False):
    """Makes the server crash."""


class Echoer(GenServer):
    """The server that everything here talks to."""

    def __init__(self) -> None:
        """Start with nothing counted."""
        self.noted = 0

    @handles(Echo)
    def echo(self, _message: Echo) -> int:
        """Reply at once."""
        return 1

    @handles(AsyncEcho)
    async def async_echo(self, _message: AsyncEcho) -> int:
        """Reply from the server's task."""
        return 1

    @handles(Note)
    def note(self, _message: Note) -> None:
        """Count a cast."""
        self.noted += 1

    @handles(Crash)
    def crash(self, _message: Crash) -> None:
        """Crash."""
        raise RuntimeError("asked to crash")


@asynccontextmanager
async def echoer(mailbox: int = 10_000) -> AsyncIterator[ServerRef]:
    """Run one server that restarts at once and for ever."""
    spec = ChildSpec(
        "echoer",
        start=Echoer,
        mailbox=MailboxSpec(limit=mailbox, overflow="block"),
        intensity=Intensity(max_restarts=1_000_000, max_seconds=1.0),
        backoff=Backoff(initial_s=0.0, max_s=0.0, jitter=0.0),
    )
    async with DynamicSupervisor() as root:
        yield await root.start_child(spec)


def loops() -> dict[str, Callable[[], asyncio.AbstractEventLoop] | None]:
    """Return the kinds of event loop that are here: asyncio's own, and uvloop when it is installed."""
    found: dict[str, Callable[[], asyncio.AbstractEventLoop] | None] = {"asyncio": None}
    with suppress(ModuleNotFoundError):
        found["uvloop"] = importlib.import_module("uvloop").new_event_loop
    return found


def on_loop(factory: Callable[[], asyncio.AbstractEventLoop] | None, work: Callable[[], Awaitable[Any]]) -> Any:
    """Run a coroutine function on a new loop of a kind and return what it returns."""

    async def whole() -> Any:
        return await work()

    with asyncio.Runner(loop_factory=factory) as runner:
        return runner.run(whole())


def run(options: Options) -> Report:
    """Run this bench."""
    report = Report("actors")
    best: dict[tuple[str, str, str], Sample] = {}
    with beam() as (process, _):
        for _ in range(options.plan.rounds):
            for name, factory in loops().items():
                keep_best(best, on_loop(factory, partial(calls_round, name, options.plan)))
            if process is not None:
                keep_best(best, {(BEAM, "echo", "queued"): process.measure("echo", 1, options.plan)})
            keep_best(best, pykka_peer.calls(options.plan))
    for (peer, op, variant), found in best.items():
        report.add(peer, op, variant, 1, found)
    for name, factory in loops().items():
        casts(report, name, factory, options)
        waits(report, name, factory, options)
    restarts(report, options)
    memory(report, options)
    judge(report)
    return report


def keep_best(best: dict[tuple[str, str, str], Sample], found: dict[tuple[str, str, str], Sample]) -> None:
    """Keep of each side the round with the smallest median."""
    for key, one in found.items():
        if key not in best or one.p50_us < best[key].p50_us:
            best[key] = one


async def calls_round(loop_name: str, plan: Plan) -> dict[tuple[str, str, str], Sample]:
    """Measure one round of all call sides on this loop."""
    raw, raw_async = RawServer(), RawServer(asynchronous=True)
    async with echoer() as ref:

        def queued() -> Awaitable[int]:
            return ref.slot.enqueue_call(Echo(), 5.0).wait()

        sides: dict[tuple[str, str, str], Callable[[], Awaitable[Sample]]] = {
            (FLOOR, "await", loop_name): partial(sample, Work(AwaitFloor().take), plan),
            (FLOOR, "deque and future", loop_name): partial(sample, Work(raw.call), plan),
            (FLOOR, "deque, future, async handler", loop_name): partial(sample, Work(raw_async.call), plan),
            (OURS, "echo inline", loop_name): partial(sample, Work(partial(ref.call, Echo())), plan),
            (OURS, "echo queued", loop_name): partial(sample, Work(queued), plan),
            (OURS, "echo async handler", loop_name): partial(sample, Work(partial(ref.call, AsyncEcho())), plan),
        }
        found = await alternate(sides, 1)
    await raw.close()
    await raw_async.close()
    return found


def casts(
    report: Report, loop_name: str, factory: Callable[[], asyncio.AbstractEventLoop] | None, options: Options
) -> None:
    """Measure casts per second through a bounded mailbox, beside a bounded deque and the same handler."""
    count: int = options.pick(100_000, 5_000)
    seconds, floor = float("inf"), float("inf")
    for _ in range(options.plan.rounds):
        floor = min(floor, raw_cast_seconds(count, 10_000, Echoer().note))
        seconds = min(seconds, on_loop(factory, partial(cast_seconds, count)))
    ours = report.rate(OURS, "cast", loop_name, 1, n=count, seconds=seconds)
    raw = report.rate(FLOOR, "cast", loop_name, 1, n=count, seconds=floor)
    report.judge(ratio_at_least(f"casts on {loop_name} / a raw deque and handler", ours, raw, at_least=0.1))


async def cast_seconds(count: int) -> float:
    """Return the seconds from the first cast until the last was handled."""
    note, limit_ = Note(), 10_000
    async with echoer(limit_ + 1) as ref:
        begin = perf_counter()
        for _ in range(count // limit_ or 1):
            for _ in range(min(limit_, count)):
                ref.cast(note)
            await ref.call(AsyncEcho(), timeout_s=None)
        return perf_counter() - begin


def waits(
    report: Report, loop_name: str, factory: Callable[[], asyncio.AbstractEventLoop] | None, options: Options
) -> None:
    """Measure the longest wait of another coroutine: beside nothing, a long queue, and many inline callers.

    Other processes take this one's CPU away for milliseconds, which no code here can help: the longest is judged in
    CPU time of the loop's thread (nothing blocks in these rounds), and the best of several rounds counts.
    """
    queued: int = options.pick(200_000, 5_000)
    works: dict[tuple[str, str], Watch] = {
        (FLOOR, "wait beside nothing"): partial(wait_beside_nothing, options.pick(0.3, 0.01)),
        (OURS, f"wait beside {queued:,} queued"): partial(wait_beside_queue, queued),
        (OURS, "wait beside 200 callers"): partial(wait_beside_callers, 200, options.pick(2_000, 50)),
    }
    best: dict[tuple[str, str], list[int]] = {}
    cpu: dict[tuple[str, str], int] = {}
    for _ in range(options.plan.rounds):
        for key, work in works.items():
            turns, longest_cpu = on_loop(factory, work)
            best[key] = min(turns, best.get(key, turns), key=lambda found: found[-1])
            cpu[key] = min(longest_cpu, cpu.get(key, longest_cpu))
    for (peer, op), turns in best.items():
        n, longest_ms, longest_cpu_ms = len(turns), turns[-1] / 1e6, cpu[peer, op] / 1e6
        times = (percentile(turns, 50) / 1e3, sum(turns) / n / 1e3, percentile(turns, 99) / 1e3)
        report.add(peer, op, loop_name, 1, Sample(n, *times))
        report.count(peer, f"longest {op} [us]", loop_name, 1, round(longest_ms * 1e3))
        report.count(peer, f"longest {op} [us of CPU]", loop_name, 1, round(longest_cpu_ms * 1e3))
        if peer == OURS:
            report.judge(limit(f"longest {op} on {loop_name}", longest_cpu_ms, at_most=LONGEST_WAIT_MS, unit=" ms"))


async def wait_beside_nothing(duration_s: float) -> tuple[list[int], int]:
    """Return the waits of a coroutine that has the loop for itself."""
    return await watched(asyncio.sleep(duration_s))


async def watched(work: Awaitable[object]) -> tuple[list[int], int]:
    """Return the nanoseconds of another coroutine's waits while some work ran, sorted, and the longest in CPU time."""
    task = asyncio.ensure_future(work)
    turns: list[int] = []
    longest_cpu = 0
    while not task.done():
        begin, begin_cpu = perf_counter_ns(), thread_time_ns()
        await asyncio.sleep(0)
        turns.append(perf_counter_ns() - begin)
        longest_cpu = max(longest_cpu, thread_time_ns() - begin_cpu)
    await task
    return sorted(turns), longest_cpu


async def wait_beside_queue(queued: int) -> tuple[list[int], int]:
    """Return the waits of another coroutine while a long queue is worked off."""
    note = Note()
    async with echoer(queued + 1) as ref:
        for _ in range(queued):
            ref.cast(note)
        return await watched(ref.call(AsyncEcho(), timeout_s=None))


async def wait_beside_callers(callers: int, each: int) -> tuple[list[int], int]:
    """Return the waits of another coroutine while many callers call inline without a pause."""
    echo = Echo()

    async def busy(ref: ServerRef) -> None:
        for _ in range(each):
            await ref.call(echo)

    async with echoer() as ref:
        return await watched(asyncio.gather(*(busy(ref) for _ in range(callers))))


def restarts(report: Report, options: Options) -> None:
    """Measure the time from a crash to the first reply of the restarted server, without backoff."""
    plan: Plan = options.pick(Plan(20, 10, 100, 3), Plan(5, 2, 5, 1))
    report.add(OURS, "crash to reply", "asyncio", 1, asyncio.run(crash_to_reply(plan)))


async def crash_to_reply(plan: Plan) -> Sample:
    """Crash a server and call it until it answers, again and again."""
    async with echoer() as ref:

        async def crash_and_call() -> None:
            ref.cast(Crash())
            while True:
                try:
                    await ref.call(Echo())
                except ServerError:
                    continue
                return

        return (await alternate({0: partial(sample, Work(crash_and_call), plan)}, plan.rounds))[0]


def memory(report: Report, options: Options) -> None:
    """Measure the bytes of an idle live session: new ones in memory, and loaded ones whose frames are on the disk."""
    for sessions in options.pick((10_000, 100_000), (1_000,)):
        size, spent = (float(word) for word in start("idle", sessions).split())
        report.count(OURS, "bytes of an idle session", "memory store", sessions, round(size))
        report.rate(OURS, "start a session", "memory store", sessions, n=sessions, seconds=spent)
        report.judge(limit(f"an idle session of {sessions:,}", size, at_most=IDLE_BYTES, unit=" bytes"))
    loaded = options.pick(1_000, 100)
    for frames in options.pick((100, 300), (20,)):  # all are in memory, and the newest few: there is a snapshot
        with tempfile.TemporaryDirectory(prefix="bench-store-", dir=options.directory) as directory:
            start("many", directory, loaded, frames)
            size = float(start("loaded", directory, loaded))
        report.count(OURS, f"bytes of an idle session with {frames} frames", "loaded from disk", loaded, round(size))


def judge(report: Report) -> None:
    """Add the verdicts on calls."""
    for name in loops():
        ours, raw = report.p50(OURS, "echo queued", name, 1), report.p50(FLOOR, "deque and future", name, 1)
        report.judge(ratio(f"queued call on {name} / a raw deque and future", ours, raw, at_most=1.3))
    ours, theirs = report.p50(OURS, "echo inline", "asyncio", 1), report.p50(BEAM, "echo", "queued", 1)
    report.judge(ratio("echo inline / the BEAM's call", ours, theirs, at_most=0.8))


def tables(report: Report) -> str:
    """Return all figures as one table."""
    rows = [
        [
            result.peer,
            result.op,
            result.variant,
            f"{result.depth:,}",
            *(shown(value) for value in (result.p50_us, result.p99_us, result.ops_per_s)),
            f"{result.n:,}",
        ]
        for result in report.results
    ]
    figure = beam_p50_us("echo", 0)
    low, high = PYTHON_PEERS_US["echo"]
    beam_us = figure.value if figure else 0
    title = f"actors (to beat: call {beam_us} us on the BEAM, {low:g} to {high:g} us for Python peers)"
    return table(title, ["peer", "what", "variant", "servers", "p50 us", "p99 us", "per second", "n"], rows)
