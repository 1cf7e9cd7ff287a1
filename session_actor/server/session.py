"""The server of one session: it loads the state, and turns each command into one record."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, NoReturn

import msgspec

from session_actor import telemetry
from session_actor.change import change_of
from session_actor.commands import BuildRequest, End
from session_actor.errors import ForkUnfinished, SessionEnded, translate
from session_actor.events import AnyEvent, Pruned
from session_actor.handle.feed import Settled
from session_actor.handover.server import SwappingServer
from session_actor.observing import SESSION, Watch
from session_actor.observing import tell as tell_of
from session_actor.persistence import (
    Fenced,
    Lease,
    Level,
    PersistenceError,
    SessionTombstoned,
    SessionUnknown,
    Store,
)
from session_actor.service_errors import SessionFenced, SessionNotFound
from session_actor.state import times
from session_actor.state.apply import APPLIERS, apply
from session_actor.state.decide import COMMANDS, Repeat, begin, command_of, decide
from session_actor.state.history import tips_of
from session_actor.state.runs import count
from session_actor.state.times import FIRST_US, LAST_US, now_us, wrong_time
from session_actor.state.weight import SMALL
from session_actor.supervisors import IGNORE, NO_REPLY, Call, ExitReason, Ignore, handles, statistics
from session_actor.transfer.taking import Look, TakeIn, taken_in
from session_actor.window.pressure import tell

from . import snapshots
from .deletion import Delete, delete_records
from .levels import check_level
from .loading import recover
from .outages import through_outages
from .prune import Prune, Save, unheld

if TYPE_CHECKING:
    from session_actor.commands import Command
    from session_actor.state.decide import Made
    from session_actor.state.state import State

    from .cell import Birth, Cell
    from .loading import Recovered


class Flush(msgspec.Struct, Call[int], frozen=True, gc=False):
    """Reply, with the newest seq, when everything before this message has reached `level`."""

    level: Level


class Passivate(msgspec.Struct, Call[bool], frozen=True, gc=False):
    """Unload if nothing new came since the flush that covered `seq`; the reply says whether it did."""

    seq: int


class SessionServer(SwappingServer):
    """One incarnation of one session.

    It owns the state; the cell publishes it to readers. A crash loses nothing: the next incarnation loads the
    session from the store, which serves its own unwritten records.
    """

    leaf = True

    __slots__ = ("_level", "_watch")

    def __init__(self, cell: Cell, store: Store, level: Level) -> None:
        """`level`: the service's default."""
        super().__init__()
        self._cell = cell
        self._store = store
        self._level: Level = level
        self._held = None
        self._lease: Lease
        self._state: State
        self._position = 0
        self._saved_seq = 0
        self._saved_next_id = 1
        self._save_at = snapshots.EVERY_RECORDS
        self._watch: Watch | None = None

    # --- life ---

    async def init(self) -> Ignore | None:
        """Acquire the session, load it, and publish it. A store outage is waited out.

        Raises SessionNotFound, ForkUnfinished, and damage as StoreCorrupt. A session that was deleted
        while it rested or restarted is not started again, whatever has its id now.
        """
        if self._cell.deleted:
            return IGNORE
        why = "restarted" if self._cell.served else "loaded"
        try:
            with telemetry.span((*SESSION, "activation"), {"session": self._cell.id, "why": why}) as span:
                await through_outages(self._load)
                span.measured["records"] = self._state.seq
        except BaseException as error:
            if self._cell.lease is not None and isinstance(error, SessionNotFound):
                self._cell.die()
                return IGNORE
            if not self._cell.served:  # the first start: there will be no other, but the next message may try again
                self._cell.rest()
            raise
        return None

    async def _load(self) -> None:
        store = self._store
        try:
            lease = await store.acquire(self._cell.id, create=self._cell.birth is not None)
        except (SessionUnknown, SessionTombstoned):
            raise SessionNotFound(self._cell.id) from None
        if self._cell.lease is not None and self._cell.lease.birth != lease.birth:
            store.release(lease)  # another session has the id now
            raise SessionNotFound(self._cell.id)
        arrived = await self.arrive(lease)
        state, report, snapshot_seq = arrived or await self._recover(lease)
        self._lease = lease
        self._state = state
        self._saved_seq = snapshot_seq
        self._saved_next_id = state.table.cold_below
        self._save_at = snapshot_seq + snapshots.EVERY_RECORDS
        self._position = store.health().appended_position
        birth = self._cell.birth
        if birth is not None:
            await self._be_born(birth)
        if state.importing:
            raise ForkUnfinished(self._cell.id)
        state.models = self._cell.models
        self._cell.publish(state, lease, report)
        if state.seq >= self._save_at or self._behind >= snapshots.EVERY_RECORDS:
            self._save()

    async def _recover(self, lease: Lease) -> Recovered:
        with telemetry.span((*SESSION, "recovery"), {"session": self._cell.id}) as span:
            recovered = await recover(self._store, lease, self._cell.shelf)
            report = recovered.report
            span.measured |= {
                "journal_records": report.journal_records,
                "log_records": report.log_records,
                "queue_records": report.queue_records,
            }
            span.metadata |= {"snapshot_seq": report.snapshot_seq, "clean": report.clean}
        return recovered

    @property
    def _behind(self) -> int:
        """What recovery would have to apply now: records, or frames, of which a copied history has many in one."""
        return max(self._state.seq - self._saved_seq, self._state.next_id - self._saved_next_id)

    async def _be_born(self, birth: Birth) -> None:
        if not self._state.seq:
            self._admit("async")
            birth.happened = True
            for number, (event, weight) in enumerate(birth.events()):
                if number:
                    await asyncio.sleep(0)  # a part of a long history may hold a megabyte
                self._record(event, weight)
            tell_of("created", self._cell.id, {"records": self._state.seq})

    async def terminate(self, reason: ExitReason) -> None:
        """Take the state from the readers, and give the session up unless it is coming back."""
        if not reason.abnormal and snapshots.pays(self._state, self._saved_next_id, self._behind):
            self._save()
        if self._cell.state is self._state:  # else the next incarnation has already published its own
            self._cell.withdraw()
        self._store.release(self._lease)
        if not (reason.abnormal or self._cell.deleted or self._cell.fenced):
            tell_of("passivated", self._cell.id, why="idle" if reason.kind == "normal" else "closing")

    def get_state(self) -> State:
        """The session's state, for introspection; it must not be changed."""
        return self._state

    # --- changes ---

    @handles(BuildRequest)
    def build(self, command: BuildRequest) -> Any:
        """A request is a change as any other; what it says of the pressure is told."""
        reply = self.change(command)
        state = self._state
        if state.requests:
            newest = next(reversed(state.requests.values()))
            quote = newest.quote
            tell(state, newest.on, quote.key.model, quote.tokens, quote.upper, newest.allowance)
        return reply

    @handles(*(kind for kind in COMMANDS if kind not in {BuildRequest, End}))
    def change(self, command: Command) -> Any:
        """One change in one step: admit, decide, apply, append; the reply leaves when its level is reached."""
        level = self._level if command.durability is None else check_level(command.durability)
        if telemetry.heard and self._watch is None:
            return self._watched(command, level)
        if level not in self._store.admitted:
            self._admit(level)
        decision = decide(self._state, command)
        if type(decision) is not Repeat:
            return SessionServer.lent(self, (_decided, decision, None, level))
        return decision.reply if level == "async" else self._gate.release_at(level, self._position, decision.reply)

    def lent(self, content: Any) -> Any:
        """The same by what a command is made of: its decider, its own fields, its branch, its level (see `Changes`).

        A level of None is the service's default. `change` comes this way, too, with what it has decided.
        """
        decider, fields, on, durability = content
        if telemetry.heard and self._watch is None:  # the one thing that being watched costs when nobody watches
            return self.change(command_of(decider, fields, on, durability))
        level = self._level if durability is None else check_level(durability)
        store, state = self._store, self._state
        if level not in store.admitted:
            self._admit(level)
        head = state.head
        if on is not None or state.ended is not None or state.importing:
            on, head = begin(state, on)
        event, weight, found = decider(state, fields, head, on)
        seq = state.seq + 1  # from here on as `_record`, written out because every change goes this way
        at_us = times.time_ns() // 1_000
        if not FIRST_US <= at_us <= LAST_US:
            raise wrong_time()
        try:
            if event.key is None:
                reply = APPLIERS[type(event)](state, event, at_us, found)
                state.seq = seq
            else:
                reply = apply(state, event, seq, at_us, found)
            self._position = position = store.append(self._lease, seq, at_us, event.kind, event, weight)
        except BaseException as error:  # noqa: BLE001 - raised again there
            self._broken(error)
        self._cell.stack = None
        if self._watch is not None:
            self._watch.note(event, seq, at_us, position)
        if seq >= self._save_at:
            self._save()
        return reply if level == "async" else self._gate.release_at(level, position, reply)

    @handles(End)
    def end(self, command: End) -> Any:
        """The end of the session is a change as any other, and nobody waits for an exchange any longer."""
        reply = self.change(command)
        self._cell.turn_away(partial(SessionEnded, self._cell.id))
        return reply

    def _watched(self, command: Command, level: Level) -> Any:
        """The same while somebody watches."""
        watch = self._watch = Watch(self._cell, self._gate, level)
        try:
            return watch.run(command, partial(SessionServer.change, self, command), self._state)
        finally:
            self._watch = None

    def _admit(self, level: Level) -> None:
        try:
            self._store.admit(level)
        except PersistenceError as error:
            raise translate(error) from None

    def _record(self, event: AnyEvent, weight: int) -> None:
        """Apply and append an event that no command decided."""
        seq, at_us = self._state.seq + 1, now_us()
        try:
            apply(self._state, event, seq, at_us)
            self._position = self._store.append(self._lease, seq, at_us, event.kind, event, weight)
        except BaseException as error:  # noqa: BLE001 - raised again there
            self._broken(error)
        self._cell.stack = None
        if self._cell.feed is not None:
            self._cell.feed.add(change_of(event, seq, at_us), "async", self._position, self._gate.after)
        if seq >= self._save_at:
            self._save()

    def _broken(self, error: BaseException) -> NoReturn:
        """The state and the records may differ, or are another owner's: readers must not see this state any more."""
        if not isinstance(error, Fenced):
            self._cell.withdraw()
            raise error
        self._cell.fence()
        self.stop_self()
        raise SessionFenced(self._cell.id) from None

    def _save(self) -> None:
        """Queue a snapshot; one that the store does not take is no trouble of the session's, another comes."""
        state = self._state
        self._save_at = state.seq + snapshots.EVERY_RECORDS
        if snapshots.may_be_saved(state):
            data = snapshots.snapshot_of(state)
            self._save_at += len(data) // snapshots.BYTES_A_RECORD
            with suppress(PersistenceError):
                self._store.save(self._lease, state.seq, data)
                self._saved_seq = state.seq
                self._saved_next_id = state.next_id

    # --- the service's own messages ---

    @handles(Flush)
    def flush(self, message: Flush) -> Any:
        """Reply when all records so far have reached the level."""
        seq = self._state.seq
        level = check_level(message.level, "level")
        if level == "async":
            return seq
        try:
            return self._gate.release_at(level, self._position, seq)
        except PersistenceError as error:
            raise translate(error) from None

    @handles(Settled)
    def settled(self, message: Settled) -> Any:
        """Reply behind the replies that are still held."""
        del message
        if not self._gate.holding:
            return self._state.seq
        self._gate.after(partial(self.defer().reply, self._state.seq))
        return NO_REPLY

    @handles(Save)
    def save(self, message: Save) -> int:
        """Save a snapshot of what has changed since the last one, if that is enough."""
        behind = self._behind
        if snapshots.pays(self._state, self._saved_next_id, behind) if message.resting else behind:
            self._save()
        return self._saved_seq

    @handles(Look)
    def look(self, message: Look) -> State:
        """What the session is now."""
        del message
        return self._state

    @handles(TakeIn)
    def take_in(self, message: TakeIn) -> int:
        """Add a part of an import."""
        event, weight = taken_in(self._state, message)
        self._admit("async")
        self._record(event, weight)
        tell_of("imported", self._cell.id, {"size_bytes": weight}, seq=self._state.seq)
        return self._state.seq

    @handles(Prune)
    def prune(self, message: Prune) -> int:
        """Drop the frames that are not held, and show readers the table without them."""
        state, held = self._state, message.held
        for needed in held.add(state.table, tips_of(state, keys=True)):  # what came since is in memory, or is read now
            state.table.read(needed)
        dropped = unheld(state, held)
        if dropped:
            self._admit("async")
            self._record(Pruned(tuple(dropped)), SMALL + 16 * len(dropped))
            self._cell.table = state.table
        frames = count(dropped)
        tell_of("pruned", self._cell.id, {"frames": frames})
        return frames

    @handles(Passivate)
    def passivate(self, message: Passivate) -> bool:
        """Unload, unless a change came after the flush, a message waits, or an exchange is open."""
        cell = self._cell
        lock = cell.exchange_lock
        busy = self._state.seq != message.seq or statistics(self.ref).mailbox_length or (lock and lock.locked())
        if busy or cell.busy or self._gate.holding:
            return False
        cell.rest()
        self.stop_self()
        return True

    @handles(Delete)
    async def delete(self, message: Delete) -> None:
        """Delete the session's records; every handle is dead from here on. A refused one leaves all as it was."""
        del message
        try:
            await delete_records(self._store, self._lease, self._cell)
        finally:
            if self._cell.ref is not self.ref:
                self.stop_self()


def _decided(_state: State, decision: Made, _head: int | None, _on: str | None) -> Made:
    """The decider of what is decided already."""
    return decision
