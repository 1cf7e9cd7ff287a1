"""Values of callers' own classes, and of any size: refused in a few words or kept, whatever their methods do."""

from __future__ import annotations

import asyncio
import enum
import inspect
from unittest.mock import MagicMock

import pytest

from session_actor import MemoryStore, SessionService, commands
from session_actor.blocks import CallRef, Image, Native, Text, ToolCall, ToolResult
from session_actor.commands import (
    AddAssistant,
    AddToolResult,
    BuildRequest,
    Checkpoint,
    Command,
    Fork,
    Goto,
    Pop,
    Push,
)
from session_actor.errors import InvalidArgument, Refused
from session_actor.frames import Frame, Tool, Turn, Usage
from session_actor.given.plain import is_a, items_of, plain_str, shown
from session_actor.state.decide import decide
from session_actor.state.keys import Repeat

from .live import Live, picture

SAID_AT_MOST = 2_500
"""The longest text of an error, in characters: a name of 512 lone surrogates, shown as escapes."""


def raising(*_arguments: object, **_named: object) -> object:
    raise ZeroDivisionError("what the user said")


EVERY_METHOD = dict.fromkeys(
    (
        *("__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__", "__hash__", "__bool__", "__len__", "__iter__"),
        *("__contains__", "__getitem__", "__str__", "__repr__", "__format__", "__int__", "__index__", "__float__"),
        *("__bytes__", "__add__", "__pos__", "__trunc__", "keys", "items", "values", "get", "encode", "copy"),
    ),
    raising,
)


def hostile(base: type) -> type:
    """A class derived from `base` of which every method raises."""
    return type(f"Hostile{base.__name__.title()}", (base,), dict(EVERY_METHOD))


class Liar:
    """Says that it is a str, and cannot be asked."""

    __class__ = property(raising)  # type: ignore[assignment]


class Array:
    """Compares as numpy's arrays and pandas' frames do: with an array, which is neither true nor false."""

    def __eq__(self, other):
        return self

    __ne__ = __lt__ = __le__ = __gt__ = __ge__ = __eq__
    __hash__ = None  # type: ignore[assignment]

    def __bool__(self):
        raise ValueError("the truth value of an array is ambiguous")


class Colour(enum.StrEnum):
    RED = "red"


def nested(depth: int) -> object:
    value: object = "x"
    for _ in range(depth):
        value = [value]
    return value


HOSTILE = [
    1 << 20_000,
    -1 << 20_000,
    2**63,
    -1,
    0,
    1.5,
    float("nan"),
    True,
    b"x",
    bytearray(b"x"),
    "x" * 1_000_000,
    "\ud800" * 600,
    "",
    object(),
    Array(),
    Liar(),
    Liar,
    nested(5_000),
    {"a": nested(5_000)},
    [Array()],
    (Liar(),),
    {1: 2},
    {Colour.RED: 1 << 20_000},
    {1 << 20_000: 1},
    Text(5),
    Text(Array()),
    Turn(Array()),
    Turn("user", hostile(tuple)((Text("a"),))),
    Usage(input_tokens=1 << 20_000),
    Usage(input_tokens=hostile(int)(5)),
    CallRef(1 << 20_000, Array()),
    Frame(id=Array(), parent=None, depth=1, at_us=0),
    Frame(id=1, parent=None, depth=1, at_us=0, user_input=Array()),
    Frame(id=1 << 20_000, parent=None, depth=1, at_us=0),
    Native("d", None, Array()),
    Tool("t", "d", {"a": Array()}),
    Image(data=hostile(bytes)(b"x"), media_type="image/png"),
    ToolCall("a", "t", hostile(dict)(a=1)),
    ToolResult("a", Liar()),
    MagicMock(),
    *(MagicMock(spec=kind) for kind in (str, int, bool, list, dict, bytes, Frame, CallRef, Text)),
    hostile(str)(""),
    hostile(str)("main"),
    hostile(str)("x"),
    hostile(str)("synced"),
    hostile(str)("step"),
    hostile(int)(1),
    hostile(float)(1.5),
    hostile(bytes)(b"x"),
    hostile(list)(["x"]),
    hostile(list)([Text("x")]),
    hostile(tuple)((Turn("user", (Text("x"),)),)),
    hostile(dict)(a=1),
    hostile(object)(),
]

