"""Timeouts of all waiting calls by one sweep and one timer."""

from __future__ import annotations

import heapq
import itertools
from math import inf
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from .clock import Clock, TimerHandle
    from .reply import PendingReply

COMPACT_ABOVE: Final = 1024


class Deadlines:
    """A heap of waiting calls by deadline; answered ones are thrown out when they outnumber the others."""

    __slots__ = ("_clock", "_due_s", "_heap", "_limit", "_order", "_timer")

    def __init__(self, clock: Clock) -> None:
        """Take time and the one timer from `clock`."""
        self._clock = clock
        self._order = itertools.count()
        self._heap: list[tuple[float, int, PendingReply[Any]]] = []
        self._limit = COMPACT_ABOVE
        self._timer: TimerHandle | None = None
        self._due_s = inf

    def add(self, pending: PendingReply[Any], timeout_s: float) -> None:
        """Expire `pending` in `timeout_s` seconds unless it is answered before."""
        due_s = self._clock.monotonic() + timeout_s
        heapq.heappush(self._heap, (due_s, next(self._order), pending))
        if due_s < self._due_s:
            self._arm(due_s)
        if len(self._heap) > self._limit:
            self._compact()

    def _compact(self) -> None:
        self._heap = [entry for entry in self._heap if not entry[2].future.done()]
        heapq.heapify(self._heap)
        self._limit = max(COMPACT_ABOVE, 2 * len(self._heap))

    def _arm(self, due_s: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._due_s = due_s
        self._timer = self._clock.call_later(due_s - self._clock.monotonic(), self._sweep)

    def _sweep(self) -> None:
        self._timer = None
        self._due_s = inf
        now_s = self._clock.monotonic()
        heap = self._heap
        while heap and (heap[0][0] <= now_s or heap[0][2].future.done()):
            heapq.heappop(heap)[2].expire()
        if heap:
            self._arm(heap[0][0])
