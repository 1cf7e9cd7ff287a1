"""A full disk: with whatever room is made a store goes on as it is, and loses nothing that was acknowledged."""

from __future__ import annotations

import asyncio
import contextlib
from random import Random

import pytest

from session_actor.persistence import FileStore, NotDurable, PersistenceError, StoreDegraded

from ..persistence.conformance_tools import say
from ..simulation.disk import SimDisk
from ..simulation.image import Image
from ..simulation.life import ROOT, new_image
from ..simulation.loop import simulated
from ..simulation.model import texts_of

SEGMENT_BYTES = 128 * 1024
LEAST_ROOM_BYTES = SEGMENT_BYTES // 32
"""In proportion what a quarter of a megabyte is to a segment of eight."""
SESSIONS = ("a", "b", "c")
PATIENCE_S = 30
PARTS = 4
LIVES = 20


class FullLife:
    """One store after the other on a disk that is mostly full."""

    def __init__(self, rng: Random) -> None:
        self.rng = rng
        self.room_bytes = rng.choice((200_000, 400_000, 700_000))
        self.journal_bytes = rng.choice((5000, 50_000, 1_000_000))
        self.turns = rng.random() < 0.5
        self.acknowledged: dict[str, list[str]] = {session: [] for session in SESSIONS}
        self.said: dict[str, list[str]] = {session: [] for session in SESSIONS}
        self.begin(new_image())

    def begin(self, image: Image) -> None:
        self.disk = SimDisk(image, self.rng if self.turns else None, room_bytes=self.room_bytes)
        self.store = FileStore(ROOT, segment_bytes=SEGMENT_BYTES, journal_bytes=self.journal_bytes, disk=self.disk)
        self.leases = {}

    async def open(self) -> None:
        await self.store.open()
        self.workers = [asyncio.ensure_future(job()) for job in self.store.workers().values()]
        for session in SESSIONS:
            lease = self.leases[session] = await self.store.acquire(session, create=True)
            found = await texts_of(self.store, lease)
            assert list(found) == self.said[session][: len(found)]
            assert len(found) >= len(self.acknowledged[session])
            self.said[session] = list(found)

    async def end(self) -> None:
        with contextlib.suppress(PersistenceError, OSError):
            await self.store.close()
        for worker in self.workers:
            worker.cancel()
        await asyncio.gather(*self.workers, return_exceptions=True)

    async def push(self) -> bool:
        """Whether one more record was acknowledged."""
        session = self.rng.choice(SESSIONS)
        try:
            self.store.admit("synced")
            text = f"{len(self.said[session])} {'x' * self.rng.choice((10, 500, 3000))}"
            self.said[session].append(text)
            await self.store.flush("synced", say(self.store, self.leases[session], text))
        except (NotDurable, StoreDegraded):
            return False
        for each in SESSIONS:
            self.acknowledged[each] = self.said[each][: self.leases[each].state.synced_seq]
        return True

    async def push_until_refused(self) -> None:
        while await self.push():
            pass
        for _ in range(20):  # what is moved, and what fails to be, makes room as well
            await asyncio.sleep(1)
            while await self.push():
                pass

    async def make_room(self) -> None:
        """There is room again: a record is acknowledged before long."""
        room = self.rng.choice((LEAST_ROOM_BYTES, LEAST_ROOM_BYTES, 20_000, SEGMENT_BYTES, 3 * SEGMENT_BYTES))
        waiting = self.store.health().backlog_bytes  # it comes first
        self.room_bytes = self.disk.room_bytes = self.disk.image.size_bytes() + waiting + room
        for _ in range(PATIENCE_S):
            if await self.push():
                return
            await asyncio.sleep(1)
        pytest.fail(f"{room} bytes of room beside {waiting} that wait: {self.store.health()}")

    async def again(self) -> None:
        """Close, or die, and open what is left on the disk, as full as it is."""
        killed, image = self.rng.random() < 0.5, self.disk.image
        if killed:
            image = image.copy()
            self.disk.die()
        await self.end()
        self.begin(image)
        await self.open()

    async def live(self) -> None:
        await self.open()
        for _ in range(4):
            await self.push_until_refused()
            if self.rng.random() < 0.5:
                await self.again()
            await self.make_room()
        self.disk.room_bytes = self.room_bytes = 10**9
        await self.again()
        assert await self.push()
        await self.again()
        await self.end()


@pytest.mark.parametrize("part", range(PARTS))
def test_a_store_goes_on_with_whatever_room_is_made_and_loses_nothing(faults, part):
    for _ in range(faults.count(LIVES // PARTS)):
        number = faults.number()
        with simulated(number) as (loop, _wall):
            try:
                loop.run(FullLife(Random(number)).live())
            except BaseException as error:
                error.add_note(f"life {number}")
                raise
