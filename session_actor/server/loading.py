"""Recovery: the newest snapshot that can be used, and the records behind it."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec

from session_actor.errors import RecordUnreadable, ReplayError
from session_actor.events import HistoryCopied, Pushed, decode_event
from session_actor.log import LOGGER
from session_actor.persistence import LineDamaged
from session_actor.persistence.format.record import times_of
from session_actor.state.history import CHUNK_FRAMES
from session_actor.state.losses import replay
from session_actor.state.state import State

from .snapshots import SnapshotUnusable, state_from

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from session_actor.events import AnyEvent
    from session_actor.persistence import Lease, Record, RecoveryReport, Store
    from session_actor.state.table import Table

    from .cold import Shelf

FRAMES_PER_TURN: Final = 1_000
"""How many records, or frames of copied histories, are applied between two turns of the loop: about 3 ms."""


class Recovered(NamedTuple):
    """A session as it was when its last record was made."""

    state: State
    report: RecoveryReport
    snapshot_seq: int
    """The record of the snapshot that was used, 0 without one."""


async def recover(store: Store, lease: Lease, shelf_of: Callable[[Lease], Shelf]) -> Recovered:
    """The state of a session; its head is in memory, so that the first push reads nothing.

    `shelf_of`: tells where its cold frames are read, once it is loaded.

    Raises `StoreCorrupt` and what `Store.load` raises; `ReplayError` and its kin for records that do not fit.
    """
    before: int | None = None
    while True:
        loaded = await store.load(lease, before=before)
        snapshot = loaded.snapshot
        try:
            state = State() if snapshot is None else state_from(snapshot.data, snapshot.seq, shelf_of(lease))
            await _replay(state, loaded.records)
            state.session = state.session or lease.session  # the first record may be lost
        except (SnapshotUnusable, ReplayError, RecordUnreadable) as error:
            if snapshot is None:
                raise
            said = {"session": lease.session, "seq": snapshot.seq, "error": str(error)}
            LOGGER.warning("snapshot_unusable", **said, next_step="an older one is tried")
            before = snapshot.seq
            continue
        if state.head is not None:
            await state.table.load((state.head,))
        report = loaded.report
        if state.losses is not None and state.losses.left:
            report = msgspec.structs.replace(report, checkpoints=tuple(state.losses.left))
        return Recovered(state, report, 0 if snapshot is None else snapshot.seq)


async def _replay(state: State, records: Sequence[Record]) -> None:
    cold_below = state.table.cold_below
    applied = 0
    for first in range(0, len(records), FRAMES_PER_TURN):
        part = records[first : first + FRAMES_PER_TURN]
        for record, at_us in zip(part, _times_of(part), strict=True):
            event = decode_event(record.kind, record.data)
            if cold_below > 1:
                for pushed in (event,) if isinstance(event, Pushed) else _copies(event):
                    if pushed.parent is not None and pushed.parent < cold_below:
                        await _load_inherited(state.table, pushed)
            if type(event) is HistoryCopied:
                applied = await _replay_copy(state, event, record.seq, at_us, applied)
            else:
                replay(state, event, record.seq, at_us)
                applied += 1
            if applied >= FRAMES_PER_TURN:
                applied = 0
                await asyncio.sleep(0)


async def _replay_copy(state: State, event: HistoryCopied, seq: int, at_us: int, applied: int) -> int:
    """Apply a copied history. `applied`: how much was, in this turn of the loop; returns how much it is then."""
    for part in parts_of(state, event):
        if applied >= FRAMES_PER_TURN:
            applied = 0
            await asyncio.sleep(0)
        replay(state, part, seq, at_us)
        applied += len(part.frames) if type(part) is HistoryCopied else 1
    return applied


def _copies(event: AnyEvent) -> list[Pushed]:
    """The frames of another session that a record brings."""
    return [copied.frame for copied in event.frames] if isinstance(event, HistoryCopied) else []


def _times_of(records: Sequence[Record]) -> Iterable[int]:
    """When they were made. Raises `RecordUnreadable`, if need be only at the record whose time is none."""
    try:
        return times_of(records)
    except LineDamaged:  # the line's sum fits, and its time is none
        return map(_made_at, records)


def _made_at(record: Record) -> int:
    try:
        return record.at_us
    except LineDamaged as error:
        raise RecordUnreadable(record.kind, str(error)) from None


def parts_of(state: State, event: AnyEvent) -> Iterator[AnyEvent]:
    """The event, or what comes to the same: a copied history slice by slice."""
    if not isinstance(event, HistoryCopied) or state.losses is not None or len(event.frames) <= CHUNK_FRAMES:
        yield event
        return
    for first in range(0, len(event.frames), CHUNK_FRAMES):
        last = first + CHUNK_FRAMES
        sealed = event.sealed if last >= len(event.frames) else None
        yield msgspec.structs.replace(event, frames=event.frames[first:last], sealed=sealed)


async def _load_inherited(table: Table, event: Pushed) -> None:
    """Read what a frame inherits from a cold one and its record does not hold."""
    parent, place = event.parent, event.place
    if place is None:
        await table.load((parent or 0,))
    elif place.configured is not None and table.instructions_of(place.configured) is None:
        await table.load((place.configured,))
