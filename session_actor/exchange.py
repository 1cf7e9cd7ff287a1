"""One exchange at a time: a lock around a user turn, its model calls and its tool results."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Protocol

import anyio

from .given_numbers import check_seconds
from .service_errors import SessionBusy

if TYPE_CHECKING:
    from types import TracebackType


class HasExchangeLock(Protocol):
    """What an exchange needs of its session: the id, and a place for the lock that all its handles share."""

    id: str
    exchange_lock: asyncio.Lock | None

    def check_loop(self) -> None:
        """Raises WrongLoop elsewhere than on the loop that all who exchange share."""
        ...


class Exchange:
    """`async with session.exchange():`, held by one task of this process at a time.

    It is advice between the embedder's own tasks, not a bar: changes without it still work, in mailbox order.
    """

    __slots__ = ("_lock", "_owner", "_wait_s")

    def __init__(self, owner: HasExchangeLock, wait_s: float | None) -> None:
        """Prepare to enter; `wait_s` is how long to wait for another exchange to end [seconds], None: not at all."""
        check_seconds("wait_s", wait_s, optional=True)
        self._owner = owner
        self._wait_s = wait_s
        self._lock: asyncio.Lock | None = None

    async def __aenter__(self) -> None:
        """Enter, in order of arrival.

        Raises SessionBusy when another exchange is running and does not end within `wait_s`, and WrongLoop on another
        event loop, or in another thread, than the service's own.
        Cancelling gives up the wait and leaves the running exchange alone.
        """
        self._owner.check_loop()
        lock = self._owner.exchange_lock
        if lock is None:
            lock = self._owner.exchange_lock = asyncio.Lock()
        try:
            with anyio.fail_after(self._wait_s or 0.0):  # a free lock is taken without suspending, so 0 is enough
                await lock.acquire()
        except TimeoutError:
            raise SessionBusy(self._owner.id, self._wait_s) from None
        self._lock = lock

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Leave, and let the next one in, whatever happened inside."""
        if self._lock is not None:
            self._lock.release()
            self._lock = None
