"""The log: records per second at each level, a burst and a long run over several cuts, and how long the loop is held.

A batch is one record of each session. The floor writes batches of as many bytes to one file, encoded before the clock
starts; its `written` is the write alone, its `synced` adds fdatasync to each batch, its `async` puts them into a queue
in memory. Ours is measured at three heights: `lines` hands such batches to the store's own file and thread, `store`
appends records whose data is encoded already (the line with its numbers and sums is made by the store), `public API`
pushes through the sessions.

`a task a session, a future a push` is what asyncio itself takes for so many tasks that wait so often; a full run of the
garbage collector, which walks over all sessions, falls into it as into ours. `heap frozen`: the same without that.

Beside it SQLite in WAL mode: synchronous=NORMAL keeps what `written` keeps, synchronous=FULL what `synced` keeps; a
transaction a row, as libraries use it, and a transaction a batch, the least that SQLite can do.
"""

from __future__ import annotations

import asyncio
import tempfile
from collections import deque
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from time import perf_counter, time_ns
from typing import TYPE_CHECKING, Any

import msgspec

from bench import holds, pressure
from bench.crowd import frozen_heap, futures_of_batches
from bench.floors import (
    ASSISTANT_OUTPUT,
    ASSUMPTIONS,
    DECISIONS,
    USER_INPUT,
    file_per_session_seconds,
    lone_sync_ns,
    write_seconds,
)
from bench.harness import FLOOR, OURS, Options, Report, Sample, Work, percentile, sample, shown, table
from bench.peer_rates import Spent, peer_rates, sqlite_rates
from bench.peer_stores import AGENTS, LANGGRAPH, SQLITE
from bench.stores import disk_service, pusher
from bench.targets import ratio, ratio_at_least
from session_actor.persistence import FileStore
from session_actor.persistence.files.disk_thread import DiskThread
from session_actor.persistence.files.storage import OsDisk

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Coroutine

    from bench.peer_rates import Found
    from session_actor import Session
    from session_actor.persistence import Lease, Level

SESSIONS = (1, 100, 1_000, 10_000)
LEVELS: tuple[Level, ...] = ("async", "written", "synced")
IN_FLIGHT = 4
TASKS = "a task a session, a future a push"
CUTS = 4
DATA = msgspec.Raw(
    msgspec.json.encode(
        {
            "user_input": USER_INPUT,
            "assistant_output": ASSISTANT_OUTPUT,
            "assumptions": ASSUMPTIONS,
            "decisions": DECISIONS,
        }
    )
)
DATA_BYTES = len(bytes(DATA))
# A log line around that: numbers, sums, session and birth.
LINE = bytes(DATA) + b" " * 200 + b"\n"


