"""What the conformance suite and the model share: opening a store, saying something, reading what was said."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import msgspec

from session_actor.persistence import (
    Lease,
    Level,
    Record,
    Store,
    decode_typed,
)
from session_actor.persistence.format.record import NO_SUM

NewStore = Callable[[], Store]
AT_US = 1_769_851_800_000_001
HOSTILE_IDS = [
    "../../etc/passwd", "/", "..", "\x00", "CON", "con", "a\nb", "user", "User", "\u00e9", "e\u0301", "\ud800", "$esc",
    "\U0001f600", "\ud83d\ude00", '"', "x" * 512, " ", "%", "_",
]  # fmt: skip


class Said(msgspec.Struct, frozen=True, omit_defaults=True):
    """A record's data, as the session floor would give it."""

    text: str
    more: tuple[str, ...] = ()
    raw: msgspec.Raw = msgspec.Raw(b"null")


@asynccontextmanager
async def opened(store: Store, *, working: bool = True) -> AsyncIterator[Store]:
    """The store, open, and its workers running if `working`; closed at the end."""
    await store.open()
    jobs = [asyncio.ensure_future(job()) for job in store.workers().values()] if working else []
    try:
        yield store
    finally:
        for job in jobs:
            job.cancel()
        await asyncio.gather(*jobs, return_exceptions=True)
        await store.close()


def say(store: Store, lease: Lease, *texts: str) -> int:
    """Append one record a text; returns the last one's position."""
    position = 0
    for text in texts:
        seq = lease.appended_seq + 1
        position = store.append(lease, seq, AT_US + seq, "said", Said(text), len(text))
    return position


async def said(store: Store, lease: Lease) -> list[str]:
    """The texts of all records of the session, which must be numbered, timed and chained as they should."""
    records = (await store.load(lease)).records
    assert [record.seq for record in records] == list(range(1, len(records) + 1))
    assert [record.at_us for record in records] == [AT_US + record.seq for record in records]
    assert [record.prev for record in records] == [NO_SUM, *(record.sum for record in records)][: len(records)]
    assert {record.kind for record in records} <= {"said"}
    return [text_of(record) for record in records]


def text_of(record: Record) -> str:
    return decode_typed(record.data, Said).text


async def listed(store: Store, prefix: str = "") -> list[str]:
    return [info.id async for info in store.sessions(prefix)]


def reached(store: Store, level: Level) -> int:
    """How far a level is."""
    positions = {"written": store.written_position, "synced": store.synced_position}
    return positions.get(level, store.health().appended_position)


class Added(msgspec.Struct, frozen=True):
    """Data of a record that adds a frame."""

    id: int
    text: str = ""


class OneCopied(msgspec.Struct, frozen=True):
    frame: Added
    at: str = ""


class ManyCopied(msgspec.Struct, frozen=True):
    """Data of a record that adds many frames."""

    frames: tuple[OneCopied, ...]


def push(store: Store, lease: Lease, count: int, *, first: int | None = None, between: int = 0) -> int:
    """Append records that add frames, from id `first` on or as the seq is, with others `between`; the last position."""
    position = 0
    for number in range(count):
        frame = lease.appended_seq // (between + 1) + 1 if first is None else first + number
        seq = lease.appended_seq + 1
        position = store.append(lease, seq, AT_US + seq, "pushed", Added(frame, "x" * (frame % 90)), 100)
        say(store, lease, *("y" * (frame % 7) for _ in range(between)))
    return position


def copied(store: Store, lease: Lease, frames: list[int]) -> int:
    """Append a record that adds many frames."""
    seq = lease.appended_seq + 1
    data = ManyCopied(tuple(OneCopied(Added(frame)) for frame in frames))
    return store.append(lease, seq, AT_US + seq, "history_copied", data, 100)
