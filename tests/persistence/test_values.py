"""Values in JSON: exact, or refused with the place and the reason."""

from __future__ import annotations

import collections
import datetime as dt
import enum
import math
import struct

import msgspec
import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from session_actor.persistence.errors import ValueNotStorable, ValueUnreadable
from session_actor.persistence.format.values import (
    MAX_DEPTH,
    decode_text,
    decode_typed,
    dumps,
    encode_record_data,
    encode_text,
    loads,
)

any_text = st.text(alphabet=st.characters(exclude_categories=[]))
keys = any_text | st.sampled_from(
    ["$", "$$", "$esc", "$b64", "$float", "$int", "$blob", "$raw", "$esc:", "$$esc", "$\ud800"]
)
leaves = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.integers(2**62, 2**66)
    | st.floats(allow_nan=False)
    | st.binary()
    | any_text
    | st.sampled_from(["$esc", "\\ud800", "\ud800\\ud800\\\\"])
)
values = st.recursive(leaves, lambda inner: st.lists(inner) | st.dictionaries(keys, inner), max_leaves=20)


def same(one: object, other: object) -> bool:
    """Equal and of the same types all the way down; floats by their bits."""
    if type(one) is not type(other):
        return False
    if isinstance(one, float):
        return struct.pack(">d", one) == struct.pack(">d", other)
    if isinstance(one, list):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, dict):
        return list(one) == list(other) and all(map(same, one.values(), other.values()))
    return one == other


def nested(depth: int, *leaves: object) -> list[object]:
    value = [*leaves]
    for _ in range(depth - 1):
        value = [value]
    return value


@given(values)
def test_a_value_comes_back_equal_and_of_the_same_types_and_order(value):
    text = dumps(value)
    assert same(loads(text), value)
    assert b"\n" not in text
    orjson.loads(text)  # plain JSON for any reader


@given(st.integers(0, 2**64 - 1).map(lambda bits: struct.unpack(">d", bits.to_bytes(8, "big"))[0]))
def test_every_float_keeps_its_bits_nan_included(number):
    back = loads(dumps(number))
    if math.isnan(number):
        assert math.isnan(back)
    assert struct.pack(">d", back) == struct.pack(">d", number)


@pytest.mark.parametrize(
    "number", [10**5000, -(10**5000), 2**63, 2**64, -(2**63) - 1], ids=lambda number: f"{number.bit_length()} bits"
)
def test_an_int_of_any_size_comes_back(number):
    assert loads(dumps({"n": number})) == {"n": number}


@pytest.mark.parametrize("key", ["$esc", "$b64", "$float", "$int", "$blob", "$raw", "$later", "$$esc", "$", "$esc:x"])
def test_a_user_s_dict_that_looks_like_a_tag_stays_a_dict(key):
    for content in ("nan", "AP8=", 1, None, {key: "x"}):
        assert loads(dumps({key: content})) == {key: content}


@pytest.mark.parametrize(
    ("value", "where", "why"),
    [
        ((1, 2), "$", "tuple would come back as list"),
        ({"tools": [1, (2,)]}, "$.tools[1]", "pass a plain list"),
        ({"a": collections.OrderedDict(b=1)}, "$.a", "OrderedDict would come back as dict"),
        ([collections.Counter("a")], "$[0]", "Counter would come back as dict"),
        ({"colour": enum.StrEnum("Colour", "red").red}, "$.colour", "Colour would come back as str"),
        ({"n": enum.IntEnum("N", "one").one}, "$.n", "N would come back as int"),
        ([True, {1, 2}], "$[1]", "set is none of"),
        ({"at": dt.datetime(2026, 1, 31, tzinfo=dt.UTC)}, "$.at", "datetime is none of"),
        (bytearray(b"x"), "$", "bytearray is none of"),
        (1j, "$", "complex is none of"),
        (object(), "$", "object is none of"),
        ({"a": {1: "x"}}, "$.a<key 0>", "a key must be a plain str, not int"),
        ({"a": {"b": 1, None: "x"}}, "$.a<key 1>", "not NoneType"),
        ({("a",): 1}, "$<key 0>", "not tuple"),
        ({"what the user said": [object()]}, "$<key 0>[0]", "object is none of"),
        (["\ud800", object()], "$[1]", "object is none of"),
    ],
)
def test_what_would_not_come_back_is_refused_with_the_place_and_the_reason(value, where, why):
    with pytest.raises(ValueNotStorable) as caught:
        dumps(value)
    assert caught.value.where == where
    assert why in caught.value.why


