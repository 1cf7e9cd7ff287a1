"""What all handles of one session share, whatever incarnation serves it: the way to its server, and its state."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol

from session_actor import telemetry
from session_actor.errors import CallTimeout
from session_actor.service.deadline import deadline_in, seconds_left
from session_actor.service_errors import SessionDeleted, SessionFenced
from session_actor.state.table import Table
from session_actor.supervisors import BUSY

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from session_actor.compaction.automatic import Automatic
    from session_actor.compaction.options import Summaries
    from session_actor.events import AnyEvent
    from session_actor.handle.exchange import ExchangeLock
    from session_actor.handle.feed import Feed
    from session_actor.handover.values import CodeChange, Value
    from session_actor.models import ModelProfile
    from session_actor.persistence import Lease, RecoveryReport, Store
    from session_actor.stack import Stack
    from session_actor.state.state import State
    from session_actor.supervisors import GenServer, PendingReply, ServerRef, SupervisorError

    from .cold import Shelf

_LOOK_S: Final = 0.005
NOTHING: Final = Table()
"""The table of every session that is not loaded; nothing is ever in it."""


class ServerId(NamedTuple):
    """The id of a session's server, new each time that the session is loaded; it is shown as the session's."""

    session: str
    number: int

    def __repr__(self) -> str:
        """Its session's id, in quotes: what errors and `repr` say."""
        return repr(self.session)

    def __str__(self) -> str:
        """Its session's id: what the log says."""
        return self.session


@dataclass(slots=True)
class Birth:
    """What makes a session that does not exist yet."""

    events: Callable[[], Iterable[tuple[AnyEvent, int]]]
    """Makes its first events, each with its weight, as `Store.append` wants it; one by one: they may be large."""
    happened: bool = False
    """Whether they were needed: False while, or because, there was a session already."""


class Home(Protocol):
    """What a cell needs of the service it belongs to."""

    store: Store
    models: Mapping[str, ModelProfile] | None
    summaries: Summaries
    automatic: Automatic | None

    code_change: CodeChange | None
    probing: set[str]
    """The levels whose lag is being measured."""

    def shelf(self, cell: Cell, lease: Lease) -> Shelf:
        """Where the cold frames of the session are read: one for all that are held of one birth."""
        ...

    def wake(self, cell: Cell) -> ServerRef:
        """Start the session's server; its mailbox accepts at once."""
        ...

    def new_server(self, cell: Cell) -> GenServer:
        """The next incarnation of the session's server."""
        ...

    def check_loop(self) -> None:
        """Raises WrongLoop elsewhere than on the service's own event loop."""
        ...

    def forget(self, cell: Cell) -> None:
        """The session is deleted: its id is free for another cell."""
        ...

    def explain(self, cell: Cell, error: SupervisorError) -> Exception:
        """The package's own error for what the server answered."""
        ...

    def why_closed(self) -> Exception | None:
        """A new error that says why no message is taken any more; None: they are."""
        ...


class Dormant:
    """Stands for the server of a session that is not loaded: the first message brings the session back."""

    __slots__ = ("_cell",)

    def __init__(self, cell: Cell) -> None:
        """Only refers to the cell: most sessions of a store are dormant."""
        self._cell = cell

    def dispatch(self, message: Any, timeout_s: float | None = 5.0) -> Any | PendingReply[Any]:
        """Start the session and put `message` into its new mailbox; raises what `Home.wake` raises."""
        return self._cell.server_ref().dispatch(message, timeout_s)

    def borrow(self, content: Any) -> Any:
        """There is nothing to borrow."""
        del content
        return BUSY

    async def started(self, timeout_s: float | None = None) -> None:
        """Start the session and wait until it is loaded."""
        await self._cell.server_ref().started(timeout_s)