COMMANDS = [kind for _, kind in inspect.getmembers(commands, inspect.isclass) if issubclass(kind, Command)]
REQUIRED = {
    "content": "x",
    "call": "a",
    "target": 1,
    "name": "n",
    "new": "m",
    "reply": Turn("assistant", (Text("x"),)),
    "text": "x",
    "path": "p",
    "dialect": "anthropic",
    "model": "claude-sonnet-4-5",
    "request": 7,
    "frame": 1,
    "generation": 1,
    "assumption": "the disk is large",
    "plan": "no plan",
}


def cases() -> list[tuple[type[Command], str]]:
    kinds = [kind for kind in COMMANDS if kind is not Command]
    return [(kind, field) for kind in kinds for field in kind.__struct_fields__ if field != "durability"]


def talked() -> Live:
    live = Live()
    live.do(Push("a", "b", assumptions=[REQUIRED["assumption"]]))
    live.do(AddAssistant("", tool_calls=[ToolCall("a", "t")]))
    live.do(AddAssistant("", tool_calls=[ToolCall("x", "t")]))
    live.do(AddToolResult("x", "one"))
    live.do(Checkpoint("before", 1))
    assert live.do(BuildRequest("anthropic", "claude-sonnet-4-5")).seq == REQUIRED["request"]
    return live


def check_words(refused: Refused) -> None:
    assert len(str(refused)) < SAID_AT_MOST
    assert len(repr(refused)) < SAID_AT_MOST
    assert "what the user said" not in str(refused)
    assert refused.__cause__ is None


@pytest.mark.parametrize("key", [None, "k"], ids=["without a key", "with a key"])
@pytest.mark.parametrize(("kind", "field"), cases(), ids=lambda case: getattr(case, "__name__", case))
def test_whatever_a_field_holds_is_refused_in_a_few_words_or_kept_exactly(kind, field, key):
    live = talked()
    required = {name: REQUIRED[name] for name in kind.__struct_fields__ if name in REQUIRED}
    for value in HOSTILE:
        command = kind(**{"key": key, **required, field: value})
        before = picture(live.state)
        try:
            decision = decide(live.state, command)
        except Refused as refused:
            check_words(refused)
            assert picture(live.state) == before
        else:
            again = talked()
            if not isinstance(decision, Repeat):
                again.record(decision[0])
                assert picture(again.replayed()) == picture(again.state)


@pytest.mark.parametrize("kind", [kind for kind in COMMANDS if kind is not Command])
def test_a_command_can_be_shown_whatever_it_holds(kind):
    required = {name: REQUIRED[name] for name in kind.__struct_fields__ if name in REQUIRED}
    for value in HOSTILE:
        assert len(repr(kind(**required, on=value, key=value))) < 2 * SAID_AT_MOST


@pytest.mark.parametrize("value", [1 << 20_000, -1 << 20_000], ids=["large", "small"])
def test_an_int_of_any_size_is_refused_by_its_size(value):
    live = talked()
    for command in (Goto(value), Checkpoint("c", value), Fork(value), Push("", expect_head=value)):
        assert "an int of 20001 bits" in str(live.refuses(Refused, command))
    live.refuses(InvalidArgument, Push("", on=value))
    if value < 0:
        assert "an int of 20001 bits" in str(live.refuses(InvalidArgument, Pop(value)))


def test_a_text_that_is_too_long_for_a_name_is_not_shown():
    refused = talked().refuses(Refused, Goto("what the user said " * 100))
    assert str(refused).startswith("there is no branch or checkpoint a text of 1900 characters;")


def test_classes_derived_from_str_name_what_plain_strs_do_and_are_kept_as_plain_strs():
    live = talked()
    text = hostile(str)
    live.do(Checkpoint(text("red"), text("before")))
    live.do(Goto(text("main")))
    live.do(Push(text("said"), assumptions=hostile(list)([text("x")]), on=text("main"), key=text("k")))
    live.do(Pop(1, text("exchange")))
    assert type(next(name for name in live.state.checkpoints if name != "before")) is str
    assert all(type(key) is str for key in live.state.keys.entries())
    assert picture(live.replayed()) == picture(live.state)


