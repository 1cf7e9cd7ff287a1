"""A breaker: what fails again and again is left alone for a while. Pure, without a clock of its own."""

from __future__ import annotations

from collections import deque
from typing import Final

FAILURES: Final = 3
"""So many failures within the window open it."""
WINDOW_S: Final = 60.0
REST_S: Final = 30.0
"""How long it stays open; then one try is let through, which decides."""


class Breaker:
    """One hook's breaker; moments are monotonic seconds."""

    __slots__ = ("_failures", "_open_until_s", "_trying")

    def __init__(self) -> None:
        """Closed: everything passes."""
        self._failures: deque[float] = deque(maxlen=FAILURES)
        self._open_until_s: float | None = None
        self._trying = False

    @property
    def open(self) -> bool:
        """Whether it holds tries back, or lets just one through."""
        return self._open_until_s is not None

    def wait_s(self, now_s: float) -> float | None:
        """How long the next try must wait [seconds], 0 for not at all; None: until the one that decides is over."""
        if self._open_until_s is None:
            return 0.0
        return None if self._trying else max(0.0, self._open_until_s - now_s)

    def begin(self) -> bool:
        """A try begins, which `wait_s` has let through; returns whether it is the one that decides."""
        self._trying = self.open
        return self._trying

    def leave(self) -> None:
        """The try that was to decide ended without a word."""
        self._trying = False

    def succeed(self) -> bool:
        """A try succeeded; returns whether that closes the breaker."""
        closes = self.open
        self._failures.clear()
        self._open_until_s = None
        self._trying = False
        return closes

    def fail(self, now_s: float, *, decides: bool) -> bool:
        """A try failed, the one that decides or another; returns whether that opens the breaker, which was closed."""
        if self.open:
            if decides:
                self._trying = False
                self._open_until_s = now_s + REST_S
            return False
        self._failures.append(now_s)
        if len(self._failures) < FAILURES or now_s - self._failures[0] > WINDOW_S:
            return False
        self._open_until_s = now_s + REST_S
        return True
