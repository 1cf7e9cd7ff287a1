"""Profiles: what is known of models, and how a model's name finds it."""

import io
import json
from datetime import date
from importlib.resources import files

import pytest
from hypothesis import given
from hypothesis import strategies as st
from structlog.testing import capture_logs

import session_actor
from session_actor import InvalidArgument, ModelProfile, profile_of
from session_actor.models import profiles
from session_actor.models.profiles import UNKNOWN, shipped
from session_actor.tokens.estimate import FAMILIES
from session_actor.tokens.images import RULES


def plain(**changes):
    given = {"name": "mine", "window": 16_000, "max_output": 2_000, "family": "o200k"}
    return ModelProfile(**(given | changes))


@pytest.fixture
def never_warned(monkeypatch):
    monkeypatch.setattr(profiles, "_warned", set())


@pytest.mark.parametrize(
    ("model", "name"),
    [
        ("gpt-4o", "gpt-4o"),
        ("gpt-4o-2024-08-06", "gpt-4o"),
        ("gpt-4o-mini-2024-07-18", "gpt-4o-mini"),
        ("gpt-4o-2024-05-13", "gpt-4o-2024-05-13"),
        ("azure/gpt-4o-mini", "gpt-4o-mini"),
        ("ft:gpt-4o-2024-08-06:acme::abc", "gpt-4o"),
        ("gpt-4", "gpt-4"),
        ("gpt-4-0613", "gpt-4"),
        ("gpt-4-1106-preview", "gpt-4-turbo"),
        ("gpt-4.1-2025-04-14", "gpt-4.1"),
        ("openai/gpt-4.1-nano", "gpt-4.1-nano"),
        ("gpt-5-2025-08-07", "gpt-5"),
        ("gpt-5.1-codex-max", "gpt-5"),
        ("gpt-5-chat-latest", "gpt-5-chat"),
        ("o3-mini-2025-01-31", "o3-mini"),
        ("o3-pro", "o3"),
        ("claude-3-5-sonnet-20241022", "claude-3-5-sonnet"),
        ("openrouter/anthropic/claude-3.5-sonnet", "claude-3-5-sonnet"),
        ("anthropic/claude-sonnet-4.5", "claude-sonnet-4-5"),
        ("claude-sonnet-4-20250514", "claude-sonnet-4"),
        ("claude-opus-4-1-20250805", "claude-opus-4"),
        ("claude-opus-4@20250514", "claude-opus-4"),
        ("claude-opus-4-6[1m]", "claude-opus-4-6"),
        ("us.anthropic.claude-sonnet-4-5-20250929-v1:0", "claude-sonnet-4-5"),
        ("anthropic.claude-3-haiku-20240307-v1:0", "claude-3-haiku"),
        ("arn:aws:bedrock:eu-west-1:1:inference-profile/eu.anthropic.claude-opus-4-5-v1:0", "claude-opus-4-5"),
        ("models/gemini-1.5-pro-002", "gemini-1.5-pro"),
        ("google-gla:gemini-2.5-flash", "gemini-2.5"),
        ("publishers/google/models/gemini-3-pro-preview", "gemini-3"),
        ("gemma3:27b", "gemma-3"),
        ("gemma-3-1b-it", "gemma-3-1b"),
        ("meta.llama3-1-70b-instruct-v1:0", "llama-3.1"),
        ("llama3.1:8b", "llama-3.1"),
        ("meta-llama/Llama-3.3-70B-Instruct", "llama-3.1"),
        ("meta-llama/Meta-Llama-3-8B-Instruct", "llama-3"),
        ("accounts/fireworks/models/llama-v3p1-8b-instruct", "llama-3.1"),
        ("Qwen/Qwen3-32B", "qwen3"),
        ("qwen3-coder-480b-a35b-instruct", "qwen3-coder"),
        ("deepseek/deepseek-chat-v3-0324", "deepseek-chat"),
        ("deepseek-ai/DeepSeek-R1", "deepseek-reasoner"),
        ("deepseek-ai/DeepSeek-R1-Distill-Llama-70B", "deepseek-r1-distill-llama"),
        ("mistral.mistral-large-2407-v1:0", "mistral-large"),
        ("mistral-small-latest", "mistral-small"),
        ("codestral-latest", "codestral"),
    ],
)
def test_a_model_is_found_by_the_longest_name_that_it_begins_with(model, name):
    assert profile_of(model).name == name


@pytest.mark.parametrize(
    ("model", "window", "max_output", "family"),
    [
        ("gpt-4o", 128_000, 16_384, "o200k"),
        ("gpt-4-turbo", 128_000, 4_096, "cl100k"),
        ("gpt-4.1", 1_047_576, 32_768, "o200k"),
        ("o1", 200_000, 100_000, "o200k"),
        ("claude-3-opus-20240229", 200_000, 4_096, "claude3"),
        ("claude-sonnet-4-5", 200_000, 64_000, "claude3"),
        ("claude-opus-4-7", 1_000_000, 128_000, "claude47"),
        ("gemini-2.5-pro", 1_048_576, 65_536, "gemma3"),
        ("llama-3.1-8b-instruct", 131_072, 8_192, "llama3"),
    ],
)
def test_the_facts_are_those_that_are_published(model, window, max_output, family):
    profile = profile_of(model)
    assert (profile.window, profile.max_output, profile.family) == (window, max_output, family)


def test_gpt_5_reads_less_than_its_window():
    profile = profile_of("gpt-5")
    assert (profile.window, profile.input_cap, profile.max_output) == (400_000, 272_000, 128_000)


