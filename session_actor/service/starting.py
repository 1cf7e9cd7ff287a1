"""The start of a service, which a close from elsewhere breaks off."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, TypeVar

from session_actor.errors import WrongLoop
from session_actor.service_errors import ServiceClosed

if TYPE_CHECKING:
    from collections.abc import Coroutine

Begun = TypeVar("Begun")


class Starting:
    """One start, in the task that asked for it."""

    def __init__(self) -> None:
        """Make it in that task."""
        runs = asyncio._get_running_loop() is not None  # noqa: SLF001 - in `asyncio.events.__all__`
        self._task: asyncio.Task[Any] | None = asyncio.current_task() if runs else None
        self._over = asyncio.Event()
        self._broken_off = False

    async def run(self, begin: Coroutine[Any, Any, Begun]) -> Begun:
        """Await `begin`; raises what that raises, and ServiceClosed when it was broken off."""
        task = self._task
        if task is None:
            return await begin
        cancels = task.cancelling()
        try:
            return await begin
        except asyncio.CancelledError:
            if not self._broken_off or task.cancelling() > cancels + 1:  # somebody else wants it cancelled, too
                raise
            raise ServiceClosed from None
        finally:
            if self._broken_off:
                task.uncancel()
            self._over.set()

    async def break_off(self) -> None:
        """Stop it, and wait until nothing of it is left, or it is through all the same.

        Cancelling gives up the wait. Raises WrongLoop.
        """
        task = self._task
        if task is None or task.get_loop() is not asyncio.get_running_loop():
            raise WrongLoop("the service starts on another event loop; use asyncio.run_coroutine_threadsafe")
        if not self._broken_off:
            self._broken_off = True
            task.cancel()
        await self._over.wait()