def test_an_error_shows_no_content():
    secret = "what the user said"
    for value in ({secret: object()}, [secret, object()], {secret: {secret: (secret,)}}, {(secret,): 1}):
        with pytest.raises(ValueNotStorable) as caught:
            dumps(value)
        assert secret not in str(caught.value)
        assert caught.value.__cause__ is None


def test_nesting_up_to_the_limit_comes_back_and_deeper_is_refused():
    assert loads(dumps(nested(MAX_DEPTH))) == nested(MAX_DEPTH)
    assert loads(dumps(nested(MAX_DEPTH, 1.5, b"\x00", "\ud800"))) == nested(MAX_DEPTH, 1.5, b"\x00", "\ud800")
    with pytest.raises(ValueNotStorable, match=f"deeper than {MAX_DEPTH} levels"):
        dumps(nested(MAX_DEPTH + 1))


@pytest.mark.parametrize("wrap", [lambda inner: [inner], lambda inner: {"a": inner}, lambda inner: [inner, inner]])
def test_a_value_that_contains_itself_is_refused(wrap):
    value: list[object] = []
    value.append(wrap(value))
    with pytest.raises(ValueNotStorable, match="contains itself"):
        dumps(value)


def test_a_refused_value_is_left_as_it_was():
    value = {"a": [1, {"b": "x"}], "$c": (1,)}
    with pytest.raises(ValueNotStorable):
        dumps(value)
    assert value == {"a": [1, {"b": "x"}], "$c": (1,)}


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"{",
        b"nul",
        b'"\\ud800"',
        b'{"$blob":"x"}',
        b'{"$later":1}',
        b'{"a":1,"$later":1}',
        b'{"$esc":1}',
        b'{"$b64":"not base64!"}',
        b'{"$b64":"A"}',
        b'{"$float":"1.5"}',
        b'{"$float":"nan:zz"}',
        b'{"$float":"nan:00"}',
        b'{"$int":"x"}',
        b"[" * 100_000,
        b"[" * 1020 + b'{"$b64":""}' + b"]" * 1020,
    ],
    ids=lambda text: text[:20].decode(),
)
def test_text_that_dumps_did_not_write_is_refused_by_name(text):
    with pytest.raises(ValueUnreadable):
        loads(text)


@given(any_text)
def test_any_single_text_comes_back(text):
    assert decode_text(orjson.loads(encode_text(text))) == text


def test_a_text_is_never_taken_from_another_object():
    for value in ({}, {"$b64": "AA=="}, {"$esc": "a", "b": "c"}):
        with pytest.raises(ValueUnreadable):
            decode_text(value)


# --- Structs --------------------------------------------------------------------------------------------------------


class Inner(msgspec.Struct, frozen=True, tag="inner", omit_defaults=True):
    text: str = ""
    raw: msgspec.Raw = msgspec.Raw(b"null")


class Other(msgspec.Struct, frozen=True, tag="other"):
    number: int
    flag: bool | None = None


class Event(msgspec.Struct, frozen=True, omit_defaults=True):
    text: str
    number: int = 0
    maybe: str | None = None
    texts: tuple[str, ...] = ()
    parts: tuple[Inner | Other, ...] = ()
    raw: msgspec.Raw = msgspec.Raw(b"null")


