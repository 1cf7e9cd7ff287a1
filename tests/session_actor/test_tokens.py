"""Estimating the tokens of any text, and counting them exactly where a library can."""

from __future__ import annotations

import base64
import gc
import json
import random
import subprocess
import sys
import types
from pathlib import Path
from statistics import fmean

import pytest
from hypothesis import given
from hypothesis import strategies as st

from session_actor import CounterUnavailable, SessionActorError, estimate_tokens, exact_counter
from session_actor.errors import InvalidArgument
from session_actor.tokens import exact
from session_actor.tokens.estimate import FAMILIES
from session_actor.tokens.features import ASCII_NAMES, NAMES, features

ROOT = Path(__file__).parents[2]
# Texts of this project's own; the claude columns come from a public reconstruction of that tokenizer.
SAMPLES = [json.loads(line) for line in (Path(__file__).parent / "token_samples.jsonl").read_text("utf-8").splitlines()]
COUNTED = ("o200k", "cl100k", "llama3", "qwen3", "claude3", "claude47")
EXACT = ("o200k", "cl100k", "llama3", "qwen3")
ANY_TEXT = st.text(st.characters(codec=None, exclude_categories=()), max_size=200)
FAMILY = st.sampled_from(FAMILIES)

rng = random.Random(20)
FLOODS = {
    "one letter": "a" * 100_000,
    "one upper-case letter": "Z" * 100_000,
    "one ideograph": "的" * 30_000,
    "one emoji": "😀" * 20_000,
    "spaces": " " * 100_000,
    "blank lines": "\n" * 100_000,
    "tabs": "\t" * 100_000,
    "a ruler": "=" * 100_000,
    "digits": "".join(rng.choices("0123456789", k=30_000)),
    "base64": base64.b64encode(rng.randbytes(30_000)).decode(),
    "base64 in lines": base64.encodebytes(rng.randbytes(30_000)).decode(),
    "hex": rng.randbytes(20_000).hex(),
    "letters": "".join(rng.choices("abcdefghijklmnopqrstuvwxyz", k=30_000)),
    "punctuation": "".join(rng.choices("!#$%&()*+,-./:;<=>?@[]^_{|}~", k=20_000)),
    "lone surrogates": "\ud800" * 10_000,
    "NUL": "\0" * 10_000,
}


def relative_error(sample: dict, family: str) -> float:
    return estimate_tokens(sample["text"], family) / sample["tokens"][family] - 1


@given(ANY_TEXT, FAMILY)
def test_any_text_has_between_one_token_and_one_a_byte(text, family):
    found = estimate_tokens(text, family)
    assert type(found) is int
    assert (0 < found <= len(text.encode("utf-8", "surrogatepass"))) if text else found == 0


@given(ANY_TEXT, ANY_TEXT, FAMILY)
def test_two_texts_joined_cost_nearly_what_they_cost_apart(first, second, family):
    apart, joined = (
        estimate_tokens(first, family) + estimate_tokens(second, family),
        estimate_tokens(first + second, family),
    )
    assert abs(joined - apart) <= 0.15 * apart + 16


@given(ANY_TEXT, st.integers(2, 40), FAMILY)
def test_a_text_repeated_line_by_line_costs_so_many_times_as_much(text, times, family):
    line = text + "\n"
    once, often = estimate_tokens(line, family), estimate_tokens(line * times, family)
    assert once * times * 0.3 - 16 <= often <= once * times * 1.3 + 8 * times


@given(ANY_TEXT)
def test_the_features_of_a_text_are_counts_of_its_characters(text):
    counted = dict(zip(NAMES, features(text + "x"), strict=False))
    assert len(counted) == len(ASCII_NAMES if text.isascii() else NAMES)
    assert all(0 <= count <= 4 * (len(text) + 1) for count in counted.values())


def test_every_character_of_an_ascii_text_is_counted_once_by_its_place():
    text = "Two  lines;\n\tof 1234567 tokens, (HTTPServer) == 0x1F\n" + "=" * 20 + " " * 30 + "k" * 40
    counted = dict(zip(NAMES, features(text), strict=False))
    places = ("word ", "letter ", "number ", "digit ", "space 1", "space 2", "space 4", "mark ", "line ", "same mark")
    named = [name for name in counted if name.startswith(places) and name != "word not for th"]
    assert sum(counted[name] for name in named) == len(text)


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("name", FLOODS)
def test_a_flood_of_one_kind_of_character_is_counted_within_bounds(name, family):
    text = FLOODS[name]
    found = estimate_tokens(text, family)
    assert 1 <= found <= len(text.encode("utf-8", "surrogatepass"))
    assert found >= len(text) / 1_000


@pytest.mark.parametrize("family", FAMILIES)
def test_more_of_the_same_never_costs_less(family):
    for text in FLOODS.values():
        costs = [estimate_tokens(text[:size], family) for size in (1, 10, 100, 1_000, 10_000)]
        assert costs == sorted(costs)


