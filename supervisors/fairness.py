"""One budget per event loop, shared by inline calls and draining servers, so that nobody holds the loop."""

from __future__ import annotations

from collections import deque
from math import inf
from time import perf_counter
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable

SLICE_S: Final = 0.001
WAKES_PER_TURN: Final = 64


class FairnessBudget:
    """Says how long message handlers may hold the loop, and wakes servers a few at a time.

    The loop does not tell when it turns. So the budget asks for a turn only after a slice of time has passed, lets one
    more slice go by, and is spent until that turn has come. `check_at` is the time at which a handler must ask `admits`
    before it runs: far in the future while there is budget, in the past while it is spent.
    """

    __slots__ = ("_call_soon", "_create_future", "_now", "_parked", "_turn_asked", "check_at", "wakes")

    def __init__(self, loop: asyncio.AbstractEventLoop, now: Callable[[], float] = perf_counter) -> None:
        """Serve `loop`; `now` gives seconds."""
        self._call_soon = loop.call_soon
        self._create_future = loop.create_future
        self._now = now
        self._parked: deque[asyncio.Future[None]] = deque()
        self._turn_asked = False
        self.wakes = 0
        self.check_at = now() + SLICE_S

    def admits(self, now_s: float) -> bool:
        """Say whether a handler may run at `now_s`, which is at or after `check_at`; False: wait for the next turn."""
        if self._turn_asked:
            self.check_at = -inf
            return False
        self._ask_for_turn()
        self.check_at = now_s + SLICE_S
        return True

    def postpone(self, waker: asyncio.Future[None]) -> None:
        """Wake a server in a later turn, because `WAKES_PER_TURN` were woken in this one or the budget is spent."""
        self._parked.append(waker)
        self.wakes = WAKES_PER_TURN
        self._ask_for_turn()

    def park(self) -> asyncio.Future[None]:
        """Return a future that is done in a later turn of the loop, first come first served."""
        waker: asyncio.Future[None] = self._create_future()
        self.postpone(waker)
        return waker

    def _ask_for_turn(self) -> None:
        if not self._turn_asked:
            self._turn_asked = True
            self._call_soon(self._next_turn)

    def _next_turn(self) -> None:
        self._turn_asked = False
        self.wakes = 0
        self.check_at = self._now() + SLICE_S
        parked = self._parked
        while parked and self.wakes < WAKES_PER_TURN:
            waker = parked.popleft()
            if not waker.done():
                self.wakes += 1
                waker.set_result(None)
        if parked:
            self.wakes = WAKES_PER_TURN
            self._ask_for_turn()
