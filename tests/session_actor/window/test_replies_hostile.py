"""What is no reply is refused in a few words, whatever it is, and nothing has changed."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from session_actor import Turn, turn_of
from session_actor.errors import InvalidArgument, Refused, ValueNotStorable

from ..test_hostile_values import HOSTILE, hostile
from .openai_replies import CHAT, RESPONSE
from .test_replies_anthropic import REPLY as ANTHROPIC
from .test_replies_gemini import REPLY as GEMINI

REPLIES = {"anthropic": ANTHROPIC, "openai_chat": CHAT, "openai_responses": RESPONSE, "gemini": GEMINI}

each_dialect = pytest.mark.parametrize("dialect", REPLIES)

SECRET = "what the model said"


class Dumps:
    """Looks like an object of an SDK."""

    def __init__(self, gives):
        self.gives = gives

    def model_dump(self, **options):
        if isinstance(self.gives, Exception):
            raise self.gives
        return self.gives


@pytest.mark.parametrize(
    ("reply", "why"),
    [
        (None, "a dict, got NoneType"),
        ("text", "a dict, got str"),
        (7, "a dict, got int"),
        (Turn("assistant"), "a dict, got Turn"),
        (Dumps(RuntimeError(SECRET)), "its model_dump raised RuntimeError"),
        (Dumps([1]), "its model_dump gave list"),
        ({}, "of no form that is known"),
        ({"content": []}, "of no form that is known"),
        ({"type": "error", "error": {"message": SECRET}}, "an error of the provider"),
        ({"error": {"code": 429, "message": SECRET}}, "an error of the provider"),
        ({"type": "content_block_delta", "delta": {}}, "an event of a stream"),
        ({"type": "response.output_text.delta", "delta": SECRET}, "an event of a stream"),
        ({"object": "chat.completion.chunk", "choices": []}, "a chunk of a stream"),
        ({"role": "assistant", "content": SECRET}, "only the message of a reply"),
        ([ANTHROPIC, ANTHROPIC], "must hold the chunks of one stream of google-genai"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_is_no_reply_is_refused_and_called_what_it_is(reply, why):
    with pytest.raises(InvalidArgument, match=why) as caught:
        turn_of(reply)

    assert caught.value.what == "reply"
    assert SECRET not in str(caught.value)


@each_dialect
def test_a_reply_of_another_dialect_than_was_said_is_refused(dialect):
    other = "gemini" if dialect != "gemini" else "anthropic"
    assert turn_of(REPLIES[dialect], dialect).dialect == dialect
    with pytest.raises(InvalidArgument, match=f"not of the dialect {other}: it looks like {dialect}"):
        turn_of(REPLIES[dialect], other)


def test_a_dialect_that_is_none_is_refused():
    for dialect in ["openai", "", 7, b"gemini", hostile(str)("x"), hostile(object)()]:
        with pytest.raises(InvalidArgument, match=r"^dialect must be one of"):
            turn_of(ANTHROPIC, dialect)


@each_dialect
def test_whatever_stands_anywhere_in_a_reply_is_kept_or_refused_in_a_few_words(dialect):
    for path in places(REPLIES[dialect]):
        for value in [*HOSTILE, 2**70, float("nan"), "\ud800", {"$esc": "x"}, b"\xff"]:
            read = turn_or_refusal(replaced(REPLIES[dialect], path, value))
            if isinstance(read, Turn):
                assert read.role == "assistant"
            else:
                assert isinstance(read, InvalidArgument | ValueNotStorable)
                assert len(str(read)) < 400
                assert read.__cause__ is None


def turn_or_refusal(reply, dialect=None):
    try:
        return turn_of(reply, dialect)
    except Refused as refused:
        return refused


def places(value, path=()):
    """The path of every value in a reply."""
    if path:
        yield path
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        yield from places(item, (*path, key))


def replaced(value, path, new):
    """A copy of `value` with another value at a path."""
    if not path:
        return new
    copy = value.copy()
    copy[path[0]] = replaced(value[path[0]], path[1:], new)
    return copy


@each_dialect
def test_a_reply_that_holds_itself_is_refused(dialect):
    circle: dict[str, object] = {"type": "x"}
    circle["x"] = circle
    into = {
        "anthropic": {**ANTHROPIC, "content": [circle]},
        "openai_chat": {**CHAT, "usage": circle},
        "openai_responses": {**RESPONSE, "output": [circle]},
        "gemini": {**GEMINI, "candidates": [{"content": {"parts": [circle]}}]},
    }
    with pytest.raises(Refused):
        turn_of(into[dialect])


json_like = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary(),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                [
                    "type",
                    "content",
                    "role",
                    "text",
                    "choices",
                    "message",
                    "output",
                    "candidates",
                    "parts",
                    "usage",
                    "stop_reason",
                ]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=20,
)


@given(json_like, st.sampled_from([None, *REPLIES]))
def test_anything_is_a_turn_or_refused(value, dialect):
    read = turn_or_refusal(value, dialect)

    assert read.dialect in REPLIES if isinstance(read, Turn) else len(str(read)) < 400
