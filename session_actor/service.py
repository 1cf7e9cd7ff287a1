"""The service: what an agent server opens once, and takes its sessions from."""

from __future__ import annotations

import os
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

import msgspec

from session_actor.persistence import (
    LEVELS,
    FileStore,
    Level,
    PersistenceError,
    Store,
    StoreHealth,
    check_session_id,
)
from session_actor.supervisors import Backoff, ChildSpec, Intensity, Supervisor, SupervisorError

from .cell import Birth, Cell, Dormant
from .commands import End
from .deletion import Delete
from .errors import InvalidArgument, SessionActorError, SessionEnded, translate
from .events import Source
from .handle import Session
from .history import created, history_of, history_to
from .moves import frame_of
from .population import Population, SessionOptions
from .service_errors import ServiceClosed, ServiceDown, SessionDeleted, SessionExists, SessionQuarantined

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from types import TracebackType
    from typing import Self

    from session_actor.persistence import SessionInfo

    from .commands import Target

_WORKER_INTENSITY: Final = Intensity(max_restarts=10, max_seconds=60.0)


class ServiceHealth(msgspec.Struct, frozen=True):
    """How a service is. `store`: the disk's side of it."""

    live: int
    """Sessions that are loaded, loading, restarting or quarantined."""
    quarantined: tuple[str, ...]
    """Ids of the sessions that kept crashing."""
    store: StoreHealth


