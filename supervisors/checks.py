"""Checks of values that come from outside."""

from __future__ import annotations

import inspect
from math import inf
from sys import float_info
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Awaitable

Answer = TypeVar("Answer")


def check_timeout(name: str, seconds: float | None) -> None:
    """Accept None and seconds that are not negative.

    Raises:
        ValueError: negative, NaN, or an int above the greatest float: adding it to a time would raise later.
        TypeError: neither an int nor a float.
    """
    if seconds is None:
        return
    if isinstance(seconds, bool) or not isinstance(seconds, (int, float)):  # pyright: ignore[reportUnnecessaryIsInstance] - whatever
        message = f"{name} is a number of seconds or None, not {type(seconds).__name__}"
        raise TypeError(message)
    if not 0 <= seconds <= float_info.max and seconds != inf:
        message = f"{name} must not be negative or NaN, nor an int that no float can hold"
        raise ValueError(message)


def check_kind(name: str, value: object, kind: type) -> None:
    """Accept a value of this class; what else there is would fail only when a child crashes, and nobody would see it.

    Raises:
        TypeError: it is of another class.
    """
    if not isinstance(value, kind):
        message = f"{name} is of class {kind.__name__}, not {type(value).__name__}"
        raise TypeError(message)


class CallbackNotAsync(TypeError):
    """A callback that is awaited is a plain `def`. The log, and InitFailed, tell of an error by its name alone."""


def awaited(server: object, name: str, answer: Awaitable[Answer]) -> Awaitable[Answer]:
    """Accept what a server's callback of this name gave, if it can be awaited.

    Raises:
        CallbackNotAsync: it cannot.
    """
    if not inspect.isawaitable(answer):
        message = f"{type(server).__qualname__}.{name} must be an `async def`: it is awaited"
        raise CallbackNotAsync(message)
    return answer
