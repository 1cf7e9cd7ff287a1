"""All sessions of a service: how each comes alive, goes to rest, and is told apart from the others."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from functools import partial
from math import inf
from time import perf_counter
from typing import TYPE_CHECKING, Final, cast
from weakref import WeakValueDictionary

import anyio

from session_actor import telemetry
from session_actor.compaction.options import NO_SUMMARIES
from session_actor.errors import SessionActorError, translate
from session_actor.explaining import OF_A_SESSION, explain_late, explain_start
from session_actor.hooks.server import HookedServer
from session_actor.hooks.service_hooks import ServiceHooks
from session_actor.observing import told_of_session
from session_actor.persistence import Level, PersistenceError, Store
from session_actor.server.cell import Birth, Cell, Dormant, ServerId
from session_actor.server.cold import Shelf
from session_actor.server.deletion import Deleter
from session_actor.server.levels import promises
from session_actor.server.prune import prune_session
from session_actor.server.recency import Recency
from session_actor.server.session import Passivate, SessionServer
from session_actor.service_errors import (
    ServiceClosed,
    ServiceDown,
    SessionCrashed,
    SessionDeleted,
    SessionFenced,
    SessionNotFound,
    SessionNotQuarantined,
    SessionQuarantined,
)
from session_actor.supervisors import (
    ChildSpec,
    DynamicSupervisor,
    GenServer,
    InitFailed,
    MailboxSpec,
    ServerDown,
    ServerKilled,
    ServerRef,
    ServerStopped,
    Supervisor,
    SupervisorError,
)
from session_actor.supervisors import errors as actors

if TYPE_CHECKING:
    from collections.abc import Callable

    from session_actor.compaction.automatic import Automatic
    from session_actor.compaction.options import Summaries
    from session_actor.handover.values import CodeChange
    from session_actor.persistence import Lease
    from session_actor.supervisors import Event

    from .options import SessionOptions


_SWEEPS_PER_TIMEOUT: Final = 8
_SWEEP_S_MAX: Final = 60.0
_PRUNE_S: Final = 10.0
"""How long a session may be pruned before it is unloaded all the same, when the disk does not answer."""
_CROWDED_SWEEP_S: Final = 0.05
"""How soon to try again when no session above `max_live` could be unloaded: they were busy, or restarting."""


class Population:
    """The sessions of one service. Every session has at most one cell, and every cell at most one live server."""

    def __init__(self, store: Store, options: SessionOptions) -> None:
        """Nobody is loaded; the service gives it its place in the tree, and `root`."""
        self.root: Supervisor | None = None
        self.store = store
        self.models = options.models
        self.summaries = options.summaries or NO_SUMMARIES
        self.automatic = _automatic(self.summaries)
        self.code_change: CodeChange | None = None
        self.heir: Population | None = None
        """The next generation's, while it takes over and afterwards; None: there is none."""
        self.source: Population | None = None
        """The one whose sessions are on their way here; None: none are."""
        self._options = options
        self.closed: Callable[[], SessionActorError] | None = None
        self._mailbox = MailboxSpec(options.mailbox_limit, "block")
        self._live: dict[str, Cell] = {}
        self._dormant: WeakValueDictionary[str, Cell] = WeakValueDictionary()  # as long as somebody has a handle
        self._shelves: WeakValueDictionary[str, Shelf] = WeakValueDictionary()  # by birth, while a cold frame is held
        self._woken = 0
        self.probing: set[str] = set()
        self._recency = Recency[Cell](_used_s)
        self._crowded = asyncio.Event()
        durable = promises(store, "written")
        self._unload_level: Level = "written" if durable else "async"
        self.close_level: Level = "synced" if durable else "async"
        self.hooks = ServiceHooks(self, options.hooks or {}, self._unload_level)
        self.supervisor = DynamicSupervisor(
            on_exhausted="quarantine",
            intensity=options.intensity,
            backoff=options.backoff,
            on_event=self._on_event,
            name="sessions",
        )

    def why_closed(self) -> SessionActorError | None:
        """A new error that says why no message is taken any more; None: they are."""
        if self.heir is not None:
            return self.heir.why_closed()
        if self.closed is not None or self.root is None:
            return (self.closed or ServiceClosed)()
        return None if self.root.alive else ServiceDown(str(self.root.reason or "its supervisor is stopping"))

    def check_loop(self) -> None:
        """Raises WrongLoop on another event loop, or in another thread, than the service's own."""
        slot = None if self.root is None else self.root.slot
        if slot is not None:
            try:
                slot.floor.check(slot.id)
            except actors.WrongLoop as error:
                raise translate(error) from None

    # --- coming ---

    def cell(self, session_id: str) -> Cell:
        """The cell of this session, shared by all its handles."""
        cell = self._known(session_id)
        if cell is None and self.heir is not None:
            return self.heir.cell(session_id)
        if cell is None and self.source is not None:
            cell = self.source._known(session_id)  # noqa: SLF001 - of its own class
        if cell is None:
            cell = self._dormant[session_id] = Cell(session_id, self)
        return cell

    def _known(self, session_id: str) -> Cell | None:
        return self._live.get(session_id) or self._dormant.get(session_id)

    def wake(self, cell: Cell, birth: Birth | None = None) -> ServerRef:
        """Start the server of a dormant session; its mailbox accepts at once. `birth`: how to make it if it is new.

        Raises ServiceClosed, ServiceDown, SessionDeleted.
        """
        ref = self._spawn(cell, cell)
        cell.birth = birth
        return ref

    def wake_to_delete(self, cell: Cell) -> None:
        """Put a server that only deletes in the place of a dormant session's. Raises as `wake` does."""
        self._spawn(cell, partial(Deleter, cell, self.store))

    def _spawn(self, cell: Cell, start: Callable[[], GenServer]) -> ServerRef:
        if self.heir is not None:
            self.leave(cell)
            cell.home = self.heir
            return self.heir._spawn(cell, start)  # noqa: SLF001 - of its own class
        if self.source is not None:
            self.source.leave(cell)
            cell.home = self
        closed = self.why_closed()
        if closed is not None:
            raise closed
        if cell.deleted:
            raise SessionDeleted(cell.id)
        if cell.fenced:
            raise SessionFenced(cell.id)
        spec = self.spec(cell, start)
        ref = self.supervisor.spawn(spec)
        cell.served = False
        self.enter(cell, ref)
        return ref

    def spec(self, cell: Cell, start: Callable[[], GenServer]) -> ChildSpec:
        """How the supervisor is to keep a session's server, under a new id."""
        self._woken += 1
        return ChildSpec(
            ServerId(cell.id, self._woken),
            start=start,
            restart="transient",
            shutdown_s=self._options.close_timeout_s,
            mailbox=self._mailbox,
            drain=True,
        )

    def enter(self, cell: Cell, ref: ServerRef) -> None:
        """A session has this server here from now on."""
        cell.child_id = ref.id
        cell.ref = ref
        self._live[cell.id] = cell
        self._dormant.pop(cell.id, None)
        self._recency.add(cell, ref.used_s)
        if self._surplus > 0:
            self._crowded.set()

    def new_server(self, cell: Cell) -> SessionServer:
        """The next incarnation of a session."""
        level = self._options.durability
        if self.hooks.any:
            return HookedServer(cell, self.store, level, self.hooks)
        return SessionServer(cell, self.store, level)

    def shelf(self, cell: Cell, lease: Lease) -> Shelf:
        """As `Home.shelf`."""
        shelf = self._shelves.get(lease.birth)
        if shelf is None:
            shelf = self._shelves[lease.birth] = Shelf(cell.id, self.store.archive(lease), asyncio.get_running_loop())
        return shelf

    async def load(self, session_id: str, birth: Birth | None, timeout_s: float | None) -> Cell:
        """Wait until the session is loaded, making it if it is new and `birth` says how; return its cell.

        Raises what `Cell.ready` raises, explained.
        """
        while True:
            cell = self.cell(session_id)
            cell.fenced = False
            try:
                await self._load(cell, birth, timeout_s)
            except SessionDeleted:  # while we waited; a session made now is another one
                if birth is None:
                    raise SessionNotFound(session_id) from None
            else:
                return cell

    async def _load(self, cell: Cell, birth: Birth | None, timeout_s: float | None) -> None:
        """An attempt of another caller that found nothing is tried again with our `birth`."""
        while cell.state is None:
            ours = isinstance(cell.ref, Dormant)
            if ours:
                self.wake(cell, birth)
            try:
                await cell.ready(timeout_s)
            except SupervisorError as error:
                explained = self.explain(cell, error)
                if ours or birth is None or not isinstance(explained, SessionNotFound):
                    raise explained from None

    # --- going ---

    @property
    def live(self) -> int:
        """How many sessions are loaded, loading, restarting or quarantined."""
        return len(self._live)

    def _on_event(self, event: Event) -> None:
        session_id = cast("ServerId", event.id).session
        if telemetry.attached:
            told_of_session(event, session_id)
        cell = self._live.get(session_id)
        if cell is None or cell.child_id != event.id:  # the session has a new server already
            return
        if event.kind == "quarantined":
            cell.turn_away(partial(SessionQuarantined, session_id))
        elif event.kind == "stopped":
            cell.rest()
            self._lay_to_rest(cell)
            closed = self.why_closed()
            if closed is not None:
                cell.turn_away(lambda: self.why_closed() or closed)

    async def sweep_forever(self) -> None:
        """Passivate what was not changed for long, and the surplus above `max_live`; one sweeper for all sessions."""
        idle_timeout_s = self._options.idle_timeout_s
        pause_s = None if idle_timeout_s is None else min(idle_timeout_s / _SWEEPS_PER_TIMEOUT, _SWEEP_S_MAX)
        while True:
            with anyio.move_on_after(_CROWDED_SWEEP_S if self._surplus > 0 else pause_s):
                await self._crowded.wait()
            self._crowded.clear()
            await self._sweep()

    @property
    def _surplus(self) -> int:
        max_live = self._options.max_live
        return 0 if max_live is None else len(self._live) - max_live

    async def _sweep(self) -> None:
        kept = [cell for cell in self._take(self._surplus) if not await self._passivate(cell)]
        for cell in kept:
            used_s = _used_s(cell)
            if used_s is not None:
                self._recency.add(cell, used_s)

    def _take(self, surplus: int) -> list[Cell]:
        taken: list[Cell] = []
        idle_timeout_s = self._options.idle_timeout_s
        idle_before_s = -inf if idle_timeout_s is None else perf_counter() - idle_timeout_s
        while (cell := self._recency.least(inf if len(taken) < surplus else idle_before_s)) is not None:
            taken.append(cell)
        return taken

    async def _passivate(self, cell: Cell) -> bool:
        if self._options.retention == "prune":
            with suppress(SessionActorError), anyio.move_on_after(_PRUNE_S):
                await prune_session(cell, forced=False)
        state = cell.state
        if state is None or isinstance(cell.ref, Dormant):
            return False
        seq = state.seq
        try:
            await self.store.flush(self._unload_level)
            rests = bool(await cell.server_ref().call(Passivate(seq), timeout_s=1.0))
        except (PersistenceError, SupervisorError, SessionActorError):
            return False  # a store in trouble, or a session that is ending, crashing or deleted: another sweep comes
        if rests and isinstance(cell.ref, Dormant):
            self._lay_to_rest(cell)  # now, and not when its task has ended: else others would be unloaded in its place
        return rests

    async def rest(self, session_id: str) -> None:
        """Unload a session that is not used, if it is loaded."""
        cell = self._live.get(session_id)
        if cell is not None:
            await self._passivate(cell)

    def _lay_to_rest(self, cell: Cell) -> None:
        if self._live.get(cell.id) is cell:
            del self._live[cell.id]
            self._dormant[cell.id] = cell

    # --- telling what happened ---

    def explain(self, cell: Cell, error: SupervisorError) -> SessionActorError:
        """The error of this package for what a session's server answered; a new object for every caller."""
        if isinstance(error, InitFailed):
            return explain_start(error)
        if isinstance(error, ServerStopped | ServerKilled | ServerDown):
            if cell.deleted or cell.fenced:
                return SessionDeleted(cell.id) if cell.deleted else SessionFenced(cell.id)
            closed = self.why_closed()
            if closed is not None or isinstance(error, ServerDown):
                return closed or translate(error)
            return SessionCrashed(cell.id)  # it was killed, or it stood in while the session could not be deleted
        if type(error) is actors.CallTimeout:
            return explain_late(cell.id, error)
        of_the_session = OF_A_SESSION.get(type(error))
        return translate(error) if of_the_session is None else of_the_session(cell.id)

    # --- quarantine and deletion ---

    def quarantined(self) -> tuple[str, ...]:
        """The ids of the sessions that kept crashing."""
        return tuple(cast("ServerId", child_id).session for child_id in self.supervisor.quarantined())

    def release(self, cell: Cell) -> None:
        """Start a quarantined session again. Raises SessionNotQuarantined."""
        if cell.child_id not in self.supervisor.quarantined():
            raise SessionNotQuarantined(cell.id)
        self.supervisor.release(cell.child_id)

    async def evict(self, cell: Cell) -> None:
        """Take a quarantined session out of memory, so that it can be deleted."""
        await self.supervisor.terminate_child(cell.child_id)

    def forget(self, cell: Cell) -> None:
        """A session is deleted: its id is free for another cell."""
        self.leave(cell)

    # --- handing over ---

    def cells(self) -> tuple[list[Cell], list[Cell]]:
        """Those that have a server, and those that do not, as far as somebody has a handle."""
        return list(self._live.values()), list(self._dormant.values())

    def has(self, cell: Cell) -> bool:
        """Whether it is among those that have a server here."""
        return self._live.get(cell.id) is cell

    def leave(self, cell: Cell) -> None:
        """A session belongs here no more."""
        for cells in (self._live, self._dormant):
            if cells.get(cell.id) is cell:
                del cells[cell.id]

    def take_in(self, cell: Cell) -> None:
        """A session that is not loaded belongs here from now on."""
        cell.home = self
        self._dormant[cell.id] = cell

    def share_shelves(self, former: Population) -> None:
        """Read cold frames where the former generation does: stacks that somebody holds go on."""
        self._shelves.update(former._shelves)


def _automatic(summaries: Summaries) -> Automatic | None:
    if summaries.summarizer is None:
        return None
    from session_actor.compaction.automatic import Automatic

    return Automatic(summaries, summaries.summarizer)


def _used_s(cell: Cell) -> float | None:
    """When the session last ran a message; None when it is not loaded."""
    return None if isinstance(cell.ref, Dormant) else cell.ref.used_s
