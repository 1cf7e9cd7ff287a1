"""Images and documents: the examples that the providers publish, and what must hold for all sizes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from session_actor import InvalidArgument, profile_of
from session_actor.tokens.images import RULES, image_tokens, page_tokens, pages_of, unknown_image_tokens


@pytest.mark.parametrize(
    ("width", "height", "detail", "tokens"),
    [
        (1_024, 1_024, "high", 765),
        (1_024, 1_024, "auto", 765),
        (2_048, 4_096, "high", 1_105),
        (4_096, 8_192, "low", 85),
        (512, 512, "high", 255),
    ],
)
def test_openai_counts_tiles_of_512(width, height, detail, tokens):
    assert image_tokens(width, height, "openai-4o", detail) == tokens


@pytest.mark.parametrize(
    ("rule", "tokens"),
    [("openai-4o-mini", 2_833 + 4 * 5_667), ("openai-o", 75 + 4 * 150), ("openai-5", 70 + 4 * 140)],
)
def test_openais_tiles_have_a_price_for_each_model(rule, tokens):
    assert image_tokens(1_024, 1_024, rule) == tokens


@pytest.mark.parametrize(
    ("rule", "width", "height", "tokens"),
    [
        ("openai-4.1-mini", 1_024, 1_024, 1_659),
        ("openai-4.1-nano", 1_024, 1_024, 2_520),
        ("openai-o4-mini", 1_024, 1_024, 1_762),
        ("openai-4.1-mini", 1_800, 2_400, 2_353),  # 1,452 patches
        ("openai-5.5", 1_024, 1_024, 1_229),
        ("openai-5.5", 1_920, 1_080, 2_448),
        ("openai-5.6", 4_032, 3_024, 14_364),
    ],
)
def test_openai_counts_patches_of_32_times_a_factor(rule, width, height, tokens):
    assert image_tokens(width, height, rule) == tokens


@pytest.mark.parametrize(
    ("width", "height", "standard", "high"),
    [
        (200, 200, 64, 64),
        (1_000, 1_000, 1_296, 1_296),
        (1_092, 1_092, 1_521, 1_521),
        (1_920, 1_080, 1_560, 2_691),
        (2_000, 1_500, 1_564, 3_888),
        (3_840, 2_160, 1_560, 4_784),
        (1_075, 1_520, 33 * 47, 39 * 55),
    ],
)
def test_anthropic_counts_patches_of_28(width, height, standard, high):
    assert image_tokens(width, height, "claude") == standard
    assert image_tokens(width, height, "claude-high") == high


@pytest.mark.parametrize(
    ("width", "height", "tokens"),
    [(100, 100, 258), (384, 384, 258), (960, 540, 6 * 258), (1_000, 1_000, 4 * 258), (3_072, 3_072, 16 * 258)],
)
def test_gemini_counts_crops(width, height, tokens):
    assert image_tokens(width, height, "gemini-2") == tokens


def test_gemini_3_has_one_price_for_all_images():
    assert {image_tokens(edge, edge, "gemini-3") for edge in (1, 100, 10_000)} == {1_120}


@pytest.mark.parametrize(
    ("model", "tokens"),
    [
        ("gpt-4o", 765),
        ("gpt-4.1", 765),
        ("gpt-4.1-mini", 1_659),
        ("o4-mini", 1_762),
        ("gpt-5-nano", 2_520),
        ("claude-sonnet-4-5", 37 * 37),
        ("gemini-2.0-flash", 4 * 258),
    ],
)
def test_a_models_profile_names_its_rule(model, tokens):
    assert image_tokens(1_024, 1_024, profile_of(model).image_rule) == tokens


@pytest.mark.parametrize("rule", sorted(RULES))
def test_an_image_of_unknown_size_costs_as_much_as_a_large_one(rule):
    unknown = unknown_image_tokens(rule)
    assert unknown == image_tokens(0, 0, rule)
    assert unknown >= max(image_tokens(edge, edge * 3 // 4, rule) for edge in (100, 640, 1_024, 1_600, 2_048, 4_096))


def test_a_rule_that_does_not_exist_is_refused():
    with pytest.raises(InvalidArgument, match="image_rule must be one of"):
        image_tokens(1, 1, "paint")


sizes = st.integers(1, 20_000) | st.integers(1, 2**32)


@given(sizes, sizes, st.sampled_from(sorted(RULES)), st.sampled_from(["auto", "low", "high"]))
def test_every_size_has_a_price(width, height, rule, detail):
    tokens = image_tokens(width, height, rule, detail)
    assert tokens >= (0 if rule == "none" else 1)
    assert tokens <= 70_000 or rule == "openai-5.6"


@given(sizes, sizes, st.sampled_from(sorted(set(RULES) - {"mistral", "pixtral"})))
def test_turning_an_image_changes_nothing(width, height, rule):
    assert image_tokens(width, height, rule) == image_tokens(height, width, rule)


@given(sizes, sizes, st.sampled_from(["openai-5.2", "openai-5.4", "openai-5.5", "openai-4.1-nano"]))
def test_patches_stay_within_the_models_budget(width, height, rule):
    known = RULES[rule]
    assert image_tokens(width, height, rule) <= known.factor * known.budget + 1


@given(sizes, sizes, st.sampled_from(["claude", "claude-high"]))
def test_anthropics_images_stay_within_its_limit(width, height, rule):
    assert 1 <= image_tokens(width, height, rule) <= RULES[rule].patches


@given(st.integers(1, 800), st.integers(1, 800), st.integers(0, 100), st.sampled_from(sorted(RULES)))
def test_an_image_that_needs_no_resizing_costs_no_less_when_it_grows(width, height, more, rule):
    if rule == "gemini-2":  # larger crops may be fewer
        return
    assert image_tokens(width + more, height + more, rule) >= image_tokens(width, height, rule)


@pytest.mark.parametrize(
    ("rule", "low", "high"),
    [
        ("gemini-2", 258, 258),
        ("gemini-3", 560, 561),
        ("claude", 2_500, 3_000),
        ("claude-high", 2_500, 3_000),
        ("openai-4o", 1_500, 2_200),
    ],
)
def test_a_page_costs_its_text_and_its_picture(rule, low, high):
    assert low <= page_tokens(rule) <= high


MEASURED = {"claude": (1_592, 2_100, 2_278), "claude-high": (1_600, 2_347, 2_481), "gemini-3": (560, 560, 560)}
"""A page as a scan, of text and of a table: huggingface.co/datasets/JOHNISKING/pdf-token-cost."""


@pytest.mark.parametrize("rule", MEASURED)
def test_a_page_is_never_taken_for_less_than_was_measured_and_not_for_twice_a_page_of_text(rule):
    scan, text, table = MEASURED[rule]
    assert max(scan, text, table) <= page_tokens(rule) < 1.5 * text


def test_pages_that_cannot_be_counted_are_assumed_by_bytes():
    assert pages_of(1) == 1
    assert pages_of(20_001) == 2
    assert pages_of(10**9) == 100
    assert pages_of(None) == 20
