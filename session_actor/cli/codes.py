"""What the commands answer to a shell."""

from __future__ import annotations

import sys
from typing import Final

from .harmless import one_line

CLEAN: Final = 0
"""Done, and nothing to tell of."""
FOUND: Final = 1
"""Done, and something was found: damage, something left to do, lines that could not be read, a difference."""
CANNOT: Final = 2
"""The command could not run: wrong arguments, no such store or session, the disk refuses."""
CORRUPT: Final = 3
"""Something that had to be read is damaged; what came before it was read."""
NEWER: Final = 4
"""Something needs a newer version of session-actor."""
LOCKED: Final = 5
"""A process that is alive has the store open."""
INTERRUPTED: Final = 130
"""Ctrl-C."""
UNREAD: Final = 141
"""Whoever read the output stopped reading, as `head` does."""


class Stop(Exception):
    """A command cannot go on: one line for people, and the exit code."""

    def __init__(self, why: str, code: int = CANNOT) -> None:
        """`why`: what is wrong, and what to do."""
        super().__init__(why)
        self.code = code


def counted(count: int, one: str) -> str:
    """`1 session`, `2 sessions`, `10,000 sessions`."""
    return f"{count:,} {one}" if count == 1 else f"{count:,} {one}s"


def say(text: str) -> None:
    """Print one line."""
    sys.stdout.write(text + "\n")


def note(text: str) -> None:
    """Tell people something beside the data, on stderr."""
    sys.stdout.flush()
    sys.stderr.write(one_line(text) + "\n")


def code_of(error: BaseException) -> int:
    """The exit code for an error."""
    from session_actor.errors import RecordUnknown, RecordUnreadable, ReplayError
    from session_actor.persistence import errors

    if isinstance(error, Stop):
        return error.code
    if isinstance(error, errors.StoreLocked):
        return LOCKED
    if isinstance(error, errors.StoreVersionTooNew | RecordUnknown):
        return NEWER
    damage = (errors.StoreCorrupt, errors.LineDamaged, errors.ValueUnreadable, RecordUnreadable, ReplayError)
    return CORRUPT if isinstance(error, damage) else CANNOT


def excuse(error: Exception) -> int:
    """Say on stderr why the command could not run, in one line; returns the exit code for it."""
    note(str(error) or type(error).__name__)
    return code_of(error)