def test_every_shipped_profile_is_whole():
    assert len({profile.name for profile in shipped().values()}) >= 40
    for profile in shipped().values():
        assert date.fromisoformat(profile.as_of) <= date(2026, 12, 31)
        assert profile.source
        assert profile.family in FAMILIES
        assert profile.image_rule in RULES
        assert profile.sees_images == (profile.image_rule != "none")
        assert profile.max_output <= profile.window


def test_no_name_stands_for_two_profiles():
    text = files("session_actor.data").joinpath("models.json").read_text(encoding="utf-8")
    spelled = [profiles.key(n) for row in json.loads(text) for n in (row["profile"]["name"], *row.get("also", ()))]
    assert len(spelled) == len(set(spelled))


def test_every_name_in_the_table_finds_its_own_profile():
    for name, profile in shipped().items():
        assert profile_of(name) is profile


@pytest.mark.parametrize("model", ["gpt-4oo", "claude", "o33", "my-model", "gpt-41"])
def test_a_name_that_only_resembles_a_known_one_is_unknown(model):
    assert profile_of(model) is UNKNOWN


def test_an_unknown_model_gets_a_careful_profile(never_warned):
    profile = profile_of("acme-1")
    assert profile.window == 32_000
    assert profile.max_output == 4_096
    assert profile.family == "claude47"


def test_an_unknown_model_is_warned_of_once(never_warned):
    with capture_logs() as logs:
        profile_of("acme-1")
        profile_of("acme-1")
        profile_of("acme-2")
        profile_of("gpt-4o")
    assert [(entry["event"], entry["log_level"], entry["model"]) for entry in logs] == [
        ("model_unknown", "warning", "acme-1"),
        ("model_unknown", "warning", "acme-2"),
    ]


@pytest.mark.parametrize("stdout", [None, "closed"])
def test_a_log_that_cannot_be_written_keeps_no_unknown_model_from_its_profile(never_warned, monkeypatch, stdout):
    broken = None
    if stdout:
        broken = io.StringIO()
        broken.close()
    monkeypatch.setattr("sys.stdout", broken)
    assert profile_of("acme-1") is UNKNOWN
    assert profiles._warned == {"acme-1"}


def test_a_profile_that_does_not_say_so_sees_as_an_unknown_model_does():
    mine = ModelProfile(name="mine", window=32_000, max_output=4_096, family="o200k")
    assert (mine.sees_images, mine.sees_documents) == (UNKNOWN.sees_images, UNKNOWN.sees_documents) == (True, True)
    assert not profile_of("gpt-3.5-turbo").sees_images


def test_an_override_wins_over_what_is_shipped():
    mine = plain()
    assert profile_of("gpt-4o", {"gpt-4o": mine}) is mine
    assert profile_of("gpt-4o-2024-08-06", {"gpt-4o": mine}) is mine
    assert profile_of("gpt-4o-mini", {"gpt-4o": mine}) is mine
    assert profile_of("claude-3-opus", {"gpt-4o": mine}).name == "claude-3-opus"


def test_an_override_makes_a_model_known(never_warned):
    mine = plain()
    with capture_logs() as logs:
        assert profile_of("acme-1", {"acme-1": mine}) is mine
        assert profile_of("ACME/acme_1-2026", {"acme-1": mine}) is mine
    assert logs == []


def test_the_exact_override_wins_over_a_longer_spelling():
    exact, longer = plain(name="exact"), plain(name="longer")
    assert profile_of("x/gpt", {"x/gpt": exact, "gpt": longer}) is exact


def test_an_override_that_is_no_profile_is_refused_by_name():
    with pytest.raises(InvalidArgument, match=r"models\['gpt-4o'\] must be a ModelProfile, got dict"):
        profile_of("gpt-4o", {"gpt-4o": {}})


@pytest.mark.parametrize("model", ["", None, 3])
def test_what_is_no_name_is_refused(model):
    with pytest.raises(InvalidArgument, match="model must"):
        profile_of(model)


@pytest.mark.parametrize(
    ("change", "what"),
    [
        ({"window": 0}, "window must be from 100"),
        ({"window": 99}, "window must be from 100"),
        ({"window": True}, "window must be an int"),
        ({"window": 1e5}, "window must be an int"),
        ({"max_output": 0}, "max_output must be from 1"),
        ({"max_output": 16_001}, "max_output must be from 1 to 16000"),
        ({"input_cap": 16_001}, "input_cap must be from 100 to 16000"),
        ({"tools_prompt": -1}, "tools_prompt must be from 0"),
        ({"family": "gpt2"}, "family must be one of o200k"),
        ({"image_rule": "paint"}, "image_rule must be one of openai-4o"),
        ({"dialects": ()}, "dialects must be a tuple of at least one"),
        ({"dialects": ("soap",)}, "dialects must be one of openai_chat"),
        ({"sees_images": 1}, "sees_images must be a bool"),
        ({"name": ""}, "name must not be empty"),
        ({"as_of": 2026}, "as_of must be a str"),
    ],
)
def test_a_profile_that_cannot_be_right_is_refused(change, what):
    with pytest.raises(InvalidArgument, match=what):
        plain(**change)


def test_a_profile_cannot_be_changed():
    with pytest.raises(AttributeError):
        plain().window = 5


def test_the_package_offers_profiles():
    assert session_actor.ModelProfile is ModelProfile
    assert {"ModelProfile", "profile_of", "output_reserve", "safety_reserve"} <= set(session_actor.__all__)


@given(st.text(max_size=40).filter(bool))
def test_any_name_has_a_profile(model):
    assert profile_of(model).window >= 8_192
