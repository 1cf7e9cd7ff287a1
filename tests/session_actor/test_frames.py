"""Frames, turns and blocks as values, and the table that holds them."""

from __future__ import annotations

import copy
import gc
from datetime import UTC, datetime, timedelta

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from session_actor.blocks import Document, Image, Native, Text, Thinking, ToolCall, ToolResult
from session_actor.commands import AddAssistant, AddUser, Configure, Fork, HoldCall, Pop, Push
from session_actor.events import decode_event
from session_actor.frames import Frame, Instructions, PendingCall, Tool, Turn, Usage
from session_actor.state.table import Table

from .live import Live, picture

SECRET = "kept private"


@given(st.datetimes(timezones=st.just(UTC)).filter(lambda moment: moment.year >= 1970))
def test_a_timestamp_is_exact_to_the_microsecond(moment):
    at_us = (moment - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)

    assert Frame(1, None, 1, at_us).timestamp == moment
    assert Frame(1, None, 1, at_us).timestamp.utcoffset() == timedelta(0)


def test_a_push_without_turns_makes_a_user_and_an_assistant_turn_of_the_two_texts():
    frame = Live().do(Push("question", "answer"))

    assert frame.turns == (Turn("user", (Text("question"),)), Turn("assistant", (Text("answer"),)))
    assert (frame.user_input, frame.assistant_output) == ("question", "answer")


def test_an_empty_text_makes_no_turn():
    live = Live()

    assert [turn.role for turn in live.do(Push("question")).turns] == ["user"]
    assert [turn.role for turn in live.do(Push(assistant_output="answer")).turns] == ["assistant"]
    assert live.do(Push(assumptions=["it rains"])).turns == ()


@pytest.mark.parametrize("turns", [[], [Turn("user", (Text("other"),))]])
def test_texts_beside_turns_only_annotate_them(turns):
    frame = Live().do(Push("question", "answer", turns=turns))

    assert frame.turns == tuple(turns)
    assert (frame.user_input, frame.assistant_output) == ("question", "answer")


def test_the_text_of_a_turn_is_that_of_its_text_blocks_as_they_are():
    call = ToolCall("call-1", "read_gauge", "{}")
    turn = Turn("assistant", (Thinking("hm"), Text("one "), call, Text("two\n")))

    assert turn.text == "one two\n"
    assert Turn("user").text == ""
    assert "one" not in repr(turn)


def test_the_text_of_a_result_is_that_of_its_text_blocks():
    result = ToolResult("c", (Text("one "), Image(url="https://example.org/i.png"), Text("two\n")))
    assert result.text == "one two\n"
    assert ToolResult("c").text == Turn("tool", (result,)).text == ""
    assert "one" not in repr(result)


def test_one_add_is_one_frame_with_one_turn():
    live = Live()
    user = live.do(AddUser("hello"))
    assistant = live.do(AddAssistant("hi", model="m", usage=Usage(10, 2), stop_reason="end_turn"))

    assert user.turns == (Turn("user", (Text("hello"),)),)
    assert assistant.turns == (Turn("assistant", (Text("hi"),), Usage(10, 2), "m", None, "end_turn"),)
    assert [user.id, assistant.id] == [1, 2]


def test_a_frame_knows_its_place():
    live = Live()
    first, second = live.do(Push("a")), live.do(Push("b"))

    assert (first.id, first.parent, first.depth, first.forked_from) == (1, None, 1, None)
    assert (second.id, second.parent, second.depth) == (2, 1, 2)


@pytest.mark.parametrize("name", ["id", "user_input", "given_turns"])
def test_a_frame_cannot_be_changed(name):
    frame = Live().do(Push("a"))

    with pytest.raises(AttributeError):
        setattr(frame, name, None)


def test_a_frame_keeps_no_list_of_its_caller():
    assumptions, blocks = ["it rains"], [Text("hello")]
    live = Live()
    pushed, added = live.do(Push("a", assumptions=assumptions)), live.do(AddUser(blocks))
    assumptions.append("it snows")
    blocks.append(Text("more"))

    assert pushed.assumptions == ("it rains",)
    assert added.turns[0].blocks == (Text("hello"),)


def test_frames_are_unknown_to_the_garbage_collector():
    frame = Live().do(Push("a", "b", ["c"]))

    assert not gc.is_tracked(frame)


@pytest.mark.parametrize(
    "value",
    [
        Text(SECRET),
        Image(data=SECRET.encode(), media_type="image/png"),
        Document(data=SECRET.encode(), media_type="application/pdf", name=SECRET),
        ToolCall("c1", "read", SECRET),
        ToolResult("c1", (Text(SECRET),)),
        Thinking(SECRET, SECRET),
        Native("anthropic", "m", {"text": SECRET}),
        Turn("user", (Text(SECRET),)),
        Usage(7, raw={"text": SECRET}),
        Tool("read", SECRET, {"description": SECRET}),
        Instructions(SECRET),
        PendingCall(ref=None, id="c1", name="read", arguments=SECRET),
        Frame(1, None, 1, 0, SECRET, SECRET, (SECRET,), (SECRET,), (Turn("user", (Text(SECRET),)),)),
        Push(SECRET, SECRET),
        AddUser(SECRET),
    ],
    ids=lambda value: type(value).__name__,
)
def test_no_repr_shows_content(value):
    assert SECRET not in repr(value)


