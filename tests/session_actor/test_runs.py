"""Runs of ids, against sets."""

from __future__ import annotations

import itertools

from hypothesis import given
from hypothesis import strategies as st

from session_actor.state.runs import contains, count, merged, without

PAIRS = st.lists(st.tuples(st.integers(1, 40), st.integers(0, 5)).map(lambda pair: (pair[0], pair[0] + pair[1])))


def ids(runs) -> set[int]:
    return {number for first, last in runs for number in range(first, last + 1)}


@given(PAIRS, PAIRS)
def test_runs_are_sorted_and_apart_and_hold_what_both_hold(one, other):
    runs = merged(one, other)

    assert ids(runs) == ids(one) | ids(other)
    assert all(before[1] + 1 < after[0] for before, after in itertools.pairwise(runs))
    assert count(runs) == len(ids(runs))


@given(PAIRS, PAIRS)
def test_what_is_taken_away_is_gone_and_the_rest_is_there(one, other):
    left = without(merged(one), merged(other))

    assert ids(left) == ids(one) - ids(other)
    assert left == merged(left)


@given(PAIRS, st.integers(0, 50))
def test_an_id_is_found_where_it_is(pairs, number):
    assert contains(merged(pairs), number) == (number in ids(pairs))
