"""`session-actor tail DIR [ID]`: records as they come, of a store that a server has open."""

from __future__ import annotations

import click

from .asking import ID, as_json, directory, named


@named(
    "tail",
    "session-actor tail conversations/                 # all sessions, from now on",
    "session-actor tail conversations/ user-42 -n 20   # one, with its newest 20 records",
    "session-actor tail conversations/ user-42 --no-follow --content",
    "session-actor tail conversations/ --json | jq 'select(.kind == \"requested\")'",
)
@directory
@click.argument("session", metavar="[ID]", type=ID, required=False)
@click.option(
    "-n",
    "--lines",
    type=click.IntRange(min=0, max=1_000_000_000),
    metavar="N",
    help="With ID: its newest N records first. Default: 10.",
)
@click.option("--follow/--no-follow", default=True, help="Go on with what comes (default), or end.")
@click.option(
    "--interval",
    type=click.FloatRange(min=0.01, max=86_400),
    default=0.5,
    show_default=True,
    metavar="S",
    help="Seconds between looks.",
)
@click.option("--content", is_flag=True, help="Show what the records hold, too.")
@as_json
def command(
    directory: str,
    session: str | None,
    *,
    lines: int | None,
    follow: bool,
    interval: float,
    content: bool,
    as_json: bool,
) -> int:
    """Follow a store: each record as it comes, what it did, never what was said (--content shows that).

    The store is read without its lock. A record is seen once it was written. Ctrl-C ends it with exit code 130.
    """
    from .tailing import run

    return run(directory, session, lines=lines, follow=follow, interval=interval, content=content, as_json=as_json)
