"""What the tests of handovers share: generations of a service, and talkers that push all the time."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager

from session_actor import SessionService


class Generations:
    """A service that is handed over again and again."""

    def __init__(self, first: SessionService) -> None:
        self.service = first
        self.former: list[SessionService] = []

    async def next(self, **options) -> SessionService:
        heir = SessionService.take(await self.service.handover(), **options)
        await heir.start()
        self.former.append(self.service)
        self.service = heir
        return heir


@asynccontextmanager
async def generations(store, **options):
    """The first generation; the last is closed at the end, the others, too, to no effect."""
    first = SessionService.open(store, **options)
    await first.start()
    lives = Generations(first)
    try:
        yield lives
    finally:
        for service in (*lives.former, lives.service):
            await service.close()


class Talker:
    """Pushes numbered frames on one session, each when the one before is answered, at all levels in turn."""

    LEVELS = ("async", "written", "async", "synced")

    def __init__(self, session) -> None:
        self.session = session
        self.answered: list[str] = []
        self.servers: list[object] = []
        self.enough = asyncio.Event()

    async def talk(self) -> None:
        while not self.enough.is_set():
            number = len(self.answered)
            text = f"{self.session.id} {number}"
            frame = await self.session.push(text, durability=self.LEVELS[number % 4], key=text)
            assert frame.user_input == text
            assert frame.id == number + 1
            self.answered.append(text)
            self.look()
            await asyncio.sleep(0)

    def look(self) -> None:
        """Note which server serves: one that was replaced must never be seen again."""
        server = self.session._cell.ref.slot.server
        if not self.servers or self.servers[-1] is not server:
            assert server is None or server not in self.servers
            self.servers.append(server)


def children_of(service) -> list[str]:
    """The sessions that have a server, in whatever generation's supervisor."""
    root = service._lifetime.newest._root
    supervisors = [child.ref.slot.behaviour for child in root.which_children() if str(child.id).startswith("sessions")]
    return sorted(child.id[0] for one in supervisors if one for child in one.which_children())


async def inputs(session) -> list[str]:
    """What was said, from the root on; each frame must be on the one before."""
    frames = list(await session.stack())
    assert [frame.parent for frame in frames] == [None, *(frame.id for frame in frames[:-1])]
    return [frame.user_input for frame in frames]
