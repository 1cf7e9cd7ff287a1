"""`session-actor demo [TRANSCRIPT]`."""

from __future__ import annotations

import argparse
import random
from pathlib import Path

from .plain import parser_of


def parser(prog: str) -> argparse.ArgumentParser:
    """What reads the arguments."""
    made = parser_of(
        prog,
        "Feeds a transcript, turn by turn, to a session in a child process; kills that process with "
        "SIGKILL at random points; recovers and goes on; then compares every field of every frame. Exit code 1: "
        "something that was acknowledged at `written` or `synced` is lost, or a field differs.",
        "session-actor demo",
        "session-actor demo transcript.jsonl --kills 20 --seed 7",
    )
    made.add_argument(
        "transcript", nargs="?", type=Path, metavar="TRANSCRIPT", help="JSON lines; default: the shipped sample"
    )
    made.add_argument("--kills", type=_count, default=8, metavar="N", help="how often to kill (default: 8)")
    made.add_argument("--seed", type=int, metavar="N", help="kill at the same points again (default: random, printed)")
    made.add_argument("--keep", type=Path, metavar="DIR", help="keep the session in this new folder")
    made.add_argument(
        "--durability",
        choices=("async", "written", "synced"),
        default="written",
        help="the level of every acknowledgement (default: written)",
    )
    made.add_argument("--json", action="store_true", help="the figures as one JSON object, on one line")
    made.set_defaults(run=_run)
    return made


def _run(options: argparse.Namespace) -> int:
    from session_actor.demo.main import SAMPLE, run_demo

    seed = random.SystemRandom().randrange(1_000_000) if options.seed is None else options.seed
    transcript = options.transcript or SAMPLE
    return run_demo(
        transcript,
        kills=options.kills,
        seed=seed,
        durability=options.durability,
        keep=options.keep,
        as_json=options.json,
    )


def _count(text: str) -> int:
    count = int(text)
    if count < 0:
        raise argparse.ArgumentTypeError(f"{count} is less than 0")
    return count
