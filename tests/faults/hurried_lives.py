"""Lives of sessions whose callers are in a hurry: they give up and ask again with the same key, on a disk that is slow.

A call that was given up has happened, or will, or will not: who asks again until there is an answer has it once. No
wait is longer than it was allowed to be. All time is the simulation's: it takes none, and a life can be led again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import TypeVar

from session_actor import CallTimeout, SessionActorError, SessionNotFound, SessionService
from session_actor.persistence import PersistenceError
from session_actor.supervisors.deadlines import TICK_S

from ..simulation.image import Image
from .conversations import Operation, change, has_gone_on
from .session_lives import SESSIONS, SessionLife

HURRIED_STEPS = 45
PATIENCE_S = (0.0, 0.001, 0.01, 0.05, 0.2, 1.0, 5.0, 60.0, None)
MOST_TRIES = 5
"""So many tries may be given up. Then there is no limit: the call ends by itself, or the loop says that it hangs."""
SLOW = 0.15
LATE_S = TICK_S + 1e-6
"""How much later than it should a wait may end."""
Reply = TypeVar("Reply")


class HurriedLife(SessionLife):
    """Each session has a caller of its own; all call at the same time."""

    def service(self, image: Image) -> SessionService:
        service = super().service(image)
        self.disk.rng = self.rng
        return service

    async def live_in_a_hurry(self, *, failing: bool) -> None:
        """Use the sessions, compare, open them anew, compare. `failing`: the disk does now and then."""
        async with self.service(self.image) as service:
            self.disk.slow = SLOW
            await asyncio.gather(*(self.use(service, index, failing=failing) for index in range(SESSIONS)))
            self.disk.slow = 0
            await self.mend(service)
            await self.compare(service, self.conversations, exactly=True)
        async with self.service(self.image) as service:
            await self.compare(service, self.conversations, exactly=True)

    async def use(self, service: SessionService, index: int, *, failing: bool) -> None:
        for _ in range(HURRIED_STEPS):
            if failing and self.rng.random() < 0.1 and not self.disk.faults:
                self.fail_later()
                self.loop.call_later(self.rng.choice((0.1, 5, 60)), self.disk.faults.clear)
            await self.until_answered(service, index, failing=failing)
            self.conversations[index].apply()
            self.counts["acknowledged"] += 1
            if self.rng.random() < 0.1 and not failing:
                await self.look(service, index)

    async def until_answered(self, service: SessionService, index: int, *, failing: bool) -> None:
        """Do the session's next operation, and ask for it again until there is an answer."""
        conversation, tries = self.conversations[index], 0
        while True:
            patience_s = self.rng.choice(PATIENCE_S) if tries < MOST_TRIES else None
            tries += 1
            try:
                await self.ask(service, f"s{index}", conversation.next(), f"{conversation.done}", patience_s)
            except (CallTimeout, TimeoutError):
                self.counts["given up"] += 1
                assert patience_s is not None
            except SessionNotFound:
                assert conversation.next() == ("delete",)
                assert tries > 1
                return
            except (SessionActorError, PersistenceError) as error:
                if not failing:
                    raise
                self.counts[type(error).__name__] += 1
                await self.mend(service)
            else:
                self.counts["asked again"] += tries > 1
                return
            if self.rng.random() < 0.5:
                await asyncio.sleep(self.rng.choice((0, 0.004, 0.5, 10)))

    async def ask(
        self, service: SessionService, name: str, operation: Operation, key: str, patience_s: float | None
    ) -> None:
        """Ask once for an operation, and give up by the call's own timeout, or by a cancellation."""
        if self.rng.random() < 0.2:
            await self.within(patience_s, self.cancelled(patience_s, self.ask_for(service, name, operation, key, None)))
        else:
            await self.ask_for(service, name, operation, key, patience_s)

    async def cancelled(self, patience_s: float | None, work: Awaitable[None]) -> None:
        async with asyncio.timeout(patience_s):
            await work

    async def ask_for(
        self, service: SessionService, name: str, operation: Operation, key: str, patience_s: float | None
    ) -> None:
        if operation == ("create",):
            twice_s = None if patience_s is None else 2 * patience_s  # to load it, and to have it written
            await self.within(twice_s, service.session(name, create=True, timeout_s=patience_s))
        elif operation == ("delete",):
            await self.within(patience_s, service.delete(name, timeout_s=patience_s))
        else:
            session = await self.within(patience_s, service.session(name, timeout_s=patience_s))
            if operation == ("prune",):  # its limit is for loading alone
                await session.prune(timeout_s=patience_s)
            else:
                await self.within(patience_s, change(session, *operation, key=key, timeout_s=patience_s))

    async def within(self, patience_s: float | None, work: Awaitable[Reply]) -> Reply:
        """Wait for it; it ends in time, and is not given up before."""
        begun_s = self.loop.time()
        try:
            return await work
        except (CallTimeout, TimeoutError):
            assert patience_s is None or self.loop.time() >= begun_s + patience_s / 2 - 1e-6
            raise
        finally:
            took_s = self.loop.time() - begun_s
            assert patience_s is None or took_s <= patience_s + 2 * LATE_S, f"{took_s} s instead of {patience_s} s"

    async def look(self, service: SessionService, index: int) -> None:
        """What is read is what was acknowledged, when it is read in time."""
        try:
            assert not await has_gone_on(service, f"s{index}", self.conversations[index])
            self.counts["seen"] += 1
        except CallTimeout:
            self.counts["not seen"] += 1
