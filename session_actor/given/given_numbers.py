"""Numbers that callers give: seconds, and counts."""

from __future__ import annotations

from math import inf
from sys import float_info

from session_actor.errors import InvalidArgument


def check_seconds(what: str, value: object, *, optional: bool = False, zero: bool = True) -> None:
    """Refuse what is no number of seconds. `optional`: None is allowed. `zero`: 0 is allowed.

    Raises InvalidArgument, which calls the value `what`.
    """
    if value is None and optional:
        return
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    fits = is_number and (0 <= value <= float_info.max or value == inf)  # type: ignore[operator]  # a number, by then
    if not fits or (value == 0 and not zero):
        least = "of at least 0" if zero else "above 0"
        raise InvalidArgument(what, f"must be a number of seconds {least}{', or None' if optional else ''}")


def check_count(what: str, value: object, *, least: int, optional: bool = False) -> None:
    """Refuse what is no whole number of at least `least`. `optional`: None is allowed. Raises InvalidArgument."""
    if value is None and optional:
        return
    if not isinstance(value, int) or isinstance(value, bool) or value < least:
        raise InvalidArgument(what, f"must be a whole number of at least {least}{', or None' if optional else ''}")
