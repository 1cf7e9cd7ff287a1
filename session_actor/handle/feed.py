"""A live feed of one session's changes, for clients that reconnect.

A change is shown when its reply leaves, that is when its level is reached, and in the order of the records. What a
reader missed comes from the store, what follows from memory: the reader is put on the list before the store is read,
and passes over what it has had.
"""

from __future__ import annotations

import asyncio
import weakref
from collections import deque
from contextvars import Context
from functools import partial
from typing import TYPE_CHECKING, Final

import msgspec

from session_actor import telemetry
from session_actor.change import Change, change_of
from session_actor.errors import InvalidArgument, StoreError, translate
from session_actor.events import Ended, decode_event
from session_actor.persistence import Fenced, PersistenceError
from session_actor.server.cell import Dormant
from session_actor.service_errors import Lagged
from session_actor.supervisors import Call, ServerCrashed, SupervisorError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Self

    from session_actor.persistence import Level, LoadedSession
    from session_actor.server.cell import Cell

LIMIT: Final = 1_000
"""So many changes wait for a reader before it has fallen behind."""
_AGAIN_S: Final = 0.2
"""How soon to look again whether the disk has what it refused."""
_TURN: Final = 256
"""So many records are read between two turns of the loop."""


class Settled(msgspec.Struct, Call[int], frozen=True, gc=False):
    """Reply with the newest seq, when the replies of all changes up to it have left."""


class _Held:
    """A change that is not shown yet."""

    __slots__ = ("change", "left", "level", "position")

    def __init__(self, change: Change, level: Level, position: int) -> None:
        self.change = change
        self.level: Level = level
        self.position = position
        self.left = False


def reached(cell: Cell, level: Level, position: int) -> bool:
    """Whether what is at `position` has reached the level."""
    if level == "async":
        return True
    store = cell.store
    return position <= (store.written_position if level == "written" else store.synced_position)


class Feed:
    """The readers of one session's changes; it belongs to the cell, over all incarnations."""

    __slots__ = ("_again", "_cell", "_held", "_readers")

    def __init__(self, cell: Cell) -> None:
        """Nobody reads."""
        self._cell = cell
        self._held: deque[_Held] = deque()
        self._again: asyncio.TimerHandle | None = None
        self._readers: list[weakref.ref[ChangeFeed]] = []

    def add(self, change: Change, level: Level, position: int, after: Callable[[Callable[[], None]], None]) -> None:
        """A change was made; `after` calls back when its reply has left."""
        if level == "async" and not self._held:
            self._tell(change)
            if not self._readers:
                self._stop()
            return
        held = _Held(change, level, position)
        self._held.append(held)
        if level == "async":
            self._left(held)
        else:
            after(partial(self._left, held))

    def _left(self, held: _Held) -> None:
        held.left = True
        self._show()

    def _show(self) -> None:
        while self._held and self._held[0].left:
            first = self._held[0]
            if not reached(self._cell, first.level, first.position):
                self._look_again()
                return
            self._held.popleft()
            self._tell(first.change)

    def _tell(self, change: Change) -> None:
        for one in tuple(self._readers):
            reader = one()
            if reader is None:
                self._readers.remove(one)
            else:
                reader.put(change)
        if change.kind == Ended.kind:
            self.end()

    def _look_again(self) -> None:
        """The disk refused it: the change stays, and is shown when it is there after all."""
        if self._again is None and self._readers:

            def look() -> None:
                self._again = None
                self._show()

            self._again = asyncio.get_running_loop().call_later(_AGAIN_S, look, context=Context())

    def join(self, reader: ChangeFeed) -> None:
        """It reads from now on, as long as somebody has it."""
        self._readers.append(weakref.ref(reader))

    def leave(self, reader: ChangeFeed) -> None:
        """It reads no more."""
        self._readers = [one for one in self._readers if one() not in (reader, None)]
        if not self._readers:
            self._stop()

    def end(self, error: Exception | None = None) -> None:
        """No change comes any more; `error`: what readers get then, None: their iteration just ends."""
        for one in self._readers:
            reader = one()
            if reader is not None:
                reader.finish(error)
        self._stop()

    def _stop(self) -> None:
        self._held.clear()
        if self._again is not None:
            self._again.cancel()
            self._again = None
        if self._cell.feed is self:
            self._cell.feed = None


