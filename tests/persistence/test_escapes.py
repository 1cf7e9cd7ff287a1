"""Texts with lone surrogates: stored escaped, at the speed of any other text."""

from __future__ import annotations

import sys

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from session_actor.persistence.errors import ValueUnreadable
from session_actor.persistence.format.escapes import escape, has_surrogates, least_bytes, unescape
from session_actor.persistence.format.values import decode_typed, dumps, encode_record_data, encode_text, loads

any_text = st.text(alphabet=st.characters(exclude_categories=[]))
awkward = st.lists(
    st.sampled_from(["\\", "\\\\", "u", "d800", "\ud800", "\udfff", "\ud83d\ude00", "\U0001f600", "é", "\n", "x", "\0"])
)


class Event(msgspec.Struct, frozen=True, omit_defaults=True):
    text: str
    raw: msgspec.Raw = msgspec.Raw(b"null")


@given(any_text | awkward.map("".join))
def test_any_text_comes_back(text):
    escaped = escape(text)
    assert unescape(escaped) == text
    assert not has_surrogates(escaped)


@given(any_text | awkward.map("".join))
def test_a_surrogate_is_found_wherever_it_stands(text):
    assert has_surrogates(text) == any("\ud800" <= character <= "\udfff" for character in text)


@pytest.mark.parametrize(
    ("text", "escaped"),
    [
        ("\ud800", r"\ud800"),
        ("\ud83d\ude00", r"\ud83d\ude00"),
        (r"\ud800", r"\\ud800"),
        ("é\U0001f600\n\udfff", "é\U0001f600\n\\udfff"),
    ],
)
def test_only_surrogates_and_backslashes_are_escaped(text, escaped):
    assert escape(text) == escaped


@pytest.mark.parametrize(
    "escaped", ["\\", "a\\", r"\q", r"\n", r"\x41", r"\u0041", r"\uD800", r"\ud80", r"\N{DASH}", "\\\\\\", r"\ud8\\00"]
)
def test_what_escaping_cannot_have_made_is_refused(escaped):
    with pytest.raises(ValueUnreadable):
        unescape(escaped)
    with pytest.raises(ValueUnreadable):
        loads(encode_text(escaped).join((b'{"$esc":', b"}")))


@given(any_text | awkward.map("".join))
def test_the_least_size_of_a_text_is_not_above_what_it_takes(text):
    assert least_bytes(text) <= len(encode_text(text))


@pytest.mark.parametrize("text", ["", "abc", "é\U0001f600", "\ud800\udfff"])
def test_the_least_size_is_exact_where_json_adds_nothing(text):
    around = len(b'{"$esc":""}') if has_surrogates(text) else len(b'""')
    assert least_bytes(text) + around == len(encode_text(text))


def steps(work) -> int:
    """How many calls, of Python or of C, `work` takes."""
    count = 0

    def note(_frame, event, _argument):
        nonlocal count
        count += event in {"call", "c_call"}

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        work()
    finally:
        sys.setprofile(before)
    return count


@pytest.mark.parametrize(
    "work",
    [
        lambda text: loads(dumps(text)),
        lambda text: loads(dumps({text: [text]})),
        lambda text: decode_typed(encode_record_data(Event(text)), Event),
        lambda text: decode_typed(encode_record_data(Event("\ud800", msgspec.Raw(dumps(text)))), Event),
    ],
    ids=["value", "key", "field", "raw"],
)
@pytest.mark.parametrize("unit", ["\ud800", "\\\ud800é", "\ud83d\ude00a"])
def test_no_step_is_taken_for_each_surrogate(work, unit):
    assert steps(lambda: work(unit * 10_000)) < 1_000
