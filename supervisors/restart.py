"""When a crashed child is started again: pure functions, no clock of their own."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from math import inf
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Callable

    from .exits import ExitReason

RestartKind = Literal["permanent", "transient", "temporary"]


@dataclass(frozen=True, slots=True)
class Intensity:
    """How many restarts a child gets before its supervisor gives up on it.

    Restarts are counted since the child last lived `max_seconds` in one piece; time spent in backoff does not count, so
    a growing backoff cannot hide an always failing child. (OTP: supervisor, intensity and period; here per child.)
    """

    max_restarts: int = 3
    max_seconds: float = 5.0

    def __post_init__(self) -> None:
        """Refuse what cannot limit anything with ValueError."""
        if self.max_restarts < 0 or not 0 < self.max_seconds < inf:
            message = f"intensity needs max_restarts >= 0 and max_seconds > 0, not {self}"
            raise ValueError(message)


@dataclass(frozen=True, slots=True)
class Backoff:
    """The delay before restart n in a row: `initial_s * factor ** (n - 1)`, at most `max_s`, spread by +- `jitter`."""

    initial_s: float = 0.01
    factor: float = 2.0
    max_s: float = 10.0
    jitter: float = 0.2

    def __post_init__(self) -> None:
        """Refuse delays that are negative, shrink, or are neither int nor float with ValueError."""
        delays = (self.initial_s, self.factor, self.max_s, self.jitter)
        sound = all(isinstance(value, (int, float)) for value in delays)  # pyright: ignore[reportUnnecessaryIsInstance]
        sound = sound and self.initial_s >= 0 and self.max_s >= 0 and self.factor >= 1 and 0 <= self.jitter <= 1
        if not sound:
            message = f"backoff needs initial_s, max_s >= 0, factor >= 1 and 0 <= jitter <= 1, not {self}"
            raise ValueError(message)

    def delay_s(self, attempt: int, random: Callable[[], float]) -> float:
        """Return the seconds before restart number `attempt` (from 1); `random` gives a number in [0, 1)."""
        grown_s = self.max_s
        if attempt - 1 < _EXPONENT_MAX:
            with suppress(OverflowError):
                grown_s = min(self.max_s, self.initial_s * self.factor ** (attempt - 1))
        return grown_s * (1 + self.jitter * (2 * random() - 1))


_EXPONENT_MAX = 64


@dataclass(frozen=True, slots=True)
class Restart:
    """Start the child again in `delay_s` seconds; it is its restart number `attempt` in a row."""

    delay_s: float
    attempt: int


@dataclass(frozen=True, slots=True)
class Exhausted:
    """The child has used its restarts."""

    attempt: int


def wants_restart(kind: RestartKind, reason: ExitReason) -> bool:
    """Say whether a child of this kind is started again after this end (OTP: restart types)."""
    if kind == "permanent":
        return True
    return kind == "transient" and reason.abnormal


def next_restart(
    attempt: int, lived_s: float, intensity: Intensity, backoff: Backoff, random: Callable[[], float]
) -> Restart | Exhausted:
    """Decide what follows a crash.

    Args:
        attempt: restarts in a row so far.
        lived_s: seconds that the incarnation lived after its init; 0 when init failed.
        intensity: the limit.
        backoff: the delays.
        random: gives a number in [0, 1).
    """
    if lived_s >= intensity.max_seconds:
        attempt = 0
    if attempt >= intensity.max_restarts:
        return Exhausted(attempt)
    return Restart(backoff.delay_s(attempt + 1, random), attempt + 1)