class ChangeFeed:
    """The changes of a session, one after the other: an async iterator, made by `Session.changes`."""

    __slots__ = (
        "__weakref__", "_cell", "_closed", "_counted", "_ending", "_feed", "_last_seq", "_limit", "_queue", "_read",
        "_replay", "_started", "_waiter",
    )  # fmt: skip

    def __init__(self, cell: Cell, after_seq: int | None, limit: int) -> None:
        """Made by `Session.changes`."""
        if after_seq is not None and (type(after_seq) is not int or after_seq < 0):
            raise InvalidArgument("after_seq", "must be the number of a record, 0 for all, or None")
        if type(limit) is not int or limit < 1:
            raise InvalidArgument("limit", "must be a whole number of at least 1")
        cell.check_loop()
        self._cell = cell
        self._limit = limit
        self._queue: deque[Change] = deque()
        self._replay: deque[Change] = deque()
        self._waiter: asyncio.Future[None] | None = None
        self._ending: list[Exception | None] = []
        self._closed = False
        self._read = False
        state = None if isinstance(cell.ref, Dormant) else cell.state  # one whose service closes is still published
        self._started = after_seq is None and state is not None
        self._last_seq = after_seq
        if after_seq is None and state is not None:
            self._last_seq = state.seq
            if state.ended is not None:
                self._ending.append(None)
        self._feed = cell.feed = cell.feed or Feed(cell)
        self._feed.join(self)
        self._counted = weakref.finalize(self, telemetry.reading())
        self._counted.atexit = False

    # --- what the feed tells ---

    def put(self, change: Change) -> None:
        """A change is shown."""
        if self._ending:
            return
        if self._last_seq is None:
            self._last_seq = change.seq - 1
        if len(self._queue) >= self._limit:
            self._queue.clear()  # the store has it
            self.finish(Lagged(self._cell.id, self._last_seq or 0, lost=False))
            return
        self._queue.append(change)
        self._wake()

    def finish(self, error: Exception | None) -> None:
        """Nothing follows."""
        if not self._ending:
            self._ending.append(error)
        self._counted()
        self._wake()

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    # --- reading ---

    def __aiter__(self) -> Self:
        """It is its own iterator."""
        return self

    async def __anext__(self) -> Change:
        """The next change; see `Session.changes`."""
        if self._closed:
            raise StopAsyncIteration
        self._cell.check_loop()  # a future of another loop, resolved from here, would fail who makes the change
        if self._read:
            raise InvalidArgument("changes", "are read by another task already; call `session.changes` for each reader")
        self._read = True
        try:
            return await self._one()
        finally:
            self._read = False

    async def _one(self) -> Change:
        if not self._started:
            await self._start()
        while not self._closed:
            change = self._next()
            if change is not None:
                self._last_seq = change.seq
                return change
            if self._ending:
                error = self._ending[0]
                await self.aclose()
                if isinstance(error, Lagged) and not error.lost:
                    raise Lagged(self._cell.id, self._last_seq or 0, lost=False)
                if error is not None:
                    raise error
                break
            await self._wait()
        raise StopAsyncIteration

    def _next(self) -> Change | None:
        if self._replay:
            return self._replay.popleft()
        while self._queue:
            change = self._queue.popleft()
            if change.seq > (self._last_seq or 0):
                return change
        return None

    async def _wait(self) -> None:
        self._waiter = asyncio.get_running_loop().create_future()
        try:
            await self._waiter
        finally:
            self._waiter = None

    async def aclose(self) -> None:
        """Read no more, also in a task that waits for the next one; again: no effect. Raises WrongLoop."""
        if not self._closed:
            self._cell.check_loop()
        self._closed = True
        self._feed.leave(self)
        self.finish(None)

    async def __aenter__(self) -> Self:
        """`async with session.changes() as changes:` closes it at the end."""
        return self

    async def __aexit__(self, *_: object) -> None:
        """Close."""
        await self.aclose()

    # --- what was missed ---

    async def _start(self) -> None:
        """Load the session, and what was missed from the store; when it raises, the reader is off the list."""
        try:
            settled = await self._settle()
        except (SupervisorError, PersistenceError, OSError) as error:
            await self.aclose()
            raise self._explained(error) from None
        except Exception:
            await self.aclose()
            raise
        if self._last_seq is None:
            self._last_seq = settled
        self._started = True

    async def _settle(self) -> int:
        """Up to which record all replies have left; what was missed up to there is in `_replay`."""
        cell, wanted = self._cell, self._last_seq
        while True:
            try:
                state = await cell.ready(None)
                settled: int = await cell.server_ref().call(Settled(), timeout_s=None)
                if wanted is not None:
                    self._replay = await self._missed(wanted, settled)
            except ServerCrashed:
                continue  # it comes back
            except Fenced:
                await asyncio.sleep(0)
            else:
                if state.ended is not None and state.seq <= settled:
                    self.finish(None)
                return settled

    def _explained(self, error: SupervisorError | PersistenceError | OSError) -> Exception:
        if isinstance(error, SupervisorError):
            return self._cell.explain(error)
        if isinstance(error, PersistenceError):
            return translate(error)
        return StoreError.of(f"the changes of session {self._cell.id!r} cannot be read", error, "try again")

    async def _missed(self, after_seq: int, up_to: int) -> deque[Change]:
        """The changes behind `after_seq`, by the records. Raises `Lagged` when not all of them are there."""
        cell = self._cell
        if after_seq > up_to:
            raise Lagged(cell.id, up_to, lost=True)
        if after_seq == up_to:
            return deque()
        loaded = await self._load(snapshots=True)
        if loaded.snapshot is not None and loaded.snapshot.seq > after_seq:
            loaded = await self._load(snapshots=False)
        first = loaded.records[0].seq if loaded.records else up_to + 1
        if first > after_seq + 1:
            raise Lagged(cell.id, first - 1, lost=True)
        missed = deque[Change]()
        for place, record in enumerate(loaded.records):
            if after_seq < record.seq <= up_to:
                missed.append(change_of(decode_event(record.kind, record.data), record.seq, record.at_us))
            if not place % _TURN:
                await asyncio.sleep(0)
        return missed

    async def _load(self, *, snapshots: bool) -> LoadedSession:
        store = self._cell.store
        load = getattr(store, "load_as_it_is", store.load)
        loaded: LoadedSession = await load(self._cell.held_lease(), snapshots=snapshots)
        return loaded

    def __repr__(self) -> str:
        """Where it is."""
        return f"ChangeFeed({self._cell.id!r}, last_seq={self._last_seq})"


def end_feeds(cells: Iterable[Cell]) -> None:
    """The service of these sessions is closed: whoever reads their changes has had all."""
    for cell in cells:
        if cell.feed is not None:
            cell.feed.end()
