"""Conversations to be compacted, made by commands as a session makes them, and what a plan of theirs is made from."""

from __future__ import annotations

from typing import Any

from session_actor.budget.trim import Unit
from session_actor.compaction.plan import Plan, Previous, Wanted
from session_actor.frames import Frame
from session_actor.ledger.view import WHOLE, View
from session_actor.models.profile import ModelProfile
from session_actor.requests import dialect_of
from session_actor.state.paths import path_runs
from session_actor.window.rendered import Rendered
from session_actor.window.units import units_of
from session_actor.window.window import shown_frames

from ..window.ledger_talk import Talk, target

FAMILY = "o200k"
WINDOW = 32_000
PROFILE = ModelProfile(name="small", window=WINDOW, max_output=4_000, family=FAMILY)


def units(talk: Talk, view: View = WHOLE) -> list[Unit]:
    """What a view of the conversation is made of."""
    head = talk.state.head
    assert head is not None
    rendered = Rendered(target("anthropic"), view, PROFILE, dialect_of("anthropic"))
    rendered.grow(shown_frames(talk.state.table, head, view))
    return units_of(rendered, rendered.piece(rendered.open_chunk()), talk.state.table, 1.0)


def above(talk: Talk, covered: int = 0) -> tuple[Frame, ...]:
    """The frames above one that is covered."""
    return tuple(frame for frame in talk.frames if frame.id > covered)


def long_talk(exchanges: int = 10, words: int = 200, **fields: Any) -> Talk:
    """Questions and answers, each of so many words."""
    talk = Talk()
    for number in range(exchanges):
        talk.user(f"Question {number}: " + "why is that " * (words // 3), **fields)
        talk.says(f"Answer {number}: " + "because it is " * (words // 3))
    return talk


def wanted(talk: Talk, previous: Previous | None = None, **fields: Any) -> Wanted:
    """What a plan for the head of a conversation is made from."""
    covered = 0 if previous is None else previous.covered_frame
    view = WHOLE if previous is None else View(cut=covered + 1, kept=previous.kept, trimmed=True)
    given: dict[str, Any] = {
        "session": "s",
        "generation": 1 if previous is None else previous.generation + 1,
        "frames": above(talk, covered),
        "lent": [] if previous is None else [talk.state.table.at(kept) for kept in previous.kept],
        "units": units(talk, view),
        "window": WINDOW,
        "family": FAMILY,
        "previous": previous,
        "runs": path_runs(talk.state.table, talk.frames[-1].id),
    }
    return Wanted(**{**given, **fields})


def adopted(plan: Plan, sealed: str) -> Previous:
    """The compaction that a plan becomes with a summary."""
    return Previous(plan.generation, plan.covered_frame, sealed, plan.facts, plan.kept)