@pytest.mark.parametrize("family", COUNTED)
def test_texts_that_no_weight_was_fitted_to_are_estimated_within_twelve_percent_on_average(family):
    assert fmean(abs(relative_error(sample, family)) for sample in SAMPLES) <= 0.12


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda sample: sample["name"])
def test_no_sample_is_estimated_further_off_than_thirty_percent(sample):
    assert all(abs(relative_error(sample, family)) <= 0.3 for family in COUNTED)


@pytest.mark.parametrize("family", COUNTED)
def test_scripts_other_than_latin_are_not_underestimated_by_more_than_fifteen_percent_on_average(family):
    scripts = {"chinese", "japanese", "korean", "hindi", "russian", "arabic"}
    assert fmean(relative_error(sample, family) for sample in SAMPLES if sample["name"] in scripts) >= -0.15


def test_special_tokens_in_a_text_are_text():
    assert estimate_tokens("<|endoftext|>") >= 4
    assert estimate_tokens("<|endoftext|>" * 100) >= 300


def test_an_unknown_family_is_refused_with_the_names_of_those_there_are():
    with pytest.raises(InvalidArgument, match=r"family is none of o200k, cl100k, .*mistral"):
        estimate_tokens("text", "gpt-9")
    with pytest.raises(InvalidArgument, match="family"):
        estimate_tokens("", [])


def test_what_is_no_str_is_refused_and_not_quoted():
    with pytest.raises(InvalidArgument, match=r"^text is no str but bytes$"):
        estimate_tokens(b"secret")


def test_a_class_derived_from_str_is_counted_by_its_characters_alone():
    class Odd(str):
        __slots__ = ()

        def encode(self, *_arguments):
            raise AssertionError

        def __len__(self):
            return 0

    assert estimate_tokens(Odd("a plain sentence")) == estimate_tokens("a plain sentence")


def test_the_estimate_loads_neither_the_rest_of_the_library_nor_anything_heavy():
    program = "import sys; from session_actor import estimate_tokens; estimate_tokens('x'); print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=ROOT)
    loaded = set(done.stdout.split())
    assert "session_actor.tokens.estimate" in loaded
    assert loaded & {"session_actor.persistence", "session_actor.errors", "numpy", "asyncio", "msgspec"} == set()


def test_all_families_have_weights_and_no_weight_has_an_unknown_name():
    weights = json.loads((ROOT / "session_actor" / "data" / "token_weights.json").read_text("utf-8"))
    assert tuple(weights) == FAMILIES
    assert {name for fitted in weights.values() for name in fitted} <= set(NAMES)


def test_a_long_text_leaves_nothing_behind():
    estimate_tokens("warm")
    gc.collect()
    before = len(gc.get_objects())
    estimate_tokens("some words é " * 50_000)
    gc.collect()
    assert len(gc.get_objects()) <= before + 50


# --- exact counters --------------------------------------------------------------------------------------------------


@pytest.fixture
def fresh_counters():
    exact._loaded.cache_clear()
    yield
    exact._loaded.cache_clear()


@pytest.mark.parametrize("family", EXACT)
def test_an_exact_counter_counts_the_samples_as_noted(family):
    pytest.importorskip("quicktok", reason="comes with session-actor[exact]")
    count = exact_counter(family)
    assert [count(sample["text"]) for sample in SAMPLES] == [sample["tokens"][family] for sample in SAMPLES]
    assert count("") == 0
    assert count("<|endoftext|>") > 1
    assert count("a\ud800b") > 1


@pytest.mark.parametrize("family", sorted(set(FAMILIES) - set(EXACT)))
def test_a_family_whose_vocabulary_no_library_brings_is_told_so(family):
    with pytest.raises(CounterUnavailable, match="estimate_tokens") as caught:
        exact_counter(family)
    assert caught.value.family == family


def test_an_exact_counter_of_an_unknown_family_is_refused():
    with pytest.raises(InvalidArgument, match="family is none of"):
        exact_counter("gpt-9")


@pytest.mark.usefixtures("fresh_counters")
def test_without_the_library_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "quicktok", None)
    with pytest.raises(CounterUnavailable, match=r"install session-actor\[exact\]") as caught:
        exact_counter("o200k")
    assert isinstance(caught.value, SessionActorError)


@pytest.mark.usefixtures("fresh_counters")
@pytest.mark.parametrize(
    "get_encoding", [None, lambda _name: types.SimpleNamespace(count=lambda text: len(text.encode()))]
)
def test_a_library_that_cannot_count_or_counts_bytes_is_not_believed(monkeypatch, get_encoding):
    library = types.ModuleType("quicktok")
    library.get_encoding = get_encoding
    monkeypatch.setitem(sys.modules, "quicktok", library)
    with pytest.raises(CounterUnavailable, match="reinstall"):
        exact_counter("o200k")
