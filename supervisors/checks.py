"""Checks of values that come from outside."""

from __future__ import annotations

from math import inf
from sys import float_info


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
