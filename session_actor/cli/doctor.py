"""`session-actor doctor [DIR]`: is this machine, and the directory of a store, as session-actor needs them?"""

from __future__ import annotations

from collections import Counter
from itertools import chain
from typing import TYPE_CHECKING, Final

import click

from .asking import as_json, named
from .checks import machine
from .codes import FOUND, counted, say
from .harmless import one_line
from .output import styled, tell
from .store_lines import DoctorSummary

if TYPE_CHECKING:
    from .store_lines import DoctorCheck

_COLOURS: Final = {"ok": "green", "note": "yellow", "problem": "red"}


@named(
    "doctor",
    "session-actor doctor",
    "session-actor doctor conversations/",
    "session-actor doctor conversations/ --json",
)
@click.argument("directory", metavar="[DIR]", type=click.Path(), required=False)
@as_json
def command(directory: str | None, *, as_json: bool) -> int:
    """Check Python, packages, limits and the clock; of a store its format, file system, space, permissions and lock.

    Each line says what was found, and what to do. Nothing is changed, and no text of a conversation is read. Exit code
    1: there is a problem; 3 or 4: the store cannot be read.
    """
    from .store_checks import Looked

    counts: Counter[str] = Counter()
    store = None if directory is None else Looked(directory)
    for check in chain(machine(), () if store is None else store.checks()):
        counts[check.verdict] += 1
        if as_json:
            tell(check)
        else:
            _say(check)
    if as_json:
        tell(DoctorSummary(ok=counts["ok"], notes=counts["note"], problems=counts["problem"]))
    else:
        say(f"{counted(counts['problem'], 'problem')}, {counted(counts['note'], 'note')}, {counts['ok']} ok")
    return (store.code if store else 0) or (FOUND if counts["problem"] else 0)


def _say(check: DoctorCheck) -> None:
    say(f"{styled(f'{check.verdict:<8}', _COLOURS[check.verdict])} {check.check}: {one_line(check.what)}")
    if check.advice and check.verdict != "ok":
        say(f"         to do: {one_line(check.advice)}")
