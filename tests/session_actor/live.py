"""A state that is driven as a session drives it, with its records kept as a store would keep them."""

from __future__ import annotations

import pytest

from session_actor.apply import apply
from session_actor.decide import decide
from session_actor.errors import Refused
from session_actor.events import decode_event
from session_actor.history import created
from session_actor.keys import Repeat
from session_actor.persistence import encode_record_data
from session_actor.state import State


class Live:
    """One session without a server: `do` decides, applies and records; `replayed` is the state that a restart sees."""

    REFUSED = Refused

    def __init__(self, session: str = "user-42", metadata: object = None, source: object = None) -> None:
        self.state = State()
        self.records: list[tuple[str, bytes, int, int]] = []
        self.at_us = 1_700_000_000_000_000
        self.record(created(session, metadata, source)[0])

    def record(self, event) -> object:
        self.at_us += 1_000_001
        seq = self.state.seq + 1
        reply = apply(self.state, event, seq, self.at_us)
        self.records.append((event.kind, encode_record_data(event), seq, self.at_us))
        return reply

    def do(self, command) -> object:
        before = picture(self.state)
        decision = decide(self.state, command)
        assert picture(self.state) == before, "decide changed the state"
        if isinstance(decision, Repeat):
            return decision.reply
        return self.record(decision[0])

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

    def ids(self, on: str | None = None) -> list[int]:
        return [frame.id for frame in self.state.stack(on)]


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
        "frames": list(state.table.frames),
        "head": state.head,
        "attached": state.attached,
        "branches": dict(state.branches),
        "checkpoints": dict(state.checkpoints),
        "call_ids": set(state.call_ids),
        "keys": dict(state.keys.entries()),
    }
