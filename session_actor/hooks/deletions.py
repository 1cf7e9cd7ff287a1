"""Sessions that are deleted when their mandatory hooks are through; what was asked for survives a restart."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Final

from session_actor.errors import NotDurable, SessionActorError
from session_actor.service_errors import ServiceClosed, SessionDeleted, SessionNotFound

from .records import DeletionAsked, DeletionDone

if TYPE_CHECKING:
    from session_actor.service.population import Population

    from .book import Entry
    from .keeper import BookKeeper
    from .mandatory import Mandatory
    from .tries import Tries

_AGAIN_S: Final = 5.0
"""How soon to try again when the disk refuses."""


class Waiting:
    """Who waits for deletions, in all generations of one service."""

    def __init__(self) -> None:
        """Nobody."""
        self.waiters: dict[str, set[asyncio.Future[bool]]] = {}
        """By session."""
        self.closed = False
        """Whether the service is closing: nobody may wait any longer."""


class Deletions:
    """Those of one service."""

    def __init__(self, people: Population, tries: Tries, keeper: BookKeeper, mandatory: Mandatory) -> None:
        """`mandatory`: what loads the sessions."""
        self._people = people
        self._tries = tries
        self.keeper = keeper
        self._mandatory = mandatory
        self.waiting = Waiting()

    async def ask(self, entry: Entry) -> bool:
        """Have a session deleted when its hooks are through, and wait for it; False: nothing is due for it after all.

        Raises ServiceClosed, and what loading it raises.
        """
        if self.waiting.closed:
            raise ServiceClosed
        session, everybody = entry.session, self.waiting.waiters
        waiter: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        waiters = everybody.setdefault(session, set())
        waiters.add(waiter)
        try:
            if not entry.delete:
                await self.keeper.kept(self.keeper.append(DeletionAsked(session)))
            try:
                await self._mandatory.load(entry)
            except (SessionNotFound, SessionDeleted):
                if not waiter.done():
                    raise
            return await waiter
        finally:
            waiters.discard(waiter)
            if not waiters and everybody.get(session) is waiters:
                del everybody[session]

    def start(self, entry: Entry) -> None:
        """Delete the session now."""
        if not self._tries.leaving:
            self._tries.start(("delete", entry.session), partial(self._run, entry))

    async def _run(self, entry: Entry) -> None:
        try:
            await self._delete(entry)
        except ServiceClosed:
            return
        except SessionActorError:
            self._tries.later(_AGAIN_S, partial(self.start, entry))

    async def _delete(self, entry: Entry) -> None:
        from session_actor.service.endings import delete_session

        with suppress(SessionNotFound, SessionDeleted, NotDurable):  # gone, or going as soon as the disk takes it
            if await self._mandatory.load(entry) is None:
                return
            await delete_session(self._people, self._people.cell(entry.session))
        if self.keeper.book.entries.get(entry.session) is entry:
            self.keeper.append(DeletionDone(entry.session))
        self._answer(entry.session, deleted=True)

    def void(self, session: str) -> None:
        """Nothing is due for it: whoever wants it deleted must do that."""
        self._answer(session, deleted=False)

    def _answer(self, session: str, *, deleted: bool) -> None:
        for waiter in self.waiting.waiters.pop(session, ()):
            if not waiter.done():
                waiter.set_result(deleted)

    def close(self) -> None:
        """Nobody waits any longer: what is left is done when the service is opened again."""
        self.waiting.closed = True
        for waiters in self.waiting.waiters.values():
            for waiter in waiters:
                if not waiter.done():
                    waiter.set_exception(ServiceClosed())
                    waiter.exception()
        self.waiting.waiters.clear()
