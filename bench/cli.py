"""The command line: how long a command takes before it does anything, and what it takes to read much.

Start-up is CPU time of a process less that of a Python that does nothing; rounds take turns and the least counts.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

from bench import children
from bench.harness import FLOOR, OURS, Options, Report, shown, table
from bench.targets import limit

HELP_MS: Final = 150.0
LIST_S: Final = 1.0
MEMORY_MB: Final = 200.0
HELPS: Final = ("", "list", "show", "tree", "replay", "diff", "tail", "verify", "export", "import", "stats", "doctor")
READING: Final = (
    ("show", "{0}", "session-0"),
    ("tree", "{0}", "session-0"),
    ("stats", "{0}", "session-0"),
)
_MEASURED: Final = (
    "import resource, sys; from session_actor.__main__ import main; code = main(sys.argv[1:]); "
    "sys.stderr.write(str(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)); sys.exit(code)"
)


def run(options: Options) -> Report:
    """Run this bench."""
    report = Report("cli")
    starting(report, options)
    with tempfile.TemporaryDirectory(prefix="bench-cli-", dir=options.directory) as directory:
        listing(report, Path(directory) / "many", options)
        reading(report, Path(directory) / "long", options)
    return report


def spent_ms(*arguments: str) -> float:
    """CPU time of one process [ms]."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, *arguments], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return 1e3 * (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)


def starting(report: Report, options: Options) -> None:
    """`--help` of the program, and of each command."""
    helps = HELPS if not options.quick else HELPS[:2]
    best = dict.fromkeys(("-", *helps), float("inf"))
    for _ in range(options.pick(7, 1)):
        best["-"] = min(best["-"], spent_ms("-c", "pass"))
        for name in helps:
            command = ["-m", "session_actor", *([name] if name else []), "--help"]
            best[name] = min(best[name], spent_ms(*command))
    report.rate(FLOOR, "python -c pass", "start", 1, n=1, seconds=best["-"] / 1e3)
    for name in helps:
        extra = max(0.0, best[name] - best["-"])
        report.rate(OURS, f"{name or 'session-actor'} --help", "start", 1, n=1, seconds=extra / 1e3)
    worst = max(best[name] - best["-"] for name in helps)
    report.judge(limit("--help over bare Python, the slowest command", worst, at_most=HELP_MS, unit=" ms"))


def listing(report: Report, root: Path, options: Options) -> None:
    """List a store of many sessions, start-up included."""
    sessions = options.pick(10_000, 200)
    children.start("many", root, sessions, 3)
    best = min(spent_ms("-m", "session_actor", "list", str(root)) for _ in range(options.pick(3, 1)))
    report.rate(OURS, "list", "many sessions", sessions, n=sessions, seconds=best / 1e3)
    report.judge(limit(f"list {sessions:,} sessions, CPU time with start-up", best / 1e3, at_most=LIST_S, unit=" s"))


def reading(report: Report, root: Path, options: Options) -> None:
    """Show, draw and count one long session: CPU time and memory."""
    frames = options.pick(100_000, 500)
    children.start("grow", root, frames)
    for name, *rest in READING:
        command = ["-c", _MEASURED, name, *(each.format(root) for each in rest)]
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        done = subprocess.run([sys.executable, *command], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, check=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        unit = 1 if os.uname().sysname == "Darwin" else 1024
        peak = int(done.stderr.split()[-1]) * unit
        report.rate(OURS, name, "one session", frames, n=frames, seconds=seconds)
        report.count(OURS, f"{name}, memory at most [bytes]", "one session", frames, peak)
        report.judge(limit(f"{name} of {frames:,} records, memory", peak / 2**20, at_most=MEMORY_MB, unit=" MB"))


def tables(report: Report) -> str:
    """Return the times and the memory as two tables."""
    times = [
        [result.peer, result.op, f"{result.depth:,}", shown(result.mean_us)]
        for result in report.results
        if result.mean_us is not None
    ]
    counts = [[result.op, f"{result.depth:,}", f"{result.n:,}"] for result in report.results if result.mean_us is None]
    title = "cli: CPU time in microseconds (of starts: each, over bare Python; else: for each session or record)"
    first = table(title, ["peer", "what", "records", "mean"], times)
    return f"{first}\n{table('cli: at most', ['what', 'records', 'count'], counts)}"
