"""Ids that are the library's own: what a service keeps in its store beside the sessions of its embedder."""

from __future__ import annotations

from typing import Final

PREFIX: Final = "\0session-actor/"
"""How these ids begin; nobody else's may."""

HOOKS: Final = f"{PREFIX}hooks"
"""Which hooks are still to run."""


def is_reserved(session_id: str) -> bool:
    """Whether this is no session of an embedder: listings leave it out, and nobody may ask for it."""
    return session_id.startswith(PREFIX)
