"""The life of a service: the store is opened and the tree grows; the tree is taken down and the store let go of."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

import anyio

from session_actor.persistence import PersistenceError
from session_actor.supervisors import ChildSpec, Intensity, Supervisor, SupervisorError

from .errors import AsyncioOnly, StoreUnusable, WrongLoop, translate
from .population import Population
from .service_errors import CloseTimeout, ServiceDown

if TYPE_CHECKING:
    from session_actor.persistence import Store

    from .options import SessionOptions

_WORKER_INTENSITY: Final = Intensity(max_restarts=10, max_seconds=60.0)
_LAST_WORDS_S: Final = 0.25
"""What the store gets to let go when everything before it has used the time up."""


class Lifetime:
    """One run of a service, from `start` to `close`, on one event loop."""

    def __init__(self, store: Store, options: SessionOptions, loop: asyncio.AbstractEventLoop) -> None:
        """Use `start`."""
        self._store = store
        self._options = options
        self._loop = loop
        self._closing: asyncio.Task[None] | None = None
        self._root: Supervisor
        self.population = Population(store, options)

    @classmethod
    async def start(cls, store: Store, options: SessionOptions) -> Lifetime:
        """Open the store, then the tree. When it raises or is cancelled, nothing is left open.

        Raises AsyncioOnly, and the package's own errors for what the store refuses.
        """
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            raise AsyncioOnly(
                "no asyncio loop is running here: sessions need asyncio (or uvloop); trio is not supported"
            ) from None
        try:
            await store.open()
            try:
                store.admit(options.durability)
                lifetime = cls(store, options, loop)
                await lifetime._grow()
            except BaseException:
                await store.close()
                raise
        except PersistenceError as error:
            raise translate(error) from None
        except OSError as error:
            raise StoreUnusable(error) from error
        return lifetime

    async def _grow(self) -> None:
        population = self.population
        workers = [
            ChildSpec(name, task=run, intensity=_WORKER_INTENSITY) for name, run in self._store.workers().items()
        ]
        sessions = ChildSpec("sessions", start=lambda: population.supervisor, shutdown_s=None)
        sweeper = ChildSpec("sweeper", task=population.sweep_forever, intensity=_WORKER_INTENSITY)
        children = [*workers, sessions, sweeper]
        automatic = population.automatic
        if automatic is not None:  # the last: it is stopped first
            children.append(ChildSpec("compactions", start=lambda: automatic.supervisor, shutdown_s=None))
        self._root = population.root = Supervisor(children, name="session-service")
        await self._root.start()

    def check_loop(self) -> None:
        """Raises WrongLoop on any other event loop, or in any other thread, than the service's own."""
        try:
            here: asyncio.AbstractEventLoop | None = asyncio.get_running_loop()
        except RuntimeError:
            here = None
        if here is not self._loop:
            raise WrongLoop("the service lives on another event loop; use asyncio.run_coroutine_threadsafe")

    @property
    def closed(self) -> bool:
        """Whether `close` was called and is through."""
        return self._closing is not None and self._closing.done()

    async def close(self) -> None:
        """Take it down, in a task of its own: cancelling gives up the wait, and a second call joins the first.

        Raises ServiceDown, CloseTimeout, NotDurable; it is closed all the same.
        """
        self.check_loop()
        if self._closing is None:
            self._closing = self._loop.create_task(self._close())
        await asyncio.shield(self._closing)

    async def _close(self) -> None:
        deadline_s = self._loop.time() + self._options.close_timeout_s
        down = None if self._root.alive else ServiceDown(str(self._root.reason))
        try:
            await self.population.drain(self._options.close_timeout_s)
            await self._root.stop(timeout_s=max(0.0, deadline_s - self._loop.time()))
        except SupervisorError as error:
            raise ServiceDown(str(error)) from None
        finally:
            await self._close_store(deadline_s)
        if down is not None:
            raise down

    async def _close_store(self, deadline_s: float) -> None:
        try:
            with anyio.fail_after(max(deadline_s - self._loop.time(), _LAST_WORDS_S)):
                await self._store.close()
        except TimeoutError:
            unsynced: int | None = getattr(self._store, "unsynced", None)
            if unsynced == 0:  # only tidying up was cut short: the next opening does it
                return
            raise CloseTimeout(self._options.close_timeout_s, unsynced) from None
        except PersistenceError as error:
            raise translate(error) from None
