"""Checks of values that come from outside."""

from __future__ import annotations


def check_timeout(name: str, seconds: float | None) -> None:
    """Accept None and seconds that are not negative.

    Raises:
        ValueError: negative or NaN.
        TypeError: not a number.
    """
    if seconds is None:
        return
    if isinstance(seconds, bool) or not isinstance(seconds, (int, float)):  # pyright: ignore[reportUnnecessaryIsInstance]
        message = f"{name} is a number of seconds or None, not {type(seconds).__name__}"
        raise TypeError(message)
    if not seconds >= 0:
        message = f"{name} must not be negative or NaN, not {seconds}"
        raise ValueError(message)
