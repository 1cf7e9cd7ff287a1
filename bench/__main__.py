"""The command line: `python -m bench NAME [--json] [--quick]`."""

from __future__ import annotations

import argparse
import gc
import importlib
import logging
import os
import platform
import sys
import tempfile
from pathlib import Path

import structlog

from bench.harness import Options, Report, say

NAMES = (
    *("operations", "overhead", "recovery", "kill", "actors", "journal", "disk", "tokens", "calibration", "requests"),
    *("compaction", "hooks", "handover", "replay", "telemetry", "cli"),
)


def arguments() -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(
        prog="python -m bench", description="Measure session-actor beside raw floors and peers."
    )
    parser.add_argument("name", choices=(*NAMES, "all"), help="which bench to run")
    parser.add_argument(
        "--json", action="store_true", help="one line of JSON per result on stdout, the targets on stderr"
    )
    parser.add_argument("--quick", action="store_true", help="small sizes: shows that it runs, measures little")
    parser.add_argument(
        "--directory",
        type=Path,
        default=Path(tempfile.gettempdir()),
        help="where stores are made (default: %(default)s); choose a folder on the disk that you mean to measure",
    )
    return parser.parse_args()


def show(report: Report, options: Options) -> None:
    """Print the verdicts and notes of a report, and its results when they are wanted as JSON."""
    if options.json:
        for result in report.results:
            say(result.line())
    for note in report.notes:
        say(f"note: {note}", to_stderr=options.json)
    for verdict in report.verdicts:
        say(verdict.line(), to_stderr=options.json)
    say(to_stderr=options.json)


def measured_on() -> str:
    """Tell which Python and machine this is.

    A Python that was built without profile-guided optimization, which is what pyenv makes when nothing else is said,
    takes about a tenth longer for everything than one of a distribution or of the official images.
    """
    python = f"{platform.python_implementation()} {platform.python_version()}, {platform.python_compiler()}"
    return f"measured on {python}; {platform.system()} {platform.machine()}, {os.cpu_count()} processors"


def main() -> int:
    """Run the benches that were asked for; 1 when something was lost or wrong, else 0."""
    wanted = arguments()
    # What crashes here is made to crash; its log lines would stand between the results.
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    options = Options(quick=wanted.quick, json=wanted.json, directory=wanted.directory)
    say(measured_on(), to_stderr=options.json)
    failed = False
    for name in NAMES if wanted.name == "all" else (wanted.name,):
        bench = importlib.import_module(f"bench.{name}")
        if options.quick:
            gc.freeze()  # collections before each sample look through what was made since, not through all modules
        report: Report = bench.run(options)
        if not options.json:
            say(bench.tables(report))
        show(report, options)
        failed = failed or any(verdict.must and not verdict.passed for verdict in report.verdicts)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
