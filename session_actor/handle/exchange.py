"""One exchange at a time: a lock around a user turn, its model calls and its tool results."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final

import anyio

from session_actor.errors import SessionEnded
from session_actor.given.given_numbers import check_seconds
from session_actor.service_errors import SessionBusy
from session_actor.supervisors import SupervisorError

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

    from session_actor.server.cell import Cell

_LOAD_S: Final = 5.0
"""How long loading the session may take [seconds]."""


class ExchangeLock:
    """A lock that knows whose it is, goes to whoever came first, and can turn away all who wait for it."""

    __slots__ = ("_held", "_waiting", "holder")

    def __init__(self) -> None:
        """Nobody holds it."""
        self.holder: asyncio.Task[Any] | None = None
        """The task that holds it."""
        self._held = False
        self._waiting: dict[asyncio.Future[None], None] = {}

    def locked(self) -> bool:
        """Whether somebody holds it."""
        return self._held

    async def acquire(self) -> None:
        """Wait for it; a free one is taken without suspending. Raises what `turn_away` says."""
        if not self._held:
            self._held = True
            return
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting[waiter] = None
        try:
            await waiter
        except BaseException:
            if waiter.done() and not waiter.cancelled() and waiter.exception() is None:
                self.release()  # it was handed over to a task that was cancelled meanwhile
            raise
        finally:
            self._waiting.pop(waiter, None)

    def release(self) -> None:
        """Hand it over to whoever has waited longest."""
        self.holder = None
        self._held = False
        for waiter in self._waiting:
            if not waiter.done():
                waiter.set_result(None)
                self._held = True
                return

    def turn_away(self, why: Callable[[], Exception]) -> None:
        """Raise `why()` to everybody who waits; who holds it is left alone."""
        for waiter in self._waiting:
            if not waiter.done():
                waiter.set_exception(why())


class Exchange:
    """`async with session.exchange():`, held by one task of this process at a time.

    It is advice between the embedder's own tasks, not a bar: changes without it still work, in mailbox order.
    """

    __slots__ = ("_cell", "_lock", "_wait_s")

    def __init__(self, cell: Cell, wait_s: float | None) -> None:
        """Prepare to enter; `wait_s` is how long to wait for another exchange to end [seconds], None: not at all."""
        check_seconds("wait_s", wait_s, optional=True)
        self._cell = cell
        self._wait_s = wait_s
        self._lock: ExchangeLock | None = None

    async def __aenter__(self) -> None:
        """Enter, in order of arrival. A session that is not loaded is started by it.

        Raises SessionBusy when another exchange is running and does not end within `wait_s`, and at once when it is
        this task's own; SessionEnded when nothing can be said any more, and what loading raises (SessionDeleted,
        SessionQuarantined, ServiceClosed, …), to who waits as soon as it is so; WrongLoop on another event loop, or in
        another thread, than the service's own.
        Cancelling gives up the wait and leaves the running exchange alone.
        """
        cell = self._cell
        cell.check_loop()
        await self._check()
        lock = cell.exchange_lock
        if lock is None:
            lock = cell.exchange_lock = ExchangeLock()
        task = asyncio.current_task()
        if lock.holder is task and task is not None:
            raise SessionBusy(cell.id, own=True)
        try:
            with anyio.fail_after(self._wait_s or 0.0):  # a free lock is taken without suspending, so 0 is enough
                await lock.acquire()
        except TimeoutError:
            raise SessionBusy(cell.id, self._wait_s) from None
        self._lock, lock.holder = lock, task
        try:
            await self._check()  # it may have ended while this waited
        except BaseException:
            self._leave()
            raise

    async def _check(self) -> None:
        """Raises what every change would raise now."""
        cell = self._cell
        closed = cell.home.why_closed()
        if closed is not None:
            raise closed
        try:
            state = cell.state or await cell.ready(_LOAD_S)
        except SupervisorError as error:
            raise cell.explain(error) from None
        if state.ended is not None:
            raise SessionEnded(cell.id)

    def _leave(self) -> None:
        if self._lock is not None:
            self._lock.release()
            self._lock = None

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Leave, and let the next one in, whatever happened inside."""
        self._leave()
