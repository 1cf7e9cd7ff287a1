"""Steps are never cut, however the turns of a conversation are grouped in frames."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from session_actor import ContextOverflow, ModelProfile
from session_actor.blocks import Text, ToolCall, ToolResult
from session_actor.commands import Push
from session_actor.frames import Turn
from session_actor.ledger.view import View

from .asked import DIALECTS, MODELS, Asked, messages_of, same

LITTLE = ModelProfile(name="little", window=3_000, max_output=500, family="o200k")


@pytest.fixture(autouse=True)
def _models(monkeypatch):
    monkeypatch.setitem(MODELS, "little", LITTLE)


Spoken = tuple[str, int]
"""Who speaks, and how many words; `call`: the model calls two tools, and two results follow."""


@st.composite
def talks(draw) -> list[Spoken]:
    """A conversation: its exchanges, each with some steps."""
    found: list[Spoken] = []
    for _ in range(draw(st.integers(1, 3))):
        found.append(("user", draw(st.sampled_from([3, 40, 150]))))
        found.extend(("call", draw(st.sampled_from([5, 60, 250]))) for _ in range(draw(st.integers(0, 5))))
        if draw(st.booleans()):
            found.append(("answer", draw(st.sampled_from([3, 60]))))
    return found


def turns_of(talk: list[Spoken], dialect: str) -> list[Turn]:
    """Its turns. Its calls are the dialect's own: their ids would be made of their frames else."""
    turns: list[Turn] = []
    for who, words in talk:
        number = len(turns)
        text = (Text(f"{who}{number} " * words),)
        if who == "user":
            turns.append(Turn("user", text))
        elif who == "answer":
            turns.append(Turn("assistant", text, dialect=dialect))
        else:
            ids = [f"call_{number}_{index}" for index in range(2)]
            turns.append(Turn("assistant", tuple(ToolCall(one, "ls", "{}") for one in ids), dialect=dialect))
            turns += [Turn("tool", (ToolResult(one, text),)) for one in ids]
    return turns


def frames_of(talk: list[Spoken], borders: set[int], dialect: str = "anthropic") -> list[list[Turn]]:
    """Its turns in frames. `borders`: before which turns a new one begins."""
    frames: list[list[Turn]] = []
    for number, turn in enumerate(turns_of(talk, dialect)):
        if not frames or number in borders:
            frames.append([])
        frames[-1].append(turn)
    return frames


def lived(talk: list[Spoken], borders: set[int], dialect: str = "anthropic") -> Asked:
    """A session that lived it, its turns in frames."""
    live = Asked(model="little")
    for turns in frames_of(talk, borders, dialect):
        live.do(Push(turns=turns))
    return live


def asked(talk: list[Spoken], borders: set[int], dialect: str) -> Any:
    live = lived(talk, borders, dialect)
    try:
        request = live.ask(dialect)
    except ContextOverflow:
        return None
    assert same(live.again(dialect), request)
    return messages_of(request)


LONG = [("user", 3), ("call", 250), ("call", 250), ("call", 250), ("call", 250), ("call", 250), ("call", 5)]


@settings(max_examples=60, deadline=None)
@given(talks(), st.sets(st.integers(1, 40)), st.sampled_from(DIALECTS))
@example(LONG, {2, 5, 8, 11, 14, 17}, "anthropic")
@example(LONG, {3, 6, 9, 12, 15, 18}, "anthropic")
@example(LONG, set(), "gemini")
def test_turns_in_any_frames_give_the_same_request(talk, borders, dialect):
    alone = set(range(1, 100))
    assert asked(talk, borders, dialect) == asked(talk, alone, dialect)


@pytest.mark.parametrize("shift", range(3))
def test_a_life_of_results_with_the_next_turn_is_cut_between_steps_only(shift):
    talk: list[Spoken] = [("user", 3), *[("call", 60)] * 60]
    live, marks = Asked(model="little"), 0
    for turns in frames_of(talk, {1 + shift + 3 * number for number in range(60)}):
        live.do(Push(turns=turns))
        request = live.ask("anthropic")
        assert not [note for note in request.added if note.what == "late_result"], "a result without its call"
        marks += live.asked.made is not None
        assert "user0" in repr(dict(request)), "the user turn of the exchange stays"
    assert 3 < marks < 40
    borders = [(mark.border, mark.stubs, mark.stub_turn) for mark in live.state.marks]
    assert all(low < high for low, high in pairwise(borders))


def test_a_view_says_which_turns_of_a_frame_it_shows():
    view = View(cut=5, turn=2, kept=(1,), portions=((3, 0, 1), (5, 0, 1)), stubs=5, stub_turn=3)
    assert [frame for frame in range(1, 8) if view.shows(frame)] == [1, 3, 5, 6, 7]
    assert [frame for frame in (1, 3, 5, 6) if view.hides_turns_of(frame)] == [3, 5]
    assert [turn for turn in range(4) if view.shows_turn(5, turn)] == [0, 2, 3]
    assert [turn for turn in range(3) if view.shows_turn(3, turn)] == [0]
    assert view.is_old(5, 2)
    assert not view.is_old(5, 3)


def test_a_mark_inside_a_frame_is_kept_by_a_recovery():
    live = lived(LONG, {3, 6, 9, 12, 15, 18})
    request = live.ask("anthropic")
    mark = live.state.marks[-1]
    assert mark.turn
    live.save()
    state = live.recovered()
    assert state.marks == live.state.marks
    assert same(live.again("anthropic", state), request)
