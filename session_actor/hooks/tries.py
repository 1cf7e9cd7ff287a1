"""Running hooks: each try in a supervised task of its own, with its time, and marked as inside a hook."""

from __future__ import annotations

import asyncio
import inspect
from contextlib import suppress
from contextvars import Context
from time import perf_counter_ns
from typing import TYPE_CHECKING, Any, Final

from session_actor import telemetry
from session_actor.supervisors import ChildSpec, DynamicSupervisor, SupervisorError
from session_actor.supervisors.incarnation import runs

from .inside import inside

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine, Hashable

    from session_actor.supervisors.clock import Clock, TimerHandle

    from .hook import Hook, HookContext

EVENT: Final = ("session_actor", "hook")
_STOP_S: Final = 0.25
"""How long a try may take to end when it is cancelled because the service closes."""

_LEAVES: Final = (SystemExit, KeyboardInterrupt)
"""What ends more than a hook."""


class HookNotAsync(TypeError):
    """The function of a hook gave nothing that can be awaited: it is no async function."""


class HookLate(Exception):
    """A try took longer than its hook allows."""


class HookCancelled(Exception):
    """A hook cancelled itself."""


class Tries:
    """The tasks in which hooks run, and how many have their time still."""

    def __init__(self) -> None:
        """`supervisor` takes its place in the service's tree."""
        self.supervisor = DynamicSupervisor(name="hooks", on_exhausted="quarantine")
        self.leaving = False
        """The service is closing: nothing that can wait begins any more."""
        self.closing = False
        """It is as good as closed: nothing at all begins."""
        self._started = 0
        self._running = 0
        self._idle = asyncio.Event()
        self._earlier: tuple[Tries, ...] = ()
        """Those of former generations in which something still ran when this one took over."""
        self._timers: set[TimerHandle] = set()

    @property
    def clock(self) -> Clock:
        """The clock of the service's tree, once it runs."""
        slot = self.supervisor.slot
        if slot is None:
            raise TypeError("the service's tree does not run")
        return slot.floor.clock

    def start(self, name: Hashable, body: Callable[[], Coroutine[Any, Any, None]]) -> bool:
        """Run `body` in a task of its own, in no caller's context; False: the service is closing or down."""
        self._started += 1
        spec = ChildSpec((name, self._started), task=body, restart="temporary", shutdown_s=_STOP_S)
        try:
            Context().run(self.supervisor.spawn, spec)
        except SupervisorError:
            return False
        return True

    def later(self, delay_s: float, callback: Callable[[], None]) -> None:
        """Call back then, unless the service closes before."""

        def fire() -> None:
            self._timers.discard(timer)
            if not self.leaving:
                callback()

        if not self.leaving:
            timer = self.clock.call_later(delay_s, fire)
            self._timers.add(timer)

    def leave(self) -> None:
        """Forget what was to come: the service is closing."""
        self.leaving = True
        for timer in self._timers:
            timer.cancel()
        self._timers.clear()

    def begin(self) -> Callable[[], None]:
        """A try begins; returns what must be called when it is over or late, and may be called again."""
        self._running += 1
        self._idle.clear()
        counted = [True]

        def over() -> None:
            if counted:
                counted.clear()
                self._running -= 1
                if not self._running:
                    self._idle.set()

        return over

    async def call(
        self, hook: Hook, context: HookContext, marks: tuple[Hashable, ...], over: Callable[[], None]
    ) -> BaseException | None:
        """Run one try in this task; `over` is called when its time is up.

        Returns what the hook raised, of whatever kind; HookLate when it ended because its time was up, however long
        after that; None: it succeeded. Raises CancelledError when closing cut it short, whatever it made of that; and
        SystemExit and KeyboardInterrupt, which leave the loop, as from everywhere.
        """
        task = _task()
        late: list[bool] = []

        def cut() -> None:
            late.append(task.cancel())
            over()

        failure: BaseException | None = None
        timer = self.clock.call_later(hook.timeout_s, cut)
        try:
            with inside(*marks):
                await _told(hook, context)
        except _LEAVES:
            raise
        except BaseException as error:
            if isinstance(error, GeneratorExit) and not runs(task):  # the loop is gone, and this is taken apart
                raise
            failure = error  # the embedder's code may raise anything
        finally:
            timer.cancel()
        if late:
            task.uncancel()
        if task.cancelling():
            await self._forget_own(task)
        if failure is not None and task.cancelling():
            raise asyncio.CancelledError
        if isinstance(failure, asyncio.CancelledError):
            return HookLate() if late else HookCancelled()
        return failure

    async def _forget_own(self, task: asyncio.Task[Any]) -> None:
        """Forget that a hook has cancelled its own task: only the tree may end it."""
        if self._is_ended(task):
            return
        with suppress(asyncio.CancelledError):
            await asyncio.sleep(0)  # where one that had not come yet does
        while not self._is_ended(task) and task.cancelling():
            task.uncancel()

    def _is_ended(self, task: asyncio.Task[Any]) -> bool:
        root = self.supervisor.slot
        slot = None if root is None else root.floor.tasks.get(task)
        return slot is None or slot.killing or slot.ending is not None

    @property
    def busy(self) -> bool:
        """Whether something runs that has its time still."""
        return self._running > 0

    async def idle(self) -> None:
        """Wait until nothing does."""
        while self._running:
            await self._idle.wait()

    def follow(self, former: Tries) -> None:
        """Go on after a former generation, in which nothing that can wait begins any more."""
        former.leave()
        self._earlier = tuple(tries for tries in (*former._earlier, former) if tries.busy)

    async def close(self, timeout_s: float) -> None:
        """Give what runs its time [seconds], also what a former generation began."""
        self.leave()
        ending = (self, *self._earlier)
        with suppress(TimeoutError):
            async with asyncio.timeout(timeout_s):
                for tries in ending:
                    await tries.idle()
        for tries in ending:
            tries.closing = True


def _task() -> asyncio.Task[Any]:
    task = asyncio.current_task()
    if task is None:
        raise TypeError("a hook runs in a task")
    return task


async def _told(hook: Hook, context: HookContext) -> None:
    """The try itself, as telemetry sees it."""
    begun_ns = perf_counter_ns()
    metadata = about(hook, context)
    if telemetry.attached:
        telemetry.emit((*EVENT, "start"), {}, metadata)
    try:
        await _awaitable(hook.fn(context))
    except BaseException as error:
        if telemetry.attached:
            took = {"duration_ns": perf_counter_ns() - begun_ns}
            telemetry.emit((*EVENT, "exception"), took, {**metadata, "error": type(error).__name__})
        raise
    if telemetry.attached:
        telemetry.emit((*EVENT, "stop"), {"duration_ns": perf_counter_ns() - begun_ns}, metadata)


def _awaitable(answer: object) -> Awaitable[object]:
    if not inspect.isawaitable(answer):
        raise HookNotAsync
    return answer


def about(hook: Hook, context: HookContext) -> dict[str, object]:
    """What an event or a line of the log says of a try."""
    return {
        "session": context.session_id,
        "hook": hook.name,
        "phase": hook.phase,
        "key": context.key,
        "attempt": context.attempt,
    }
