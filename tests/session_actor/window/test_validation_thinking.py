"""Thinking and what goes with it: settings that exclude each other, and what single models take."""

from __future__ import annotations

import pytest

from .anthropic_base import PREFILL, THINKS
from .bases import BASES
from .breaking import Pair, all_of, check_pair, insert, put

CLAUDE, GEMINI = "anthropic", "gemini"
ADAPTS = {"type": "adaptive"}


def claude(sentence, rule, path, bad, good):
    return Pair(CLAUDE, sentence, rule, path, all_of(*bad), all_of(*good))


def thinks(sentence, rule, path, bad, good, model="gemini-3-pro"):
    """Gemini's settings of thinking. The model may be another for the good ones: (model, settings)."""
    good_model, settings = good if isinstance(good, tuple) else (model, good)
    path = f"config.thinking_config{path}"
    steps = ("config", "thinking_config")
    asked = [
        all_of(put("model", value=name), put(*steps, value=value))
        for name, value in ((model, bad), (good_model, settings))
    ]
    return Pair(GEMINI, sentence, rule, path, *asked)


def conflicts(path, sentence, bad, good):
    """Settings of Gemini 2.5 and what it refuses, Gemini 3 and what it takes."""
    return Pair(
        GEMINI,
        sentence,
        "conflict",
        path,
        all_of(put("model", value="models/gemini-2.5-flash"), *bad),
        all_of(put("model", value="gemini-3-flash-preview"), *good),
    )


