"""Records: stable names, exact values, and a state that is nothing but their fold."""

from __future__ import annotations

import json

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from session_actor.blocks import CallRef, ToolCall, ToolResult
from session_actor.commands import AddAssistant, AddToolResult, AddUser, Configure, Fork, Goto, HoldCall, Pop, Push
from session_actor.errors import RecordUnknown, RecordUnreadable
from session_actor.events import (
    KINDS,
    Added,
    Ended,
    Moved,
    Place,
    Pushed,
    decode_event,
)
from session_actor.frames import OpenCall
from session_actor.persistence import encode_record_data

from .golden_records import GOLDEN
from .live import Live, cold, picture


@pytest.mark.parametrize(("event", "data"), GOLDEN, ids=lambda value: getattr(value, "kind", ""))
def test_a_record_is_written_and_read_as_ever(event, data):
    assert encode_record_data(event).decode() == data
    assert decode_event(event.kind, data.encode()) == event


@pytest.mark.parametrize(
    ("kind", "data", "event"),
    [
        (
            "added",
            '{"id":64,"user_input":"hi","place":[12,30,31,6,7,[]]}',
            Added(64, user_input="hi", place=Place(12, 30, 31, 6, 7)),
        ),
        (
            "pushed",
            '{"id":32,"parent":31,"user_input":"hi","place":[12,30,31,6,7,[[[4,0],"approval"],[[5,1],null]]]}',
            Pushed(
                32,
                31,
                "hi",
                place=Place(12, 30, 31, 6, 7, (OpenCall(CallRef(4, 0), "approval"), OpenCall(CallRef(5, 1)))),
            ),
        ),
    ],
    ids=["on top", "elsewhere"],
)
def test_a_record_without_the_usage_of_its_stack_is_read_as_ever(kind, data, event):
    assert decode_event(kind, data.encode()) == event
    assert event.place.spent is None


def test_the_kinds_are_those_of_ever():
    assert list(KINDS) == [
        "session_created",
        "pushed",
        "added",
        "popped",
        "moved",
        "branched",
        "checkpointed",
        "renamed",
        "name_deleted",
        "session_ended",
        "history_copied",
        "history_sealed",
        "pruned",
        "requested",
        "request_failed",
        "compacted",
        "uncompacted",
        "pinned",
        "store.gap",
    ]
    assert {kind for kind, event in KINDS.items() if event.kind != kind} == set()
    assert {event.kind for event, _ in GOLDEN} == set(KINDS)


@pytest.mark.parametrize("kind", KINDS.values(), ids=lambda kind: kind.kind)
def test_every_record_can_hold_a_key_and_shows_no_content(kind):
    assert {"key", "args"} <= set(kind.__struct_fields__)
    assert "private" not in repr(Ended("private"))
    assert not kind.__struct_config__.gc


def test_a_field_of_a_newer_version_is_passed_over():
    assert decode_event("moved", b'{"to":7,"why":"because","branch":"main"}') == Moved(7, "main")
    assert decode_event("pushed", b'{"id":1,"later":{"x":[1]}}') == Pushed(1)


def test_a_kind_of_a_newer_version_is_refused_by_name():
    with pytest.raises(RecordUnknown, match="'archived'") as caught:
        decode_event("archived", b"{}")

    assert caught.value.kind == "archived"


@pytest.mark.parametrize("data", [b"{}", b'{"to":"7"}', b"[]", b"", b'{"to":7', b'{"to":7,"branch":7}'])
def test_data_that_is_not_of_its_kind_is_refused_without_showing_it(data):
    with pytest.raises(RecordUnreadable) as caught:
        decode_event("moved", data)

    assert caught.value.kind == "moved"


def test_the_time_stands_in_the_record_alone():
    live = Live()
    frame = live.do(Push("a"))
    kind, data, seq, at_us = live.records[-1]

    assert json.loads(data) == {"id": 1, "user_input": "a"}
    assert (kind, seq, frame.at_us) == ("pushed", 2, at_us)


