"""The time at which a record is made, and that it is one that can be stored."""

from __future__ import annotations

from time import time_ns
from typing import Final

from .errors import Refused

FIRST_US: Final = -62_135_596_800_000_000
"""The start of year 1, in microseconds since the epoch, UTC."""
LAST_US: Final = 253_402_300_799_999_999
"""The end of year 9999."""


def now_us() -> int:
    """Microseconds since the epoch, UTC. Raises `Refused` when the system clock shows a time that cannot be stored."""
    at_us = time_ns() // 1_000
    if not FIRST_US <= at_us <= LAST_US:
        why = "which no record can have; nothing was changed: set the clock"
        raise Refused(f"the system clock shows a time outside the years 1 to 9999, {why}")
    return at_us
