"""How long a request really is, by what providers said of the requests before it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from itertools import accumulate, pairwise
from pathlib import Path
from statistics import fmean

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

sys.path.insert(0, str(Path(__file__).parents[3]))  # the benches are not installed

from bench.calibration import simulate
from bench.calibration_model import TRIM
from bench.harness import percentile
from session_actor.budget.calibration import fail, learn, price, ratio_of
from session_actor.budget.ceilings import ceiling
from session_actor.budget.readings import LIMIT, NOTHING, Key, Learned, Shown

ROOT = Path(__file__).parents[3]
KEY = Key("model", "anthropic", 1)


class Talk:
    """Frames on one path, each with what it is estimated at and what it really costs; and what is known of them."""

    def __init__(self, frames, *, fixed=1_000, real_fixed=1_000):
        self.estimates = [0, *accumulate(estimate for estimate, _ in frames)]
        self.reals = [0, *accumulate(real for _, real in frames)]
        self.fixed, self.real_fixed = fixed, real_fixed
        self.learned = NOTHING

    def shown(self, head, *, key=KEY, cut=1, view=None, fixed=None, tail=0):
        below = self.estimates[cut - 1]
        return Shown(
            key,
            cut - 1 if view is None else view,
            head,
            self.fixed if fixed is None else fixed,
            self.estimates[head] - below,
            tail,
            lambda frame: max(0, self.estimates[min(frame, head)] - below),
        )

    def quote(self, head, *, on_path=lambda _frame: True, **options):
        return price(self.shown(head, **options), self.learned, on_path)

    def real(self, head, *, cut=1):
        return self.real_fixed + self.reals[head] - self.reals[cut - 1]

    def ask(self, *heads, cut=1, **options):
        for head in heads:
            quote = self.quote(head, cut=cut, **options)
            self.learned = learn(self.learned, quote, self.real(head, cut=cut), lambda _frame: True)


def even(count, estimate=100, real=120):
    return [(estimate, real)] * count


frames = st.lists(
    st.integers(20, 2_000).flatmap(
        lambda estimate: st.tuples(st.just(estimate), st.integers(-(-estimate * 6 // 10), estimate * 2))
    ),
    min_size=2,
    max_size=60,
)


# --- without readings ------------------------------------------------------------------------------------------------


def test_without_readings_the_price_is_the_estimate_and_a_tenth_may_be_added():
    quote = Talk(even(5)).quote(5, tail=40)
    assert (quote.tokens, quote.upper, quote.anchored) == (1_540, 1_694, False)
    assert (quote.fixed, quote.messages, quote.tail, quote.fixed_tokens) == (1_000, 500, 40, 1_000)
    assert ratio_of(NOTHING, KEY) == 1.0
    assert ceiling(NOTHING, KEY) is None


# --- anchors ---------------------------------------------------------------------------------------------------------


@settings(max_examples=50)
@given(frames, st.data())
def test_a_request_that_was_answered_is_priced_at_what_it_was(sizes, data):
    talk = Talk(sizes, real_fixed=data.draw(st.integers(700, 1_800)))
    heads = sorted(data.draw(st.sets(st.integers(1, len(sizes)), min_size=1)))
    talk.ask(*heads)
    quote = talk.quote(heads[-1])
    assert quote.tokens == talk.real(heads[-1])
    assert quote.anchored


def test_only_what_came_since_the_anchor_is_estimated():
    talk = Talk(even(20), real_fixed=1_500)
    talk.ask(*range(1, 11))
    ratio = ratio_of(talk.learned, KEY)
    assert talk.quote(13).tokens == round(talk.real(10) + ratio * 300)


def test_an_anchor_belongs_to_the_head_of_its_request_and_not_to_where_the_session_is_by_now():
    talk = Talk([*even(5), (5_000, 5_000), *even(5)], real_fixed=1_300)
    early = talk.quote(5)
    talk.quote(11)
    talk.learned = learn(talk.learned, early, talk.real(5), lambda _frame: True)
    assert talk.quote(5).tokens == talk.real(5)
    assert abs(talk.quote(11).tokens - talk.real(11)) < 0.03 * talk.real(11)


def test_an_anchor_holds_only_on_paths_with_its_head():
    talk = Talk(even(20), real_fixed=1_400)
    talk.ask(5, 10)
    assert talk.quote(12).anchored
    other = talk.quote(12, on_path=lambda frame: frame <= 7)
    assert other.anchored
    assert other.tokens == round(talk.real(5) + ratio_of(talk.learned, KEY) * 700)
    assert not talk.quote(12, on_path=lambda frame: frame <= 4).anchored


@pytest.mark.parametrize("key", [Key("model", "anthropic", 9), Key("model", "anthropic", 1, 1)])
def test_another_key_of_the_same_model_has_no_anchor_and_begins_with_the_ratio(key):
    talk = Talk(even(40), real_fixed=1_400)
    talk.ask(*range(1, 31))
    quote = talk.quote(30, key=key)
    assert not quote.anchored
    assert ratio_of(talk.learned, key) == pytest.approx(ratio_of(talk.learned, KEY)) == pytest.approx(1.2, abs=0.06)
    assert quote.tokens == pytest.approx(talk.real(30), rel=0.01)


@pytest.mark.parametrize("key", [Key("other", "anthropic", 1), Key("model", "gemini", 1)])
def test_another_model_or_dialect_learns_nothing(key):
    talk = Talk(even(20), real_fixed=1_400)
    talk.ask(*range(1, 16))
    assert ratio_of(talk.learned, key) == 1.0
    assert talk.quote(15, key=key).tokens == 1_000 + 1_500


def test_of_several_calls_of_one_head_the_last_counts():
    talk = Talk(even(5))
    quote = talk.quote(5)
    for real in (1_500, 1_700, 1_600):
        talk.learned = learn(talk.learned, quote, real, lambda _frame: True)
    assert talk.quote(5).tokens == 1_600
    assert len(talk.learned.readings) == 1


@given(st.integers(-10, 10_000))
def test_an_implausible_reading_is_dropped(real):
    talk = Talk(even(10))
    found = learn(NOTHING, talk.quote(10), real, lambda _frame: True)
    assert (found is NOTHING) == (not 1_000 <= real <= 6_000)


# --- differences -----------------------------------------------------------------------------------------------------


def test_the_fixed_part_never_spoils_the_ratio():
    talk = Talk(even(20, 100, 100), real_fixed=2_600)
    talk.ask(*range(1, 21))
    assert ratio_of(talk.learned, KEY) == 1.0
    assert talk.quote(20, cut=18).fixed_tokens == pytest.approx(2_600, abs=30)


@settings(max_examples=50)
@given(frames, st.data())
def test_frames_that_were_measured_cost_after_a_trim_what_they_cost_before(sizes, data):
    talk = Talk(sizes, fixed=50_000, real_fixed=50_000)
    heads = sorted(data.draw(st.sets(st.integers(1, len(sizes)), min_size=2, max_size=LIMIT)))
    talk.ask(*heads)
    place = data.draw(st.integers(1, len(heads) - 1))
    plausible = all(
        0.5 <= (talk.reals[b] - talk.reals[a]) / (talk.estimates[b] - talk.estimates[a]) <= 3
        for a, b in pairwise(heads[place - 1 :])
    )
    offset = talk.learned.readings[0].offset
    quote = talk.quote(heads[-1], cut=heads[place - 1] + 1, view=7)
    assert plausible
    assert not quote.anchored
    assert quote.tokens == 50_000 + offset + talk.reals[heads[-1]] - talk.reals[heads[place - 1]]


def test_a_fork_is_priced_from_the_frames_it_shares():
    sizes = [(100, 60), (100, 190), (100, 70), (100, 180), *even(10, 100, 100)]
    talk = Talk(sizes)
    talk.ask(1, 2, 3, 4, 5, 6)
    quote = talk.quote(4, cut=3, view=9, on_path=lambda frame: frame <= 4)
    offset = talk.learned.readings[0].offset
    assert quote.tokens == 1_000 + offset + 70 + 180


def test_a_part_of_a_measured_difference_costs_its_share():
    talk = Talk([(100, 100), (100, 200), (300, 500), (100, 100)])
    talk.ask(1, 3, 4)
    quote = talk.quote(4, cut=3)
    assert quote.tokens == 1_000 + talk.learned.readings[0].offset + round(700 * 300 / 400) + 100


@settings(max_examples=50)
@given(frames, st.data())
def test_prices_are_never_negative_and_never_above_their_upper_bound(sizes, data):
    talk = Talk(sizes, fixed=data.draw(st.integers(0, 2_000)), real_fixed=data.draw(st.integers(0, 4_000)))
    numbers = st.integers(1, len(sizes))
    keys = st.sampled_from([KEY, Key("model", "anthropic", 2), Key("other", "gemini")])
    for _ in range(data.draw(st.integers(0, 12))):
        head = data.draw(numbers)
        cut = data.draw(st.integers(1, head))
        talk.ask(head, key=data.draw(keys), cut=cut, view=data.draw(st.integers(0, 2)))
        quote = talk.quote(data.draw(st.integers(head, len(sizes))), key=data.draw(keys), cut=cut)
        assert 0 <= quote.tokens <= quote.upper
        assert quote.fixed_tokens >= 0
        assert quote.doubt >= 0
        assert 0.5 <= ratio_of(talk.learned, KEY) <= 3


def test_the_first_reading_of_a_long_conversation_is_not_taken_for_the_fixed_part():
    talk = Talk(even(1_000, 100, 115), real_fixed=1_100)
    talk.ask(1_000)
    assert talk.quote(1_000, cut=951).tokens == pytest.approx(talk.real(1_000, cut=951), rel=0.03)


def test_new_instructions_are_told_from_the_messages_by_the_first_reading():
    talk = Talk(even(60), real_fixed=1_400)
    talk.ask(*range(1, 31))
    talk.fixed, talk.real_fixed = 3_000, 4_000
    new = Key("model", "anthropic", 31)
    talk.ask(31, key=new)
    assert talk.quote(31, key=new, cut=25).fixed_tokens == pytest.approx(4_000, rel=0.02)


# --- what is kept ----------------------------------------------------------------------------------------------------


@settings(max_examples=50)
@given(frames, st.lists(st.integers(0, 2), max_size=200))
def test_readings_are_bounded_and_no_frame_is_forgotten(sizes, views):
    talk = Talk(sizes * 4, fixed=50_000, real_fixed=50_000)
    for head, view in enumerate(views[: 4 * len(sizes)], start=1):
        talk.ask(head, view=view)
        assert len(talk.learned.readings) <= LIMIT
    for view in range(3):
        chain = [one for one in talk.learned.readings if one.view == view]
        assert all(before.head == after.since for before, after in pairwise(chain))
        for one in chain:
            if one.since:
                assert one.real_since == talk.reals[one.head] - talk.reals[one.since]
                assert one.estimate_since == talk.estimates[one.head] - talk.estimates[one.since]


def test_the_newest_differences_are_kept_finest():
    talk = Talk(even(400))
    talk.ask(*range(1, 401))
    spans = [one.head - one.since for one in talk.learned.readings]
    assert len(spans) == LIMIT
    assert spans[-3:] == [1, 1, 1]
    assert max(spans[:5]) > max(spans[-5:])


def test_what_is_known_survives_being_written_down():
    talk = Talk(even(30))
    talk.ask(*range(1, 31))
    talk.learned = fail(talk.learned, talk.quote(30), lambda _frame: True)
    again = msgspec.json.decode(msgspec.json.encode(talk.learned), type=Learned)
    assert again == talk.learned
    assert price(talk.shown(30, cut=4), again, lambda _frame: True) == talk.quote(30, cut=4)


# --- refusals --------------------------------------------------------------------------------------------------------


@settings(max_examples=50)
@given(
    frames,
    st.data(),
    st.none() | st.integers(0, 300_000),
    st.none() | st.integers(0, 300_000),
    st.integers(0, 3),
)
def test_what_was_refused_is_over_the_allowance_from_then_on(sizes, data, actual, limit, before):
    talk = Talk(sizes)
    talk.ask(*sorted(data.draw(st.sets(st.integers(1, len(sizes)), max_size=4))))
    for _ in range(before + 1):
        talk.learned = fail(talk.learned, talk.quote(len(sizes)), lambda _frame: True, actual=actual, limit=limit)
        known = ceiling(talk.learned, KEY)
        assert known is not None
        assert talk.quote(len(sizes)).tokens > known


def test_a_refusal_without_figures_says_that_four_fifths_are_too_much_and_changes_no_price():
    talk = Talk(even(30))
    talk.learned = fail(talk.learned, talk.quote(30), lambda _frame: True)
    assert ceiling(talk.learned, KEY) == 3_200
    assert talk.quote(30).tokens == 4_000
    for _ in range(2):
        talk.learned = fail(talk.learned, talk.quote(30), lambda _frame: True)
    assert ceiling(talk.learned, KEY) == 3_200, "the same again says nothing new"
    talk.learned = fail(talk.learned, talk.quote(10), lambda _frame: True)
    assert ceiling(talk.learned, KEY) == 1_600


@pytest.mark.parametrize("key", [Key("other", "anthropic", 1), Key("model", "gemini", 1), Key("model", "anthropic", 2)])
def test_a_refusal_says_nothing_of_another_model_dialect_or_instructions(key):
    talk = Talk(even(30))
    talk.learned = fail(talk.learned, talk.quote(30), lambda _frame: True)
    assert ceiling(talk.learned, key) is None
    talk.ask(30, key=key)
    assert ceiling(talk.learned, KEY) == 3_200
    assert ceiling(talk.learned, Key("model", "anthropic", 1, 5)) == 3_200, "under a compaction it holds"


def test_every_answer_raises_a_guess_by_a_tenth_and_leaves_what_the_provider_named():
    talk = Talk(even(30))
    talk.learned = fail(talk.learned, talk.quote(30), lambda _frame: True)
    talk.ask(5)
    assert ceiling(talk.learned, KEY) == 3_521
    talk.ask(6)
    assert ceiling(talk.learned, KEY) == 3_874
    talk.learned = fail(talk.learned, talk.quote(30), lambda _frame: True, limit=3_000)
    talk.ask(7)
    assert ceiling(talk.learned, KEY) == 3_000


def test_a_refusal_of_a_measured_length_lowers_what_the_model_is_believed_to_take():
    talk = Talk(even(30))
    talk.ask(*range(1, 31))
    talk.learned = fail(talk.learned, talk.quote(30), lambda _frame: True)
    assert ceiling(talk.learned, KEY) == int(talk.real(30) * 0.8)
    assert talk.quote(30).tokens == talk.real(30)


def test_a_first_reading_beyond_what_the_fixed_part_can_cost_is_the_messages():
    talk = Talk(even(1_000, 100, 158), fixed=20, real_fixed=20)
    talk.ask(800)
    assert ratio_of(talk.learned, KEY) == pytest.approx(1.58, abs=0.01)
    quote = talk.quote(1_000, cut=501, view=7)
    assert not quote.anchored
    assert quote.tokens == pytest.approx(talk.real(1_000, cut=501), rel=0.02)


def test_a_refusal_that_names_the_length_and_the_limit_is_a_reading_and_a_ceiling():
    talk = Talk(even(30))
    talk.learned = fail(talk.learned, talk.quote(30), lambda _frame: True, actual=5_200, limit=5_000)
    assert talk.quote(30).tokens == 5_200
    assert ceiling(talk.learned, KEY) == 5_000
    talk.learned = fail(talk.learned, talk.quote(30), lambda _frame: True, limit=4_500)
    talk.learned = fail(talk.learned, talk.quote(30), lambda _frame: True, limit=4_800)
    assert ceiling(talk.learned, KEY) == 4_500, "the lowest that was named"


def test_a_longer_request_that_was_answered_lifts_the_ceiling():
    talk = Talk(even(30))
    talk.learned = fail(talk.learned, talk.quote(10), lambda _frame: True, limit=1_800)
    assert ceiling(talk.learned, KEY) == 1_800
    talk.ask(20)
    assert ceiling(talk.learned, KEY) is None


# --- all of it -------------------------------------------------------------------------------------------------------


def test_simulated_conversations_keep_the_promised_accuracy():
    calls = [call for call in simulate(None, 18) if call.turn >= 5]
    errors = sorted(abs(call.error) for call in calls)
    assert fmean(errors) <= 1.0
    assert percentile(errors, 95) <= 2.5
    trimmed = [abs(call.error) for call in calls if call.after == TRIM]
    assert len(trimmed) == 18
    assert fmean(trimmed) <= 2.0
    assert fmean(call.real <= call.upper for call in calls) >= 0.95
    assert fmean(errors) < fmean(abs(call.raw_error) for call in calls) / 3


def test_the_bench_runs_without_the_shared_texts_and_says_so(tmp_path):
    away = {"TOKEN_CORPUS": str(tmp_path / "corpus"), "REAL_SESSION": str(tmp_path / "session")}
    command = [sys.executable, "-m", "bench", "calibration", "--quick", "--json"]
    done = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=True, env={**os.environ, **away}
    )
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert {line["bench"] for line in lines} == {"calibration"}
    assert {"from turn 5", "after a trim"} <= {line["variant"] for line in lines if line["peer"] == "session-actor"}
    notes = [line for line in done.stderr.splitlines() if line.startswith("note: ")]
    assert all(any(path in note for note in notes) for path in away.values())