raws = values.map(dumps).map(msgspec.Raw)
parts = st.builds(Inner, any_text, raws) | st.builds(Other, st.integers(-(2**63), 2**63 - 1), st.none() | st.booleans())
events = st.builds(
    Event,
    any_text,
    st.integers(-(2**63), 2**63 - 1),
    st.none() | any_text,
    st.lists(any_text, max_size=4).map(tuple),
    st.lists(parts, max_size=4).map(tuple),
    raws,
)


def plain(value: object) -> object:
    """A Struct as lists and dicts; a Raw by its bytes."""
    if isinstance(value, msgspec.Struct):
        return type(value).__name__, {name: plain(getattr(value, name)) for name in value.__struct_fields__}
    if isinstance(value, msgspec.Raw):
        return bytes(value)
    return [plain(item) for item in value] if isinstance(value, tuple) else value


@given(events)
def test_a_struct_comes_back_with_any_text_and_its_raw_parts_verbatim(event):
    data = encode_record_data(event)
    assert plain(decode_typed(data, Event)) == plain(event)
    assert b"\n" not in data
    orjson.loads(data)


@given(events)
def test_where_json_carries_every_text_the_struct_is_written_as_msgspec_writes_it(event):
    try:
        expected = msgspec.json.encode(event)
    except UnicodeEncodeError:
        return
    assert encode_record_data(event) == expected


@pytest.mark.parametrize("rest", [(), (7,), (0, "maybe", ("a", ""), (Other(1), Inner("b"))), (0, None, (), (Inner(),))])
def test_a_lone_surrogate_changes_only_the_text_that_has_it(rest):
    tagged = encode_record_data(Event("\ud800", *rest))
    assert tagged.replace(b'{"$esc":"\\\\ud800"}', b'"x"') == encode_record_data(Event("x", *rest))


@given(values)
def test_a_record_s_data_may_be_json_already(value):
    text = dumps(value)
    assert encode_record_data(text) == text
    assert encode_record_data(msgspec.Raw(text)) == text


def test_line_ends_between_the_tokens_of_given_json_are_made_spaces():
    given_json = b'{\n  "a": "x\\ny",\n  "b": [1,\n2]\n}'
    for data in (given_json, msgspec.Raw(given_json)):
        assert b"\n" not in encode_record_data(data)
        assert loads(encode_record_data(data)) == {"a": "x\ny", "b": [1, 2]}
    event = encode_record_data(Event("x", raw=msgspec.Raw(given_json)))
    assert b"\n" not in event
    assert loads(bytes(decode_typed(event, Event).raw)) == {"a": "x\ny", "b": [1, 2]}


class Wrong(msgspec.Struct):
    value: object


@pytest.mark.parametrize(
    "data",
    [{"a": 1}, "text", None, 7, Wrong(1j), Wrong(object()), Wrong(nested(100_000))],
    ids=lambda data: type(data).__name__,
)
def test_data_that_json_does_not_carry_is_refused(data):
    with pytest.raises(ValueNotStorable):
        encode_record_data(data)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"[]",
        b"{}",
        b'{"text":1}',
        b'{"text":{"$esc":1}}',
        b'{"text":{"$b64":"AA=="}}',
        b'{"text":"x","parts":[{"type":"unknown"}]}',
        b'{"text":"x","parts":[{"type":{"$esc":"\\\\ud800"}}]}',
        b'{"text":"x","number":"1"}',
        b'{"text":' + b"[" * 100_000,
    ],
    ids=lambda data: data[:30].decode(),
)
def test_stored_data_of_another_form_is_refused_by_name(data):
    with pytest.raises(ValueUnreadable, match="Event"):
        decode_typed(data, Event)


def test_what_a_stored_struct_says_is_not_in_the_error():
    with pytest.raises(ValueUnreadable) as caught:
        decode_typed(b'{"text":"x","parts":[{"type":"what the user said"}]}', Event)
    assert "what the user said" not in str(caught.value)
    assert caught.value.__cause__ is None
