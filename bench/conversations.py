"""Synthetic conversations with forks, checkpoints, pops and gotos, and how what came back compares with them."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING

import msgspec

from session_actor import Frame

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from session_actor import Session, SessionService

SEED = 20_250_101
WORDS = [
    "log",
    "frame",
    "stack",
    "päivä",
    "ζωή",
    "会話",
    "🙂",
    "branch",
    "replay",
    "budget",
    "sum",
    "segment",
    "\\",
    '"',
    "\n\t",
    "window",
    "model",
    "tool",
]


class Expected(msgspec.Struct):
    """What one conversation held when it was last seen alive."""

    session: str
    frames: dict[int, Frame]
    stacks: dict[str, list[int]]
    branches: dict[str, int | None]
    checkpoints: dict[str, int]


class Tally(msgspec.Struct):
    """Right and checked of each dimension of the reference's recovery table."""

    right: dict[str, int] = {}
    checked: dict[str, int] = {}

    def mark(self, dimension: str, *, right: bool) -> None:
        """Count one comparison."""
        self.checked[dimension] = self.checked.get(dimension, 0) + 1
        self.right[dimension] = self.right.get(dimension, 0) + right

    def percent(self, dimension: str) -> float:
        """Return the percentage that came back right, 0 when nothing was checked."""
        checked = self.checked.get(dimension, 0)
        return 100.0 * self.right.get(dimension, 0) / checked if checked else 0.0


def encode_expected(found: list[Expected]) -> bytes:
    """Return what was made as bytes for the process that recovers."""
    return msgspec.json.encode(found)


def decode_expected(data: bytes) -> list[Expected]:
    """Return what another process wrote down."""
    return msgspec.json.decode(data, type=list[Expected])


def sizes(rng: Random, sessions: int, frames: int) -> list[int]:
    """Return frames per conversation, varied, with the asked average."""
    found: list[int] = []
    for _ in range(sessions // 2):
        off = rng.randrange(frames * 2 // 3)
        found += [frames - off, frames + off]
    return found + [frames] * (sessions % 2)


async def build(service: SessionService, sessions: int, frames: int) -> AsyncIterator[Expected]:
    """Make conversations of so many frames on average, and tell of each what it holds."""
    rng = Random(SEED)
    for number, size in enumerate(sizes(rng, sessions, frames)):
        session = await service.session(f"conversation-{number}", create=True)
        made = await converse(session, rng, size)
        await session.flush("written")
        yield await seen(session, made)


async def converse(session: Session, rng: Random, size: int) -> list[int]:
    """Push `size` frames with forks, checkpoints, pops and gotos between them; return all their ids."""
    made: list[int] = []
    while len(made) < size:
        chance = rng.random()
        if chance < 0.03 and made:
            made.append((await session.fork(rng.choice(made), user_input=text(rng), decisions=[text(rng)])).id)
            continue
        made.append((await push(session, rng)).id)
        if chance < 0.08:
            await session.checkpoint(f"checkpoint-{len(made)}")
        elif chance < 0.10:
            await session.pop(rng.randrange(1, 4))
        elif chance < 0.12:
            await session.goto(rng.choice(sorted(await session.branches())))
    return made


async def push(session: Session, rng: Random) -> Frame:
    """Push one frame with texts in all its fields."""
    return await session.push(
        user_input=text(rng),
        assistant_output=text(rng),
        assumptions=[text(rng) for _ in range(rng.randrange(3))],
        decisions=[text(rng) for _ in range(rng.randrange(3))],
    )


def text(rng: Random) -> str:
    """Return a sentence of a few words, some of them not ASCII."""
    return " ".join(rng.choices(WORDS, k=rng.randrange(3, 20)))


async def seen(session: Session, made: list[int]) -> Expected:
    """Return what a session holds now."""
    branches = dict(await session.branches())
    return Expected(
        session=session.id,
        frames={number: await session.get(number) for number in made},
        stacks={name: [frame.id for frame in await session.on(name).stack()] for name in branches},
        branches=branches,
        checkpoints=dict(await session.checkpoints()),
    )


async def compare(session: Session, wanted: Expected, tally: Tally) -> None:
    """Compare a recovered session with what it held before."""
    found = await seen(session, list(wanted.frames))
    for number, frame in wanted.frames.items():
        other = found.frames[number]
        for name in Frame.__struct_fields__:
            tally.mark("fields", right=getattr(frame, name) == getattr(other, name))
        tally.mark("times", right=frame.timestamp == other.timestamp)
    for name, stack in wanted.stacks.items():
        tally.mark("frames", right=len(found.stacks.get(name, ())) == len(stack))
        tally.mark("order", right=found.stacks.get(name) == stack)
        tally.mark("branches", right=found.branches.get(name) == wanted.branches[name])
    for name, number in wanted.checkpoints.items():
        tally.mark("checkpoints", right=found.checkpoints.get(name) == number)
    tally.mark("branches", right=set(found.branches) == set(wanted.branches))
    tally.mark("checkpoints", right=set(found.checkpoints) == set(wanted.checkpoints))
