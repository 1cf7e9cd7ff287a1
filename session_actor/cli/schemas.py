"""`session-actor schema [COMMAND]`: the JSON schemas of what the commands print with --json."""

from __future__ import annotations

import json
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from .codes import CLEAN, say
from .plain import parser_of

if TYPE_CHECKING:
    import argparse

    from .parts import Line

_DRAFT: Final = "https://json-schema.org/draft/2020-12/schema"


@cache
def kinds() -> dict[str, tuple[type[Line], ...]]:
    """The kinds of lines that each command prints."""
    from . import lines, store_lines

    return {
        "list": (lines.ListedSession,),
        "show": (lines.ShownSession, lines.ShownFrame),
        "tree": (lines.TreeSession, lines.TreeSegment),
        "replay": (lines.ReplayMoment, lines.ReplayWhy, lines.ReplayRequest),
        "diff": (lines.DiffChanges,),
        "tail": (lines.TailRecord, lines.TailGone),
        "verify": (store_lines.VerifyFinding, store_lines.VerifySummary),
        "repair": (store_lines.RepairStep, store_lines.RepairFinding),
        "export": (store_lines.ExportFile,),
        "import": (store_lines.ImportFile,),
        "stats": (lines.StatsStore, lines.StatsSession),
        "doctor": (store_lines.DoctorCheck, store_lines.DoctorSummary),
        "demo": (store_lines.DemoResult,),
    }


def parser(prog: str) -> argparse.ArgumentParser:
    """What reads the arguments."""
    made = parser_of(
        prog,
        "Prints the JSON schema of one line of what a command prints with --json; without COMMAND, all of "
        "them by command. The field `schema` of a line names command, kind and version: within a version fields are "
        "only added.",
        "session-actor schema list",
        "session-actor schema > schemas.json",
    )
    made.add_argument("command", nargs="?", choices=sorted(kinds()), metavar="COMMAND", help="which command")
    made.set_defaults(run=_run)
    return made


def _run(options: argparse.Namespace) -> int:
    name = options.command
    found = schema_of(name) if name else {each: schema_of(each) for each in kinds()}
    say(json.dumps(found, indent=2, sort_keys=True))
    return CLEAN


def schema_of(command: str) -> dict[str, Any]:
    """The JSON schema of one line of a command's output."""
    import msgspec

    refs, parts = msgspec.json.schema_components(kinds()[command], ref_template="#/$defs/{name}")
    return {"$schema": _DRAFT, "title": f"session-actor {command} --json", "anyOf": list(refs), "$defs": parts}
