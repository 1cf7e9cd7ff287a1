"""What the commands answer to a shell, and how they speak."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from session_actor.persistence.errors import PersistenceError

CLEAN: Final = 0
"""No damage, and nothing left to do."""
FOUND: Final = 1
"""Damage, or something left to do."""
CANNOT: Final = 2
"""The command could not run: the store is in use, missing, or of a newer version."""


def say(text: str) -> None:
    """Print one line."""
    sys.stdout.write(text + "\n")


def excuse(error: PersistenceError | OSError) -> int:
    """Say on stderr why the command could not run; returns the exit code for it."""
    sys.stderr.write(f"{error}\n")
    return CANNOT
