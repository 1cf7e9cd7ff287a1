"""Snapshots of a state: all of it but its frames, which stay where their records are.

A snapshot is what recovery starts from: the records behind it are replayed on it. One that cannot be used is passed
over for an older one, in the end for all records, so its form may change at any time.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Final

import msgspec

from session_actor.blocks import NULL, Free
from session_actor.budget.readings import NOTHING, Learned
from session_actor.compaction.overlays import Overlay, Pin
from session_actor.events import Requested, Source
from session_actor.frames import Retraction, Usage
from session_actor.persistence.errors import ValueUnreadable
from session_actor.persistence.format import values
from session_actor.state.keys import Answer, KeyEntry
from session_actor.state.runs import merged
from session_actor.state.state import State
from session_actor.state.table import Table
from session_actor.state.weight import weight_of_turn
from session_actor.window.earlier import has_factor, modern
from session_actor.window.marks import Mark

if TYPE_CHECKING:
    from .cold import Shelf

VERSION: Final = 1

EVERY_RECORDS: Final = 1_000
"""After so many records a session saves a snapshot."""

BYTES_A_RECORD: Final = 100
"""About what snapshots may cost: a large one (of very many branches) is taken after more records."""

RESTING_RECORDS: Final = 250
"""After so many it saves one when it is unloaded: to replay fewer takes a millisecond or two, a snapshot takes 4 kB."""

HEAVY_RECORDS: Final = 100
"""So many are enough when what they say is `HEAVY_CHARACTERS` long."""

HEAVY_CHARACTERS: Final = 512 * 1024


class SnapshotUnusable(Exception):
    """Why a state cannot be made from a snapshot."""


class _Saved(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """The fields of a state, in the order of its dicts."""

    version: int
    session: str
    created_at_us: int
    next_id: int
    head: int | None
    attached: str | None
    branches: tuple[tuple[str, int | None], ...]
    checkpoints: tuple[tuple[str, int], ...] = ()
    calls: tuple[str, ...] = ()
    keys: tuple[tuple[str, int, str, int | None, int | None], ...] = ()
    """Each key with its record, the fingerprint, and the two numbers of its answer."""
    absent: tuple[tuple[int, int], ...] = ()
    ended: str | None = None
    source: Source | None = None
    metadata: Free = NULL
    usage: Usage | None = None
    marks: tuple[Mark, ...] = ()
    requests: tuple[tuple[int, Requested], ...] = ()
    learned: Learned = NOTHING
    overlays: tuple[Overlay, ...] = ()
    generation: int = 0
    pins: tuple[tuple[int, Pin], ...] = ()
    retractions: tuple[tuple[int, Retraction], ...] = ()


def may_be_saved(state: State) -> bool:
    """Whether a snapshot says it all: not of an unfinished copy, and not when records are lost (they tell what is)."""
    return state.created_at_us is not None and not state.importing and state.losses is None


def pays(state: State, next_id: int, behind: int) -> bool:
    """Whether a session that is unloaded should save one.

    `behind`: how many records, or frames, are behind the last one; `next_id`: the first id that frames have there.
    """
    if behind >= RESTING_RECORDS:
        return True
    return behind >= HEAVY_RECORDS and _characters(state.table, range(next_id, state.next_id)) >= HEAVY_CHARACTERS


def _characters(table: Table, ids: range) -> int:
    """About how long the texts of frames are; what is not in memory does not count."""
    return sum(
        len(frame.user_input) + len(frame.assistant_output) + sum(map(weight_of_turn, frame.given_turns or ()))
        for frame in map(table.slot, ids)
        if frame is not None
    )


def snapshot_of(state: State) -> bytes:
    """The state as JSON, for `Store.save`; its cost does not depend on the number of frames. See `may_be_saved`."""
    return values.encode_record_data(
        _Saved(
            VERSION,
            state.session,
            state.created_at_us or 0,
            state.next_id,
            state.head,
            state.attached,
            tuple(state.branches.items()),
            tuple(state.checkpoints.items()),
            tuple(state.call_ids),
            tuple(
                (key, entry.seq, entry.args, entry.answer.frame, entry.answer.popped)
                for key, entry in state.keys.entries().items()
            ),
            tuple(state.table.absent),
            state.ended,
            state.source,
            state.raw_metadata,
            state.usage,
            state.marks,
            tuple(state.requests.items()),
            state.learned,
            state.overlays,
            state.generation,
            tuple(state.pins.items()),
            tuple(state.retractions.items()),
        )
    )


def state_from(data: msgspec.Raw | bytes, seq: int, shelf: Shelf) -> State:
    """The state after record `seq`; its frames are cold, on `shelf`. Raises `SnapshotUnusable`."""
    saved = _saved(bytes(data))
    _check(saved)
    state = State()
    state.seq = seq
    state.session, state.created_at_us, state.next_id = saved.session, saved.created_at_us, saved.next_id
    state.head, state.attached, state.branches = saved.head, saved.attached, dict(saved.branches)
    state.ended, state.source, state.raw_metadata = saved.ended, saved.source, saved.metadata
    state.usage = saved.usage
    state.marks, state.learned = saved.marks, saved.learned
    state.overlays, state.generation = saved.overlays, saved.generation
    if saved.pins:
        state.pins = dict(saved.pins)
    if saved.retractions:
        state.retractions = dict(saved.retractions)
    if saved.requests:
        state.requests = dict(saved.requests)
    if saved.checkpoints:
        state.checkpoints = dict(saved.checkpoints)
    if saved.calls:
        state.call_ids = dict.fromkeys(saved.calls)
    for key, key_seq, args, frame, popped in saved.keys:
        state.keys.remember(key, KeyEntry(key_seq, args, Answer(frame, popped)))
    state.table = Table.cold(saved.next_id, merged(saved.absent), shelf)
    return state


def _saved(data: bytes) -> _Saved:
    if not has_factor(data):
        with suppress(ValueUnreadable):
            return values.decode_typed(data, _Saved)
    try:
        return values.decode_typed(modern(data), _Saved)
    except ValueUnreadable as error:
        raise SnapshotUnusable(str(error)) from None


def check_snapshot(data: bytes) -> None:
    """Raises `SnapshotUnusable` for what no state can be made from."""
    _check(_saved(data))


def _check(saved: _Saved) -> None:
    """What a sum cannot say: that another version, or a fault of this one, did not write what cannot be."""
    branches = dict(saved.branches)
    tips = (saved.head, *branches.values(), *(frame for _, frame in saved.checkpoints))
    if saved.version != VERSION:
        raise SnapshotUnusable(f"its version is {saved.version}, this one reads {VERSION}")
    if saved.next_id < 1 or not all(tip is None or 0 < tip < saved.next_id for tip in tips):
        raise SnapshotUnusable("it names frames that cannot be")
    if saved.attached is not None and branches.get(saved.attached, -1) != saved.head:
        raise SnapshotUnusable("its head is not on its branch")
