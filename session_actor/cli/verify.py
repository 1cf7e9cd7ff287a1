"""`session-actor verify DIR`: read a whole store and tell what is not as it should be. It changes nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from .codes import CLEAN, FOUND, counted, excuse, say
from .harmless import one_line
from .plain import parser_of

if TYPE_CHECKING:
    import argparse
    from pathlib import Path

    from session_actor.persistence.checking.findings import Finding, Findings


def parser(prog: str) -> argparse.ArgumentParser:
    """What reads the arguments."""
    made = parser_of(
        prog,
        "Reads everything in a store once and tells what is not as it should be, with the file, the place "
        "in it, the session and what to do next. Changes nothing. The store must not be in use. "
        "Exit code 0: no damage (there may be notes); 1: damage; 2: it could not be read; 3: damaged so that it cannot "
        "be read; 4: of a newer version; 5: in use.",
        "session-actor verify conversations/",
        "session-actor verify conversations/ --json | jq 'select(.severity == \"damage\")'",
    )
    made.add_argument("directory", metavar="DIR", help="the store's directory")
    made.add_argument("--json", action="store_true", help="one JSON object a line: the findings, then a summary")
    made.set_defaults(run=_run)
    return made


def _run(options: argparse.Namespace) -> int:
    return run_verify(options.directory, as_json=options.json)


def run_verify(directory: str | Path, *, as_json: bool) -> int:
    """Check a store and print what is found, at once; returns the exit code."""
    from session_actor.persistence.checking.verify import check
    from session_actor.persistence.errors import PersistenceError
    from session_actor.service.reserved import is_reserved

    tell = _tell_json if as_json else _tell
    try:
        findings = check(directory, tell=tell, apart=is_reserved)
    except BrokenPipeError:
        raise
    except (PersistenceError, OSError) as error:
        return excuse(error)
    if as_json:
        from .output import tell as tell_line
        from .store_lines import VerifySummary

        tell_line(VerifySummary(summary=_counts(findings)))
    else:
        say(_summary(findings))
    return FOUND if findings.damaged else CLEAN


def _tell(finding: Finding) -> None:
    say(one_line(str(finding)))


def _tell_json(finding: Finding) -> None:
    import msgspec

    from .output import tell
    from .store_lines import VerifyFinding

    tell(VerifyFinding(**cast("dict[str, str]", msgspec.structs.asdict(finding))))  # type: ignore[arg-type]


def _counts(findings: Findings) -> dict[str, int]:
    return {
        "sessions": findings.sessions,
        "own": findings.apart,
        "records": findings.records,
        "bytes": findings.size_bytes,
        "damage": findings.counts["damage"],
        "notes": findings.counts["note"],
    }


def _summary(findings: Findings) -> str:
    counts = _counts(findings)
    verdict = counted(counts["damage"], "damaged place") if findings.damaged else "no damage"
    notes = f", {counted(counts['notes'], 'note')}" if counts["notes"] else ""
    sessions, *rest = (counted(counts[f"{each}s"], each) for each in ("session", "record", "byte"))
    own = " and what the library keeps for its hooks" if counts["own"] else ""
    return f"{sessions}{own}, {', '.join(rest)} read: {verdict}{notes}"
