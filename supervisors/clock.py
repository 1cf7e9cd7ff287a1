"""Monotonic time behind one small interface, so that windows, backoffs and deadlines are tested without waiting."""

from __future__ import annotations

import heapq
import itertools
from contextvars import copy_context
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable


class TimerHandle(Protocol):
    """What `call_later` returns."""

    def cancel(self) -> None:
        """Forget the callback; harmless when it has run."""


class Clock(Protocol):
    """Monotonic seconds and callbacks."""

    def monotonic(self) -> float:
        """Return seconds that never go back."""
        ...

    def call_later(self, delay_s: float, callback: Callable[[], None]) -> TimerHandle:
        """Run `callback` once, `delay_s` seconds from now, on the loop's thread."""
        ...


class LoopClock:
    """The clock of an event loop: a loop whose time is not the world's, as a simulation's is not, gives its own."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        """Take time and timers from `loop`; these run in the context of now, not in that of who sets them."""
        self._call_later = loop.call_later
        self._context = copy_context()
        self.monotonic = loop.time

    def call_later(self, delay_s: float, callback: Callable[[], None]) -> TimerHandle:
        """Run `callback` in `delay_s` seconds."""
        return self._call_later(delay_s, callback, context=self._context)


class _ManualTimer:
    __slots__ = ("callback",)

    def __init__(self, callback: Callable[[], None]) -> None:
        self.callback: Callable[[], None] | None = callback

    def cancel(self) -> None:
        self.callback = None


class ManualClock:
    """A clock that moves only by `advance`: for tests of windows, backoffs and deadlines."""

    def __init__(self, start_s: float = 1000.0) -> None:
        """Begin at `start_s` seconds."""
        self._now_s = start_s
        self._order = itertools.count()
        self._timers: list[tuple[float, int, _ManualTimer]] = []

    def monotonic(self) -> float:
        """Return the time reached so far, in seconds."""
        return self._now_s

    def call_later(self, delay_s: float, callback: Callable[[], None]) -> TimerHandle:
        """Run `callback` when `advance` has moved the clock by `delay_s` seconds."""
        timer = _ManualTimer(callback)
        heapq.heappush(self._timers, (self._now_s + max(0.0, delay_s), next(self._order), timer))
        return timer

    def advance(self, seconds: float) -> None:
        """Move on by `seconds` and run everything that falls due, in order of its time.

        Raises:
            ValueError: `seconds` is negative.
        """
        if seconds < 0:
            message = f"a monotonic clock cannot go back by {-seconds} s"
            raise ValueError(message)
        target_s = self._now_s + seconds
        while self._timers and self._timers[0][0] <= target_s:
            due_s, _, timer = heapq.heappop(self._timers)
            self._now_s = max(self._now_s, due_s)
            callback, timer.callback = timer.callback, None
            if callback is not None:
                callback()
        self._now_s = target_s
