"""Times as records have them: microseconds since the epoch, UTC, of the years 1 to 9999."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from time import time_ns
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from session_actor.errors import Refused

__all__ = ["FIRST_US", "LAST_US", "as_datetime", "as_us", "now_us", "time_ns", "wrong_time"]

FIRST_US: Final = -62_135_596_800_000_000
"""The start of year 1, in microseconds since the epoch, UTC."""
LAST_US: Final = 253_402_300_799_999_999
"""The end of year 9999."""
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)


def now_us() -> int:
    """Microseconds since the epoch, UTC. Raises `Refused` when the system clock shows a time that cannot be stored."""
    at_us = time_ns() // 1_000
    if not FIRST_US <= at_us <= LAST_US:
        raise wrong_time()
    return at_us


def wrong_time() -> Refused:
    """What is raised when it does."""
    from session_actor.errors import Refused

    why = "which no record can have; nothing was changed: set the clock"
    return Refused(f"the system clock shows a time outside the years 1 to 9999, {why}")


def as_datetime(at_us: int) -> datetime:
    """The same as a datetime: aware, UTC, exact to the microsecond."""
    return _EPOCH + at_us * _MICROSECOND


def as_us(at: datetime) -> int:
    """The other way, exact; `at` is aware."""
    return (at - _EPOCH) // _MICROSECOND