class SessionService:
    """All sessions of one store, in one process, on one event loop.

        async with SessionService.open("conversations/") as service:
            session = await service.session("user-42", create=True)

    Its supervision tree (one_for_one): the store's writer and cutter, the supervisor of sessions (dynamic), the sweeper
    that passivates idle sessions. Closing passivates every session; it ends none.
    """

    def __init__(self, store: Store, options: SessionOptions, close_timeout_s: float) -> None:
        """Use `open`."""
        self._store = store
        self._options = options
        self._close_timeout_s = close_timeout_s
        self._population: Population | None = None
        self._root: Supervisor | None = None

    @classmethod
    def open(
        cls,
        store: str | os.PathLike[str] | Store,
        *,
        durability: Level = "async",
        lock_timeout_s: float | None = 0.0,
        idle_timeout_s: float | None = 900.0,
        max_live: int | None = None,
        mailbox_limit: int = 10_000,
        max_restarts: int = 5,
        restart_window_s: float = 30.0,
        close_timeout_s: float = 10.0,
    ) -> Self:
        """Describe a service; `async with` (or `start` and `close`) runs it.

        Args:
            store: a directory (made if missing), or a Store of your own, such as MemoryStore().
            durability: the level at which changes are answered when a call does not say.
            lock_timeout_s: how long to wait for another process to let go of the directory [seconds]; None: no limit.
            idle_timeout_s: a session not changed for so long is flushed and unloaded [seconds]; None: never.
            max_live: above so many loaded sessions the least recently used are unloaded; None: no limit.
            mailbox_limit: how many messages may wait for one session; further callers wait in line.
            max_restarts: a session that crashes more often than this without having lived `restart_window_s` since is
                quarantined.
            restart_window_s: how long a restarted session must live for its crashes to be forgotten [seconds].
            close_timeout_s: how long closing may take before what hangs is killed [seconds].

        Raises:
            InvalidArgument: an argument that can never be right.
        """
        if durability not in LEVELS:
            raise InvalidArgument("durability", f"must be one of {', '.join(LEVELS)}")
        for name, value in (("max_live", max_live), ("mailbox_limit", mailbox_limit)):
            if value is not None and value < 1:
                raise InvalidArgument(name, f"must be at least 1, got {value}")
        if isinstance(store, str | os.PathLike):
            store = FileStore(store, lock_timeout_s=lock_timeout_s)
        options = SessionOptions(
            durability=durability,
            idle_timeout_s=idle_timeout_s,
            max_live=max_live,
            mailbox_limit=mailbox_limit,
            intensity=Intensity(max_restarts=max_restarts, max_seconds=restart_window_s),
            backoff=Backoff(),
            shutdown_s=close_timeout_s,
        )
        return cls(store, options, close_timeout_s)

    # --- life ---

    async def start(self) -> None:
        """Open the store and start the tree. Raises StoreLocked, StoreVersionTooNew, StoreCorrupt, LevelUnreachable."""
        if self._root is not None:
            raise InvalidArgument("service", "is started already")
        try:
            await self._store.open()
            try:
                self._store.admit(self._options.durability)
                await self._start_tree()
            except BaseException:
                await self._store.close()
                raise
        except PersistenceError as error:
            raise translate(error) from None

    async def _start_tree(self) -> None:
        population = Population(self._store, self._options)
        workers = [
            ChildSpec(name, task=run, intensity=_WORKER_INTENSITY) for name, run in self._store.workers().items()
        ]
        sessions = ChildSpec("sessions", start=lambda: population.supervisor, shutdown_s=None)
        sweeper = ChildSpec("sweeper", task=population.sweep_forever, intensity=_WORKER_INTENSITY)
        root = Supervisor([*workers, sessions, sweeper], name="session-service")
        await root.start()
        population.root = root
        self._population, self._root = population, root

    async def close(self) -> None:
        """Refuse new calls, answer those that wait, flush to `synced`, unload every session, let go of the store.

        What hangs is killed after `close_timeout_s`. Closing twice has no effect the second time. Raises ServiceDown
        when the service had given up, NotDurable when something could not be written; it is closed all the same.
        """
        root, self._root = self._root, None
        population = self._population
        if root is None or population is None:
            return
        try:
            await population.drain(self._close_timeout_s)
            await root.stop(timeout_s=self._close_timeout_s)
        except SupervisorError as error:
            raise ServiceDown(str(error)) from None
        finally:
            try:
                await self._store.close()
            except PersistenceError as error:
                raise translate(error) from None

    async def __aenter__(self) -> Self:
        """Start; raises what `start` raises."""
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Close; raises what `close` raises."""
        await self.close()

    def _why_closed(self) -> SessionActorError | None:
        population = self._population
        return ServiceClosed() if population is None else population.why_closed()

    def _people(self) -> Population:
        population = self._population
        closed = ServiceClosed() if population is None else population.why_closed()
        if closed is not None or population is None:
            raise closed or ServiceClosed()
        return population

    # --- sessions ---

    async def session(
        self, session_id: str, *, create: bool = False, metadata: Any = None, timeout_s: float | None = 5.0
    ) -> Session:
        """The handle of a session, which is loaded when this returns.

        Args:
            session_id: any non-empty str of up to 512 characters.
            create: make it when there is none.
            metadata: JSON-like value kept with a session that is made by this call; it cannot be changed later.
            timeout_s: how long loading may take [seconds]; None: no limit.

        Raises:
            SessionNotFound: there is none, and `create` is False.
            UnusableId: the id is empty, too long or no str.
            ValueNotStorable: the metadata would not come back as given.
            SessionQuarantined, StoreCorrupt, BacklogFull, NotDurable, ServiceClosed, ServiceDown.
            CallTimeout: not loaded in time; loading goes on.
        """
        session_id = _checked(session_id)
        birth = Birth(((created(session_id, metadata), 0),)) if create else None
        return await self._loaded(session_id, birth, timeout_s)

    async def _loaded(self, session_id: str, birth: Birth | None, timeout_s: float | None) -> Session:
        people = self._people()
        fresh = birth is not None and people.cell(session_id).state is None
        session = Session(await people.load(session_id, birth, timeout_s))
        if fresh and self._options.durability != "async":
            await session.flush(self._options.durability, timeout_s=timeout_s)
        return session

    def _cell(self, session_id: str) -> Cell:
        return self._people().cell(_checked(session_id))

    async def fork(
        self, source: str, new_id: str, at: Target | None = None, *, metadata: Any = None, timeout_s: float | None = 5.0
    ) -> Session:
        """Make a new session with the history of `source`, and return its handle.

        `at`: a frame, branch or checkpoint of the source: only what lies on the path to it; None: all branches.
        The two share nothing: deleting either leaves the other whole.
        Raises SessionExists, SessionNotFound, FrameUnknown, NameUnknown, and what `session` raises.
        """
        new_id = _checked(new_id)
        cell = await self._people().load(_checked(source), None, timeout_s)
        state = await cell.ready(timeout_s)
        frame = None if at is None else frame_of(state, at)
        history = history_of(state) if at is None else history_to(state, frame)
        first = created(new_id, metadata, Source(source, frame))
        birth = Birth(((first, 0), *history))
        session = await self._loaded(new_id, birth, timeout_s)
        if not birth.happened:
            raise SessionExists(new_id)
        return session

    async def end(
        self, session_id: str, reason: str = "done", *, durability: Level | None = None, timeout_s: float | None = 5.0
    ) -> Session:
        """End a session for good: reads go on, changes raise SessionEnded. Ending it again changes nothing.

        Raises SessionNotFound, and what every change raises.
        """
        session = await self.session(session_id, timeout_s=timeout_s)
        with suppress(SessionEnded):
            await session.send(End(reason, durability=durability), timeout_s)
        return session

    async def delete(self, session_id: str, *, timeout_s: float | None = 5.0) -> None:
        """Delete a session and its records for good; handles raise SessionDeleted from then on, the id is free.

        Returns when the deletion is synced. Raises SessionNotFound, NotDurable, StoreDegraded, and CallTimeout (it may
        still come). Cancelling gives up the wait.
        """
        people = self._people()
        cell = self._cell(session_id)
        if isinstance(cell.ref, Dormant):
            people.wake_to_delete(cell)
        try:
            await Session(cell).send(Delete(), timeout_s)
        except SessionQuarantined:
            await people.evict(cell)
            await self.delete(session_id, timeout_s=timeout_s)
        except SessionDeleted:
            return  # somebody else was quicker

    def release(self, session_id: str) -> None:
        """Lift the quarantine of a session: it is started again, and its next crashes count from zero.

        Raises SessionNotFound when it is not quarantined.
        """
        self._people().release(self._cell(session_id))

    async def sessions(self, prefix: str = "") -> AsyncIterator[SessionInfo]:
        """Every session of the store whose id starts with `prefix`, by id, loaded or not; reads no bodies."""
        self._people()
        try:
            async for info in self._store.sessions(prefix):
                yield info
        except PersistenceError as error:
            raise translate(error) from None

    def health(self) -> ServiceHealth:
        """How the service and its store are. Cheap. Raises ServiceClosed, ServiceDown."""
        people = self._people()
        return ServiceHealth(people.live, people.quarantined(), self._store.health())

    def __repr__(self) -> str:
        """Whether it is open."""
        return f"SessionService({'open' if self._why_closed() is None else 'closed'})"


def _checked(session_id: str) -> str:
    try:
        return check_session_id(session_id)
    except PersistenceError as error:
        raise translate(error) from None
