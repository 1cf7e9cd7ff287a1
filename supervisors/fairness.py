"""One budget per event loop, shared by inline calls and draining servers, so that nobody holds the loop."""

from __future__ import annotations

from collections import deque
from contextvars import copy_context
from math import inf
from time import perf_counter
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable

    from .reply import PendingReply

    Ran = tuple[PendingReply[Any], object, BaseException | None]
    Waiting = asyncio.Future[None] | Callable[[], None] | Ran

SLICE_S: Final = 0.001
OVERDRAFT_S: Final = 0.004
"""So long calls of leaf servers still run when the budget is spent: to queue them would hold the loop as long."""
WAKES_PER_TURN: Final = 64


class FairnessBudget:
    """Says how long message handlers may hold the loop, and lets those go on in a later turn that could not in this.

    The loop does not tell when it turns. So the budget asks for a turn only after a slice of time has passed, lets one
    more slice go by, and is spent until that turn has come. `check_at` is the time at which a handler must ask `admits`
    before it runs: far in the future while there is budget, in the past while it is spent.

    Who must wait stands in one line, first come first served: tasks of servers, idle servers whose messages the loop
    runs itself, and callers whose calls were run although the budget was spent.
    """

    __slots__ = (
        "_call_soon", "_context", "_create_future", "_line", "_now", "_turn_asked", "bears_until", "check_at", "wakes"
    )  # fmt: skip

    def __init__(self, loop: asyncio.AbstractEventLoop, now: Callable[[], float] = perf_counter) -> None:
        """Serve `loop`; `now` gives seconds."""
        self._call_soon = loop.call_soon
        self._create_future = loop.create_future
        self._context = copy_context()
        self._now = now
        self._line: deque[Waiting] = deque()
        self._turn_asked = False
        self.wakes = 0
        self.check_at = now() + SLICE_S
        self.bears_until = -inf
        """Until then calls of leaf servers are run all the same; counts only while the budget is spent."""

    def admits(self, now_s: float) -> bool:
        """Say whether a handler may run at `now_s`, which is at or after `check_at`; False: wait for the next turn."""
        if self._turn_asked:
            if self.check_at != -inf:
                self.check_at = -inf
                self.bears_until = now_s + OVERDRAFT_S
            return False
        self._ask_for_turn()
        self.check_at = now_s + SLICE_S
        return True

    def postpone(self, waker: asyncio.Future[None]) -> None:
        """Wake a server in a later turn, because `WAKES_PER_TURN` were woken in this one or the budget is spent."""
        self._line.append(waker)
        self.wakes = WAKES_PER_TURN
        self._ask_for_turn()

    def park(self) -> asyncio.Future[None]:
        """Return a future that is done in a later turn of the loop, first come first served."""
        waker: asyncio.Future[None] = self._create_future()
        self.postpone(waker)
        return waker

    def plan(self, run: Callable[[], None]) -> None:
        """Call `run`, which runs messages, in a later turn."""
        self._line.append(run)
        self._ask_for_turn()

    def answer_later(self, pending: PendingReply[Any], reply: object, error: BaseException | None) -> None:
        """Answer a call that has run, in a later turn: its caller lets the loop go. `error`: why it was refused."""
        self._line.append((pending, reply, error))
        self._ask_for_turn()

    def _ask_for_turn(self) -> None:
        if not self._turn_asked:
            self._turn_asked = True
            self._call_soon(self._next_turn, context=self._context)

    def _next_turn(self) -> None:
        self._turn_asked = False
        self.wakes = 0
        begun_s = self._now()
        self.check_at = until_s = begun_s + SLICE_S
        line = self._line
        try:
            while line and self.wakes < WAKES_PER_TURN and self._now() < until_s:
                self._go_on(line.popleft())
        finally:
            if line:  # who comes now has less of the turn than the line had
                self.wakes = WAKES_PER_TURN
                self._ask_for_turn()
                self.check_at = begun_s + 1.5 * SLICE_S

    def _go_on(self, waiting: Waiting) -> None:
        if isinstance(waiting, tuple):
            ran: Ran = waiting  # pyright: ignore[reportUnknownVariableType]
            pending, reply, error = ran
            if pending.future.done():
                return
            self.wakes += 1
            if error is None:
                pending.future.set_result(reply)
            else:
                pending.fail(error)
        elif callable(waiting):
            waiting()
        elif not waiting.done():
            self.wakes += 1
            waiting.set_result(None)
