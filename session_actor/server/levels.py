"""Levels as callers name them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from session_actor.errors import InvalidArgument, translate
from session_actor.given.plain import is_a, plain_str, shown
from session_actor.persistence import LEVELS, LevelUnreachable, PersistenceError

if TYPE_CHECKING:
    from session_actor.persistence import Level, Store


def check_level(level: object, what: str = "durability") -> Level:
    """`level` itself as an exact str. Raises `InvalidArgument`, which calls it `what`."""
    if type(level) is str and level in LEVELS:
        return level
    word = plain_str(level) if is_a(level, str) else None
    if word not in LEVELS:
        raise InvalidArgument(what, f"must be one of {', '.join(LEVELS)}, got {shown(level)}")
    return word


def promises(store: Store, level: Level) -> bool:
    """Whether the store can promise a level at all, in trouble or not."""
    return _unreachable(store, level) is None


def check_promised(store: Store, level: Level) -> None:
    """Raises LevelUnreachable for what the store can never promise."""
    error = _unreachable(store, level)
    if error is not None:
        raise translate(error)


def _unreachable(store: Store, level: Level) -> LevelUnreachable | None:
    try:
        store.admit(level)
    except LevelUnreachable as error:
        return error
    except PersistenceError:  # trouble, which passes
        return None
    return None
