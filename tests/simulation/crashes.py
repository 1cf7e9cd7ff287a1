"""States that a loss of power may leave, taken while a store lives, and whether a store opens on them as it must."""

from __future__ import annotations

from collections.abc import Iterable
from random import Random
from typing import NamedTuple

from session_actor.persistence import FileStore

from .disk import Fault, SimDisk
from .image import Image
from .life import ROOT, Life, Ways
from .loop import SimLoop
from .model import Model, State, shown, state_of

PER_CALL = 3
"""Crashes that are tried before each call that changes something."""


class Bounds(NamedTuple):
    """How many entries a state must hold at least and may hold at most, of those of an era: see `Model.states`."""

    least: int
    most: int
    era: int


class Left(NamedTuple):
    """One state of the disk that a loss of power may leave: the same at one moment, or at several."""

    image: Image
    moments: list[Bounds]


def lead(
    loop: SimLoop, rng: Random, steps: int, limit: int, ways: Ways, faults: Iterable[Fault] = ()
) -> tuple[Model, list[Left]]:
    """Lead a life, and return its model and up to `limit` states, each another, that a loss of power may leave.

    `faults`: calls of it that fail.
    """
    life = Life(rng, ways)
    life.faults.extend(faults)
    lefts: dict[tuple[tuple[str, bytes], ...], Left] = {}

    def watch(_: str) -> None:
        life.note_acknowledged()
        for _ in range(PER_CALL if len(lefts) < limit else 1):  # then only those that were left before count
            image = life.image.crash(rng)
            content = tuple((path, inode.content()) for path, inode in image.files().items())
            if content in lefts or len(lefts) < limit:
                left = lefts.setdefault(content, Left(image, []))
                left.moments.append(Bounds(life.model.synced, len(life.model.entries), len(life.model.past)))

    life.watch = watch
    loop.run(life.live(steps))
    return life.model, list(lefts.values())


def check(loop: SimLoop, lefts: list[Left], model: Model, ways: Ways) -> None:
    """A store opens on each state, and holds all that was acknowledged, and nothing else but what came next."""

    async def check_each() -> None:
        states = [model.states(era) for era in range(len(model.past) + 1)]
        for left in lefts:
            found = await opened(left.image, ways)
            for least, most, era in dict.fromkeys(left.moments):
                assert model.kept(found, least, most, states[era]) is not None, (
                    f"{least} of {most} entries were acknowledged; it holds {shown(found)}; "
                    f"model: {shown(states[era][most])}"
                )

    loop.run(check_each())


async def opened(image: Image, ways: Ways) -> State:
    """What a store holds that is opened on an image."""
    store = FileStore(
        ROOT, segment_bytes=ways.segment_bytes, journal_bytes=ways.journal_bytes, cut_at_close=0, disk=SimDisk(image)
    )
    snapshots = any("/snapshots/" in path for path in image.files())
    await store.open()
    found = await state_of(store, snapshots=snapshots)
    store._engine.let_go()
    return found