SEARCH = insert("config", "tools", 1, value={"google_search": {}})
JSON = put("config", "response_mime_type", value="application/json")
LEVEL = {"thinking_level": "low"}
PAIRS = [
    *(
        claude(
            f"{key} beside thinking that is {thinking['type']}",
            "conflict",
            key,
            [put("thinking", value=thinking), put(key, value=bad)],
            [put("thinking", value=thinking), put(key, value=good)],
        )
        for thinking in (THINKS, ADAPTS)
        for key, bad, good in (("temperature", 0.5, 1), ("top_k", 5, None), ("top_p", 0.9, 0.95))
    ),
    claude(
        "a call that is forced",
        "conflict",
        "tool_choice",
        [put("thinking", value=THINKS), put("tool_choice", value={"type": "any"})],
        [put("thinking", value=ADAPTS), put("tool_choice", value={"type": "any"})],
    ),
    claude(
        "thinking of no type that there is",
        "unknown",
        "thinking.type",
        [put("thinking", value={"type": "deep"})],
        [put("thinking", value={"type": "between_tools"})],
    ),
    claude(
        "a budget of thinking that adapts",
        "unknown",
        "thinking",
        [put("thinking", value={**ADAPTS, "budget_tokens": 2_000})],
        [put("thinking", value={**ADAPTS, "display": "summarized"})],
    ),
    claude(
        "a budget of no thinking",
        "unknown",
        "thinking",
        [put("thinking", value={"type": "disabled", "budget_tokens": 2_000})],
        [put("thinking", value={"type": "disabled"})],
    ),
    claude(
        "no budget",
        "missing",
        "thinking.budget_tokens",
        [put("thinking", value={"type": "enabled"})],
        [put("thinking", value=THINKS)],
    ),
    claude(
        "a budget of a model that takes none",
        "conflict",
        "thinking.type",
        [put("model", value="claude-opus-4-7"), put("thinking", value=THINKS)],
        [put("model", value="claude-opus-4-6"), put("thinking", value=THINKS)],
    ),
    claude(
        "no thinking, and all effort",
        "conflict",
        "thinking.type",
        [
            put("model", value="claude-opus-5"),
            put("thinking", value={"type": "disabled"}),
            put("output_config", value={"effort": "max"}),
        ],
        [
            put("model", value="claude-opus-5"),
            put("thinking", value={"type": "disabled"}),
            put("output_config", value={"effort": "high"}),
        ],
    ),
    *(
        claude(
            f"{key} of a model that has its own",
            "conflict",
            key,
            [put("model", value="claude-opus-4-8"), put(key, value=value)],
            [put("model", value="claude-opus-4-6"), put(key, value=value)],
        )
        for key, value in (("temperature", 0.2), ("top_k", 10))
    ),
    *(
        claude(
            f"two samplings of {model}",
            "conflict",
            "top_p",
            [put("model", value=model), put("temperature", value=0.5), put("top_p", value=0.9)],
            [put("model", value="claude-sonnet-4-0"), put("temperature", value=0.5), put("top_p", value=0.9)],
        )
        for model in ("claude-sonnet-4-5-20250929", "claude-opus-4-1", "us.anthropic.claude-haiku-4-5-20251001-v1:0")
    ),
    *(
        claude(
            f"an answer begun for {model}",
            "last",
            "messages[7]",
            [put("model", value=model), insert("messages", 7, value=PREFILL)],
            [put("model", value="claude-opus-4-5"), insert("messages", 7, value=PREFILL)],
        )
        for model in ("claude-opus-4-6", "claude-sonnet-4-6", "claude-opus-4-7-20260416")
    ),
    thinks(
        "a level and a budget", "conflict", "", {**LEVEL, "thinking_budget": 512}, {**LEVEL, "include_thoughts": True}
    ),
    thinks("a budget that is a text", "type", ".thinking_budget", {"thinking_budget": "high"}, {"thinking_budget": -1}),
    thinks("a budget below nothing", "limit", ".thinking_budget", {"thinking_budget": -2}, {"thinking_budget": 0}),
    *(
        thinks(
            f"a level of {model}",
            "conflict",
            ".thinking_level",
            {"thinkingLevel": "HIGH"},
            ("gemini-3.5-flash", {"thinkingLevel": "HIGH"}),
            model,
        )
        for model in ("gemini-2.5-pro", "gemini-2.0-flash", "models/gemini-1.5-pro")
    ),
    *(
        thinks(
            f"{bad} tokens for {model}",
            "limit",
            ".thinking_budget",
            {"thinking_budget": bad},
            (other, {"thinking_budget": good}),
            model,
        )
        for model, bad, other, good in (
            ("gemini-2.5-pro", 0, "gemini-2.5-flash", 0),
            ("gemini-2.5-pro", 127, "gemini-2.5-pro", 128),
            ("gemini-2.5-pro", 32_769, "gemini-2.5-pro-preview-06-05", 32_768),
            ("gemini-2.5-flash", 24_577, "gemini-2.5-flash", 24_576),
            ("gemini-2.5-flash-lite", 100, "gemini-2.5-flash-lite", 512),
            ("gemini-2.5-flash-lite", 511, "gemini-2.5-flash-lite", 0),
            ("gemini-2.5-flash-preview-09-2025", 30_000, "gemini-2.5-flash-native-audio", 30_000),
        )
    ),
    conflicts("config.tools", "functions beside the provider's own tools", [SEARCH], [SEARCH]),
    conflicts("config.response_mime_type", "functions and an answer in JSON", [JSON], [JSON]),
    *(
        Pair(
            GEMINI,
            f"{key} beside what is cached",
            "conflict",
            f"config.{key}",
            put("config", value={"cached_content": "cachedContents/1", key: value}),
            put("config", value={"cached_content": "cachedContents/1", "temperature": 1}),
        )
        for key, value in (
            ("system_instruction", "Be brief."),
            ("tools", [{"google_search": {}}]),
            ("tool_config", {"retrieval_config": {"language_code": "en"}}),
        )
    ),
    Pair(
        GEMINI,
        "two settings of one category",
        "conflict",
        "config.safety_settings[1]",
        put("config", "safety_settings", value=[{"category": "HARM_CATEGORY_HARASSMENT", "threshold": "OFF"}] * 2),
        put("config", "safety_settings", value=[{"category": "HARM_CATEGORY_HARASSMENT", "threshold": "OFF"}]),
    ),
]


@pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: f"{pair.dialect}: {pair.sentence}")
def test_a_setting_of_thinking_is_refused_and_its_neighbour_is_not(pair):
    check_pair(BASES[pair.dialect], pair)
