"""The demo from start to end: plan, feed and kill, compare, show."""

from __future__ import annotations

import asyncio
import contextlib
import shutil
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from session_actor.cli.output import tell
from session_actor.cli.store_lines import DemoResult
from session_actor.errors import SessionActorError

from .child import SESSION_ID
from .display import Progress, percentile, table
from .parent import ChildFailed, Options, Outcome, Parent
from .plan import read_plan
from .verify import Verdict, verify

if TYPE_CHECKING:
    from .plan import Plan

SAMPLE = Path(__file__).parents[1] / "data" / "sample_transcript.jsonl"


def run_demo(
    transcript: Path, *, kills: int, seed: int, durability: str, keep: Path | None, as_json: bool = False
) -> int:
    """Run the demo and print what it found.

    Args:
        transcript: the JSON lines to feed.
        kills: how often the process is killed.
        seed: makes the same kills again.
        durability: the level at which every change is acknowledged.
        keep: the folder for the session, which must not exist or be empty; None: a temporary one, removed afterwards.
        as_json: print one JSON object to stdout, and all else to stderr.

    Returns:
        The exit code: 0; 1 when anything acknowledged at `written` or `synced` was lost, when a field differs, or when
        the session could not be recovered; 2 when the arguments do not fit.
    """
    directory = keep or Path(tempfile.mkdtemp(prefix="session-actor-demo-"))
    try:
        options = Options(directory, transcript, durability, kills, seed)
        with contextlib.redirect_stdout(sys.stderr) if as_json else contextlib.nullcontext():
            code, result = _run(options, keep=keep is not None)
        if as_json:
            tell(result)
        return code
    except (ChildFailed, SessionActorError) as error:
        print(f"the session was not recovered: {error}", file=sys.stderr)
        return 1
    except (OSError, ValueError) as error:
        print(f"the demo could not run: {error}", file=sys.stderr)
        return 2
    finally:
        if keep is None:
            shutil.rmtree(directory, ignore_errors=True)


def _run(options: Options, *, keep: bool) -> tuple[int, DemoResult]:
    if options.directory.exists() and any(options.directory.iterdir()):
        raise ValueError(f"{options.directory} is not empty: give a new folder to --keep")
    plan = asyncio.run(read_plan(options.transcript))
    print(f"{options.transcript}: {len(plan.steps)} steps at durability {options.durability}, seed {options.seed}")
    progress = Progress(len(plan.steps), options.kills)
    try:
        outcome = Parent(options, len(plan.steps), progress).run()
    finally:
        progress.close()
    verdict = asyncio.run(verify(options.directory, plan, outcome))
    _show(plan, outcome, verdict)
    if keep:
        print(f"kept: session {SESSION_ID!r} in {options.directory}")
    promised = options.durability != "async"
    failed = bool(verdict.differences or (promised and outcome.lost))
    result = DemoResult(
        passed=not failed,
        seed=options.seed,
        kills=outcome.kills,
        lost=len(outcome.lost),
        differing=len(verdict.differences),
        frames=len(plan.frames),
    )
    return int(failed), result


def _show(plan: Plan, outcome: Outcome, verdict: Verdict) -> None:
    recoveries, pushes = outcome.recoveries_ms, outcome.pushes_us
    rows = [
        ("frames", f"{len(plan.frames):,}"),
        ("kills (SIGKILL)", f"{outcome.kills}{_in_a_row(outcome.kills_in_a_row)}"),
        ("acknowledged", f"{len(pushes):,} frames"),
        ("lost", f"{len(outcome.lost)} of them"),
        ("recovered", f"{_percent(verdict)} of {verdict.fields:,} fields"),
        ("recovery time", f"p50 {percentile(recoveries, 0.5):.1f} ms   max {percentile(recoveries, 1):.1f} ms"),
        ("push latency", f"p50 {percentile(pushes, 0.5):.0f} µs   p99 {percentile(pushes, 0.99):.0f} µs"),
    ]
    if plan.unreadable:
        first = plan.unreadable[0]
        count = f"{plan.unreadable_count:,}"
        rows.append(("lines not read", f"{count}, the first at byte {first.offset:,}: {first.reason}"))
    if plan.stray_results:
        rows.append(("stray results", f"{plan.stray_results} left out: no call for them in the transcript"))
    print(f"\n{table(rows)}\n\n{verdict.tree}\n")
    for difference in verdict.differences[:10]:
        print(f"differs: {difference}")


def _in_a_row(kills: int) -> str:
    return f", {kills} of them before anything more was fed since the one before" if kills else ""


def _percent(verdict: Verdict) -> str:
    """Never round up to 100 what is not whole."""
    if verdict.equal == verdict.fields:
        return "100 %"
    return f"{min(99.99, 100 * verdict.equal / verdict.fields):.2f} %"
