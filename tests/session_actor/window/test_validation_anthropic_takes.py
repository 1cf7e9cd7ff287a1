"""What Anthropic takes although it looks odd: the validator says nothing of it."""

from __future__ import annotations

import copy

import pytest

from session_actor import validate_request

from .anthropic_base import BASE, SEARCH, TEXT, THINKS, THOUGHT


def test_a_reply_of_the_sdk_may_stand_among_the_messages_as_it_came():
    from anthropic.types import Message

    reply = Message.model_validate(
        {
            "id": "msg_1",
            "type": "message",
            "role": "assistant",
            "model": "claude-sonnet-4-5",
            "stop_reason": "end_turn",
            "stop_sequence": None,
            "content": [THOUGHT, TEXT],
            "usage": {"input_tokens": 1, "output_tokens": 1},
        }
    )
    request = copy.deepcopy(BASE)
    request["messages"].append({"role": "assistant", "content": reply.content})
    assert validate_request("anthropic", request) == []


def test_thinking_goes_with_a_free_choice_with_a_temperature_of_one_and_with_a_turn_that_was_paused():
    request = copy.deepcopy(BASE) | {"thinking": THINKS, "temperature": 1.0, "tool_choice": {"type": "auto"}}
    request["messages"].append({"role": "assistant", "content": [{**SEARCH, "id": "srvtoolu_2"}]})
    assert validate_request("anthropic", request) == []


def test_a_result_may_say_nothing():
    request = copy.deepcopy(BASE)
    request["messages"][6]["content"][0]["content"] = ""
    assert validate_request("anthropic", request) == []


@pytest.mark.parametrize(
    "asked",
    [
        {"extra_headers": {"Anthropic-Beta": "interleaved-thinking-2025-05-14"}},
        {"betas": ["interleaved-thinking-2025-05-14"]},
    ],
)
def test_thinking_between_calls_may_go_over_one_answer(asked):
    request = copy.deepcopy(BASE) | asked | {"thinking": {"type": "enabled", "budget_tokens": 5_000}}
    assert validate_request("anthropic", request) == []
    del request["tools"], request["messages"][1:]
    assert [problem.split(": ")[:2] for problem in validate_request("anthropic", request)] == [
        ["thinking.budget_tokens", "limit"]
    ]
