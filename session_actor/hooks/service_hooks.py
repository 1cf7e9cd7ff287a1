"""All hooks of one service: which there are, what is pending, and the way to both."""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING

from .beside import Beside, Calling
from .deletions import Deletions
from .hook import key_of
from .inside import refuse_inside
from .keeper import BookKeeper
from .mandatory import Mandatory
from .records import HooksDue, HooksVoid
from .report import HooksHealth
from .tries import Tries
from .view import view_of

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Mapping

    from session_actor.persistence import Lease, Level
    from session_actor.server.cell import Cell
    from session_actor.service.population import Population
    from session_actor.state.state import State

    from .hook import Hook, Phase
    from .view import SessionView


class ServiceHooks:
    """The hooks of one service."""

    def __init__(self, people: Population, hooks: Mapping[Phase, tuple[Hook, ...]], level: Level) -> None:
        """`hooks`: in the order in which they begin. `level`: the one at which something pending counts as kept."""
        self._hooks = hooks
        ended = hooks.get("ended", ())
        self.any = bool(hooks)
        """Whether there are any at all; without them sessions know nothing of hooks."""
        self.ends = bool(ended)
        """Whether there are any of `ended`."""
        self.must_end = tuple(hook for hook in ended if hook.mandatory)
        """The mandatory ones."""
        self.tries = Tries()
        self.keeper = BookKeeper(people.store, level)
        self._beside = Beside(self.tries)
        self._heir: ServiceHooks | None = None
        """Of the next generation of the service, which calls what a change that waited for the disk has left."""
        self.mandatory = Mandatory(people, self.tries, self.keeper, self.must_end)
        self.deletions = self.mandatory.deletions = Deletions(people, self.tries, self.keeper, self.mandatory)

    # --- life ---

    async def open(self) -> None:
        """Read what is pending."""
        await self.keeper.open(create=bool(self.must_end))

    def begin(self) -> None:
        """Run what was left pending by an earlier opening."""
        for entry in tuple(self.keeper.book.entries.values()):
            self.mandatory.take(entry)

    def leave(self) -> None:
        """The service is closing: what is pending and does not yet run stays so."""
        self.tries.leave()
        self.deletions.close()

    def closed(self, cells: Iterable[Cell]) -> None:
        """Every session is unloaded because the service closes."""
        if self.has("passivated"):
            for cell in cells:
                state, lease = cell.state, cell.lease
                if state is not None and lease is not None and state.ended is None and not cell.quiet:
                    self.call(cell.id, lease.birth, self.callings("passivated", lease.birth, view_of(state), "closed"))

    async def close(self, timeout_s: float) -> None:
        """Give what runs its time [seconds]."""
        await self.tries.close(timeout_s)

    async def share(self, former: ServiceHooks) -> None:
        """As the next generation of the service, note what becomes due where the former one does."""
        if self.must_end:
            await former.keeper.begin()
        self.keeper = self.mandatory.keeper = self.deletions.keeper = former.keeper
        self.deletions.waiting = former.deletions.waiting

    def take_over(self, former: ServiceHooks) -> None:
        """Go on with what is pending; what runs is finished by the former generation, which begins nothing more."""
        self.tries.follow(former.tries)
        former.mandatory.heir = self.mandatory
        former._heir = self
        self.begin()

    # --- what sessions tell ---

    def has(self, phase: Phase) -> bool:
        """Whether there are hooks of this phase."""
        return phase in self._hooks

    def marks(self, session: str, birth: str) -> tuple[Hashable, ...]:
        """What stands for a session inside its hooks: its birth, and its id in this service."""
        return birth, self.mark(session)

    def mark(self, session: str) -> Hashable:
        """What stands for a session that may not be loaded."""
        return id(self), session

    def callings(self, phase: Phase, birth: str, view: SessionView, reason: str = "") -> list[Calling]:
        """The calls of the hooks of a phase that are not mandatory."""
        once = phase in {"created", "ended"}
        occasion = "" if once else secrets.token_hex(8) if phase in {"activated", "passivated"} else str(view.seq)
        return [
            Calling(hook, key_of(hook, birth, occasion), reason, view)
            for hook in self._hooks.get(phase, ())
            if not hook.mandatory
        ]

    def call(self, session: str, birth: str, callings: list[Calling]) -> None:
        """Call these, one after another, beside the session."""
        if self._heir is not None:
            self._heir.call(session, birth, callings)
        elif callings:
            self._beside.call(callings, self.marks(session, birth))

    def promise(self, lease: Lease, state: State, reason: str, *, delete: bool) -> None:
        """Note what must be run because a session ends, before its end is recorded. Raises what the store says."""
        hooks = tuple((hook.name, key_of(hook, lease.birth)) for hook in self.must_end)
        created_at_us = state.created_at_us or 0
        self.keeper.append(HooksDue(lease.session, lease.birth, created_at_us, reason, hooks, delete))

    def take_back(self, session: str) -> None:
        """The end was not recorded after all."""
        self.keeper.append(HooksVoid(session))

    def ended(self, session: str) -> None:
        """The end was recorded: run what is due."""
        entry = self.keeper.book.entries.get(session)
        if entry is not None:
            self.mandatory.take(entry)

    # --- deleting ---

    def holds(self, session: str) -> bool:
        """Whether a session may not be deleted yet. Raises why the book could not be read, if hooks are mandatory."""
        if self.must_end:
            self.keeper.check()
        return session in self.keeper.book.entries

    async def deletion(self, session: str) -> bool:
        """Have a session deleted when its hooks are through, and wait for it; False: nothing is due for it.

        Raises InsideHook inside a hook of its session, of whatever generation of the service.
        """
        entry = self.keeper.book.entries.get(session)
        if entry is None:
            return False
        refuse_inside(session, entry.birth)
        return await self.deletions.ask(entry)

    # --- telling ---

    def health(self) -> HooksHealth:
        """How many are pending, and what holds them up."""
        entries = self.keeper.book.entries.values()
        dues = [due for entry in entries for due in entry.hooks.values()]
        pending = [due for due in dues if not due.dead]
        strange = {due.name for due in pending if not self.mandatory.registered(due.name)}
        trouble = self.keeper.trouble
        return HooksHealth(
            pending=len(pending),
            dead=len(dues) - len(pending),
            unregistered=tuple(sorted(strange)),
            breakers_open=self.mandatory.open_breakers(),
            deletions=sum(entry.delete for entry in entries),
            trouble=None if trouble is None else str(trouble),
        )
