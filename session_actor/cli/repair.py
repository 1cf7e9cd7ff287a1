"""`session-actor repair DIR`: tell what would mend a store; with `--write`, do it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from .codes import CLEAN, FOUND, counted, excuse, say
from .harmless import given_id, one_line
from .plain import parser_of

if TYPE_CHECKING:
    import argparse

    from session_actor.persistence.checking.findings import Finding
    from session_actor.persistence.repair.mending import Salvage
    from session_actor.persistence.repair.repairs import Repairs, Step

SALVAGES = ("prefix", "readable")


def parser(prog: str) -> argparse.ArgumentParser:
    """What reads the arguments."""
    made = parser_of(
        prog,
        "Tells what would mend a store, and does it with --write. Without --salvage it does only what "
        "loses nothing. What is taken out of use is kept under aside/. It may be killed and run again at any time. "
        "The store must not be in use. Exit code 0: nothing (more) to do; 1: something is left; 2: it could not run; "
        "4: of a newer version; 5: in use.",
        "session-actor repair conversations/            # tells what it would do",
        "session-actor repair conversations/ --write",
        "session-actor repair conversations/ --salvage readable --session user-42 --write",
    )
    made.add_argument("directory", metavar="DIR", help="the store's directory")
    made.add_argument("--write", action="store_true", help="do it, do not only tell")
    made.add_argument(
        "--salvage",
        choices=SALVAGES,
        help="what to keep of a damaged session: prefix: its records up to the first one that is lost; readable: all "
        "that can be read, with marked gaps",
    )
    made.add_argument(
        "--session",
        action="append",
        metavar="ID",
        type=given_id,
        help="salvage this session alone; may be given several times",
    )
    made.add_argument("--json", action="store_true", help="one JSON object a line")
    made.set_defaults(run=_run)
    return made


def _run(options: argparse.Namespace) -> int:
    return run_repair(
        options.directory,
        write=options.write,
        salvage=options.salvage,
        sessions=options.session,
        as_json=options.json,
    )


def run_repair(
    directory: str | Path, *, write: bool, salvage: Salvage | None, sessions: list[str] | None, as_json: bool
) -> int:
    """Repair a store and print each step at once; returns the exit code."""
    from session_actor.persistence.advice import repair_command
    from session_actor.persistence.errors import PersistenceError
    from session_actor.persistence.repair.repair import repair

    try:
        repairs = repair(
            directory, write=write, salvage=salvage, sessions=sessions, tell=_tell_json if as_json else _tell
        )
    except BrokenPipeError:
        raise
    except (PersistenceError, OSError) as error:
        return excuse(error)
    if not as_json:
        line = repair_command(str(Path(directory).absolute()), salvage=salvage, sessions=sessions or ())
        say(_summary(repairs, None if write else line))
    return FOUND if repairs.left or repairs.more or (repairs.steps and not write) else CLEAN


def _tell(item: Step | Finding) -> None:
    say(one_line(str(item)))


def _tell_json(item: Step | Finding) -> None:
    import msgspec

    from session_actor.persistence.repair.repairs import Step

    from .output import tell
    from .store_lines import RepairFinding, RepairStep

    kind = RepairStep if isinstance(item, Step) else RepairFinding
    tell(kind(**msgspec.structs.asdict(item)))


def _summary(repairs: Repairs, line: str | None) -> str:
    """`line`: what does the steps; None: they are done."""
    steps, left = counted(len(repairs.steps), "step"), len(repairs.left)
    said = [] if not repairs.steps else [f"{steps} done" if line is None else f"{steps} to do: `{line}`"]
    if left:
        said.append(f"{counted(left, 'damaged place')} left: see above what to do")
    if repairs.more:
        said.append("more is to be done than was told: see what is left above, and repair again")
    return "; ".join(said) or "nothing to do"
