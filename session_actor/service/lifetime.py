"""The life of a service: the store is opened and the tree grows; the tree is taken down and the store let go of."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from itertools import count
from typing import TYPE_CHECKING, Final

import anyio

from session_actor.errors import AsyncioOnly, SessionActorError, StoreUnusable, WrongLoop, translate
from session_actor.handover.errors import HandedOver, HandoverFailed
from session_actor.handover.ready import import_all
from session_actor.observing import worker_event
from session_actor.persistence import FileStore, PersistenceError
from session_actor.server.levels import check_promised
from session_actor.service_errors import CloseTimeout, ServiceClosed, ServiceDown
from session_actor.supervisors import ChildNotFound, ChildSpec, Intensity, Supervisor, SupervisorError

from .finishing import to_its_end
from .leaving import Leaving, save_all
from .population import Population

if TYPE_CHECKING:
    from collections.abc import Callable

    from session_actor.handover.values import CodeChange
    from session_actor.persistence import Store

    from .options import SessionOptions

_numbers: Final = count(2)
"""Of generations, those included that could not take over: their names in the tree."""
_WORKER_INTENSITY: Final = Intensity(max_restarts=10, max_seconds=60.0)
_COMPACTIONS: Final = "compactions"
_HOOKS: Final = "hooks"
_AFTER_HOOKS_S: Final = 2.0
"""What hooks that run must leave of the time to what comes after them."""
_TRY_AGAIN_S: Final = 0.05
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
        self._generation = 1
        self._keeps_store = False
        self._taking: asyncio.Future[None] | None = None
        self._retiring: set[asyncio.Task[None]] = set()
        self.heir: Lifetime | None = None
        """The next generation's, when that has taken over: the store and the tree are its own now."""
        self.why_closed: Callable[[], SessionActorError] = ServiceClosed
        """What calls get from the moment on when it is being closed."""
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
        import_all()
        try:
            await store.open()
            return await cls.go_on(store, options, loop)
        except PersistenceError as error:
            raise translate(error) from None
        except OSError as error:
            raise StoreUnusable(error) from error

    @classmethod
    async def go_on(cls, store: Store, options: SessionOptions, loop: asyncio.AbstractEventLoop) -> Lifetime:
        """Grow the tree on a store that is open. When it raises or is cancelled, tree and store are closed."""
        lifetime = cls(store, options, loop)
        try:
            store.admit(options.durability)
            await lifetime.population.hooks.open()
            await lifetime._grow()
        except BaseException:
            await to_its_end(lifetime._undo_start())
            raise
        return lifetime

    async def _undo_start(self) -> None:
        deadline_s = self._loop.time() + self._options.close_timeout_s
        root = self.population.root
        self.population.hooks.leave()
        if root is not None:
            with suppress(SupervisorError):  # why it raises
                await root.stop(timeout_s=self._options.close_timeout_s)
        with suppress(SessionActorError, OSError):  # nobody was promised anything yet
            await self._close_store(deadline_s, leave_log=False)

    async def _grow(self) -> None:
        population = self.population
        workers = [
            ChildSpec(name, task=run, intensity=_WORKER_INTENSITY) for name, run in self._store.workers().items()
        ]
        children = [*workers, *self._children()]
        self._root = population.root = Supervisor(
            children, clock=self._options.clock, name="session-service", on_event=worker_event
        )
        await self._root.start()
        population.hooks.begin()

    def _children(self) -> list[ChildSpec]:
        """What this generation adds to the workers of the store; each is stopped before those in front of it."""
        population = self.population
        number = "" if self._generation == 1 else f"-{self._generation}"
        sweep, automatic = population.sweep_forever, population.automatic
        children = [
            ChildSpec(f"sessions{number}", start=lambda: population.supervisor, shutdown_s=None),
            ChildSpec(f"sweeper{number}", task=sweep, intensity=_WORKER_INTENSITY),
            ChildSpec(f"{_HOOKS}{number}", start=lambda: population.hooks.tries.supervisor, shutdown_s=None),
        ]
        if automatic is not None:
            children.append(ChildSpec(f"{_COMPACTIONS}{number}", start=lambda: automatic.supervisor, shutdown_s=None))
        return children

    # --- handing over ---

    @property
    def newest(self) -> Lifetime:
        """The generation that has the sessions now."""
        newest = self
        while newest.heir is not None:
            newest = newest.heir
        return newest

    async def prepare_closing(self) -> None:
        """Do ahead, while sessions are served, what closing and the next opening would have to do.

        Raises HandoverFailed when the disk does not take what only the memory has: nothing has changed then.
        """
        timeout_s = self._options.close_timeout_s
        deadline_s = self._loop.time() + timeout_s
        await self._have_all_written(timeout_s)
        with suppress(PersistenceError), anyio.move_on_after(deadline_s - self._loop.time()):
            await save_all(self.population)
            if isinstance(self._store, FileStore):
                await self._store.cut_ahead()
            await self._store.flush(self.population.close_level)

    async def _have_all_written(self, timeout_s: float) -> None:
        """Wait until the disk has all that the memory has. Raises HandoverFailed after so many seconds."""
        why = "the disk does not answer"
        with anyio.move_on_after(timeout_s):
            while True:
                try:
                    await self._store.flush(self.population.close_level)
                except PersistenceError as error:
                    why = f"{type(error).__name__}: {error}"
                else:
                    return
                await asyncio.sleep(_TRY_AGAIN_S)
        raise HandoverFailed("the service", f"in {timeout_s:g} s not all that was answered came to the disk, {why}")

    async def take(self, options: SessionOptions, code_change: CodeChange | None) -> Lifetime:
        """Let the next generation take over store, tree and sessions; when it raises, this one goes on.

        Raises HandoverFailed, LevelUnreachable, ServiceClosed, ServiceDown, WrongLoop.
        """
        from session_actor.handover.moving import move_all

        self.check_loop()
        closed = self.population.why_closed()
        if closed is not None or self._taking is not None:
            raise closed or HandoverFailed("the service", "it is being handed over already")
        check_promised(self._store, options.durability)
        taking = self._taking = self._loop.create_future()
        heir = Lifetime(self._store, options, self._loop)
        heir._generation = next(_numbers)
        heir._root, heir._retiring = self._root, self._retiring
        heir.population.root = self._root
        heir.population.code_change = code_change
        try:
            for spec in heir._children():
                await self._root.start_child(spec)
            await heir.population.hooks.share(self.population.hooks)
            await move_all(self.population, heir.population)
            self.heir = heir  # with no chance to be cancelled any more
        finally:
            self._taking = heir.population.code_change = None
            taking.set_result(None)
            keeps, goes = (heir, self) if self.heir is heir else (self, heir)
            keeps.population.hooks.take_over(goes.population.hooks)
            retiring = self._loop.create_task(self._retire(goes))
            self._retiring.add(retiring)
            retiring.add_done_callback(self._retiring.discard)
        return heir

    async def let_go(self) -> None:
        """Close all but the store, which somebody else goes on with. Raises what `close` raises."""
        self._keeps_store = True
        await self.close()

    async def _retire(self, other: Lifetime) -> None:
        """Stop what a generation added to the tree; summaries being written and hooks that run are finished."""
        automatic = other.population.automatic
        busy = [_HOOKS] if other.population.hooks.tries.supervisor.which_children() else []
        if automatic is not None and automatic.supervisor.which_children():
            busy.append(_COMPACTIONS)
        for spec in reversed(other._children()):
            if not str(spec.id).startswith(tuple(busy)):
                with suppress(ChildNotFound):
                    await self._root.terminate_child(spec.id)
                    self._root.delete_child(spec.id)

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
        return self.heir is not None or (self._closing is not None and self._closing.done())

    def when_closed(self, told: Callable[[BaseException | None], None]) -> bool:
        """Have it told when the closing that goes on is through, with what it raised; False: none goes on."""
        if self._closing is None:
            return False
        self._closing.add_done_callback(
            lambda closing: told(asyncio.CancelledError() if closing.cancelled() else closing.exception())
        )
        return True

    async def close(self, *, handing: bool = False) -> None:
        """Take it down, in a task of its own: cancelling gives up the wait, and a second call joins the first.

        `handing`: it is handed over to another process, which is to be served soon: unless all that was answered is on
        the disk, it goes on instead, and HandoverFailed is raised.

        Raises ServiceDown, CloseTimeout, NotDurable; it is closed all the same.
        """
        self.check_loop()
        while self.heir is None and (self._taking is not None or self._retiring):
            await (asyncio.wait(self._retiring) if self._taking is None else asyncio.shield(self._taking))
        if self.heir is not None:  # it is the heir's to close
            return
        if self._closing is None:
            if handing:
                self.why_closed = HandedOver
            self.population.closed = self.why_closed  # at once: from here on nobody can take over
            self._closing = self._loop.create_task(self._close(handing=handing))
        closing = self._closing
        try:
            await asyncio.shield(closing)
        except asyncio.CancelledError:
            closing.add_done_callback(_given_up)
            raise
        except HandoverFailed:
            if handing:
                raise
            await self.close()  # the handover that this joined left it open

    async def _close(self, *, handing: bool) -> None:
        deadline_s = self._loop.time() + self._options.close_timeout_s
        down = None if self._root.alive else ServiceDown(str(self._root.reason))
        goes = True
        try:
            await self._refuse(deadline_s, handing=handing)
            left_s = deadline_s - self._loop.time()
            await self.population.hooks.close(max(0.0, left_s - min(_AFTER_HOOKS_S, left_s / 3)))
            await self._root.stop(timeout_s=max(0.0, deadline_s - self._loop.time()))
        except HandoverFailed:
            self._closing, self.why_closed, goes = None, ServiceClosed, False
            raise
        except SupervisorError as error:
            raise ServiceDown(str(error)) from None
        finally:
            if goes and not self._keeps_store:
                await self._close_store(deadline_s, leave_log=handing)
        if down is not None:
            raise down

    async def _refuse(self, deadline_s: float, *, handing: bool) -> None:
        """Answer what waits, and refuse what comes; see `close` for `handing`. Raises HandoverFailed."""
        leaving, hooks = Leaving(self.population), self.population.hooks
        if not handing:
            hooks.leave()
        await leaving.refuse(self._options.close_timeout_s, self.why_closed)
        if handing:
            try:
                await self._have_all_written(max(deadline_s - self._loop.time(), _LAST_WORDS_S))
            except HandoverFailed:
                leaving.stay()
                raise
            hooks.leave()
        leaving.go()

    async def _close_store(self, deadline_s: float, *, leave_log: bool) -> None:
        """`leave_log`: be quick, and leave it to the next opening to read the log."""
        if leave_log and isinstance(self._store, FileStore):
            self._store.leave_log()
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


def _given_up(closing: asyncio.Task[None]) -> None:
    """Nobody waits for it any more; a handover that fails then has changed nothing, and is no error of anybody's."""
    error = None if closing.cancelled() else closing.exception()
    if error is not None and not isinstance(error, HandoverFailed):
        told = {"message": "a closing that nobody waits for has failed", "exception": error, "task": closing}
        closing.get_loop().call_exception_handler(told)
