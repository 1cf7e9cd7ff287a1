"""What the commands answer to a shell, and how they speak."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Final, Protocol

if TYPE_CHECKING:
    import argparse

    from session_actor.persistence.errors import PersistenceError

CLEAN: Final = 0
"""No damage, and nothing left to do."""
FOUND: Final = 1
"""Damage, or something left to do."""
CANNOT: Final = 2
"""The command could not run: the store is in use, missing, or of a newer version."""


class Commands(Protocol):
    """Where a command adds itself: what `ArgumentParser.add_subparsers` returns."""

    def add_parser(self, name: str, *, help: str, description: str) -> argparse.ArgumentParser:  # noqa: A002 - argparse's word
        """A parser for the arguments of one command."""
        ...


def counted(count: int, one: str) -> str:
    """`1 session`, `2 sessions`."""
    return f"{count} {one}" if count == 1 else f"{count} {one}s"


def say(text: str) -> None:
    """Print one line."""
    sys.stdout.write(text + "\n")


def excuse(error: PersistenceError | OSError) -> int:
    """Say on stderr why the command could not run; returns the exit code for it."""
    sys.stderr.write(f"{error}\n")
    return CANNOT
