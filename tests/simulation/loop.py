"""An event loop whose time is not the world's: a wait takes no time, and everything happens in the same order again."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import random
import sys
from collections import deque
from collections.abc import Callable, Coroutine, Iterator
from random import Random
from typing import Any
from unittest import mock

from session_actor.persistence.errors import StoreClosed
from session_actor.persistence.files.disk_thread import DiskThread
from session_actor.supervisors.fairness import FairnessBudget

LIMIT_S = 100_000.0
WORK_S = (0.000_001,) * 40 + (0.000_1,) * 4 + (0.001,)
"""What passes from one look at the time that work takes to the next: once in a while a whole slice of the loop."""
SLOWLY_S = (0.002, 0.02, 0.3, 2.0, 8.0)
"""What a job takes on a disk that is slow at times."""


class SimLoop(asyncio.BaseEventLoop):
    """Runs what is ready; when nothing is, time goes on to the next timer."""

    def __init__(self) -> None:
        super().__init__()
        self.now_s = 1000.0
        self.worked_s = 0.0
        self.pace = Random(0)
        self._selector = self
        self.mistakes: list[Any] = []
        self.set_exception_handler(lambda _, context: self.mistakes.append(context))

    def time(self) -> float:
        return self.now_s

    def working_s(self) -> float:
        """The time as it is measured to share the loop fairly: it goes on with each look at it, also between waits."""
        self.worked_s += self.pace.choice(WORK_S)
        return self.now_s + self.worked_s

    def select(self, timeout: float | None) -> list[Any]:
        if timeout is None or self.now_s > LIMIT_S:
            raise AssertionError("nothing will ever happen any more: what is waited for hangs")
        self.now_s += timeout
        return []

    def _process_events(self, event_list: list[Any]) -> None:
        """There are none."""

    def _write_to_self(self) -> None:
        """Nobody sleeps who must be woken."""

    def run(self, coroutine: Coroutine[Any, Any, Any]) -> Any:
        """Run to the end; an error that nobody was told of is an error here."""
        result = self.run_until_complete(coroutine)
        assert not self.mistakes, [f"{context['message']}: {context.get('exception')!r}" for context in self.mistakes]
        return result


class SimThread(DiskThread):
    """Runs its jobs on the loop, one a turn, after a number of turns that `rng` chooses; without `rng` at once.

    `slow`: says before which share of the jobs time passes.
    """

    __slots__ = ("_planned", "_queue", "_rng", "_slow")

    def __init__(
        self, name: str, loop: asyncio.AbstractEventLoop, rng: Random | None, slow: Callable[[], float]
    ) -> None:
        super().__init__(name, loop)
        self._rng = rng
        self._slow = slow
        self._queue: deque[tuple[Any, Any]] = deque()
        self._planned = False

    def submit(self, job, done) -> None:
        if self._ended:
            raise StoreClosed("the store was closed meanwhile: open it again")
        self._queue.append((job, done))
        if self._rng is None:
            self._work()
        else:
            self._plan()

    async def run(self, job, then=None):
        if self._rng is not None or self._ended:
            return await super().run(job, then)
        try:
            result, error = job(), None
        except BaseException as caught:  # noqa: BLE001
            result, error = None, caught
        if then is not None:
            then(error)
        if error is not None:
            raise error
        return result

    def end(self) -> None:
        self._ended = True
        while self._queue:
            self._work()

    def _plan(self) -> None:
        if self._queue and not self._planned:
            self._planned = True
            if (share := self._slow()) and self._rng.random() < share:
                self._loop.call_later(self._rng.choice(SLOWLY_S), self._turn, 0)
            else:
                self._loop.call_soon(self._turn, self._rng.choice((0, 0, 1, 3, 10)))

    def _turn(self, turns: int) -> None:
        if turns and self._queue:
            self._loop.call_soon(self._turn, turns - 1)
            return
        self._planned = False
        if self._queue:
            self._work()
        self._plan()

    def _work(self) -> None:
        job, done = self._queue.popleft()
        try:
            result, error = job(), None
        except BaseException as caught:  # noqa: BLE001  whatever it is belongs to the one who asked
            result, error = None, caught
        self._loop.call_soon(done, result, error)


class WallClock:
    """The system's clock, in microseconds since the epoch; it may be set back."""

    def __init__(self, loop: SimLoop) -> None:
        self.loop = loop
        self.set_forward_s = 1_769_851_800.0

    def time_ns(self) -> int:
        return int((self.loop.now_s + self.set_forward_s) * 1_000_000_000)


class Silence:
    """A logger that nobody hears, and who gives it."""

    def __call__(self, *_: object, **__: object) -> Silence:
        return self

    def __getattr__(self, name: str):
        return lambda *_, **__: None


@contextlib.contextmanager
def simulated(seed: int) -> Iterator[tuple[SimLoop, WallClock]]:
    """A loop and a clock, and nothing in the library that depends on the world's time or chance."""
    loop = SimLoop()
    clock = WallClock(loop)
    names = Random(seed)
    loop.pace.seed(seed)
    everybodys = random.getstate()
    random.seed(seed)
    with contextlib.ExitStack() as stack:
        for name, module in list(sys.modules.items()):
            if name.startswith("session_actor.") and hasattr(module, "perf_counter"):
                now = loop.time if name.startswith("session_actor.persistence.") else loop.working_s
                stack.enter_context(mock.patch.object(module, "perf_counter", now))
        stack.enter_context(mock.patch.object(FairnessBudget.__init__, "__defaults__", (loop.working_s,)))
        stack.enter_context(mock.patch("time.time_ns", clock.time_ns))
        stack.enter_context(mock.patch("session_actor.state.times.time_ns", clock.time_ns))
        stack.enter_context(mock.patch("secrets.token_hex", lambda count: names.randbytes(count).hex()))
        stack.enter_context(mock.patch("structlog.get_logger", Silence()))
        stack.callback(random.setstate, everybodys)
        stack.callback(loop.close)
        stack.callback(gc.set_threshold, *gc.get_threshold())
        gc.set_threshold(20_000, 20, 100)  # hundreds of disks are held: looking through them takes a tenth of the time
        yield loop, clock
