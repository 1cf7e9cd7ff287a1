"""What a command may hold: every bad value is refused by name, with nothing changed, and every good one comes back."""

from __future__ import annotations

import inspect
import typing

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from session_actor import commands
from session_actor.blocks import Block, Document, Image, Native, Text, Thinking, ToolCall
from session_actor.commands import AddAssistant, AddToolResult, AddUser, Command, Configure, Push
from session_actor.errors import InvalidArgument, RecordTooLarge, Refused, ValueNotStorable
from session_actor.frames import Tool, Turn, Usage
from session_actor.given import content
from session_actor.persistence import ValueNotStorable as FloorsValueNotStorable
from session_actor.persistence.format import values
from session_actor.supervisors import Call

from .live import Live

COMMANDS = [kind for _, kind in inspect.getmembers(commands, inspect.isclass) if issubclass(kind, Command)]


class Loud(str):
    """A str that is more than a str."""

    __slots__ = ()


@pytest.mark.parametrize("kind", [kind for kind in COMMANDS if kind is not Command])
def test_every_command_is_a_frozen_typed_call_with_the_common_fields(kind):
    assert issubclass(kind, Call)
    assert kind.__struct_config__.frozen
    assert not kind.__struct_config__.gc
    assert {"on", "durability", "key", "expect_head"} <= set(kind.__struct_fields__)
    assert kind.__doc__


@pytest.mark.parametrize("kind", [*typing.get_args(Block), Turn, Tool, Usage])
def test_every_field_of_given_content_has_a_rule(kind):
    assert [name for name, _, _ in content._RULES[kind]] == list(kind.__struct_fields__)


@pytest.mark.parametrize(
    ("what", "command"),
    [
        ("user_input", Push(7)),
        ("user_input", Push(None)),
        ("assistant_output", Push("", b"x")),
        ("assumptions", Push(assumptions="it rains")),
        ("assumptions", Push(assumptions=None)),
        ("assumptions[1]", Push(assumptions=["a", 7])),
        ("decisions[0]", Push(decisions=[None])),
        ("decisions", Push(decisions={"a": 1})),
        ("pinned", Push(pinned=1)),
        ("turns", Push(turns="hello")),
        ("turns[0]", Push(turns=["hello"])),
        ("turns[1].role", Push(turns=[Turn("user"), Turn("robot")])),
        ("turns[0].role", Push(turns=[Turn(["user"])])),
        ("turns[0].blocks[1].text", Push(turns=[Turn("user", [Text("a"), Text(7)])])),
        ("turns[0].blocks[0]", Push(turns=[Turn("user", [{"type": "text", "text": "a"}])])),
        ("turns[0].usage.input_tokens", Push(turns=[Turn("assistant", usage=Usage(-1))])),
        ("turns[0].usage", Push(turns=[Turn("assistant", usage={"input_tokens": 1})])),
        ("content", AddUser(None)),
        ("content", AddUser({"text": "a"})),
        ("content[0]", AddUser([None])),
        ("content[0].media_type", AddUser([Image(data=b"x", media_type=7)])),
        ("content[0].data", AddUser([Image(data="x", media_type="image/png")])),
        ("content[0]", AddUser([Image(data=b"x")])),
        ("content[0]", AddUser([Image()])),
        ("content[0]", AddUser([Document(url="https://example.org/a.pdf", file_id="f1")])),
        ("content[0].model", AddAssistant([Native("anthropic", 7, {})])),
        ("tool_calls[0].name", AddAssistant("", [ToolCall("a", None)])),
        ("tool_calls[0]", AddAssistant("", [Text("a")])),
        ("tool_calls", AddAssistant("", ToolCall("a", "t"))),
        ("turn.usage.output_tokens", AddAssistant("", usage=Usage(1, 2**63))),
        ("turn.usage.output_tokens", AddAssistant("", usage=Usage(1, True))),
        ("turn.stop_reason", AddAssistant("", stop_reason=7)),
        ("is_error", AddToolResult("a", "x", is_error=None)),
        ("system", Configure(system=7)),
        ("tools[0].description", Configure(tools=[Tool("a", None)])),
        ("tools", Configure(tools=[Tool("a"), Tool("a")])),
        ("tools", Configure(tools=Tool("a"))),
        ("model", Configure(model=7)),
    ],
    ids=lambda value: value if isinstance(value, str) else type(value).__name__,
)
def test_a_bad_value_is_refused_by_its_place(what, command):
    live = Live()
    live.do(AddAssistant("", [ToolCall("a", "t")]))
    refused = live.refuses(InvalidArgument, command)

    assert refused.what == what
    assert str(refused).startswith(what)


