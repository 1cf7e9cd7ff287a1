"""Copies and hashes of what requests are made of."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from session_actor.requests.canonical import START, canonical, chained, sealed
from session_actor.requests.own import owned

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text() | st.binary(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


def assert_apart(one: Any, other: Any) -> None:
    """Every dict and list is another one, every other value the same."""
    if isinstance(one, dict | list):
        assert one is not other
        assert type(one) is type(other)
        places = one if isinstance(one, dict) else range(len(one))
        for place in places:
            assert_apart(one[place], other[place])
    else:
        assert one is other


@given(values)
def test_a_copy_is_equal_and_shares_only_what_cannot_change(value):
    copy = owned(value)
    assert copy == value
    assert_apart(value, copy)


def test_the_deepest_value_that_a_record_can_hold_is_copied():
    value: Any = "x"
    for _ in range(400):
        value = [{"inside": value}]
    assert owned(value) == value


@given(values)
def test_equal_values_have_the_same_canonical_bytes_in_whatever_order_their_keys_came(value):
    assert canonical(_turned(value)) == canonical(value)


def _turned(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _turned(item) for key, item in reversed(value.items())}
    return [_turned(item) for item in value] if isinstance(value, list) else value


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ({"b": b"\0\1", "a": [1.5, None, True]}, b'{"a":[1.5,null,true],"b":"AAE="}'),
        ({"b": "\ud800", "a": b"\0\1"}, b'{"a":"AAE=","b":"\\ud800"}'),
        ([2**70, b"\0"], b'[1180591620717411303424,"AA=="]'),
        ("é", '"é"'.encode()),
    ],
)
def test_canonical_bytes_are_json_with_sorted_keys(value, text):
    assert canonical(value) == text


messages = st.lists(st.dictionaries(st.text(max_size=5), values, max_size=3), max_size=5)


@settings(max_examples=30, deadline=None)
@given(messages, st.integers(0, 5))
def test_a_chain_that_grows_is_the_chain_made_at_once(whole, cut):
    assert chained(chained(START, whole[:cut]), whole[cut:]) == chained(START, whole)


@settings(max_examples=30, deadline=None)
@given(messages)
def test_a_hash_tells_the_messages_their_order_and_the_rest(whole):
    chain = chained(START, whole)
    assert len(sealed(chain, {})) == 32
    assert sealed(chain, {"max_tokens": 1}) != sealed(chain, {"max_tokens": 2})
    more = chained(chain, [{"role": "user"}])
    assert more != chain
    assert chained(more, [{"role": "model"}]) != chained(START, [*whole, {"role": "model"}, {"role": "user"}])


def test_the_chain_stays_what_it_is_because_records_hold_it():
    chain = chained(START, [{"role": "user", "content": "Hello"}])
    assert sealed(chain, {"model": "m", "messages": []}) == "45ec4d55d0747fee6b9539fc1430d192"
