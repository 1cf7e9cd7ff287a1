"""`session-actor diff DIR ID A B`: what is different between two moments of a session."""

from __future__ import annotations

import click

from .asking import MOMENTS, as_json, directory, named, profiles, session


@named(
    "diff",
    "session-actor diff conversations/ user-42 6 last",
    "session-actor diff conversations/ user-42 checkpoint:before frame:7 --exit-code",
    "session-actor diff conversations/ user-42 2026-11-30T16:00 2026-11-30T17:00 --json",
)
@directory
@session
@click.argument("a", metavar="WHEN")
@click.argument("b", metavar="WHEN", default="last")
@click.option("--exit-code", "exit_code", is_flag=True, help="Exit code 1 when something is different.")
@profiles
@as_json
def command(
    directory: str, session: str, a: str, b: str, *, exit_code: bool, profiles: str | None, as_json: bool
) -> int:
    """Tell what is different at the second moment: frames, head, branches, checkpoints, how full the window is.

    The second moment may be left out: last. No text is shown.
    """
    from .diffing import run

    return run(directory, session, a, b, exit_code=exit_code, profiles=profiles, as_json=as_json)


command.epilog = f"WHEN: {MOMENTS}."
