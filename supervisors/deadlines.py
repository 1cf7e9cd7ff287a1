"""Timeouts of all waiting calls by one shared sweep."""

from __future__ import annotations

import heapq
import itertools
from math import inf
from typing import TYPE_CHECKING, Any, Final
from weakref import ref

from .clock import LoopClock

if TYPE_CHECKING:
    from .clock import Clock, TimerHandle
    from .reply import PendingReply

    Calls = list[ref[PendingReply[Any]]]

TICK_S: Final = 0.005
EXACT_BELOW_S: Final = 0.1
COMPACT_ABOVE: Final = 1024


class Deadlines:
    """The waiting calls by deadline.

    Most calls are answered within microseconds. So a new one only goes to `fresh`, which it leaves with its reply; the
    next tick, at most `TICK_S` later, puts what is left into a heap, its time counted from that tick: all that have the
    same timeout, as nearly all have, as one entry. The heap keeps no call, nor its message and context: until it is
    answered, whoever waits and whoever is to answer do. Timeouts below `EXACT_BELOW_S`, and all under a test's clock,
    go to the heap at once and are exact.
    """

    __slots__ = ("_clock", "_due_s", "_heap", "_held", "_limit", "_order", "_tick_s", "_timer", "fresh", "ticking")

    def __init__(self, clock: Clock) -> None:
        """Take time and timers from `clock`."""
        self._clock = clock
        self._tick_s = TICK_S if isinstance(clock, LoopClock) else 0.0
        self._order = itertools.count()
        self._heap: list[tuple[float, int, Calls]] = []
        self._held = 0
        """How many calls are in the heap, answered ones among them."""
        self._limit = COMPACT_ABOVE
        self._timer: TimerHandle | None = None
        self._due_s = inf
        self.fresh: set[PendingReply[Any]] = set()
        self.ticking = False

    def add(self, pending: PendingReply[Any], timeout_s: float) -> None:
        """Expire `pending` in `timeout_s` seconds unless it is answered before."""
        if timeout_s < EXACT_BELOW_S or not self._tick_s:
            self._push([ref(pending)], timeout_s, self._clock.monotonic())
            return
        self.fresh.add(pending)
        if not self.ticking:
            self.ticking = True
            self._clock.call_later(self._tick_s, self._tick)

    def _tick(self) -> None:
        self.ticking = False
        fresh, self.fresh = self.fresh, set()
        now_s = self._clock.monotonic()
        left: dict[float, Calls] = {}
        for pending in fresh:
            timeout_s = pending.timeout_s
            if timeout_s is not None and not pending.future.done():
                left.setdefault(timeout_s, []).append(ref(pending))
        for timeout_s, calls in left.items():
            self._push(calls, timeout_s, now_s)

    def _push(self, calls: Calls, timeout_s: float, now_s: float) -> None:
        due_s = now_s + timeout_s
        heapq.heappush(self._heap, (due_s, next(self._order), calls))
        self._held += len(calls)
        if due_s < self._due_s:
            self._arm(due_s, now_s)
        if self._held > self._limit:
            self._compact()

    def _compact(self) -> None:
        """Forget what was answered."""
        waiting = [(due_s, order, _unanswered(calls)) for due_s, order, calls in self._heap]
        self._heap = [entry for entry in waiting if entry[2]]
        heapq.heapify(self._heap)
        self._held = sum(len(entry[2]) for entry in self._heap)
        self._limit = max(COMPACT_ABOVE, 2 * self._held)

    def _arm(self, due_s: float, now_s: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._due_s = due_s
        self._timer = self._clock.call_later(due_s - now_s, self._sweep)

    def _sweep(self) -> None:
        self._timer = None
        self._due_s = inf
        now_s = self._clock.monotonic()
        heap = self._heap
        while heap and (heap[0][0] <= now_s or not _unanswered(heap[0][2])):
            calls = heapq.heappop(heap)[2]
            self._held -= len(calls)
            for call in calls:
                pending = call()
                if pending is not None:
                    pending.expire()
        if heap:
            self._arm(heap[0][0], now_s)


def _unanswered(calls: Calls) -> Calls:
    return [call for call in calls if (pending := call()) is not None and not pending.future.done()]
