"""Numbers, switches, metadata and names: what is out of its range, and what is still in it."""

from __future__ import annotations

import pytest

from .bases import BASES
from .breaking import Pair, all_of, check_pair, drop, put

CHAT, RESPONSES, CLAUDE, GEMINI = "openai_chat", "openai_responses", "anthropic", "gemini"


def number(dialect, key, rule, bad, *good):
    """A number that is refused, and several that are taken."""
    steps = ("config", key) if dialect == GEMINI else (key,)
    path = ".".join(steps)
    beside = {"top_logprobs": put("logprobs", value=True), "logprobs": put("config", "response_logprobs", value=True)}
    more = [beside[key]] if key in beside and dialect != RESPONSES else []
    return [
        Pair(
            dialect,
            f"{key} {bad!r}",
            rule,
            path,
            all_of(put(*steps, value=bad), *more),
            all_of(put(*steps, value=one), *more),
        )
        for one in good
    ]


PAIRS = [
    *number(CHAT, "temperature", "limit", 2.1, 0, 2, 0.7),
    *number(CHAT, "temperature", "type", "warm", 1),
    *number(CHAT, "temperature", "limit", float("nan"), 1.0),
    *number(CHAT, "top_p", "limit", -0.1, 0, 1),
    *number(CHAT, "presence_penalty", "limit", 2.5, -2, 2),
    *number(CHAT, "frequency_penalty", "limit", -3, 0),
    *number(CHAT, "n", "limit", 0, 1, 128),
    *number(CHAT, "n", "type", 1.5, 2.0),
    *number(CHAT, "top_logprobs", "limit", 21, 0, 20),
    *number(CHAT, "seed", "type", "x", -7),
    *number(CHAT, "store", "type", "yes", True, False),
    *number(CHAT, "stream", "type", 1, True),
    *number(CHAT, "parallel_tool_calls", "type", "no", False),
    *number(RESPONSES, "temperature", "limit", -1, 0.2),
    *number(RESPONSES, "top_p", "limit", 1.1, 0.9),
    *number(RESPONSES, "top_logprobs", "limit", 21, 5),
    *number(RESPONSES, "max_tool_calls", "type", True, 3),
    *number(RESPONSES, "parallel_tool_calls", "type", 0, True),
    *number(CLAUDE, "temperature", "limit", 1.5, 0, 1, 0.5),
    *number(CLAUDE, "top_p", "limit", 2, 0.99),
    *number(CLAUDE, "top_k", "limit", -1, 0, 40),
    *number(CLAUDE, "top_k", "type", 1.5, 5),
    *number(CLAUDE, "stream", "type", "true", True),
    *number(GEMINI, "temperature", "limit", 2.5, 0, 2.0),
    *number(GEMINI, "top_p", "limit", 1.01, 0.95),
    *number(GEMINI, "top_k", "limit", -1, 40, 64.0),
    *number(GEMINI, "candidate_count", "limit", 9, 1, 8),
    *number(GEMINI, "presence_penalty", "limit", -2.5, 1.9),
    *number(GEMINI, "logprobs", "limit", 21, 5),
    *number(GEMINI, "seed", "type", 1.5, 42),
    Pair(
        GEMINI,
        "logprobs that were not asked for",
        "missing",
        "config.response_logprobs",
        put("config", "logprobs", value=3),
        all_of(put("config", "logprobs", value=3), put("config", "responseLogprobs", value=True)),
    ),
    Pair(
        GEMINI,
        "six texts to stop at",
        "limit",
        "config.stop_sequences",
        put("config", "stop_sequences", value=list("abcdef")),
        put("config", "stop_sequences", value=list("abcde")),
    ),
    Pair(
        GEMINI,
        "an empty text to stop at",
        "empty",
        "config.stop_sequences[1]",
        put("config", "stop_sequences", value=["a", ""]),
        put("config", "stop_sequences", value=[" "]),
    ),
    Pair(
        CHAT,
        "options of a stream, and no stream",
        "conflict",
        "stream_options",
        all_of(put("stream_options", value={"include_usage": True}), put("stream", value=False)),
        put("stream_options", value={"include_usage": True}),
    ),
    Pair(
        CHAT,
        "a bias out of range",
        "limit",
        "logit_bias",
        put("logit_bias", value={"50256": -101}),
        put("logit_bias", value={"50256": -100}),
    ),
    *(
        pair
        for dialect in (CHAT, RESPONSES)
        for pair in (
            Pair(
                dialect,
                "too many pairs of metadata",
                "limit",
                "metadata",
                put("metadata", value={str(key): "x" for key in range(17)}),
                put("metadata", value={str(key): "x" for key in range(16)}),
            ),
            Pair(
                dialect,
                "metadata of numbers",
                "type",
                "metadata",
                put("metadata", value={"a": 1}),
                put("metadata", value={"a": "1"}),
            ),
            Pair(
                dialect,
                "a long value of metadata",
                "limit",
                "metadata",
                put("metadata", value={"a": "x" * 513}),
                put("metadata", value={"a" * 64: "x" * 512}),
            ),
            Pair(
                dialect,
                "a long identifier of the user",
                "limit",
                "safety_identifier",
                put("safety_identifier", value="x" * 129),
                put("safety_identifier", value="x" * 128),
            ),
        )
    ),
    Pair(
        CLAUDE,
        "metadata of one's own",
        "unknown",
        "metadata",
        put("metadata", value={"team": "x"}),
        put("metadata", value={"user_id": "u"}),
    ),
    Pair(
        CLAUDE,
        "a user who is a number",
        "type",
        "metadata.user_id",
        put("metadata", value={"user_id": 7}),
        put("metadata", value={"user_id": None}),
    ),
    *(
        Pair(
            CHAT,
            f"the name {name!r}",
            "name",
            "messages[1].name",
            put("messages", 1, "name", value=name),
            put("messages", 1, "name", value="Ada.L-1"),
        )
        for name in ("Ada L", "a<b", "a|b", "a\\b", "a/b", "a>b", "x" * 65)
    ),
    Pair(
        CHAT,
        "a name of instructions",
        "name",
        "messages[0].name",
        put("messages", 0, "name", value="example user"),
        put("messages", 0, "name", value="example_user"),
    ),
    Pair(
        CHAT,
        "an empty name of the assistant",
        "empty",
        "messages[5].name",
        put("messages", 5, "name", value=""),
        put("messages", 5, "name", value="Bot"),
    ),
    Pair(
        CHAT,
        "audio of no voice",
        "missing",
        "audio",
        put("modalities", value=["text", "audio"]),
        all_of(put("modalities", value=["text", "audio"]), put("audio", value={"voice": "alloy", "format": "wav"})),
    ),
    *(
        Pair(
            CHAT,
            f"{key} of a model that always reasons",
            "conflict",
            key,
            all_of(put("model", value="o4-mini"), put(key, value=0.5)),
            all_of(put("model", value=model), put(key, value=0.5)),
        )
        for key in ("temperature", "top_p", "presence_penalty", "frequency_penalty")
        for model in ("gpt-4o", "gpt-5.1", "openai/o4-mini", "gpt-5-chat-latest")
    ),
    Pair(
        RESPONSES,
        "temperature of a model that always reasons",
        "conflict",
        "temperature",
        all_of(put("model", value="gpt-5-mini-2025-08-07"), put("temperature", value=0)),
        all_of(put("model", value="gpt-5-mini-2025-08-07"), put("temperature", value=1)),
    ),
    Pair(
        CHAT,
        "max_tokens of a model that always reasons",
        "conflict",
        "max_tokens",
        all_of(put("model", value="o3"), drop("max_completion_tokens"), put("max_tokens", value=500)),
        all_of(put("model", value="gpt-4o"), drop("max_completion_tokens"), put("max_tokens", value=500)),
    ),
]


@pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: f"{pair.dialect}: {pair.sentence}")
def test_a_setting_is_refused_and_its_neighbour_is_not(pair):
    check_pair(BASES[pair.dialect], pair)