@pytest.mark.parametrize(
    ("where", "value"),
    [
        ("turn.usage.raw", AddAssistant("", usage=Usage(raw={"a": [1, {2}]}))),
        ("content[0].raw", AddAssistant([Native("d", None, {1: 2})])),
        ("content[0].raw", AddAssistant([Native("d", None, object())])),
        ("tools[0].schema", Configure(tools=[Tool("a", "", {"x": (1, 2)})])),
    ],
)
def test_a_free_value_that_would_not_come_back_is_refused(where, value):
    refused = Live().refuses(ValueNotStorable, value)

    assert refused.where.startswith(where)
    assert isinstance(refused, Refused)
    assert isinstance(refused, FloorsValueNotStorable)


def test_json_text_that_is_none_is_refused():
    Live().refuses(InvalidArgument, AddAssistant([Native("d", None, msgspec.Raw(b'{"a":\n'))]))


def test_json_text_is_brought_onto_one_line():
    frame = Live().do(AddAssistant([Native("d", None, msgspec.Raw(b'{"a":\n 1}'))]))

    assert bytes(frame.turns[0].blocks[0].raw) == b'{"a":1}'


def test_no_refusal_shows_content():
    secret = "kept private"
    for command in (
        AddUser([Image(data=secret, media_type="x")]),
        Push(turns=[Turn(secret)]),
        AddAssistant("", [ToolCall("a", "t", {secret: {1}})]),
        AddAssistant([Native("d", None, {"a": {secret}})]),
    ):
        assert secret not in str(Live().refuses(Refused, command))


def test_subclasses_of_str_are_kept_as_plain_strs():
    live = Live()
    frame = live.do(Push(Loud("a"), assumptions=[Loud("b")], turns=[Turn("user", [Loud("c")])]))

    assert type(frame.user_input) is type(frame.assumptions[0]) is type(frame.turns[0].blocks[0].text) is str
    assert live.replayed().table.get(1) == frame


def test_strs_among_blocks_are_texts_and_an_empty_str_is_no_block():
    live = Live()

    assert live.do(AddUser(["a", Text("b")])).turns[0].blocks == (Text("a"), Text("b"))
    assert live.do(AddUser("")).turns == (Turn("user", ()),)


def test_bytes_of_any_kind_are_kept_as_bytes():
    live = Live()
    frame = live.do(AddUser([Image(data=bytearray(b"\x00\xff"), media_type="image/png"), "\ud800"]))

    assert frame.turns[0].blocks[0].data == b"\x00\xff"
    assert live.replayed().table.get(1) == frame


def test_a_record_over_the_limit_is_refused_before_anything_changed():
    live = Live()
    refused = live.refuses(RecordTooLarge, Push("x" * 68_000_000))
    assert refused.limit_bytes < refused.size_bytes
    live.refuses(RecordTooLarge, AddUser([Image(data=bytes(52_000_000), media_type="image/png")]))
    live.refuses(RecordTooLarge, Push("\x01" * 12_000_000))
    live.refuses(RecordTooLarge, Push("\ud800" * 10_000_000))


def test_a_text_that_is_surely_too_large_is_refused_without_encoding_it(monkeypatch):
    live = Live()
    monkeypatch.setattr(values, "encode_record_data", lambda _event: pytest.fail("it was encoded"))
    live.refuses(RecordTooLarge, Push("x" * 68_000_000))
    live.refuses(RecordTooLarge, Push("\ud800" * 10_000_000))


def test_a_large_record_below_the_limit_is_kept():
    live = Live()

    assert len(live.do(Push("x" * 20_000_000)).user_input) == 20_000_000


FREE = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
TEXT = st.text(st.characters(), max_size=20)
BLOCKS = st.lists(
    st.builds(Text, TEXT)
    | st.builds(Thinking, TEXT, st.none() | TEXT)
    | st.builds(Native, TEXT, st.none() | TEXT, FREE)
    | st.builds(ToolCall, TEXT, TEXT, TEXT)
    | st.builds(lambda data: Image(data=data, media_type="image/png"), st.binary(max_size=20))
    | st.builds(lambda url, name: Document(url=url, name=name), TEXT, st.none() | TEXT),
    max_size=4,
)
USAGE = st.builds(Usage, *[st.integers(0, 2**63 - 1)] * 5, FREE)


@given(BLOCKS, st.none() | USAGE, st.lists(TEXT, max_size=2), TEXT)
def test_whatever_is_accepted_comes_back_equal(blocks, usage, assumptions, model):
    live = Live()
    live.do(AddAssistant(blocks, usage=usage, model=model, assumptions=assumptions))
    live.do(Push(model, model, assumptions, assumptions, [Turn("assistant", blocks, usage)]))
    live.do(Configure(model, [Tool(f"t{model}", model, {"x": usage.raw} if usage else None)], model))

    assert live.replayed().table.frames == live.state.table.frames


@given(FREE)
def test_metadata_comes_back_equal(value):
    live = Live("user-42", value)

    assert repr(live.replayed().metadata) == repr(live.state.metadata) == repr(value)
