"""Lives of whole sessions on a simulated disk: a service is used, beside conversations as they must be.

Files are small and snapshots frequent, so that a short life has sealed journals, cold frames, prunings and all.
"""

from __future__ import annotations

import asyncio
import errno
from collections import Counter
from random import Random
from typing import NamedTuple

from session_actor import FileStore, SessionActorError, SessionService
from session_actor.persistence import PersistenceError

from ..simulation.disk import NEED_ROOM, Fault, SimDisk
from ..simulation.image import Image
from ..simulation.life import FOR_GOOD, ROOT, new_image
from ..simulation.loop import SimLoop, WallClock
from .conversations import Conversation, has_gone_on, perform

SESSIONS = 2
OLD_ENOUGH = 40
STEPS = 90
AN_HOUR_S = 3600


class Crash(NamedTuple):
    """What the death of the process or a loss of power left, and the conversations as they were acknowledged then."""

    image: Image
    conversations: list[Conversation]


class SessionLife:
    """One disk, the sessions on it, and how they must be."""

    def __init__(self, number: int, loop: SimLoop, clock: WallClock) -> None:
        self.rng = Random(number)
        self.loop = loop
        self.clock = clock
        self.image = new_image()
        self.conversations = [Conversation(f"{number}/{index}", OLD_ENOUGH) for index in range(SESSIONS)]
        self.level = self.rng.choice(("written", "synced"))
        self.disk = SimDisk(self.image)
        self.crashes: list[Crash] = []
        self.most_crashes = 0
        self.counts: Counter[str] = Counter()

    def service(self, image: Image) -> SessionService:
        """A service on an image, led in one of many ways."""
        self.disk = SimDisk(image, self.rng if self.rng.random() < 0.5 else None)
        self.disk.chance = self.rng
        store = FileStore(
            ROOT,
            segment_bytes=self.rng.choice((1000, 3000)),
            journal_bytes=self.rng.choice((700, 2000)),
            sync_interval_s=0.05,
            cut_at_close=self.rng.choice((0, 64)),
            disk=self.disk,
        )
        return SessionService.open(
            store, durability=self.level, max_live=self.rng.choice((1, None)), idle_timeout_s=None
        )

    async def do(self, service: SessionService, index: int) -> None:
        """The next operation of a session; it is acknowledged when this returns."""
        await perform(service, f"s{index}", self.conversations[index].next())
        self.conversations[index].apply()
        self.counts["acknowledged"] += 1

    async def compare(self, service: SessionService, conversations: list[Conversation], *, exactly: bool) -> None:
        """Each session is as it was acknowledged; unless `exactly`, the operation under way may have happened."""
        for index, conversation in enumerate(conversations):
            if await has_gone_on(service, f"s{index}", conversation):
                assert not exactly, f"s{index} holds what it was not told to"
                conversation.apply()
            self.counts["compared"] += 1

    def set_back_the_clock(self, step: int) -> None:
        if step == STEPS // 2:
            self.clock.set_forward_s -= self.rng.choice((0, AN_HOUR_S))

    # --- crashes ------------------------------------------------------------------------------------------------------

    async def live(self, most_crashes: int) -> None:
        """Use the sessions; at up to so many moments take what a crash would leave."""
        self.most_crashes = most_crashes
        service = self.service(self.image)
        self.disk.watch = self.take
        async with service:
            for step in range(STEPS):
                self.set_back_the_clock(step)
                await self.do(service, self.rng.randrange(SESSIONS))
                if self.rng.random() < 0.05:
                    await asyncio.sleep(1.5)

    def take(self, _: str) -> None:
        """Before a call that changes something: a loss of power takes what is not synced, a death does not."""
        if len(self.crashes) < self.most_crashes and self.rng.random() < 0.02:
            power = self.level == "synced"
            image = self.image.crash(self.rng) if power else self.image.copy()
            image.locks.clear()
            self.crashes.append(Crash(image, [conversation.copy() for conversation in self.conversations]))

    async def recover(self, crash: Crash) -> None:
        """Open, compare, go on, close, open again, compare."""
        self.conversations = crash.conversations
        async with self.service(crash.image) as service:
            await self.compare(service, self.conversations, exactly=False)
            for index in range(SESSIONS):
                for _ in range(4):
                    await self.do(service, index)
        async with self.service(crash.image) as service:
            await self.compare(service, self.conversations, exactly=True)

    # --- failing calls ------------------------------------------------------------------------------------------------

    async def live_with_failures(self) -> None:
        """Use the sessions while calls of the system fail; who is refused looks whether it happened, and goes on."""
        async with self.service(self.image) as service:
            for step in range(STEPS):
                self.set_back_the_clock(step)
                if self.rng.random() < 0.15 and not self.disk.faults:
                    self.fail_later()
                index = self.rng.randrange(SESSIONS)
                try:
                    await self.do(service, index)
                except (SessionActorError, PersistenceError) as error:
                    self.counts[type(error).__name__] += 1
                    self.counts["refused"] += 1
                    await self.mend(service)
                    await self.compare(service, self.conversations, exactly=False)
                if self.rng.random() < 0.05:
                    await self.mend(service)
            await self.mend(service)
            await self.compare(service, self.conversations, exactly=True)
        async with self.service(self.image) as service:
            await self.compare(service, self.conversations, exactly=True)

    def fail_later(self) -> None:
        number = self.rng.choice((errno.EIO, errno.ENOSPC, errno.EINTR))
        first = self.disk.calls + self.rng.randint(1, 10)
        last = self.rng.choice((first, first + 4, FOR_GOOD))
        kinds = NEED_ROOM if number == errno.ENOSPC else None
        self.disk.faults.append(Fault(first, last, number, kinds, partly=self.rng.random() < 0.5))

    async def mend(self, service: SessionService) -> None:
        """The disk works again; a while later the store does, and sessions that were given up are tried again."""
        self.disk.faults.clear()
        for _ in range(40):
            await asyncio.sleep(5)
            if service.health().store.degraded_since_us is None:
                break
        for name in service.health().quarantined:
            service.release(name)
