"""`python -m session_actor verify DIR`: read a whole store and tell what is not as it should be. It changes nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from session_actor.persistence.errors import PersistenceError
from session_actor.persistence.verify import check

from .codes import CLEAN, FOUND, counted, excuse, say

if TYPE_CHECKING:
    import argparse
    from pathlib import Path

    from session_actor.persistence.findings import Finding, Findings

    from .codes import Commands


def add_parser(commands: Commands) -> None:
    """Add the command to the others."""
    parser = commands.add_parser(
        "verify",
        help="read a whole store and tell what is damaged",
        description="Reads everything in a store once and tells what is not as it should be, with the file, the place "
        "in it, the session and what to do next. Changes nothing. The store must not be in use. "
        "Exit code 0: no damage (there may be notes); 1: damage; 2: it could not be read.",
    )
    parser.add_argument("directory", metavar="DIR", help="the store's directory")
    parser.add_argument("--json", action="store_true", help="one JSON object a line: the findings, then a summary")
    parser.set_defaults(run=_run)


def _run(options: argparse.Namespace) -> int:
    return run_verify(options.directory, as_json=options.json)


def run_verify(directory: str | Path, *, as_json: bool) -> int:
    """Check a store and print what is found, at once; returns the exit code."""

    def tell(finding: Finding) -> None:
        say(msgspec.json.encode(finding).decode() if as_json else str(finding))

    try:
        findings = check(directory, tell=tell)
    except (PersistenceError, OSError) as error:
        return excuse(error)
    say(_summary_json(findings) if as_json else _summary(findings))
    return FOUND if findings.damaged else CLEAN


def _counts(findings: Findings) -> dict[str, int]:
    return {
        "sessions": findings.sessions,
        "records": findings.records,
        "bytes": findings.size_bytes,
        "damage": findings.counts["damage"],
        "notes": findings.counts["note"],
    }


def _summary_json(findings: Findings) -> str:
    return msgspec.json.encode({"summary": _counts(findings)}).decode()


def _summary(findings: Findings) -> str:
    counts = _counts(findings)
    verdict = counted(counts["damage"], "damaged place") if findings.damaged else "no damage"
    notes = f", {counted(counts['notes'], 'note')}" if counts["notes"] else ""
    read = [counted(counts[f"{each}s"], each) for each in ("session", "record", "byte")]
    return f"{', '.join(read)} read: {verdict}{notes}"
