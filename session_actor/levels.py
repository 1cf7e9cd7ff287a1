"""Levels as callers name them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from session_actor.persistence import LEVELS

from .errors import InvalidArgument, LevelUnreachable
from .plain import is_a, plain_str, shown

if TYPE_CHECKING:
    from session_actor.persistence import Level


def check_level(level: object, what: str = "durability") -> Level:
    """`level` itself as an exact str. Raises `InvalidArgument`, which calls it `what`, and `LevelUnreachable`."""
    if type(level) is str and level in LEVELS:
        return level
    if not is_a(level, str):
        raise InvalidArgument(what, f"must be one of {', '.join(LEVELS)}, got {shown(level)}")
    word = plain_str(level)
    if word not in LEVELS:
        raise LevelUnreachable(word, LEVELS)
    return word
