"""A store's life, chosen by chance: it is used in every way, and the model beside it knows what must be left."""

from __future__ import annotations

import asyncio
import errno
from collections.abc import Callable, Coroutine
from random import Random
from typing import Any, NamedTuple

from session_actor.persistence import (
    BacklogFull,
    FileStore,
    Lease,
    NotDurable,
    PersistenceError,
    SessionTombstoned,
    SessionUnknown,
    StoreDegraded,
)
from session_actor.persistence.files.names import journal_path

from ..persistence.conformance_tools import say
from .disk import NEED_ROOM, Fault, SimDisk
from .image import Image
from .model import Entry, Model, shown, state_of, texts_of
from .upkeep import FOR_GOOD, Upkeep

SESSIONS = ("user-1", "User-1", "\ud800")
ROOT = "/disk/store"


class Ways(NamedTuple):
    """How a life is led."""

    segment_bytes: int = 2000
    journal_bytes: int = 100_000
    cut_at_close: int = 64
    working: bool = True
    """The workers run."""
    turns: bool = True
    """Threads take turns by chance; otherwise every job is done at once."""
    faults: bool = False
    """System calls fail now and then."""
    fills: bool = False
    """The disk is full now and then."""
    crashes: bool = False
    """The process dies and power is lost now and then."""
    refuses: bool = False
    """Nothing can be changed in the journals' folder of one session, now and then."""
    salvages: bool = False
    """Sessions are salvaged now and then, though nothing is lost of them."""


class Crash(NamedTuple):
    """What a crash left, and what of the model it must hold at least and may hold at most."""

    image: Image
    least: int
    most: int