def test_text_that_makes_the_turns_is_stored_once():
    live = Live()
    live.do(Push("x" * 1_000, "y" * 1_000))

    assert len(live.records[-1][1]) < 2_100


COMMANDS = st.lists(
    st.builds(Push, st.text(st.characters(), max_size=5), st.text(max_size=5))
    | st.builds(AddUser, st.text(max_size=5))
    | st.builds(
        lambda calls: AddAssistant("", [ToolCall(call, "t") for call in calls]), st.lists(st.sampled_from("abc"))
    )
    | st.builds(AddToolResult, st.sampled_from("abc"), st.sampled_from("xy"))
    | st.builds(HoldCall, st.sampled_from("abc"))
    | st.builds(Pop, st.integers(1, 4), st.sampled_from(["frame", "step", "exchange"]))
    | st.builds(Goto, st.integers(1, 9))
    | st.builds(Fork, st.integers(1, 9), st.none(), st.sampled_from(["", "x"]))
    | st.builds(Configure, st.none() | st.text(max_size=3))
    | st.builds(lambda text, key: Push(text, key=key), st.sampled_from("xy"), st.sampled_from("kl")),
    max_size=25,
)


@given(COMMANDS)
def test_replaying_the_records_gives_the_same_state(commands):
    live = Live()
    for command in commands:
        try:
            live.do(command)
        except live.REFUSED:
            continue

    assert picture(live.replayed()) == picture(live.state)
    assert list(live.replayed().stack()) == list(live.state.stack())
    assert live.replayed().pending_calls() == live.state.pending_calls()


@given(COMMANDS)
def test_the_open_calls_are_those_that_a_walk_over_the_path_finds(commands):
    live = Live()
    for command in commands:
        try:
            live.do(command)
        except live.REFUSED:
            continue
        assert [call.ref for call in live.state.pending_calls()] == walked(live)


def walked(live: Live) -> list[CallRef]:
    """The open calls by the rule in words, from the root to the head."""
    current: list[CallRef] = []
    held: set[CallRef] = set()
    answered: set[CallRef] = set()
    for frame in live.state.stack():
        number = 0
        for turn in frame.turns:
            if turn.role != "tool":
                current = []
            for block in turn.blocks:
                if isinstance(block, ToolCall):
                    current.append(CallRef(frame.id, number))
                    number += 1
                elif isinstance(block, ToolResult):
                    answered.add(block.ref)
        held |= {hold.ref for hold in frame.holds}
    waiting = (set(current) | held) - answered
    return sorted(waiting, key=lambda ref: (ref.frame, ref.index))


def told() -> Live:
    """A session of some blocks, with forks and with several roots."""
    live = Live()
    for number in range(40):
        live.do(Push(f"{number}"))
    live.do(Fork(20, user_input="elsewhere", branch="idea"))
    for _ in range(30):
        live.do(AddUser("on"))
    live.do(Pop(100))
    live.do(Push("from the start", key="k"))
    live.do(Push("on"))
    return live


def test_a_record_names_a_parent_that_is_not_the_frame_before():
    live = told()
    kinds = {event.id: kind for kind, data, *_ in live.records if hasattr(event := decode_event(kind, data), "parent")}
    assert [frame_id for frame_id, kind in kinds.items() if kind == "pushed"] == [1, 41, 72]
    assert {*kinds.values()} == {"pushed", "added"}
    assert [frame.parent for frame in live.replayed().stack()] == [None, 72]
    assert picture(live.replayed()) == picture(live.state)


def test_records_that_all_name_their_parents_give_the_same_state():
    """As they were made before there was a kind of its own for most of them."""
    live = told()
    expected = picture(live.state)
    for place, (kind, data, seq, at_us) in enumerate(live.records):
        if kind == "added":
            fields = msgspec.json.decode(data)
            named = msgspec.json.encode({"id": fields["id"], "parent": fields["id"] - 1, **fields})
            live.records[place] = ("pushed", named, seq, at_us)
    assert {kind for kind, *_ in live.records} == {"session_created", "pushed", "popped"}
    assert picture(live.replayed()) == expected
    assert picture(cold(live)[0]) == expected