def test_a_free_value_reads_the_same_before_and_after_it_is_kept():
    schema, raw = {"type": "object", "n": [1, 2.5, None]}, {"type": "server_tool", "x": "\ud800"}
    live = Live()
    frame = live.do(AddAssistant([Native("anthropic", "m", raw)], usage=Usage(1, raw=schema)))
    kept = frame.turns[0]

    assert Native("anthropic", "m", raw).value == kept.blocks[0].value == raw
    assert Usage(raw=schema).raw_value == kept.usage.raw_value == schema
    assert Usage().raw_value is None
    assert isinstance(kept.blocks[0].raw, msgspec.Raw)


def test_a_table_finds_frames_by_id_and_nothing_else():
    table = Table()
    frames = [Frame(1, None, 1, 0), Frame(2, 1, 2, 0), Frame(5, 2, 3, 0)]
    for frame in frames:
        table.add(frame)

    assert [table.get(frame_id) for frame_id in (1, 2, 5)] == frames
    assert [table.get(frame_id) for frame_id in (-1, 0, 3, 4, 6, 10**30)] == [None] * 6
    assert len(table) == 3
    assert table.path(5) == frames[::-1]
    assert table.path(5, 2) == [frames[2], frames[1]]


def test_a_path_over_a_missing_frame_says_which():
    table = Table()
    table.add(Frame(3, 2, 3, 0))

    with pytest.raises(LookupError, match="2"):
        table.path(3)


def test_a_pruned_table_is_a_new_one():
    table = Table()
    for frame_id in (1, 2, 3):
        table.add(Frame(frame_id, frame_id - 1 or None, frame_id, 0))
    kept = table.without([(2, 2)])

    assert [kept.get(1), kept.get(2), kept.get(3)] == [table.get(1), None, table.get(3)]
    assert len(table) == 3
    assert "3" in repr(kept)


def test_frames_can_be_copied_and_compared():
    frame = Live().do(AddUser("hello"))

    assert copy.deepcopy(frame) == frame
    assert frame != Live().do(AddUser("hello!"))


def test_a_frame_says_where_its_instructions_and_its_run_of_ids_come_from():
    live = Live()
    live.do(AddUser("one"))
    live.do(Configure("be kind"))
    live.do(AddUser("three"))
    live.do(Pop(1))
    live.do(AddUser("four"))
    live.do(AddUser("five"))
    live.do(Fork(3, user_input="six"))

    frames = live.state.table.frames[1:]
    assert [frame.configured for frame in frames] == [None, 2, 2, 2, 2, 2]
    assert [frame.run_from for frame in frames] == [1, 1, 1, 4, 4, 6]


# --- a text is kept the same way, however it came ---


class Words(str):
    """A text of a caller's own class."""

    __slots__ = ()


@pytest.mark.parametrize("text", ["hi", Words("hi")], ids=["str", "derived"])
def test_an_added_text_is_kept_as_a_pushed_one(text):
    added, pushed = Live(), Live()
    for live, commands in ((added, (AddUser(text), AddAssistant(text))), (pushed, (Push("hi"), Push("", "hi")))):
        for command in commands:
            live.do(command)

    assert picture(added.state) == picture(pushed.state)
    assert added.records == pushed.records
    assert added.records[1][1:2] == (b'{"id":1,"user_input":"hi"}',)
    assert [type(frame.user_input) for frame in added.state.stack()] == [str, str]
    assert added.state.stack().turns() == (Turn("user", (Text("hi"),)), Turn("assistant", (Text("hi"),)))


def test_notes_beside_an_added_text_are_kept():
    live = Live()
    frame = live.do(AddAssistant("hi", assumptions=["a"], decisions=["d"]))
    assert (frame.assistant_output, frame.given_turns, frame.assumptions, frame.decisions) == (
        "hi",
        None,
        ("a",),
        ("d",),
    )


@pytest.mark.parametrize(
    "command",
    [
        AddUser(""),
        AddUser([]),
        AddUser(["hi"]),
        AddUser([Text("hi")]),
        AddAssistant(""),
        AddAssistant([Text("hi")]),
        AddAssistant("hi", [ToolCall("c", "t")]),
        AddAssistant("hi", usage=Usage(1, 2)),
        AddAssistant("hi", model="m"),
        AddAssistant("hi", model=""),
        AddAssistant("hi", dialect="d"),
        AddAssistant("hi", stop_reason="end_turn"),
    ],
    ids=repr,
)
def test_anything_but_a_text_alone_is_kept_as_a_turn(command):
    live = Live()
    frame = live.do(command)
    assert frame.given_turns is not None
    assert (frame.user_input, frame.assistant_output, len(frame.turns)) == ("", "", 1)
    assert picture(live.replayed()) == picture(live.state)


@pytest.mark.parametrize("command", [AddUser("on"), AddAssistant("on")], ids=repr)
def test_an_added_text_leaves_calls_behind_as_a_turn_does(command):
    live = Live()
    live.do(AddAssistant("", [ToolCall("a", "t"), ToolCall("b", "t")]))
    live.do(HoldCall("b"))
    frame = live.do(command)
    assert [call.held is not None for call in frame.open_calls] == [True]
    assert (frame.exchange, frame.step) == ((3, 1) if isinstance(command, AddUser) else (None, 3))


def test_a_text_that_was_recorded_as_a_turn_is_what_it_was():
    live = Live()
    event = decode_event("pushed", b'{"id":1,"turns":[{"role":"user","blocks":[{"type":"text","text":"hi"}]}]}')
    live.record(event)
    assert live.state.stack().turns() == (Turn("user", (Text("hi"),)),)
    assert live.state.stack().top.given_turns == (Turn("user", (Text("hi"),)),)
