"""A whole history: which frames live, and a copy of it in a new session."""

from __future__ import annotations

import pytest

from session_actor.blocks import ToolCall
from session_actor.commands import (
    AddAssistant,
    AddToolResult,
    AddUser,
    Checkpoint,
    Configure,
    Fork,
    Goto,
    HoldCall,
    Pop,
    Push,
)
from session_actor.errors import ForkUnfinished, FrameUnknown, RecordTooLarge, SessionActorError
from session_actor.events import HistoryCopied, Source
from session_actor.persistence import encode_record_data
from session_actor.state.decide import decide
from session_actor.state.history import CHUNK_FRAMES, CHUNK_WEIGHT, created, history_of, history_to
from session_actor.state.keys import Repeat

from .live import Live, live_frames, picture, prune


@pytest.fixture
def live() -> Live:
    """A session with everything in it: instructions, forks, checkpoints, calls, popped frames, keys."""
    live = Live("source", {"lang": "de"})
    live.do(Configure("be kind"))
    live.do(AddUser("do it \ud800", key="k"))
    live.do(AddAssistant("", [ToolCall("a", "t"), ToolCall("b", "t")]))
    live.do(AddToolResult("a", "one"))
    live.do(HoldCall("b"))
    live.do(Checkpoint("held"))
    live.do(Push("popped"))
    live.do(Pop(1))
    live.do(Fork(2, user_input="x", assumptions=["y"], branch="idea"))
    live.do(Goto(4))
    return live


def copy_of(source: Live, at: int | None = None) -> Live:
    copy = Live("copy", None, Source("source", at))
    for event, _ in history_of(source.state) if at is None else history_to(source.state, at):
        copy.record(event)
    return copy


def test_live_are_the_frames_that_a_head_a_branch_or_a_checkpoint_holds(live):
    assert live_frames(live.state) == {1, 2, 3, 4, 5, 7}
    live.do(Goto(6))
    assert live_frames(live.state) == {1, 2, 3, 4, 5, 6, 7}


def test_pruning_keeps_what_lives_and_what_a_key_answers_with():
    live = Live()
    live.do(Push("a"))
    live.do(Push("b", key="k"))
    live.do(Push("c"))
    popped = live.do(Pop(2, key="p"))
    live.do(Push("d"))
    live.do(Push("e"))
    live.do(Pop(1))
    prune(live)

    assert [frame.id for frame in live.state.table.frames if frame] == [1, 2, 3, 4]
    assert picture(live.replayed()) == picture(live.state)
    assert decide(live.state, Pop(2, key="p")) == Repeat(popped, 5)
    assert [frame.user_input for frame in live.state.stack()] == ["a", "d"]


def test_a_copy_has_the_same_history_and_its_own_name(live):
    copy = copy_of(live)
    ours, theirs = picture(live.state), picture(copy.state)

    for name in ("head", "attached", "branches", "checkpoints", "next_id", "call_ids"):
        assert ours[name] == theirs[name], name
    assert [frame and frame.id for frame in copy.state.table.frames] == [None, 1, 2, 3, 4, 5, None, 7]
    assert list(copy.state.stack("idea")) == list(live.state.stack("idea"))
    assert copy.state.pending_calls("main") == live.state.pending_calls("main")
    assert (copy.state.session, copy.state.source, copy.state.metadata) == ("copy", Source("source"), None)
    assert copy.state.created_at_us == 1_700_000_001_000_001


def test_a_copy_is_whole_without_its_source(live):
    copy = copy_of(live)
    del live

    assert picture(copy.replayed()) == picture(copy.state)
    assert copy.do(AddToolResult("b", "two", on="main")).id == 8
    assert copy.do(Push("on")).id == 9


def test_keys_stay_with_the_source(live):
    assert copy_of(live).do(Push("new", key="k")).id == 8


def test_a_copy_at_a_frame_has_its_stack_and_the_checkpoints_on_it(live):
    live.do(Checkpoint("root", 1))
    copy = copy_of(live, 7)

    assert copy.ids() == [1, 2, 7]
    assert (copy.state.attached, copy.state.branches) == ("main", {"main": 7})
    assert copy.state.checkpoints == {"root": 1}
    assert copy.state.table.get(3) is None
    assert copy.do(Push("on")).id == 8


def test_a_copy_at_no_frame_is_refused(live):
    with pytest.raises(FrameUnknown):
        history_to(live.state, 9)


def test_an_empty_session_has_an_empty_copy():
    copy = copy_of(Live("source"))

    assert (copy.ids(), copy.state.branches, copy.state.importing) == ([], {"main": None}, False)
    assert copy.do(Push("a")).id == 1


def test_a_large_history_is_copied_in_parts():
    live = Live("source")
    for _ in range(10):
        live.do(Push("x" * (CHUNK_WEIGHT // 3)))
    events = list(history_of(live.state))
    parts = [event for event, _ in events if isinstance(event, HistoryCopied)]

    assert len(parts) > 3
    assert max(weight for _, weight in events) <= CHUNK_WEIGHT
    assert copy_of(live).ids() == live.ids()


def test_many_small_frames_are_copied_in_parts():
    live = Live("source")
    for _ in range(2 * CHUNK_FRAMES + 1):
        live.do(Push("x"))
    parts = [event for event, _ in history_of(live.state) if isinstance(event, HistoryCopied)]

    assert [len(part.frames) for part in parts] == [CHUNK_FRAMES, CHUNK_FRAMES, 1]


def test_an_unfinished_copy_takes_no_command():
    live = Live("copy", None, Source("source"))

    assert live.state.importing
    live.refuses(ForkUnfinished, Push("a"))


def test_metadata_that_cannot_be_kept_is_refused():
    with pytest.raises(SessionActorError, match="metadata"):
        Live("user-42", {1: 2})


def test_metadata_over_the_size_of_one_record_is_refused():
    for metadata in ("x" * 68_000_000, {"n": ["\ud800" * 10_000_000]}, b"\x00" * 52_000_000):
        with pytest.raises(RecordTooLarge):
            created("user-42", metadata)


def test_the_first_record_weighs_what_it_holds():
    event, weight = created("user-42", "x" * 1_000_000)

    assert len(encode_record_data(event)) <= weight < 2_000_000


def test_the_names_of_a_copy_count_as_its_size():
    live = Live("source")
    live.do(Push("a"))
    live.state.branches.update((f"{number:0512}", 1) for number in range(1_000))
    *_, (sealed, weight) = history_of(live.state)

    assert len(encode_record_data(sealed)) <= weight < 2_000_000
    live.state.branches.update((f"{number:0512}", 1) for number in range(140_000))
    with pytest.raises(RecordTooLarge):
        list(history_of(live.state))


def test_a_copied_frame_keeps_its_time(live):
    copy = copy_of(live)

    assert copy.state.table.get(2).timestamp == live.state.table.get(2).timestamp
