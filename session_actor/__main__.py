"""The commands: `python -m session_actor demo [TRANSCRIPT]`, `… verify DIR`, `… repair DIR`."""

from __future__ import annotations

import argparse
import random
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from .cli import repair, verify

if TYPE_CHECKING:
    from .cli.codes import Commands


def main(arguments: list[str] | None = None) -> int:
    """Run one command and return its exit code; `arguments` None: those of the process."""
    options = _parser().parse_args(arguments)
    code: int = options.run(options)
    return code


def _demo(options: argparse.Namespace) -> int:
    from .demo.main import SAMPLE, run_demo

    seed = random.SystemRandom().randrange(1_000_000) if options.seed is None else options.seed
    transcript = options.transcript or SAMPLE
    return run_demo(transcript, kills=options.kills, seed=seed, durability=options.durability, keep=options.keep)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m session_actor", description="Conversations that are never lost.")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    _add_demo(commands)
    repair.add_parser(commands)
    verify.add_parser(commands)
    return parser


def _add_demo(commands: Commands) -> None:
    demo = commands.add_parser(
        "demo",
        help="feed a transcript to a process that is killed again and again, recover, compare every field",
        description="Feeds a transcript, turn by turn, to a session in a child process; kills that process with "
        "SIGKILL at random points; recovers and goes on; then compares every field of every frame. Exit code 1: "
        "something that was acknowledged at `written` or `synced` is lost, or a field differs.",
    )
    demo.add_argument(
        "transcript", nargs="?", type=Path, metavar="TRANSCRIPT", help="JSON lines; default: the shipped sample"
    )
    demo.add_argument("--kills", type=_count, default=8, metavar="N", help="how often to kill (default: 8)")
    demo.add_argument("--seed", type=int, metavar="N", help="kill at the same points again (default: random, printed)")
    demo.add_argument("--keep", type=Path, metavar="DIR", help="keep the session in this new folder")
    demo.add_argument(
        "--durability",
        choices=("async", "written", "synced"),
        default="written",
        help="the level of every acknowledgement (default: written)",
    )
    demo.set_defaults(run=_demo)


def _count(text: str) -> int:
    count = int(text)
    if count < 0:
        raise argparse.ArgumentTypeError(f"{count} is less than 0")
    return count


if __name__ == "__main__":
    sys.exit(main())
