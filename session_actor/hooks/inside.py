"""Knowing that code runs inside a hook, so that it cannot change the session that the hook was called for.

The mark is a context variable: tasks that a hook starts inherit it, and a message is handled in its sender's context.
"""

from __future__ import annotations

from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Final

from .errors import InsideHook

if TYPE_CHECKING:
    from collections.abc import Generator, Hashable

_inside: Final[ContextVar[frozenset[Hashable]]] = ContextVar("session_actor_inside_hook", default=frozenset())


@contextmanager
def inside(*marks: Hashable) -> Generator[None]:
    """Run a hook of the session that these stand for."""
    token = _inside.set(_inside.get() | frozenset(marks))
    try:
        yield
    finally:
        _inside.reset(token)


def refuse_inside(session: str, mark: Hashable) -> None:
    """Raises InsideHook when this is called, directly or over other tasks, by a hook of that session."""
    if mark in _inside.get():
        raise InsideHook(session)
