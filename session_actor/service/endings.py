"""The part of a service that ends sessions for good: one, those that nobody has used for long, and deleting."""

from __future__ import annotations

from dataclasses import replace
from time import perf_counter
from typing import TYPE_CHECKING, Final

import anyio

from session_actor.commands import End
from session_actor.errors import CallTimeout, ForkUnfinished, SessionActorError, SessionEnded
from session_actor.events import Ended, Pruned
from session_actor.given.given_numbers import check_seconds
from session_actor.handle.handle import Session
from session_actor.hooks.inside import refuse_inside
from session_actor.hooks.server import DELETED, EndToDelete
from session_actor.hooks.view import view_of
from session_actor.persistence import PersistenceError
from session_actor.server.cell import Dormant
from session_actor.server.deletion import Delete
from session_actor.service_errors import SessionDeleted, SessionNotFound, SessionQuarantined
from session_actor.state.names import check_name
from session_actor.state.times import now_us

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

    from session_actor.hooks.beside import Calling
    from session_actor.persistence import Level, Record, SessionInfo
    from session_actor.server.cell import Cell
    from session_actor.state.state import State

    from .population import Population

_LOAD_S: Final = 30.0


class Ends:
    """Part of `SessionService`."""

    if TYPE_CHECKING:

        def _people(self) -> Population: ...
        def _cell(self, session_id: str) -> Cell: ...
        async def session(self, session_id: str, *, timeout_s: float | None = 5.0) -> Session:
            """As the service has it."""
            ...

        def sessions(self, prefix: str = "") -> AsyncIterator[SessionInfo]:
            """As the service has it."""
            ...

    async def end(
        self,
        session_id: str,
        reason: str = "done",
        *,
        durability: Level | None = None,
        timeout_s: float | None = 5.0,
        key: str | None = None,
        expect_head: int | None = None,
    ) -> Session:
        """End a session for good: reads go on, changes raise SessionEnded. Ending it again changes nothing.

        Where there are mandatory hooks of `ended`, it is answered at `written` at least (if the store can promise
        that): from then on they run, whatever happens. It does not wait for them.

        The session is loaded first, if it is not. `timeout_s`: how long that may take, and again how long the ending
        [seconds]; None: no limit. Cancelling while it is loaded ends nothing; afterwards it gives up the wait, and the
        session ends. Raises SessionNotFound, UnusableId, InsideHook from inside a hook of the session, and what every
        change raises.
        """
        session = await self.session(session_id, timeout_s=timeout_s)
        try:
            await session.send(End(reason, durability=durability, key=key, expect_head=expect_head), timeout_s)
        except SessionEnded:
            hooks = self._people().hooks
            if hooks.must_end:  # whoever ended it may still wait for that
                await session.flush(hooks.keeper.level, timeout_s=timeout_s)
        return session

    async def end_idle(self, older_than_s: float, *, reason: str = "idle") -> list[str]:
        """End every session that nothing came to for so long; returns their ids. For a job at night, say.

        A session counts by its newest frame, or by its creation as long as it has none; one that is loaded by its
        newest message of any kind, too. One that is in an exchange is left alone, and one that cannot be loaded. Those
        that are not loaded are, one after the other, unless they are younger than that or have ended; nothing is called
        `activated` or `passivated` for this. Cancelling stops it; what has ended has ended.

        Raises InvalidArgument, and what `sessions` raises.
        """
        check_seconds("older_than_s", older_than_s)
        reason = check_name(reason, "reason")
        people, ended = self._people(), list[str]()
        async for info in self.sessions():
            if info.created_at_us <= now_us() - older_than_s * 1e6:
                try:
                    gone = await _end_if_idle(people, info.id, older_than_s, reason)
                except SessionActorError:
                    self._people()  # one that cannot be ended is left alone, not so a service that is closed
                    continue
                if gone:
                    ended.append(info.id)
        return ended

    async def delete(self, session_id: str, *, timeout_s: float | None = 5.0) -> None:
        """Delete a session and its records for good; handles raise SessionDeleted from then on, the id is free.

        Returns when the deletion is synced; `timeout_s`: how long to wait for that [seconds]; None: no limit. Once it
        is asked for it comes, when the disk allows it: cancelling and CallTimeout give up the wait alone.

        Where there are mandatory hooks of `ended`, the session is ended first, with the reason "deleted", and deleted
        when they are through: that, too, comes once it is noted, over any restart. Meanwhile it can be read.

        Raises:
            SessionNotFound: there is none.
            NotDurable: the session is deleted, but a loss of power, or closing before the disk works again, may bring
                it back; `health` tells how the disk is.
            StoreDegraded, StoreError: the disk refused; the session is as it was.
            StoreCorrupt, SessionQuarantined: it cannot be shown to its mandatory hooks; it is as it was.
            CallTimeout: not deleted in time.
            InvalidArgument: `timeout_s` is no number of seconds.
            InsideHook: called by a hook of the session.
            SessionFenced, UnusableId, ServiceClosed, ServiceDown.
        """
        people = self._people()
        cell = self._cell(session_id)
        check_seconds("timeout_s", timeout_s, optional=True)
        refuse_inside(cell.id, people.hooks.mark(cell.id))
        try:
            with anyio.fail_after(timeout_s):
                await _delete(people, cell)
        except TimeoutError:
            waits = people.hooks.holds(cell.id)
            why = "its mandatory hooks are not through: it will be when they are" if waits else "it may still be"
            raise CallTimeout(
                f"session {cell.id!r} was not deleted within {timeout_s} s; {why}; ask for it again to wait for it"
            ) from None