class Cell:
    """One session as its handles see it.

    Handles read `table` and `stack` directly, as readers of an ETS table do. They are empty while no incarnation has
    published its state (not loaded, crashed, deleted); a reader that misses then waits in `ready`.
    """

    __slots__ = (
        "__weakref__",
        "arrival",
        "birth",
        "busy",
        "child_id",
        "deleted",
        "exchange_lock",
        "feed",
        "fenced",
        "home",
        "id",
        "lease",
        "quiet",
        "recovery",
        "ref",
        "served",
        "stack",
        "state",
        "table",
    )

    def __init__(self, session_id: str, home: Home) -> None:
        """A session that is not loaded."""
        self.id = session_id
        self.home = home
        self.ref: ServerRef | Dormant = Dormant(self)
        self.birth: Birth | None = None
        self.arrival: Value | None = None
        """What another generation of the library handed over, until the session is loaded."""
        self.child_id: object = None
        self.table = NOTHING
        self.stack: Stack | None = None
        self.state: State | None = None
        self.lease: Lease | None = None
        self.recovery: RecoveryReport | None = None
        self.exchange_lock: ExchangeLock | None = None
        self.busy = 0
        """While it is not 0 the session stays loaded."""
        self.quiet = False
        """While it is loaded only to be looked at: no hook is told."""
        self.feed: Feed | None = None
        """Who reads its changes; None: nobody."""
        self.deleted = False
        self.fenced = False
        self.served = False

    def server_ref(self) -> ServerRef:
        """The session's server, started when it is not."""
        ref = self.ref
        return self.home.wake(self) if isinstance(ref, Dormant) else ref

    def __call__(self) -> GenServer:
        """The next incarnation of the session's server; what the supervisor calls, which so keeps no method for it."""
        return self.home.new_server(self)

    @property
    def models(self) -> Mapping[str, ModelProfile] | None:
        """The service's own profiles of models; None: there are none."""
        return self.home.models

    @property
    def summaries(self) -> Summaries:
        """How summaries are written."""
        return self.home.summaries

    @property
    def automatic(self) -> Automatic | None:
        """What compacts by itself; None: nothing does."""
        return self.home.automatic

    @property
    def code_change(self) -> CodeChange | None:
        """The embedder's last step of a handover; None: it has none."""
        return self.home.code_change

    def check_loop(self) -> None:
        """Raises WrongLoop elsewhere than on the service's own event loop."""
        self.home.check_loop()

    @property
    def store(self) -> Store:
        """The store of the service."""
        return self.home.store

    def held_lease(self) -> Lease:
        """The lease of the incarnation that was last published."""
        if self.lease is None:
            raise SessionFenced(self.id)
        return self.lease

    def shelf(self, lease: Lease | None = None) -> Shelf:
        """Where the session's cold frames are read; `lease` None: by the one that is held."""
        return self.home.shelf(self, lease or self.held_lease())

    def turn_away(self, why: Callable[[], Exception]) -> None:
        """No exchange begins here any more: who waits for one is told at once, and not when the running one ends."""
        if self.exchange_lock is not None:
            self.exchange_lock.turn_away(why)

    def rest(self) -> None:
        """The session is not loaded any more: the next message brings it back."""
        self.withdraw()
        self.ref = Dormant(self)

    def fence(self) -> None:
        """Another owner has the session: every handle says so, until the service is asked for the session anew."""
        self.fenced = True
        self.rest()
        self.turn_away(partial(SessionFenced, self.id))
        if self.feed is not None:
            self.feed.end(SessionFenced(self.id))

    def die(self) -> None:
        """The session is deleted: every handle says so from here on, and its id is free."""
        self.deleted = True
        self.rest()
        self.turn_away(partial(SessionDeleted, self.id))
        if telemetry.attached:
            telemetry.emit(("session_actor", "session", "deleted"), {}, {"session": self.id})
        if self.feed is not None:
            self.feed.end()
        self.home.forget(self)

    def explain(self, error: SupervisorError) -> Exception:
        """The package's own error for what the server answered, a new one for each caller."""
        return self.home.explain(self, error)

    def publish(self, state: State, lease: Lease, recovery: RecoveryReport) -> None:
        """Let readers see the state of a session that is loaded."""
        self.served = True
        self.birth = None
        self.lease = lease
        self.recovery = recovery if recovery.seq or not recovery.clean else None  # nothing was recovered: see `Reads`
        self.state = state
        self.table = state.table
        self.stack = None

    def replace(self, state: State) -> None:
        """Let readers see the same state as the next generation has it; lease and recovery are those of before."""
        self.state = state
        self.table = state.table
        self.stack = None

    def withdraw(self) -> None:
        """Let readers wait for the next incarnation: this one's state cannot be trusted, or is gone."""
        self.state = None
        self.table = NOTHING
        self.stack = None

    def _late(self, timeout_s: float | None) -> CallTimeout:
        return CallTimeout(
            f"session {self.id!r} was not loaded within {timeout_s} s; loading goes on: try again, see health()"
        )

    async def ready(self, timeout_s: float | None) -> State:
        """The published state; loads the session when needed, and waits out a restart.

        Raises InvalidArgument, SessionDeleted, what loading raises, and CallTimeout after `timeout_s` seconds (None: no
        limit).
        """
        deadline_s, pause_s = deadline_in(timeout_s), 0.0
        while (state := self.state) is None:
            if self.deleted:
                raise SessionDeleted(self.id)
            if self.fenced:
                raise SessionFenced(self.id)
            ref, left_s = self.server_ref(), seconds_left(deadline_s)
            if left_s == 0:
                raise self._late(timeout_s)
            try:
                async with asyncio.timeout(left_s):
                    await ref.started(None)
            except TimeoutError:
                raise self._late(timeout_s) from None
            if self.state is None:  # crashed since, and its restart is decided in the next turn; or it is being deleted
                await asyncio.sleep(pause_s)
                pause_s = _LOOK_S
        return state