def batches_for(sessions: int, level: str, options: Options) -> int:
    """Return how many batches to measure: about a second's worth at most."""
    if sessions == 1:
        return options.pick(200 if level == "synced" else 5_000, 20)
    records: int = options.pick(20_000, 500)
    return max(2, records // sessions)


def run(options: Options) -> Report:
    """Run this bench."""
    report = Report("journal")
    for sessions in options.pick(SESSIONS, (1, 50)):
        asyncio.run(rates(report, sessions, options))
    judge(report, options)
    judge_peers(report)
    asyncio.run(lone(report, options))
    asyncio.run(sustained(report, options))
    asyncio.run(holds.measure(report, options))
    pressure.measure(report, options)
    return report


async def rates(report: Report, sessions: int, options: Options) -> None:
    """Let floor, store and public API take turns at one number of sessions, at every level."""
    best: Found = {}
    async with open_store(options) as store, disk_service(options) as service:
        leases = [await store.acquire(f"session-{number}", create=True) for number in range(sessions)]
        for lease in leases:
            await store.load(lease)
        opened = [await service.session(f"session-{number}", create=True) for number in range(sessions)]
        for _ in range(options.pick(3, 1)):
            for level in LEVELS:
                batches = batches_for(sessions, level, options)
                spent = {
                    (OURS, f"store at {level}"): await through_store(store, leases, batches, level),
                    (OURS, f"public API at {level}"): await push_all(opened, batches, level),
                    **floors_of(sessions, batches, level, options),
                }
                if level == "async":
                    spent[FLOOR, TASKS] = await futures_of_batches(sessions, batches)
                spent |= await with_frozen_heap(opened, batches, level)
                if level == "synced":
                    spent[OURS, "lines at synced"] = await lines(sessions, batches, options)
                found = {key: Spent(per_record, sessions * batches) for key, per_record in spent.items()}
                found |= sqlite_rates(sessions, batches, level, bytes(DATA), options)
                best |= {key: min(one, best.get(key, one)) for key, one in found.items()}
            found = await peer_rates(sessions, options)
            best |= {key: min(one, best.get(key, one)) for key, one in found.items()}
    for (peer, op), (per_record, records) in best.items():
        report.rate(peer, op, "burst", sessions, n=records, seconds=per_record * records)


async def with_frozen_heap(opened: list[Session], batches: int, level: Level) -> dict[tuple[str, str], float]:
    """Return the seconds a push of many sessions, and of the tasks alone, when the collector leaves the heap alone."""
    if len(opened) == 1:
        return {}
    with frozen_heap():
        found = {(OURS, f"public API at {level}, heap frozen"): await push_all(opened, batches, level)}
        if level == "async":
            found[FLOOR, f"{TASKS}, heap frozen"] = await futures_of_batches(len(opened), batches)
    return found


def queue_seconds(batches: int, sessions: int) -> float:
    """Return the seconds for putting one line of each session into a queue, batch by batch."""
    queue: deque[bytes] = deque()
    begin = perf_counter()
    for _ in range(batches):
        for _ in range(sessions):
            queue.append(LINE)
    return perf_counter() - begin


def floors_of(sessions: int, batches: int, level: str, options: Options) -> dict[tuple[str, str], float]:
    """Return the seconds a record of the floors: a queue, one file, and at `synced` also a file for each session."""
    if level == "async":
        return {(FLOOR, "queue in memory at async"): queue_seconds(batches, sessions) / (sessions * batches)}
    found: dict[tuple[str, str], float] = {}
    with tempfile.TemporaryDirectory(prefix="bench-floor-", dir=options.directory) as folder:
        directory = Path(folder)
        seconds = write_seconds(directory / "log", [LINE * sessions] * batches, sync=level == "synced")
        found[FLOOR, f"one file at {level}"] = seconds / (sessions * batches)
        if level == "synced":
            files = min(sessions, 200)
            found[FLOOR, "a file per session at synced"] = file_per_session_seconds(directory, LINE, files) / files
    return found


async def lines(sessions: int, batches: int, options: Options) -> float:
    """Return the seconds a record to write and sync finished lines by the store's own file and thread."""
    batch = LINE * sessions
    with tempfile.TemporaryDirectory(prefix="bench-lines-", dir=options.directory) as directory:
        thread = DiskThread("bench", asyncio.get_running_loop())
        file = OsDisk().open(str(Path(directory) / "log"), create=True)
        file.preallocate(len(batch) * batches)
        file.sync()

        def write_and_sync(offset: int) -> None:
            file.write(batch, offset)
            file.sync()

        begin = perf_counter()
        for number in range(batches):
            await thread.run(partial(write_and_sync, number * len(batch)))
        spent = perf_counter() - begin
        thread.end()
        file.close()
    return spent / (batches * sessions)


@asynccontextmanager
async def open_store(options: Options) -> AsyncIterator[FileStore]:
    """Run a file store with its background jobs."""
    with tempfile.TemporaryDirectory(prefix="bench-log-", dir=options.directory) as directory:
        store = FileStore(Path(directory) / "store", backlog_records=1_000_000, backlog_bytes=2**30)
        await store.open()
        jobs = [asyncio.ensure_future(job()) for job in store.workers().values()]
        try:
            yield store
        finally:
            await store.close()
            for job in jobs:
                job.cancel()
            await asyncio.gather(*jobs, return_exceptions=True)


async def through_store(store: FileStore, leases: list[Lease], batches: int, level: Level) -> float:
    """Return the seconds a record to append batches of encoded data to the store, a few batches in flight."""
    begin = perf_counter()
    waiting: deque[asyncio.Future[None]] = deque()
    for _ in range(batches):
        append_batch(store, leases)
        if level == "async":
            continue
        waiting.append(asyncio.ensure_future(store.flush(level)))
        await asyncio.sleep(0)
        if len(waiting) == IN_FLIGHT:
            await waiting.popleft()
    for one in waiting:
        await one
    spent = perf_counter() - begin
    await store.flush("synced")
    return spent / (batches * len(leases))


def append_batch(store: FileStore, leases: list[Lease]) -> None:
    """Append one record of each session."""
    at_us = time_ns() // 1000
    for lease in leases:
        store.append(lease, lease.appended_seq + 1, at_us, "push", DATA, DATA_BYTES)


async def push_all(opened: list[Session], each: int, level: Level) -> float:
    """Return the seconds a record for every session to push so many frames, all sessions at once."""
    pushes = [partial(pusher(session, level), timeout_s=None) for session in opened]

    async def one(push: Callable[[], Coroutine[Any, Any, object]]) -> None:
        for _ in range(each):
            await push()

    begin = perf_counter()
    await asyncio.gather(*map(one, pushes))
    spent = perf_counter() - begin
    await opened[-1].flush("synced")
    return spent / (each * len(opened))


async def lone(report: Report, options: Options) -> None:
    """Measure a lone synced push beside write and fdatasync in the loop's own thread."""
    plan = options.pick(options.plan.of_batch(20), options.plan.of_batch(2))
    ours, floors = [], []
    async with disk_service(options) as service:
        push = pusher(await service.session("lone", create=True), "synced")
        with tempfile.TemporaryDirectory(prefix="bench-lone-", dir=options.directory) as directory:
            for _ in range(plan.rounds):
                ours.append(await sample(Work(push), plan))
                spent = sorted(lone_sync_ns(Path(directory) / "log", LINE, plan.batch * plan.batches))
                mean = sum(spent) / len(spent)
                floors.append(
                    Sample(len(spent), *(ns / 1e3 for ns in (percentile(spent, 50), mean, percentile(spent, 99))))
                )
    best = min(ours, key=lambda one: one.p50_us)
    floor = min(floors, key=lambda one: one.p50_us)
    report.add(OURS, "lone push at synced", "burst", 1, best)
    report.add(FLOOR, "lone write and fdatasync", "burst", 1, floor)
    report.judge(
        ratio("a lone synced push / write and fdatasync without a thread", best.p50_us, floor.p50_us, at_most=2.0)
    )


async def sustained(report: Report, options: Options) -> None:
    """Push at written until several cuts were made: the rate with cutting beside it."""
    sessions: int = options.pick(1_000, 20)
    async with disk_service(options, segment_bytes=options.pick(None, 64 * 1024)) as service:
        opened = [await service.session(f"session-{number}", create=True) for number in range(sessions)]
        pushes = [pusher(session, "written") for session in opened]
        cuts: set[int | None] = {None}
        pushed = 0
        begin = perf_counter()
        while len(cuts) <= CUTS:
            await asyncio.gather(*(push() for push in pushes))
            pushed += sessions
            cuts.add(service.health().store.last_cut_us)
        await opened[-1].flush("synced")
        spent = perf_counter() - begin
    rate = report.rate(OURS, "public API at written", f"sustained over {CUTS} cuts", sessions, n=pushed, seconds=spent)
    report.notes.append(f"sustained: {pushed:,} records over {CUTS} cuts, {rate:,.0f} a second, synced at the end")


def judge(report: Report, options: Options) -> None:
    """Add the verdicts on rates."""
    sessions = options.pick(1_000, 50)
    rate = partial(rate_of, report, sessions)
    floor, files = rate(FLOOR, "one file at synced"), rate(FLOOR, "a file per session at synced")
    finished, encoded = rate(OURS, "lines at synced"), rate(OURS, "store at synced")
    through = rate(OURS, "public API at synced")
    name = f"synced records, {sessions:,} sessions"
    report.judge(ratio_at_least(f"{name}: batches of finished lines / the floor", finished, floor, at_least=0.7))
    report.judge(ratio_at_least(f"{name}: records of encoded data / the floor", encoded, floor, at_least=0.7))
    report.judge(ratio_at_least(f"{name}: public API / the floor", through, floor, at_least=0.15))
    report.judge(ratio_at_least(f"{name}: public API / a file per session", through, files, at_least=3.0))
    row = rate(SQLITE, "a transaction a row at synced")
    report.judge(
        ratio_at_least(f"{name}: public API / SQLite at FULL, a transaction a row", through, row, at_least=3.0)
    )
    row, through = rate(SQLITE, "a transaction a row at written"), rate(OURS, "public API at written")
    name = f"written records, {sessions:,} sessions: public API / SQLite at NORMAL, a transaction a row"
    report.judge(ratio_at_least(name, through, row, at_least=1.0))


def judge_peers(report: Report) -> None:
    """Add the verdicts on the libraries that are installed: each keeps a question with its answer, one by one."""
    ours = rate_of(report, 1, OURS, "public API at synced")
    for peer in (AGENTS, LANGGRAPH):
        theirs = rate_of(report, 1, peer, "a question and an answer at synced")
        report.judge(ratio_at_least(f"synced exchanges, 1 session: public API / {peer}", ours, theirs, at_least=1.0))


def rate_of(report: Report, sessions: int, peer: str, op: str) -> float | None:
    """Return the rate of a peer with so many sessions; None when it was not measured."""
    for result in report.results:
        if (result.peer, result.op, result.depth) == (peer, op, sessions):
            return result.ops_per_s
    return None


def tables(report: Report) -> str:
    """Return rates and times as two tables."""
    rates_ = [
        [result.peer, result.op, result.variant, f"{result.depth:,}", f"{result.n:,}", shown(result.ops_per_s)]
        for result in report.results
        if result.p50_us is None and result.ops_per_s
    ]
    timed = [
        [result.peer, result.op, result.variant, shown(result.p50_us), shown(result.p99_us), f"{result.n:,}"]
        for result in report.results
        if result.p50_us is not None
    ]
    counted = [
        [result.peer, result.op, result.variant, f"{result.n:,}"] for result in report.results if result.mean_us is None
    ]
    return "\n".join(
        [
            table(
                "journal: records per second", ["peer", "what", "variant", "sessions", "records", "per second"], rates_
            ),
            table("journal: times in us", ["peer", "what", "variant", "p50", "p99", "n"], timed),
            table("journal: how long the loop is held, in us", ["peer", "what", "variant", "us"], counted),
        ]
    )
