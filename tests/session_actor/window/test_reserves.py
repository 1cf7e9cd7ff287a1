"""Reserves: how a window is divided."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from session_actor import InvalidArgument, ModelProfile, output_reserve, profile_of, safety_reserve
from session_actor.budget.reserves import reserves
from session_actor.models.profiles import UNKNOWN, shipped


def model(window, max_output=None, input_cap=None):
    return ModelProfile(name="m", window=window, max_output=max_output or window, family="o200k", input_cap=input_cap)


@pytest.mark.parametrize(
    ("window", "output"),
    [
        (1_000_000, 32_768),
        (200_000, 32_768),
        (196_608, 32_768),
        (128_000, 21_333),
        (64_000, 10_666),
        (63_999, 15_999),
        (32_000, 8_000),
        (8_192, 2_048),
        (1_000, 250),
        (100, 25),
    ],
)
def test_a_sixth_of_the_window_is_kept_for_the_answer_and_a_quarter_of_a_small_one(window, output):
    assert output_reserve(model(window)) == output


def test_no_more_is_kept_for_the_answer_than_the_model_writes():
    assert output_reserve(model(200_000, 4_096)) == 4_096
    assert output_reserve(model(32_000, 1_000)) == 1_000
    assert output_reserve(model(200_000, 1_000)) == 1_000


@pytest.mark.parametrize(
    ("window", "safety"),
    [
        (2_000_000, 32_000),
        (1_000_000, 30_000),
        (400_000, 12_000),
        (200_000, 8_000),
        (64_000, 8_000),
        (63_999, 3_999),
        (32_000, 2_000),
        (1_000, 62),
    ],
)
def test_three_percent_are_kept_for_errors_and_a_sixteenth_of_a_small_window(window, safety):
    assert safety_reserve(model(window)) == safety


def test_half_is_enough_once_the_estimate_is_calibrated():
    assert safety_reserve(model(200_000), calibrated=True) == 4_000
    assert safety_reserve(model(1_000_000), calibrated=True) == 15_000
    assert safety_reserve(model(32_000), calibrated=True) == 1_000


def test_the_allowance_is_what_the_reserves_leave():
    divided = reserves(profile_of("claude-sonnet-4-5"))
    assert (divided.output, divided.safety, divided.allowance) == (32_768, 8_000, 159_232)


def test_the_allowance_stays_below_the_models_input_cap():
    assert reserves(profile_of("gpt-5")).allowance == 272_000 - 12_000


def test_a_wish_for_the_answer_changes_the_allowance():
    profile = profile_of("claude-sonnet-4-5")
    assert reserves(profile, 1_000).allowance == 200_000 - 1_000 - 8_000
    assert reserves(profile, 64_000).allowance == 200_000 - 64_000 - 8_000


def test_a_wish_beyond_what_the_model_writes_is_lowered():
    assert reserves(profile_of("gpt-4o"), 1_000_000).output == 16_384


def test_a_wish_for_all_of_the_window_leaves_a_quarter_to_the_conversation():
    divided = reserves(profile_of("gpt-4"), 8_192)
    assert divided.allowance == 2_048
    assert divided.output == 8_192 - 512 - 2_048


@pytest.mark.parametrize("wish", [0, -1, True, 1.5, "1000"])
def test_a_wish_that_is_no_number_of_tokens_is_refused(wish):
    with pytest.raises(InvalidArgument, match="max_output_tokens must be"):
        reserves(UNKNOWN, wish)


def test_every_shipped_model_has_room():
    for profile in shipped().values():
        divided = reserves(profile)
        assert divided.allowance >= profile.window // 2 or profile.input_cap is not None
        assert divided.allowance > 0


windows = st.integers(100, 4_000_000)


@given(windows, st.integers(1, 4_000_000), st.none() | st.integers(1, 10**12), st.booleans(), st.none() | windows)
def test_input_and_output_never_exceed_the_window(window, max_output, wish, calibrated, cap):
    cap = None if cap is None else min(cap, window)
    profile = model(window, min(max_output, window), cap)
    divided = reserves(profile, wish, calibrated=calibrated)
    assert min(divided.output, divided.safety, divided.allowance) >= 1
    assert divided.output + divided.safety + divided.allowance <= window
    assert divided.output <= profile.max_output
    assert cap is None or divided.allowance + divided.safety <= cap


@given(windows, st.none() | st.integers(1, 10**7))
def test_a_calibrated_estimate_never_leaves_less_room(window, wish):
    profile = model(window)
    assert reserves(profile, wish, calibrated=True).safety <= reserves(profile, wish).safety
    assert reserves(profile, wish, calibrated=True).allowance >= reserves(profile, wish).allowance
