"""States that a loss of power may leave, taken while a store lives, and whether a store opens on them as it must."""

from __future__ import annotations

from random import Random

from session_actor.persistence import FileStore

from .disk import SimDisk
from .image import Image
from .life import ROOT, Crash, Life, Ways, shown
from .loop import SimLoop
from .model import Model, State, state_of


def lead(loop: SimLoop, rng: Random, steps: int, limit: int, ways: Ways) -> tuple[Model, list[Crash]]:
    """Lead a life, and return its model and up to `limit` states that a loss of power at any moment may leave."""
    life = Life(rng, ways)
    crashes: list[Crash] = []

    def watch(_: str) -> None:
        life.note_acknowledged()
        for _ in range(5):
            if len(crashes) < limit:
                crashes.append(Crash(life.image.crash(rng), life.model.synced, len(life.model.entries)))

    life.watch = watch
    loop.run(life.live(steps))
    return life.model, crashes


def check(loop: SimLoop, crashes: list[Crash], model: Model, ways: Ways) -> None:
    """A store opens on each state, and holds all that was acknowledged, and nothing else but what came next."""
    known: dict[object, State] = {}
    for crash in crashes:
        content = tuple((path, bytes(inode.data)) for path, inode in crash.image.files().items())
        if content not in known:
            known[content] = loop.run(opened(crash.image, ways))
        found = known[content]
        told = f"{crash.least} of {crash.most} entries were acknowledged; it holds {shown(found)}"
        kept = model.kept(found, crash.least, crash.most)
        assert kept is not None, f"{told}; model: {shown(model.state(crash.most))}"


async def opened(image: Image, ways: Ways) -> State:
    """What a store holds that is opened on an image."""
    store = FileStore(
        ROOT, segment_bytes=ways.segment_bytes, journal_bytes=ways.journal_bytes, cut_at_close=0, disk=SimDisk(image)
    )
    await store.open()
    found = await state_of(store)
    store._engine.let_go()
    return found
