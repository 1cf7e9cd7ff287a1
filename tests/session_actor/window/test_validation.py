"""The validator as a whole: it never raises, refuses what the SDKs' types let pass, and knows its dialects."""

from __future__ import annotations

import copy
from collections import UserDict
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from session_actor import validate_request
from session_actor.errors import InvalidArgument
from session_actor.validation.problems import RULES

from . import test_validation_anthropic as anthropic
from . import test_validation_gemini as gemini
from . import test_validation_items as items
from . import test_validation_openai_chat as openai_chat
from . import test_validation_openai_responses as openai_responses
from . import test_validation_schemas as schemas
from . import test_validation_settings as settings
from . import test_validation_thinking as thinking
from . import test_validation_whole as whole
from .sdk_shapes import sdk_arguments, shape_problems

MODULES: dict[str, Any] = {
    "anthropic": anthropic,
    "gemini": gemini,
    "openai_chat": openai_chat,
    "openai_responses": openai_responses,
}
# Words that lead deeper into the rules than any other text.
WORDS = st.sampled_from([
    "type", "role", "content", "messages", "input", "contents", "parts", "config", "tools", "model", "user",
    "assistant", "text", "tool_use", "tool_result", "function_call", "function_call_output", "reasoning", "image",
    "source", "base64", "data", "tool_calls", "function", "name", "arguments", "id", "call_id", "thinking", "image_url",
    "data:image/png;base64,", "https://", "{", "[]", "system", "cache_control", "thought_signature", "functionCall",
])  # fmt: skip
LEAVES = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8) | st.binary(max_size=4) | WORDS
VALUES = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(WORDS | st.text(max_size=4), inner, max_size=4),
    max_leaves=12,
)
ODD = [
    None, True, 0, -1, 2.5, "", " ", "x", "data:", b"", [], {}, [[]], [{}], [None], ["x"], {"a": 1}, {1: 2}, (1,),
    {"type": []}, {"type": {}}, {"role": []}, {"type": "text"}, set(), object(), dict, float("nan"), 10**5000, "\ud800",
    "data:image/png;base64,é", "[" * 9_999, "9" * 9_999,
]  # fmt: skip
DIALECT = st.sampled_from(sorted(MODULES))


def places(value: Any) -> list[tuple[Any, Any]]:
    """Every place of a request: what holds it, and its key or index there."""
    pairs = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [found for key, inner in pairs for found in [(value, key), *places(inner)]]


@given(DIALECT, VALUES)
def test_no_value_at_all_makes_it_raise(dialect, value):
    found = validate_request(dialect, value)
    assert found
    assert all(isinstance(problem, str) for problem in found)


@pytest.mark.parametrize("dialect", sorted(MODULES))
def test_no_odd_value_in_any_single_place_makes_it_raise(dialect, faults):
    base = MODULES[dialect].BASE
    for number in range(len(places(base))):
        request = copy.deepcopy(base)
        holder, key = places(request)[number]
        for odd in faults.some(ODD):
            holder[key] = odd
            assert all(isinstance(problem, str) for problem in validate_request(dialect, request))


@given(DIALECT, st.data())
def test_no_value_in_any_place_of_a_request_makes_it_raise(dialect, data):
    request = copy.deepcopy(MODULES[dialect].BASE)
    for _ in range(data.draw(st.integers(1, 3))):
        holder, key = data.draw(st.sampled_from(places(request)))
        if data.draw(st.booleans()):
            holder[key] = data.draw(VALUES)
        else:
            del holder[key]
    before = repr(request)
    found = validate_request(dialect, request)
    assert all(len(problem.split(": ")) >= 3 for problem in found)
    assert repr(request) == before, "it changed the request"


@given(DIALECT, st.data())
def test_no_message_twice_or_elsewhere_makes_it_raise(dialect, data):
    request = copy.deepcopy(MODULES[dialect].BASE)
    messages = request[next(key for key in ("messages", "contents", "input") if key in request)]
    messages[:] = data.draw(st.lists(st.sampled_from(messages), max_size=12))
    validate_request(dialect, request)


@pytest.mark.parametrize("dialect", sorted(MODULES))
def test_many_defects_pass_the_types_and_not_the_validator(dialect):
    passed = 0
    for case in MODULES[dialect].CASES:
        if case.structural:
            request = copy.deepcopy(MODULES[dialect].BASE)
            case.change(request)
            passed += not shape_problems(dialect, request) and bool(validate_request(dialect, request))
    assert passed >= 17


def test_every_rule_is_broken_by_some_case():
    cases = [case.rule for module in MODULES.values() for case in module.CASES]
    pairs = [pair.rule for module in (items, schemas, settings, thinking, whole) for pair in module.PAIRS]
    assert {*cases, *pairs} == set(RULES)


@pytest.mark.parametrize("dialect", sorted(MODULES))
def test_what_the_types_do_refuse_is_refused_too(dialect):
    refused = [case for case in MODULES[dialect].CASES if not case.structural and case.rule != "unicode"]
    for case in refused:
        request = copy.deepcopy(MODULES[dialect].BASE)
        case.change(request)
        assert shape_problems(dialect, request), case.sentence


def test_the_types_are_looked_at_down_to_the_innermost_lazy_field():
    request = copy.deepcopy(anthropic.BASE)
    request["messages"][2]["content"][0]["content"][0]["text"] = 4
    assert shape_problems("anthropic", request)
    chat = copy.deepcopy(openai_chat.BASE)
    chat["messages"][2]["tool_calls"][1]["function"]["arguments"] = None
    assert shape_problems("openai_chat", chat)
    responses = copy.deepcopy(openai_responses.BASE)
    responses["input"][1]["summary"] = [{"type": "summary_text", "text": 4}]
    assert shape_problems("openai_responses", responses)
    assert shape_problems("gemini", {**gemini.BASE, "nonsense": 1})


@pytest.mark.parametrize("dialect", ["claude", "", None, 7, ["anthropic"]])
def test_a_dialect_that_there_is_not_is_refused(dialect):
    with pytest.raises(InvalidArgument, match="dialect must be one of openai_chat, openai_responses"):
        validate_request(dialect, {})


@pytest.mark.parametrize("request_", [None, 7, "text", [], object(), dict])
def test_what_is_no_request_is_a_problem(request_):
    assert [problem.split(": ")[1] for problem in validate_request("anthropic", request_)] == ["type"]


def test_any_mapping_is_a_request_and_tuples_are_lists():
    request = UserDict({**anthropic.BASE, "messages": tuple(anthropic.BASE["messages"])})
    assert validate_request("anthropic", request) == []


def test_a_circle_is_no_json():
    request = copy.deepcopy(anthropic.BASE)
    circle: dict[str, Any] = {}
    circle["inner"] = [circle]
    request["messages"][1]["content"][2]["input"] = circle
    assert [problem.split(": ")[1] for problem in validate_request("anthropic", request)] == ["arguments"]


def test_problems_never_tell_what_was_said():
    request = copy.deepcopy(anthropic.BASE)
    request["messages"][0]["content"][0] = {"type": "my secret is a dog", "text": "my secret is a dog"}
    request["messages"][1]["role"] = "my secret is a dog"
    found = validate_request("anthropic", request)
    assert found
    assert "secret" not in str(found)


@pytest.mark.parametrize("dialect", sorted(MODULES))
def test_every_argument_that_the_sdk_takes_is_known(dialect):
    for key in sdk_arguments(dialect):
        request = {**copy.deepcopy(MODULES[dialect].BASE), key: None}
        assert not [found for found in validate_request(dialect, request) if found.startswith("request: unknown")], key
