"""What an embedder puts into a request beside ours."""

from __future__ import annotations

import enum
from typing import Any

import pytest

from session_actor.dialects import DIALECTS
from session_actor.errors import InvalidArgument
from session_actor.requests import dialect_of

from .test_render_any import INSTRUCTIONS, MODELS, every_dialect


def assembled(dialect: str) -> dict[str, Any]:
    return dialect_of(dialect).assemble(MODELS[dialect], INSTRUCTIONS, [], 1_000)


@every_dialect
def test_no_key_of_ours_can_be_set_and_a_refusal_changes_nothing(dialect):
    renderer = dialect_of(dialect)
    for key in sorted(renderer.OWNED):
        outer, _, inner = key.partition(".")
        extra = {"harmless": 1, outer: {"harmless": 1, inner: 1} if inner else 1}
        request = assembled(dialect)
        with pytest.raises(InvalidArgument, match=inner or outer):
            renderer.merge(request, extra)
        assert request == assembled(dialect)


@every_dialect
def test_no_key_of_ours_can_be_set_in_the_body_either(dialect):
    renderer = dialect_of(dialect)
    for key in sorted(renderer.OWNED):
        inner = key.removeprefix("config.")
        body = {"harmless": 1, inner: 1}
        extra: dict[str, Any] = {"extra_body": body}
        if dialect == "gemini":
            if inner == "automatic_function_calling":  # of the SDK, not of the body
                continue
            if inner == "max_output_tokens":
                body = {"generationConfig": {"topK": 1, "maxOutputTokens": 1}}
            extra = {"config": {"httpOptions": {"timeout": 1, "extraBody": body}}}
        request = assembled(dialect)
        with pytest.raises(InvalidArgument, match="session sets"):
            renderer.merge(request, extra)
        assert request == assembled(dialect)


@every_dialect
def test_other_keys_of_the_body_and_headers_are_free(dialect):
    sent = {"extra_body": {"top_k": 5, "seed": None}, "extra_headers": {"model": "x"}}
    request = assembled(dialect)
    dialect_of(dialect).merge(request, {"config": {"http_options": sent}} if dialect == "gemini" else sent)
    assert (request["config"]["http_options"] if dialect == "gemini" else request).items() >= sent.items()


@every_dialect
def test_a_body_that_is_no_dict_is_refused(dialect):
    extra: dict[str, Any] = {"extra_body": [1]}
    with pytest.raises(InvalidArgument, match=r"extra_body'\] must be a dict, got list"):
        dialect_of(dialect).merge(
            assembled(dialect), {"config": {"http_options": extra}} if dialect == "gemini" else extra
        )


@every_dialect
def test_every_key_that_is_ours_when_assembled_is_owned(dialect):
    renderer, request = dialect_of(dialect), assembled(dialect)
    keys = {*request, *(f"config.{key}" for key in request.get("config", {}))} - {"config", "include"}
    assert keys <= renderer.OWNED


@every_dialect
def test_what_is_given_is_copied_at_every_level(dialect):
    given = {"metadata": {"tags": [{"a": 1}]}}
    extra = {"config": given} if dialect == "gemini" else given
    request = assembled(dialect)
    dialect_of(dialect).merge(request, extra)
    given["metadata"]["tags"][0]["a"] = 2
    assert (request["config"] if dialect == "gemini" else request)["metadata"] == {"tags": [{"a": 1}]}


@every_dialect
def test_no_extra_changes_nothing(dialect):
    request = assembled(dialect)
    dialect_of(dialect).merge(request, None)
    dialect_of(dialect).merge(request, {})
    assert request == assembled(dialect)


def test_a_tool_choice_of_the_embedder_wins():
    renderer = dialect_of("anthropic")
    request = renderer.assemble("m", None, [], 1, ["look"])
    renderer.merge(request, {"tool_choice": {"type": "auto"}, "temperature": 0.5})
    assert request["tool_choice"] == {"type": "auto"}
    assert request["temperature"] == 0.5


def test_gemini_settings_are_merged_under_their_names_in_the_sdk():
    renderer, request = dialect_of("gemini"), assembled("gemini")
    renderer.merge(request, {"config": {"responseJsonSchema": {"someKey": 1}, "top_p": 0.5, "thinkingConfig": {}}})
    assert request["config"] == assembled("gemini")["config"] | {
        "response_json_schema": {"someKey": 1},
        "top_p": 0.5,
        "thinking_config": {},
    }
    with pytest.raises(InvalidArgument, match="maxOutputTokens"):
        renderer.merge(request, {"config": {"maxOutputTokens": 5}})
    with pytest.raises(InvalidArgument, match="must be a dict, got list"):
        renderer.merge(request, {"config": [1]})


def test_what_a_response_shall_include_is_added_to_what_we_include():
    renderer, request = dialect_of("openai_responses"), assembled("openai_responses")
    renderer.merge(request, {"include": ["reasoning.encrypted_content", "message.output_text.logprobs"]})
    assert request["include"] == ["reasoning.encrypted_content", "message.output_text.logprobs"]
    with pytest.raises(InvalidArgument, match="include"):
        renderer.merge(request, {"include": "all"})


class Level(str, enum.Enum):  # noqa: UP042 - as the SDKs write theirs
    LOW = "low"


def test_tuples_and_enums_become_plain():
    request = assembled("openai_chat")
    dialect_of("openai_chat").merge(request, {"stop": ("a", "b"), "reasoning_effort": Level.LOW})
    assert request["stop"] == ["a", "b"]
    assert type(request["reasoning_effort"]) is str


def test_what_a_request_cannot_carry_is_refused_by_its_place():
    circle: dict[str, Any] = {}
    circle["inside"] = circle
    for value, place in (
        ({"a": {"b": [1, object()]}}, r"extra\['a'\]\['b'\]\[1\] is a object"),
        ({"a": float("nan")}, r"extra\['a'\] is not a number"),
        ({"a": {1: 2}}, r"extra\['a'\] has a key of type int"),
        (circle, "nested deeper"),
        ([1], "extra must be a dict"),
    ):
        with pytest.raises(InvalidArgument, match=place):
            dialect_of("openai_chat").merge({}, value)  # type: ignore[arg-type]


def test_dialects_are_found_by_name_only():
    assert {dialect_of(name).MESSAGES for name in DIALECTS} == {"messages", "input", "contents"}
    for name in ("", "Anthropic", "request", "..anthropic", None, 1):
        with pytest.raises(InvalidArgument, match="must be one of openai_chat, openai_responses, anthropic, gemini"):
            dialect_of(name)  # type: ignore[arg-type]
