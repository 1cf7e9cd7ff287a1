"""The server of a session of a service that has hooks: it calls them, and lets them not change their own session."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Final

import msgspec

from session_actor.commands import CommitCompaction, End
from session_actor.events import Ended
from session_actor.persistence import LEVELS, PersistenceError
from session_actor.server.levels import check_level
from session_actor.server.session import Passivate, SessionServer
from session_actor.state.decide import Repeat, decide
from session_actor.supervisors import Call, Ignore, handles

from .inside import refuse_inside
from .view import view_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from session_actor.commands import Command
    from session_actor.persistence import Level, Store
    from session_actor.server.cell import Cell
    from session_actor.server.deletion import Delete
    from session_actor.server.prune import Prune
    from session_actor.transfer.taking import TakeIn

    from .beside import Calling
    from .service_hooks import ServiceHooks

DELETED: Final = "deleted"
"""Why a session ends that is deleted."""


class EndToDelete(msgspec.Struct, Call[None], frozen=True, gc=False):
    """End the session, if it has not ended, because it is to be deleted."""


class HookedServer(SessionServer):
    """As any session's server, and it knows the hooks of its service."""

    __slots__ = ("_hooks",)

    def __init__(self, cell: Cell, store: Store, level: Level, hooks: ServiceHooks) -> None:
        """`level`: the service's default."""
        super().__init__(cell, store, level)
        self._hooks = hooks

    async def init(self) -> Ignore | None:
        """Load the session, then call what is to be called when one was made or loaded, not when it restarts."""
        cell = self._cell
        known, birth = cell.served, cell.birth
        ignored = await super().init()
        if ignored is None and not known:
            born = birth is not None and birth.happened
            if born:
                self._leave(self._level, partial(self._call, self._callings("created") + self._loaded("created")))
            elif not cell.quiet:
                self._call(self._loaded("loaded"))
        return ignored

    def _loaded(self, reason: str) -> list[Calling]:
        return [] if self._state.ended is not None else self._callings("activated", reason)

    def _callings(self, phase: Any, reason: str = "") -> list[Calling]:
        if not self._hooks.has(phase):
            return []
        return self._hooks.callings(phase, self._lease.birth, view_of(self._state), reason)

    def _call(self, callings: list[Calling]) -> None:
        self._hooks.call(self._cell.id, self._lease.birth, callings)

    def _leave(self, level: Level, call: Callable[[], None]) -> None:
        """Call when the newest record has reached its level, as its reply does; or will not."""
        if level == "async":
            call()
            return
        try:
            self._store.when(level, self._position, lambda _error: call())
        except PersistenceError:
            call()

    # --- changes ---

    def change(self, command: Command) -> Any:
        """As in every session, but not from inside its own hooks."""
        refuse_inside(self._cell.id, self._lease.birth)
        return super().change(command)

    def lent(self, content: Any) -> Any:
        """The same."""
        refuse_inside(self._cell.id, self._lease.birth)
        return super().lent(content)

    def prune(self, message: Prune) -> int:
        """The same."""
        refuse_inside(self._cell.id, self._lease.birth)
        return super().prune(message)

    def take_in(self, message: TakeIn) -> int:
        """The same."""
        refuse_inside(self._cell.id, self._lease.birth)
        return super().take_in(message)

    async def delete(self, message: Delete) -> None:
        """The same."""
        refuse_inside(self._cell.id, self._lease.birth)
        await super().delete(message)

    @handles(CommitCompaction)
    def compact(self, command: CommitCompaction) -> Any:
        """A compaction, between the hooks before it and those after it; both are called when it is made."""
        state, before = self._state, self._callings("before_compaction")
        seq = state.seq
        reply = self.change(command)
        if state.seq != seq:
            level = self._level if command.durability is None else check_level(command.durability)
            self._leave(level, partial(self._call, before + self._callings("after_compaction")))
        return reply

    @handles(End)
    def end(self, command: End) -> Any:
        """The session ends; what must be run for that is noted first."""
        return self._end(command, delete=False)

    @handles(EndToDelete)
    def end_to_delete(self, message: EndToDelete) -> Any:
        """It ends because it is deleted."""
        del message
        return None if self._state.ended is not None else self._end(End(DELETED), delete=True)

    def _end(self, command: End, *, delete: bool) -> Any:
        refuse_inside(self._cell.id, self._lease.birth)
        state, hooks = self._state, self._hooks
        level = self._level if command.durability is None else check_level(command.durability)
        promised = False
        if hooks.must_end:
            if LEVELS.index(level) < LEVELS.index(hooks.keeper.level):
                level = hooks.keeper.level
            command = msgspec.structs.replace(command, durability=level)
            self._admit(level)
            decision = decide(state, command)
            if not isinstance(decision, Repeat) and isinstance(decision[0], Ended):
                hooks.promise(self._lease, state, decision[0].reason, delete=delete)
                promised = True
        seq = state.seq
        try:
            reply = super().end(command)
        except BaseException:
            if promised and state.seq == seq:
                hooks.take_back(self._cell.id)
            raise
        if state.seq != seq:
            self._leave(level, partial(self._ended, self._callings("ended", state.ended or ""), promised))
        return reply

    def _ended(self, callings: list[Calling], promised: bool) -> None:  # noqa: FBT001 - given by `partial`
        if promised:
            self._hooks.ended(self._cell.id)
        self._call(callings)

    # --- going ---

    def passivate(self, message: Passivate) -> bool:
        """Unload, and call what is to be called then; a session that has ended is only read, and rests without."""
        callings = [] if self._state.ended is not None or self._cell.quiet else self._callings("passivated", "unloaded")
        rests = super().passivate(message)
        if rests:
            self._call(callings)
        return rests
