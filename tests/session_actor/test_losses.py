"""Records that are lost: what a session makes of those that are left."""

from __future__ import annotations

import random

import pytest

from session_actor.commands import Checkpoint as CheckpointCommand
from session_actor.commands import DeleteCheckpoint, Fork, Goto, Pop, Push
from session_actor.errors import ReplayError
from session_actor.events import Gap, decode_event
from session_actor.persistence import encode_record_data
from session_actor.state.losses import replay
from session_actor.state.state import State

from .live import Live, picture, prune


def told() -> Live:
    """Eight frames on `main`, two of them popped; a branch, a checkpoint, moves between them."""
    live = Live()
    for number in range(6):
        live.do(Push(f"question {number}", "answer"))
    live.do(Pop(2))
    live.do(CheckpointCommand("here"))
    live.do(Fork(2, branch="idea", user_input="aside"))
    live.do(Push("on idea"))
    live.do(Goto("main"))
    live.do(Push("back"))
    return live


def without(live: Live, first: int, last: int) -> State:
    """The state that the records make when `first` to `last` are lost."""
    state = State()
    for kind, data, seq, at_us in live.records:
        if seq == last:
            replay(state, decode_event("store.gap", encode_record_data(Gap(first, "damaged"))), seq, at_us)
        elif not first <= seq <= last:
            replay(state, decode_event(kind, data), seq, at_us)
    return state


def go_on(state: State) -> Live:
    """The session after salvage: it takes every kind of change again, and replays to the same state."""
    live = Live()
    live.state, live.records = state, []
    return live


def test_without_a_gap_replay_is_apply():
    live = told()
    state = State()
    for kind, data, seq, at_us in live.records:
        replay(state, decode_event(kind, data), seq, at_us)
    assert picture(state) == picture(live.state)
    assert state.losses is None


def test_without_a_gap_a_record_that_does_not_fit_is_refused():
    live = told()
    state = State()
    kind, data, seq, at_us = live.records[0]
    replay(state, decode_event(kind, data), seq, at_us)
    kind, data, seq, at_us = live.records[2]
    with pytest.raises(ReplayError):
        replay(state, decode_event(kind, data), seq, at_us)


def test_a_frame_whose_parent_is_lost_becomes_a_root():
    state = without(told(), 3, 3)
    assert state.losses.gaps == [(3, 3)]
    assert state.losses.roots == [3, 7]
    assert state.table.frames[2] is None
    assert state.table.frames[3].parent is None
    assert state.table.frames[3].depth == 1
    assert [frame.user_input for frame in state.stack()] == ["question 2", "question 3", "back"]


def test_what_lies_below_a_gap_is_held_by_a_checkpoint():
    state = without(told(), 4, 4)
    assert [frame.user_input for frame in state.stack()] == ["question 3", "back"]
    assert state.checkpoints == {"gap-2": 2, "here": 4}
    assert state.losses.left == {"gap-2": 2}
    assert 1 in {frame.id for frame in state.table.path(state.checkpoints["gap-2"])}


def test_the_name_of_what_lies_below_a_gap_is_a_free_one():
    live = Live()
    live.do(Push("one"))
    live.do(CheckpointCommand("gap-1"))
    live.do(Push("lost"))
    live.do(Push("behind"))
    assert without(live, 4, 4).checkpoints == {"gap-1": 1, "gap-1-2": 1}


def test_a_gap_on_a_branch_that_is_not_attached_is_named_too_and_one_at_the_root_leaves_nothing():
    live = Live()
    live.do(Push("lost"))
    live.do(Fork(1, branch="idea", attach=False))
    live.do(Push("on idea", on="idea"))
    live.do(Push("lost, too", on="idea"))
    live.do(Push("behind", on="idea"))
    assert without(live, 2, 2).checkpoints == {}
    assert without(live, 5, 5).checkpoints == {"gap-2": 2}


def test_what_was_popped_behind_a_gap_is_not_named():
    live = Live()
    for text in ("one", "two", "popped"):
        live.do(Push(text))
    live.do(Pop(1))
    live.do(Push("three"))
    state = without(live, 5, 5)
    assert state.branches == {"main": 4}
    assert state.checkpoints == {}


def test_ids_of_lost_frames_are_not_used_again():
    live = told()
    state = without(live, len(live.records) - 2, len(live.records))
    assert live.state.next_id <= state.next_id <= live.state.next_id + 3
    assert go_on(state).do(Push("new")).id >= live.state.next_id


@pytest.mark.parametrize("first", range(1, 13))
@pytest.mark.parametrize("count", [1, 2, 5])
def test_after_any_gap_the_session_goes_on_and_replays_the_same(first, count):
    live = told()
    last = min(first + count - 1, len(live.records))
    states = [without(live, first, last), without(live, first, last)]
    assert picture(states[0]) == picture(states[1])
    assert states[0].losses == states[1].losses
    state = states[0]
    assert state.seq == live.state.seq
    frames = {frame.id for frame in state.table.frames if frame is not None}
    heads = {head for head in [state.head, *state.branches.values(), *state.checkpoints.values()] if head is not None}
    assert heads <= frames
    for frame in state.table.frames:
        assert frame is None or frame.parent is None or frame.parent in frames
    after = go_on(state)
    pushed = after.do(Push("after the loss", "still here"))
    after.do(Fork(pushed.id, branch="later", user_input="fork"))
    after.do(Goto(pushed.id))
    after.do(Pop(1))
    again = states[1]
    for kind, data, seq, at_us in after.records:
        replay(again, decode_event(kind, data), seq, at_us)
    assert picture(again) == picture(after.state)


def test_every_readable_frame_is_kept_whatever_is_lost():
    chance = random.Random(7)
    for _ in range(200):
        live = told()
        first = chance.randrange(1, len(live.records))
        last = chance.randrange(first, len(live.records) + 1)
        pushed = {
            event.id
            for kind, data, seq, _ in live.records
            if kind in {"pushed", "added"} and not first <= seq <= last and (event := decode_event(kind, data))
        }
        state = without(live, first, last)
        assert {frame.id for frame in state.table.frames if frame is not None} == pushed


def test_what_was_popped_does_not_come_back_though_its_push_is_lost():
    state = without(told(), 7, 7)
    assert state.branches["main"] == live_head(told())


def live_head(live: Live) -> int | None:
    return live.state.branches["main"]


@pytest.mark.parametrize("lost", ["pop", "delete"])
def test_what_was_pruned_is_not_held_though_the_record_that_let_go_of_it_is_lost(lost):
    live = Live()
    for number in range(6):
        live.do(Push(f"question {number}", "answer"))
    live.do(CheckpointCommand("there", 5))
    live.do(DeleteCheckpoint("there"))
    live.do(Pop(3))
    prune(live)
    live.do(Push("back"))
    state = without(live, 8, 8) if lost == "delete" else without(live, 9, 9)
    assert [frame.id for frame in state.stack()] == [frame.id for frame in live.state.stack()]
    assert (state.branches, state.checkpoints) == (live.state.branches, {})
    assert [frame_id for frame_id in range(1, 8) if state.table.get(frame_id)] == [1, 2, 3, 7]


def test_a_gap_that_overlaps_what_is_there_is_refused():
    state = without(told(), 3, 3)
    with pytest.raises(ReplayError):
        replay(state, Gap(state.seq), state.seq + 1, 0)
