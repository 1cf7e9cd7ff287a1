"""1,000 acknowledged pushes, then SIGKILL at once: how many of them are gone, per level."""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path
from time import perf_counter

from bench.beam import beam
from bench.children import start
from bench.figures import BEAM_LOST_OF_1000
from bench.floors import USER_INPUT
from bench.harness import BEAM, OURS, Options, Report, table
from bench.targets import exactly
from session_actor import SessionService

LEVELS = ("async", "written", "synced")


async def recovered(root: Path) -> tuple[int, float]:
    """Return how many frames came back whole and in order, and the seconds from opening the store to having them."""
    begin = perf_counter()
    async with SessionService.open(root) as service:
        session = await service.session("kill", create=True)
        frames = list(await session.stack())
        spent = perf_counter() - begin
    whole = [
        frame for number, frame in enumerate(frames, 1) if frame.depth == number and frame.user_input == USER_INPUT
    ]
    return len(whole), spent


def run(options: Options) -> Report:
    """Run this bench."""
    report = Report("kill")
    frames: int = options.pick(1_000, 200)
    tries: int = options.pick(5, 1)
    with tempfile.TemporaryDirectory(prefix="bench-kill-", dir=options.directory) as directory:
        for level in LEVELS:
            lost = [lose(Path(directory) / f"{level}-{number}", level, frames, report) for number in range(tries)]
            worst = report.count(OURS, "lost", level, frames, max(lost))
            if level != "async":
                report.judge(
                    exactly(f"lost of {frames:,} acknowledged at {level}, worst of {tries}", worst, 0, unit="")
                )
    with beam() as (process, folder):
        if process is not None and folder is not None:
            report.count(BEAM, "lost", "disk", frames, process.lose(frames, folder))
    return report


def lose(root: Path, level: str, frames: int, report: Report) -> int:
    """Let a child push and die; return how many of its acknowledged frames are not there afterwards."""
    start("kill", level, frames, root, killed=True)
    found, spent = asyncio.run(recovered(root))
    report.rate(OURS, "recover", level, frames, n=max(1, found), seconds=spent)
    return frames - found


def tables(report: Report) -> str:
    """Return the losses as a table."""
    rows = [
        [result.peer, result.variant, f"{result.depth:,}", f"{result.n:,}"]
        for result in report.results
        if result.op == "lost"
    ]
    low, high = BEAM_LOST_OF_1000
    title = f"kill: frames lost at SIGKILL (the reference design: {low} to {high} of 1,000)"
    return table(title, ["peer", "level", "acknowledged", "lost"], rows)