class Life(Upkeep):
    """Drives one store after the other on one disk."""

    def __init__(self, rng: Random, ways: Ways, image: Image | None = None, model: Model | None = None) -> None:
        self.rng = rng
        self.ways = ways
        self.image = new_image() if image is None else image
        self.model = Model() if model is None else model
        self.base = len(self.model.entries)
        self.leases: dict[str, Lease] = {}
        self.crash: Crash | None = None
        self.background: set[asyncio.Task[Any]] = set()
        self.workers: list[asyncio.Task[None]] = []
        self.steps: list[str] = []
        self.closing = False
        self.pruned_files = self.salvaged = 0
        self.faults: list[Fault] = []
        """Calls that fail, counted over the whole life."""
        self.troubles = 0
        """How often the disk began to refuse something."""
        self.watch: Callable[[str], None] | None = None
        """Told before every call that changes something, when the process is not to die."""
        self.disk = SimDisk(self.image)
        self.store = self.new_store()

    def new_store(self) -> FileStore:
        calls, counts, read_only = self.disk.calls, self.disk.counts, self.disk.read_only
        self.disk = SimDisk(self.image, self.rng if self.ways.turns else None, room_bytes=self.disk.room_bytes)
        self.disk.faults, self.disk.calls, self.disk.counts = self.faults, calls, counts
        self.disk.chance, self.disk.read_only = self.rng, read_only
        self.disk.watch = self.watch
        return FileStore(
            ROOT,
            segment_bytes=self.ways.segment_bytes,
            journal_bytes=self.ways.journal_bytes,
            cut_at_close=self.ways.cut_at_close,
            disk=self.disk,
        )

    def note_acknowledged(self) -> None:
        model, store = self.model, self.store
        model.synced = max(model.synced, self.base + store.synced_position)
        model.written = max(model.written, model.synced, self.base + store.written_position)

    @property
    def troubled(self) -> bool:
        """Whether anything may fail now."""
        return self.failing or self.disk.read_only is not None or self.disk.dead or self.closing

    @property
    def failing(self) -> bool:
        """Whether the disk refuses something."""
        return bool(self.faults) or self.disk.room_bytes is not None

    # --- opening, closing, dying --------------------------------------------------------------------------------------

    async def open(self) -> None:
        """Open a store on what is there, however often that is interrupted, and hold it to the model."""
        self.leases.clear()
        least, most = self.model.written, len(self.model.entries)
        while True:
            self.store = self.new_store()
            if self.crash is not None:
                self.image, least, most = self.crash
                self.crash = None
                self.store = self.new_store()
            if self.ways.crashes and self.rng.random() < 0.3:
                self.die_later(self.rng.randint(1, 12), least=least)
            self.base = 0
            try:
                await self.store.open()
                found = await state_of(self.store)
            except (OSError, PersistenceError):
                if not (self.disk.dead or self.failing):
                    raise
                self.works_again()
                await self.end()
                continue
            break
        kept = self.model.kept(found, least, most)
        assert kept is not None, self.told(f"{least} of {most} entries were acknowledged; it holds {shown(found)}")
        self.model.reopened(kept)
        self.base = kept - self.store.health().appended_position
        if self.base < kept:  # there was no room to make durable what was written
            self.model.synced = self.base + self.store.synced_position
        self.workers = [asyncio.ensure_future(job()) for job in self.store.workers().values() if self.ways.working]

    async def end(self) -> None:
        """Close, whatever state the store and its disk are in."""
        was_open, self.closing = self.store._engine is not None, True
        try:
            await self.store.close()
            if was_open:
                self.model.synced = self.model.written = len(self.model.entries)
        except (NotDurable, OSError):
            if not (self.failing or self.disk.dead):
                raise
        for task in self.workers:
            assert not task.done() or task.cancelled(), self.told(f"a worker ended: {task!r}")
            task.cancel()
        tasks = [*self.workers, *self.background]
        self.workers.clear()
        self.background.clear()
        for result in await asyncio.gather(*tasks, return_exceptions=True):
            if isinstance(result, BaseException) and not isinstance(result, asyncio.CancelledError):
                raise result
        self.closing = False

    def die_later(self, calls: int, least: int | None = None) -> None:
        """Let power be lost, or the process die, at one of the next calls that change something."""
        left, power = calls, self.rng.random() < 0.6

        def watch(_: str) -> None:
            nonlocal left
            left -= 1
            if left or self.crash is not None:
                return
            self.note_acknowledged()
            image = self.image.crash(self.rng) if power else self.image.copy()
            held = self.model.synced if power else self.model.written
            self.crash = Crash(image, held if least is None else min(held, least), len(self.model.entries))
            self.disk.die()

        self.disk.watch = watch

    # --- steps --------------------------------------------------------------------------------------------------------

    async def live(self, steps: int) -> None:
        """Open, do so many things, close, open again."""
        await self.open()
        for _ in range(steps):
            await self.step()
        await self.reopen()
        await self.end()

    async def step(self) -> None:
        choices = {
            self.append: 10, self.flush: 3, self.sleep: 3, self.cut: 2, self.read: 1, self.release: 1, self.delete: 1,
            self.reopen: 0.5, self.wait: 1, self.save: 1, self.prune: 1,
        }  # fmt: skip
        if self.ways.faults:
            choices |= {self.fail_later: 1.0, self.mend: 1.0}
        if self.ways.fills:
            choices |= {self.fill: 1.0, self.mend: 1.0}
        if self.ways.crashes:
            choices[self.plan_death] = 1.0
        if self.ways.salvages:
            choices[self.salvage] = 1.0
        if self.ways.refuses:
            choices |= {self.refuse: 1.0, self.allow: 0.5}
        (step,) = self.rng.choices(list(choices), list(choices.values()))
        await self.do(step)

    async def do(self, step: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """One step; when the process dies of it, the next one opens the store."""
        self.steps.append(step.__name__)
        try:
            await step()
        except (OSError, PersistenceError):
            if not self.troubled:
                raise
        self.note_acknowledged()
        if self.disk.dead:
            await self.end()
            await self.open()

    async def append(self) -> None:
        session = self.rng.choice(SESSIONS)
        level = self.rng.choice(("async", "written", "synced"))
        if session not in self.leases:
            self.leases[session] = await self.store.acquire(session, create=True)
            await self.store.load(self.leases[session])
        try:
            self.store.admit(level)
        except (StoreDegraded, BacklogFull):
            assert self.ways.faults or self.ways.fills or self.troubled
            return
        position = 0
        for _ in range(self.rng.choice((1, 1, 1, 2, 5, 40))):
            text = f"{len(self.model.entries)} {'x' * self.rng.choice((0, 10, 100, 600))}"
            self.model.entries.append(Entry(session, text))
            position = say(self.store, self.leases[session], text)
            if level != "async":
                self.store.reach(level)
        assert self.base + position == len(self.model.entries)
        if level != "async" and self.rng.random() < 0.5:
            await self.store.flush(level, position)

    async def flush(self) -> None:
        await self.meanwhile(self.store.flush(self.rng.choice(("written", "synced"))))

    async def cut(self) -> None:
        await self.meanwhile(self.store._engine.cutter.cut())

    async def delete(self) -> None:
        if not self.leases:
            return
        session = self.rng.choice(sorted(self.leases))
        lease = self.leases.pop(session)

        async def delete() -> None:
            if lease.appended_seq:
                self.model.entries.append(Entry(session, None))
            await self.store.delete(lease)

        await self.meanwhile(delete())

    async def meanwhile(self, work: Coroutine[Any, Any, Any]) -> None:
        """Do it now, or begin it and go on."""

        async def quiet() -> None:
            troubled, troubles = self.troubled, self.troubles  # what refused it may be over when it tells
            try:
                await work
            except (OSError, PersistenceError):
                if not (troubled or self.troubled or self.troubles > troubles):
                    raise

        task = asyncio.ensure_future(quiet())
        self.background.add(task)
        if self.rng.random() < 0.7:
            await task
        else:
            await asyncio.sleep(0)
        for done in [task for task in self.background if task.done()]:
            self.background.discard(done)
            done.result()

    async def wait(self) -> None:
        await asyncio.gather(*self.background)

    async def sleep(self) -> None:
        await asyncio.sleep(self.rng.choice((0, 0, 0.002, 0.06, 1.1, 7)))

    async def read(self) -> None:
        """What a live store says of a session is what the model has of it."""
        session = self.rng.choice(SESSIONS)
        expected = self.model.state().get(session, ())
        try:
            lease = await self.store.acquire(session, create=False)
        except (SessionTombstoned, SessionUnknown):
            assert not expected, self.told(f"{session!r} is gone")
            return
        self.leases[session] = lease
        found = await texts_of(self.store, lease)
        assert self.model.fits(session, expected, found), self.told(f"{session!r} holds {shown({session: found})}")

    async def release(self) -> None:
        if self.leases:
            self.store.release(self.leases.pop(self.rng.choice(sorted(self.leases))))

    async def reopen(self) -> None:
        await self.end()
        await self.open()

    # --- trouble ------------------------------------------------------------------------------------------------------

    async def plan_death(self) -> None:
        self.die_later(self.rng.choice((1, 2, 3, 5, 8, 13, 21)))

    async def fail_later(self) -> None:
        self.troubles += 1
        number = self.rng.choice((errno.EIO, errno.ENOSPC, errno.EINTR))
        first = self.disk.calls + self.rng.randint(1, 12)
        last = self.rng.choice((first, first, first + 5, FOR_GOOD))
        kinds = NEED_ROOM if number == errno.ENOSPC else None
        self.disk.faults.append(Fault(first, last, number, kinds, partly=self.rng.random() < 0.5))

    async def fill(self) -> None:
        """From now on there is room for a few lines more."""
        self.troubles += 1
        self.disk.room_bytes = self.image.size_bytes() + self.rng.choice((0, 50, 500, 3000))

    async def refuse(self) -> None:
        self.troubles += 1
        path = f"{ROOT}/journals/{journal_path(self.rng.choice(SESSIONS), 1)}"
        self.disk.read_only = path.rpartition("/")[0]

    async def allow(self) -> None:
        self.disk.read_only = None

    def works_again(self) -> None:
        self.faults.clear()
        self.disk.room_bytes = None

    async def mend(self) -> None:
        """The disk works again; nothing waits any more for what failed."""
        self.works_again()
        self.closing = True
        await asyncio.gather(*self.background)
        await asyncio.sleep(20)
        self.closing = False

    # --- telling ------------------------------------------------------------------------------------------------------

    def told(self, what: str) -> str:
        return f"{what}; model: {shown(self.model.state())}; steps: {' '.join(self.steps)}; {self.ways}"


def new_image() -> Image:
    image = Image()
    SimDisk(image).make_root(ROOT.rpartition("/")[0])
    return image
