"""`session-actor stats DIR [ID]`: figures of a store, or of one session. No text is shown."""

from __future__ import annotations

import click

from .asking import ID, as_json, directory, named, profiles


@named(
    "stats",
    "session-actor stats conversations/",
    "session-actor stats conversations/ user-42",
    "session-actor stats conversations/ --json | jq .records",
)
@directory
@click.argument("session", metavar="[ID]", type=ID, required=False)
@profiles
@as_json
def command(directory: str, session: str | None, *, profiles: str | None, as_json: bool) -> int:
    """Give figures of a store (without reading a journal), or of one session (all of its records are read)."""
    from .figures import run

    return run(directory, session, profiles=profiles, as_json=as_json)
