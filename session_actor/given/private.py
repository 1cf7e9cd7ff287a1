"""What is private is shown by its own `repr` alone."""

from __future__ import annotations

from typing import Any


def as_repr(_private: object) -> Any:
    """What `__rich_repr__` is of values whose `repr` leaves out what was said: None, so that `repr` is taken.

    Rich prints all fields of a msgspec Struct otherwise, and structlog's default prints tracebacks by it, with
    the values of local variables.
    """
    return None
