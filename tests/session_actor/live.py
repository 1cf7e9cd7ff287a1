"""A state that is driven as a session drives it, with its records kept as a store would keep them."""

from __future__ import annotations

import asyncio

import pytest

from session_actor.errors import Refused
from session_actor.events import Pruned, Pushed, decode_event
from session_actor.frames import Frame
from session_actor.persistence import encode_record_data
from session_actor.persistence.format.frame_index import frames_of
from session_actor.persistence.format.record import NO_SUM, Record, decode_record, encode_record
from session_actor.server.cold import Shelf
from session_actor.server.prune import unheld
from session_actor.server.snapshots import snapshot_of, state_from
from session_actor.state.apply import apply
from session_actor.state.decide import decide
from session_actor.state.history import Held, created, live_runs, tips_of
from session_actor.state.keys import Repeat
from session_actor.state.state import State
from session_actor.state.table import Table


class Live:
    """One session without a server: `do` decides, applies and records; `replayed` is the state that a restart sees."""

    REFUSED = Refused

    def __init__(self, session: str = "user-42", metadata: object = None, source: object = None) -> None:
        self.state = State()
        self.records: list[tuple[str, bytes, int, int]] = []
        self.saved: list[tuple[int, bytes]] = []
        self.at_us = 1_700_000_000_000_000
        self.record(created(session, metadata, source)[0])

    def record(self, event, found=None) -> object:
        self.at_us += 1_000_001
        seq = self.state.seq + 1
        reply = apply(self.state, event, seq, self.at_us, found)
        self.records.append((event.kind, encode_record_data(event), seq, self.at_us))
        return reply

    def do(self, command) -> object:
        before = picture(self.state)
        decision = decide(self.state, command)
        assert picture(self.state) == before, "decide changed the state"
        if isinstance(decision, Repeat):
            return decision.reply
        event, _, found = decision
        return self.record(event, found)

    def refuses(self, error: type[Exception], command) -> Exception:
        before = picture(self.state)
        with pytest.raises(error) as caught:
            decide(self.state, command)
        assert picture(self.state) == before, "a refused command changed the state"
        return caught.value

    def replayed(self) -> State:
        state = State()
        for kind, data, seq, at_us in self.records:
            apply(state, decode_event(kind, data), seq, at_us)
        return state

    def save(self) -> None:
        """Take a snapshot."""
        self.saved.append((self.state.seq, snapshot_of(self.state)))

    def recovered(self, number: int = -1) -> State:
        """The state that is made from a snapshot (the newest is -1) and the records behind it; its frames are cold."""
        if len(self.saved) < -number:
            return self.replayed()
        saved_seq, data = self.saved[number]
        state = state_from(data, saved_seq, Shelf(self.state.session, Archive(self.records)))
        for kind, record, seq, at_us in self.records[saved_seq:]:
            event = decode_event(kind, record)
            if isinstance(event, Pushed) and event.parent is not None and event.place is None:
                state.table.get(event.parent)
            if isinstance(event, Pushed) and event.place is not None and event.place.configured is not None:
                state.table.get(event.place.configured)
            apply(state, event, seq, at_us)
        if state.head is not None:
            state.table.get(state.head)
        return state

    def ids(self, on: str | None = None) -> list[int]:
        return [frame.id for frame in self.state.stack(on)]


class Archive:
    """Records as a store gives them out; `reads` are the ids of each read, `trouble` is raised by the next ones."""

    def __init__(self, records: list[tuple[str, bytes, int, int]]) -> None:
        self.by_frame = {
            frame_id: decode_record(encode_record(seq, at_us, kind, data, NO_SUM)[0])
            for kind, data, seq, at_us in records
            for frame_id in frames_of(kind, data)
        }
        self.reads: list[list[int]] = []
        self.trouble: Exception | None = None
        self.gives_way = False

    def read(self, ids) -> list[Record]:
        if self.trouble is not None:
            raise self.trouble
        self.reads.append(list(ids))
        found = {record.seq: record for frame_id in ids if (record := self.by_frame.get(frame_id))}
        return [found[seq] for seq in sorted(found)]

    async def fetch(self, ids) -> list[Record]:
        if self.gives_way:
            await asyncio.sleep(0)
        return self.read(ids)


def cold(live: Live, shelf: Shelf | None = None) -> tuple[State, Archive]:
    """The same session with all its frames on the disk, and the disk."""
    archive = Archive(live.records)
    shelf = shelf or Shelf(live.state.session, archive)
    return state_from(snapshot_of(live.state), live.state.seq, shelf), archive


def prune(live: Live) -> None:
    """Drop what nothing holds."""
    state, held = live.state, Held()
    for needed in held.add(state.table, tips_of(state, keys=True)):
        state.table.read(needed)
    live.record(Pruned(tuple(unheld(state, held))))


def frames_of_table(table: Table) -> list[Frame | None]:
    """All frames, the cold ones too."""
    if table.cold_below == 1:
        return list(table.frames)
    return [table.get(frame_id) for frame_id in range(table.next_id)]


def in_memory(table: Table) -> list[int]:
    """The ids of the frames that are not cold."""
    return [frame_id for frame_id in range(table.next_id) if table.slot(frame_id)]


def live_frames(state: State) -> set[int]:
    """The ids that the head, a branch or a checkpoint holds."""
    return {frame_id for first, last in live_runs(state) for frame_id in range(first, last + 1)}


def picture(state: State) -> dict[str, object]:
    """Everything in a state, as plain values to compare."""
    return {
        "session": state.session,
        "created_at_us": state.created_at_us,
        "metadata": bytes(state.raw_metadata),
        "source": state.source,
        "importing": state.importing,
        "ended": state.ended,
        "seq": state.seq,
        "next_id": state.next_id,
        "frames": frames_of_table(state.table),
        "head": state.head,
        "attached": state.attached,
        "branches": dict(state.branches),
        "checkpoints": dict(state.checkpoints),
        "absent": list(state.table.absent),
        "call_ids": list(state.call_ids),
        "keys": dict(state.keys.entries()),
        "marks": state.marks,
        "requests": dict(state.requests),
        "learned": state.learned,
        "usage": state.usage,
        "overlays": state.overlays,
        "generation": state.generation,
        "pins": dict(state.pins),
        "retractions": dict(state.retractions),
    }
