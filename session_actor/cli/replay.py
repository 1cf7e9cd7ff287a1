"""`session-actor replay DIR ID`: go through a session's past, and ask why a turn was in a request or was not."""

from __future__ import annotations

from typing import Any

import click

from .asking import MOMENTS, as_json, directory, named, profiles, session


@named(
    "replay",
    "session-actor replay conversations/ user-42                 # step through, with keys",
    "session-actor replay conversations/ user-42 --to 12         # the session after record 12",
    "session-actor replay conversations/ user-42 --requests      # which requests were given out",
    "session-actor replay conversations/ user-42 --why 7 --request 6",
    "session-actor replay conversations/ user-42 --why 7         # for the next request",
    "session-actor replay conversations/ user-42 --request 6     # made again: is it the same?",
)
@directory
@session
@click.option("--to", "to", metavar="WHEN", help=f"Print the session as it was then: {MOMENTS}.")
@click.option(
    "--requests", is_flag=True, help="List the requests that were given out, by the numbers of their records."
)
@click.option("--request", type=int, metavar="SEQ", help="The request of this record: make it again, and compare.")
@click.option(
    "--why", type=int, metavar="FRAME", help="Why this frame is in the request (--request), or in the next one."
)
@click.option("--branch", "on", metavar="NAME", help="With --why: the next request on this branch.")
@click.option("--dialect", metavar="NAME", help="With --why: the next request in this dialect.")
@click.option("--model", metavar="NAME", help="With --why: the next request to this model.")
@click.option("--content", is_flag=True, help="Show what was said, too; of a request its body.")
@profiles
@as_json
def command(directory: str, session: str, **options: Any) -> int:
    """Go through the past of a session. It reads the journal and calls nothing.

    On a terminal it steps through with keys (? lists them), without a terminal it prints the newest moment. A frame's
    number is what `show` prints; `show --find TEXT` finds it. Exit code 1: a request that was made again is not the
    same as the recorded one.
    """
    from .replaying import Asked, run

    return run(directory, session, Asked(**options))