def test_a_class_derived_from_int_counts_by_its_value():
    usage = Usage(input_tokens=hostile(int)(5))
    frame = Live().do(AddAssistant("a", usage=usage))
    assert type(frame.turns[0].usage.input_tokens) is int
    assert frame.turns[0].usage.input_tokens == 5


def test_a_frame_of_ours_with_something_else_in_it_is_not_of_this_session():
    live = talked()
    for false in (Array(), Liar(), "other"):
        given = Frame(id=1, parent=None, depth=1, at_us=live.state.table.get(1).at_us, user_input=false)
        live.refuses(Refused, Goto(given))


async def test_a_session_lives_on_whatever_its_callers_send(tmp_path):
    async with SessionService.open(tmp_path / "conversations") as service:
        session = await service.session("user-42", create=True)
        for value in HOSTILE:
            for sent in (
                session.push("", durability=value),
                session.push(value, key="k"),
                session.on(value).push(""),
                session.on(value).stack(),
                session.flush(value),
                session.fork(value, user_input=value),
                session.push("", turns=value, expect_head=value),
                service.session("other", create=True, metadata=value),
            ):
                try:
                    await sent
                except Refused as refused:
                    check_words(refused)
        assert service.health().quarantined == ()
        assert (await session.push("still", "here")).id
        await session.flush("synced")
    async with SessionService.open(tmp_path / "conversations") as service:
        assert len(await (await service.session("user-42")).stack()) > 0


@pytest.mark.parametrize(
    "level", ["bogus", "", "x" * 1_000_000, hostile(str)("bogus")], ids=["word", "empty", "long", "hostile"]
)
async def test_a_level_that_is_none_is_refused_and_the_session_answers_on(level):
    async with SessionService.open(MemoryStore()) as service:
        session = await service.session("user-42", create=True)
        for sent in (session.push("", durability=level), session.flush(level)):
            with pytest.raises(InvalidArgument, match="async, written, synced"):
                await sent
        await asyncio.sleep(0)
        assert (await session.push("a", "b", durability="async")).id == 1


async def test_a_level_may_be_of_a_class_derived_from_str(tmp_path):
    async with SessionService.open(tmp_path / "conversations") as service:
        session = await service.session("user-42", create=True)
        assert (await session.push("a", "b", durability=hostile(str)("synced"))).id == 1
        assert session.durable_seq["synced"] == await session.flush(hostile(str)("synced"))


@pytest.mark.parametrize("error", [asyncio.CancelledError, GeneratorExit])
async def test_whatever_kind_of_exception_a_value_raises_its_session_does_not_crash(error):
    class Arguments(dict):
        def items(self):
            raise error

    async with SessionService.open(MemoryStore()) as service:
        session = await service.session("user-42", create=True)
        for key in (None, "k"):
            with pytest.raises(InvalidArgument, match=error.__name__):
                await session.add_assistant("", tool_calls=[ToolCall("c", "tide", Arguments(at=1))], key=key)
        assert (await session.push("still", "here")).id == 1


# --- the means -------------------------------------------------------------------------------------------------------


def test_a_value_is_of_its_type_and_not_of_the_one_that_it_says():
    assert is_a(hostile(str)("x"), str)
    assert not is_a(MagicMock(spec=str), str)
    assert not is_a(Liar(), str)


def test_what_a_derived_class_holds_is_read_past_its_own_methods():
    assert plain_str(hostile(str)("x")) == "x"
    assert type(plain_str(hostile(str)("x"))) is str
    assert list(items_of(hostile(list)(["x"]))) == list(items_of(hostile(tuple)(("x",)))) == ["x"]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "None"),
        ("a'b", '"a\'b"'),
        ("x" * 512, repr("x" * 512)),
        ("x" * 513, "a text of 513 characters"),
        (hostile(str)("x"), "'x'"),
        (7, "7"),
        (hostile(int)(-7), "-7"),
        (2**64, "an int of 65 bits"),
        (1 << 20_000, "an int of 20001 bits"),
        (Liar(), "a value of type Liar"),
        ([1 << 20_000], "a value of type list"),
    ],
    ids=["none", "text", "name", "long", "derived", "int", "derived int", "65 bits", "huge", "liar", "list"],
)
def test_a_value_is_shown_shortly(value, text):
    assert shown(value) == text
