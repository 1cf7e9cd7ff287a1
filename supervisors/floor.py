"""What all servers of one event loop share."""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from contextvars import copy_context
from typing import TYPE_CHECKING, Any

from .clock import Clock, LoopClock
from .deadlines import Deadlines
from .errors import AsyncioOnly, WrongLoop, shown
from .fairness import FairnessBudget

if TYPE_CHECKING:
    from collections.abc import Callable

    from .mailbox import Mailbox
    from .slot import Slot

_floors: dict[asyncio.AbstractEventLoop, Floor] = {}


class _Asked:
    """Stands for a loop that does not tell in which thread it runs."""

    __slots__ = ("_floor",)

    def __init__(self, floor: Floor) -> None:
        self._floor = floor

    @property
    def _thread_id(self) -> int | None:
        return self._floor.thread_id if self._floor.is_running() else None


class Floor:
    """Loop, thread, clock, fairness budget, deadlines and tasks.

    `tasks` holds the servers' tasks (asyncio itself holds tasks weakly), `active` those inside an async handler,
    `stack` the servers whose sync handler is running, outermost first.
    """

    __slots__ = (
        "__weakref__",
        "active",
        "budget",
        "clock",
        "context",
        "deadlines",
        "is_running",
        "loop",
        "stack",
        "task_done",
        "tasks",
        "telling",
        "thread_id",
        "warm",
    )

    def __init__(self, loop: asyncio.AbstractEventLoop, clock: Clock, shared: Floor | None = None) -> None:
        """Serve `loop`; with another clock, all but clock and deadlines come from `shared`, the loop's own floor."""
        self.loop = loop
        self.is_running = loop.is_running
        self.thread_id = threading.get_ident()
        # asyncio's own loops have the thread in which they run in `_thread_id`, None when they do not: one look instead
        # of two calls, a tenth of an inline call. Other loops, and a future asyncio, may not tell so.
        self.telling: Any = loop if getattr(loop, "_thread_id", None) == self.thread_id else _Asked(self)
        self.clock = clock
        self.deadlines = Deadlines(clock)
        self.budget: FairnessBudget = FairnessBudget(loop) if shared is None else shared.budget
        self.tasks: dict[asyncio.Task[None], Slot] = {} if shared is None else shared.tasks
        self.active: dict[asyncio.Task[None], Slot] = {} if shared is None else shared.active
        self.context = copy_context()
        self.task_done: Callable[[asyncio.Task[None]], None] | None = None
        self.warm: deque[Mailbox] = deque() if shared is None else shared.warm
        self.stack: list[Slot] = [] if shared is None else shared.stack

    @classmethod
    def current(cls, clock: Clock | None = None) -> Floor:
        """Return the running loop's floor, or one like it with `clock`.

        Raises:
            AsyncioOnly: no asyncio loop is running here.
        """
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            message = "no running asyncio loop: supervisors need asyncio (or uvloop); trio is not supported"
            raise AsyncioOnly(message) from None
        floor = _floors.get(loop)
        if floor is None:
            for ended in [known for known in _floors if known.is_closed()]:
                del _floors[ended]
            floor = _floors[loop] = cls(loop, LoopClock(loop))
        return floor if clock is None else cls(loop, clock, shared=floor)

    def check(self, slot_id: object) -> None:
        """Refuse a call from elsewhere; a loop that is run again may be so in another thread.

        Raises:
            WrongLoop: the loop does not run in this thread.
        """
        if asyncio._get_running_loop() is self.loop:  # noqa: SLF001 - in `asyncio.events.__all__`
            self.thread_id = threading.get_ident()
        else:
            message = (
                f"server {shown(slot_id)} lives on another event loop or thread; use asyncio.run_coroutine_threadsafe"
            )
            raise WrongLoop(message)

    async def wait_done(self, future: asyncio.Future[None], timeout_s: float | None) -> bool:
        """Wait for `future`, at most `timeout_s` seconds (None: no limit); False when the time is over."""
        if timeout_s is None or future.done():
            await future
            return True
        task = asyncio.current_task(self.loop)
        cancels = task.cancelling() if task is not None else 0
        timer = self.clock.call_later(max(0.0, timeout_s), lambda: _cancel(future))
        try:
            await future
        except asyncio.CancelledError:
            if task is not None and task.cancelling() > cancels:
                raise
            return False
        finally:
            timer.cancel()
        return True


def _cancel(future: asyncio.Future[None]) -> None:
    future.cancel()
