"""Going through the past of a session: opening it, going to any record, what it holds in memory; listing a store.

Histories are made in children and closed; the floor reads the same files and parses each of their lines.
"""

from __future__ import annotations

import random
import tempfile
import tracemalloc
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Final

from bench import children
from bench.floors import read_and_parse_seconds
from bench.harness import FLOOR, OURS, Options, Report, Sample, percentile, shown, table
from bench.targets import limit
from session_actor.replay import Replay, read_store

if TYPE_CHECKING:
    from collections.abc import Callable

SESSION: Final = "session-0"
SEEK_US: Final = 100_000
LIST_S: Final = 1.0
MEMORY_BYTES: Final = 64 * 2**20


def run(options: Options) -> Report:
    """Run this bench."""
    report = Report("replay")
    with tempfile.TemporaryDirectory(prefix="bench-replay-", dir=options.directory) as directory:
        for frames in options.pick((10_000, 100_000), (300,)):
            history(report, Path(directory) / f"history-{frames}", frames, options)
        listing(report, Path(directory) / "many", options)
    return report


def history(report: Report, root: Path, frames: int, options: Options) -> None:
    """One session of so many frames."""
    children.start("grow", root, frames)
    lines, floor = min(
        (read_and_parse_seconds(sorted(root.rglob("*.ndjson"))) for _ in range(options.pick(3, 1))),
        key=lambda found: found[1],
    )
    report.rate(FLOOR, "read and parse", "one session", frames, n=lines, seconds=floor)
    begin = perf_counter()
    with read_store(root) as reader, Replay.of(reader, SESSION) as replay:
        spent = perf_counter() - begin
        report.rate(OURS, "open", "one session", frames, n=len(replay.seqs()), seconds=spent)
        choice = random.Random(frames)
        seeks = options.pick(400, 20)
        seqs = [choice.choice(replay.seqs()) for _ in range(seeks)]
        longest = timed(report, "go to any record", frames, [lambda seq=seq: replay.at(seq=seq) for seq in seqs])  # type: ignore[misc]
        timed(report, "step back", frames, [lambda: replay.step(-1)] * seeks)
        pairs = list(zip(seqs[::2], seqs[1::2], strict=True))
        timed(report, "diff of any two", frames, [lambda pair=pair: replay.diff(*pair) for pair in pairs])  # type: ignore[misc]
    report.judge(limit(f"go to any of {frames:,} records, the longest", longest, at_most=SEEK_US, unit=" us"))
    remember(report, root, frames)


def timed(report: Report, what: str, frames: int, calls: list[Callable[[], object]]) -> float:
    """Time single calls; returns the longest, in microseconds."""
    spent = []
    for call in calls:
        begin = perf_counter()
        call()
        spent.append((perf_counter() - begin) * 1e6)
    spent.sort()
    found = Sample(len(spent), percentile(spent, 50), sum(spent) / len(spent), percentile(spent, 99))
    report.add(OURS, what, "one session", frames, found)
    report.count(OURS, f"{what}, longest [us]", "one session", frames, round(spent[-1]))
    return spent[-1]


def remember(report: Report, root: Path, frames: int) -> None:
    """The most memory that opening and going about takes."""
    tracemalloc.start()
    try:
        with read_store(root) as reader, Replay.of(reader, SESSION) as replay:
            for seq in replay.seqs()[:: max(1, frames // 20)]:
                replay.at(seq=seq)
            peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    report.count(OURS, "memory at most [bytes]", "one session", frames, peak)
    report.judge(limit(f"memory for {frames:,} records", float(peak), at_most=MEMORY_BYTES, unit=" bytes"))


def listing(report: Report, root: Path, options: Options) -> None:
    """List a store of many sessions."""
    sessions = options.pick(10_000, 200)
    children.start("many", root, sessions, 3)
    begin = perf_counter()
    with read_store(root) as reader:
        found = sum(1 for _ in reader.sessions())
    spent = perf_counter() - begin
    report.rate(OURS, "list", "many sessions", sessions, n=found, seconds=spent)
    report.judge(limit(f"list {found:,} sessions", spent, at_most=LIST_S, unit=" s"))


def tables(report: Report) -> str:
    """Return the times and the memory as two tables."""
    times = [
        [result.peer, result.op, f"{result.depth:,}", shown(result.p50_us), shown(result.mean_us), shown(result.p99_us)]
        for result in report.results
        if result.mean_us is not None
    ]
    counts = [[result.op, f"{result.depth:,}", f"{result.n:,}"] for result in report.results if result.mean_us is None]
    first = table(
        "replay: microseconds (of open, list and the floor: for each record or session)",
        ["peer", "what", "records", "p50", "mean", "p99"],
        times,
    )
    return f"{first}\n{table('replay: at most', ['what', 'records', 'count'], counts)}"
