"""`session-actor show DIR ID`: what was said in a session, frame by frame."""

from __future__ import annotations

from typing import Any

import click

from .asking import as_json, at_option, directory, named, profiles, session


@named(
    "show",
    "session-actor show conversations/ user-42",
    "session-actor show conversations/ user-42 --last 10",
    "session-actor show conversations/ user-42 --find 'high water'    # which frames say so",
    "session-actor show conversations/ user-42 --branch ship",
    "session-actor show conversations/ user-42 --at checkpoint:before",
    "session-actor show conversations/ '\"-odd\\u0000id\"' --json",
)
@directory
@session
@at_option()
@click.option("--branch", "on", metavar="NAME", help="The stack of this branch. Default: that of the head.")
@click.option("--last", type=click.IntRange(min=1), metavar="N", help="Only the newest N frames.")
@click.option(
    "--frame", "ids", type=int, multiple=True, metavar="N", help="Only this frame, of any branch, popped or not."
)
@click.option("--find", metavar="TEXT", help="Only frames that say this, in any case. Exit code 1: none does.")
@profiles
@as_json
def command(directory: str, session: str, **options: Any) -> int:
    """Show what was said in a session, from the first frame to the newest, with the number of each frame."""
    from .showing import Asked, run

    return run(directory, session, Asked(**options))
