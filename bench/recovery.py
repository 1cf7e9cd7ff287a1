"""200 conversations, 17,400 frames with forks and checkpoints: what comes back, and how fast.

What 200 agents would ask a model next, in four dialects, is compared as well, byte for byte (`semantics`).

Measured after a clean close and after kill -9, each in copies of one store. The floor reads the same files and parses
each of their lines. `histories` adds what opening takes when a history, a store or its log is long.
"""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING

import msgspec

from bench import histories, semantics
from bench.beam import beam
from bench.children import start
from bench.conversations import Tally, compare, decode_expected
from bench.figures import BEAM_RECOVER_S, PAPER_RECOVERY_PERCENT
from bench.floors import read_and_parse_seconds
from bench.harness import BEAM, FLOOR, OURS, Options, Report, shown, table
from bench.targets import Verdict, exactly, ratio
from session_actor import SessionService

if TYPE_CHECKING:
    from bench.conversations import Expected

DIMENSIONS = ("fields", "frames", "order", "checkpoints", "branches", "times", "requests")
ENDS = ("clean", "kill")
SECONDS_PER_64_MB = 0.5


def run(options: Options) -> Report:
    """Run this bench."""
    report = Report("recovery")
    sessions, frames = options.pick((200, 87), (10, 30))
    with tempfile.TemporaryDirectory(prefix="bench-recovery-", dir=options.directory) as directory:
        seconds = {end: after(end, Path(directory), (sessions, frames), report, options) for end in ENDS}
        log_bytes = sum(path.stat().st_size for path in files_of(Path(directory) / "kill"))
    extra = seconds["kill"] - seconds["clean"]
    allowed = SECONDS_PER_64_MB * max(1.0, log_bytes / 2**26)
    report.verdicts.append(
        Verdict(f"recovery after a kill: extra time, {log_bytes / 2**20:.1f} MB", extra, allowed, unit=" s")
    )
    with tempfile.TemporaryDirectory(prefix="bench-histories-", dir=options.directory) as directory:
        histories.measure(report, Path(directory), options)
    with beam() as (process, _):
        if process is not None:
            found, spent = process.recover(sessions, frames)
            report.rate(BEAM, "recover", "clean", frames, n=found, seconds=spent)
            report.judge(ratio("recovery / the BEAM's", seconds["clean"], spent, at_most=0.8))
    return report


def after(end: str, directory: Path, size: tuple[int, int], report: Report, options: Options) -> float:
    """Build a store in a child that ends so, recover copies of it, compare once; return the best seconds."""
    sessions, frames = size
    root, expected = directory / end, directory / f"{end}.json"
    start("build", sessions, frames, root, expected, end, killed=end == "kill")
    wanted = decode_expected(expected.read_bytes())
    tally = Tally()
    best = {"one by one": float("inf"), "together": float("inf"), FLOOR: float("inf")}
    lines = 0
    for turn in range(options.pick(4, 1)):
        lines, spent = read_and_parse_seconds(files_of(root))
        best[FLOOR] = min(best[FLOOR], spent)
        for way in ("one by one", "together"):
            copy = Path(shutil.copytree(root, directory / f"{end}-{turn}-{way}"))
            checked = tally if (turn, way) == (0, "together") else None
            best[way] = min(best[way], asyncio.run(recover(copy, wanted, together=way == "together", tally=checked)))
            shutil.rmtree(copy)
    total = sum(len(one.frames) for one in wanted)
    report.rate(FLOOR, "read and parse", end, frames, n=lines, seconds=best[FLOOR])
    for way in ("one by one", "together"):
        report.rate(OURS, f"recover {way}", end, frames, n=total, seconds=best[way])
        if end == "clean":
            report.judge(ratio(f"recovery {way} / reading and parsing", best[way], best[FLOOR], at_most=3.0))
    ask_again(end, directory, sessions, tally, options)
    note_accuracy(tally, end, frames, report)
    return best["together"]


def ask_again(end: str, directory: Path, sessions: int, tally: Tally, options: Options) -> None:
    """Let agents talk in a child that ends so, recover them, and compare what they would ask next."""
    root, expected = directory / f"{end}-agents", directory / f"{end}-agents.json"
    start("ask", sessions, options.pick(10, 3), root, expected, end, killed=end == "kill")
    wanted = msgspec.json.decode(expected.read_bytes(), type=list[semantics.Asked])

    async def recovered() -> None:
        async with SessionService.open(root, idle_timeout_s=None, models=semantics.MODELS) as service:
            for one in wanted:
                await semantics.compare(await service.session(one.session, timeout_s=None), one, tally)

    asyncio.run(recovered())


def files_of(root: Path) -> list[Path]:
    """Return the files that hold records."""
    return sorted(root.rglob("*.ndjson"))


async def recover(root: Path, wanted: list[Expected], *, together: bool, tally: Tally | None) -> float:
    """Open a store, recover all its sessions, and return the seconds; compare everything when a tally is given."""
    begin = perf_counter()
    async with SessionService.open(root, idle_timeout_s=None) as service:
        if together:
            found = await asyncio.gather(*(service.session(one.session, timeout_s=None) for one in wanted))
        else:
            found = [await service.session(one.session, timeout_s=None) for one in wanted]
        spent = perf_counter() - begin
        if tally is not None:
            for session, one in zip(found, wanted, strict=True):
                await compare(session, one, tally)
    return spent


def note_accuracy(tally: Tally, end: str, frames: int, report: Report) -> None:
    """Add what was compared and what was right, and the verdict: everything, or the run has failed."""
    for dimension in DIMENSIONS:
        report.count(OURS, f"{dimension} checked", end, frames, tally.checked.get(dimension, 0))
        report.count(OURS, f"{dimension} right", end, frames, tally.right.get(dimension, 0))
        report.judge(exactly(f"recovered {dimension} after {end}", tally.percent(dimension), 100, unit="%"))


def tables(report: Report) -> str:
    """Return accuracy and time as two tables."""
    counts = {(result.op, result.variant): result.n for result in report.results}
    accuracy = [
        [dimension, *(percent_of(counts, dimension, end) for end in ENDS), reference_of(dimension)]
        for dimension in DIMENSIONS
    ]
    times = [
        [result.peer, result.op, result.variant, f"{result.n:,}", shown(result.n / result.ops_per_s)]
        for result in report.results
        if result.ops_per_s and result.n > 1
    ]
    openings = [
        [result.op, result.variant, f"{result.depth:,}", shown(1 / result.ops_per_s)]
        for result in report.results
        if result.ops_per_s and result.n == 1
    ]
    first = table("recovery: percent right", ["dimension", "after close", "after kill -9", "the reference"], accuracy)
    title = f"recovery: seconds (to beat: {BEAM_RECOVER_S} s for 17,400 frames)"
    second = table(title, ["peer", "what", "after", "records", "seconds"], times)
    third = table("recovery: seconds in a new process", ["what", "store", "frames or sessions", "seconds"], openings)
    return f"{first}\n{second}\n{third}"


def reference_of(dimension: str) -> str:
    """Return the reference's cell of the accuracy table."""
    percent = PAPER_RECOVERY_PERCENT.get(dimension)
    return "-" if percent is None else f"{percent:.2f}"


def percent_of(counts: dict[tuple[str, str], int], dimension: str, end: str) -> str:
    """Return one cell of the accuracy table."""
    checked = counts[f"{dimension} checked", end]
    return f"{100 * counts[f'{dimension} right', end] / checked:.2f} of {checked:,}" if checked else "-"