async def _delete(people: Population, cell: Cell) -> None:
    hooks = people.hooks
    callings: list[Calling] = []
    state: State | None = None
    try:
        if hooks.must_end:
            await _end_to_delete(people, cell)
        elif hooks.ends:
            state, callings = await _last_calls(people, cell)
    except SessionDeleted:
        return  # somebody else was quicker
    if hooks.holds(cell.id) and await hooks.deletion(cell.id):
        return
    birth = "" if cell.lease is None else cell.lease.birth
    deleted = await delete_session(people, people.cell(cell.id))
    if deleted and state is not None and state.ended is None:  # else somebody was quicker, and had them called
        hooks.call(cell.id, birth, callings)


async def _end_to_delete(people: Population, cell: Cell) -> None:
    """End it, and note that it is to be deleted; an unfinished copy never was a session."""
    try:
        cell = await people.load(cell.id, None, None)
        await Session(cell).send(EndToDelete(), None)
    except ForkUnfinished:
        return


async def _last_calls(people: Population, cell: Cell) -> tuple[State | None, list[Calling]]:
    """What is to be called, once, when it is deleted: nothing for a session that has ended, or cannot be read."""
    try:
        cell = await people.load(cell.id, None, None)
        state, lease = cell.state, cell.lease
        if state is None or lease is None or state.ended is not None:
            return None, []
        view = replace(view_of(state), ended=DELETED)
        await view.stack()  # into memory, since the records go
    except (SessionNotFound, SessionDeleted):
        raise
    except SessionActorError:
        return None, []
    return state, people.hooks.callings("ended", lease.birth, view, DELETED)


async def delete_session(people: Population, cell: Cell) -> bool:
    """Returns False when somebody else was quicker.

    The message has no time limit: one that was given up would leave a server that only deletes, and nothing.
    """
    if isinstance(cell.ref, Dormant):
        people.wake_to_delete(cell)
    try:
        await Session(cell).send(Delete(), None)
    except SessionQuarantined:
        await people.evict(cell)
        return await delete_session(people, people.cell(cell.id))
    except SessionDeleted:
        return False
    return True


async def _end_if_idle(people: Population, session_id: str, older_than_s: float, reason: str) -> bool:
    cell = people.cell(session_id)
    resting = isinstance(cell.ref, Dormant)
    if resting:
        if await _is_over(people, session_id):
            return False
        resting = isinstance(cell.ref, Dormant)
    if resting:
        cell.quiet = True
    elif perf_counter() - cell.server_ref().used_s < older_than_s:
        return False
    try:
        cell = await people.load(session_id, None, _LOAD_S)
        state = cell.state
        if state is None or state.ended is not None:
            return False
        seq, newest_us = state.seq, await _last_frame_us(state)
        if now_us() - newest_us < older_than_s * 1e6 or cell.state is not state or state.seq != seq:
            return False  # something came lately, or while its frame was read
        lock = cell.exchange_lock
        if cell.busy or (lock is not None and lock.locked()):
            return False
        await Session(cell).send(End(reason, expect_head=state.head or 0), _LOAD_S)
    finally:
        if resting:
            await _lay_down(people, cell)
    return True


async def _is_over(people: Population, session_id: str) -> bool:
    """Whether a session that is not loaded has ended, by its newest record; False also where only loading can tell.

    One that has ended may be pruned when it is unloaded, and nothing else.
    """
    look: Callable[[str, int], Awaitable[list[Record]]] | None = getattr(people.store, "newest", None)
    if look is None:  # not every store can
        return False
    try:
        kinds = [record.kind for record in await look(session_id, 2)]
    except (PersistenceError, SessionActorError):  # loading says why
        return False
    return kinds[-1:] == [Ended.kind] or kinds == [Ended.kind, Pruned.kind]


async def _last_frame_us(state: State) -> int:
    """When the newest frame was pushed that is known; else when the session was made."""
    newest = state.created_at_us or 0
    for frame_id in (state.next_id - 1, state.head):
        if frame_id and state.table.has(frame_id):
            await state.table.load((frame_id,))
            newest = max(newest, state.table.at(frame_id).at_us)
    return newest


async def _lay_down(people: Population, cell: Cell) -> None:
    """Unload a session that was loaded to be looked at; if somebody uses it by now, it was activated for that."""
    await people.rest(cell.id)
    cell.quiet = False
    state, lease = cell.state, cell.lease
    if state is not None and lease is not None and state.ended is None:
        callings = people.hooks.callings("activated", lease.birth, view_of(state), "loaded")
        people.hooks.call(cell.id, lease.birth, callings)
