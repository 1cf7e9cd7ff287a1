"""What servers that speak Chat Completions want back of what was thought: each what it gave, under its own keys."""

from __future__ import annotations

from typing import Any

import pytest

from session_actor import Tool, turn_of, validate_request
from session_actor.blocks import Text, Thinking, ToolCall

from .ledger_talk import reply
from .openai_replies import CHAT, as_received_chat

SIGNED = {"google": {"thought_signature": "c2ln+/=="}}
DETAILS = [
    {"type": "reasoning.text", "text": "hm", "signature": "c2ln", "index": 0},
    {"type": "reasoning.encrypted", "data": "c2ln", "id": "call_1", "index": 1},
]
CALLS = [
    {"id": "call_1", "type": "function", "function": {"name": "ls", "arguments": "{}"}, "extra_content": SIGNED},
    {"id": "call_2", "type": "function", "function": {"name": "ls", "arguments": "{}"}},
]
PLAIN = [{key: value for key, value in CALLS[0].items() if key != "extra_content"}, CALLS[1]]


def answer(model: str, calls: Any, finish: str = "tool_calls", **fields: Any) -> dict[str, Any]:
    message = {"role": "assistant", "content": None, "tool_calls": calls, **fields}
    choice = {"index": 0, "message": message, "finish_reason": finish, "logprobs": None}
    return {**CHAT, "model": model, "choices": [choice]}


async def sent_back(session: Any, replied: Any, model: str) -> dict[str, Any]:
    """The message of the assistant in the next request."""
    await session.configure(tools=[Tool("ls", "List.", {})])
    await session.add_user("hi")
    await session.add_response(replied)
    for call in await session.pending_calls():
        await session.add_tool_result(call.ref, "a")
    request = await session.build_request("openai_chat", model=model)
    assert validate_request("openai_chat", request) == []
    return next(message for message in request["messages"] if message["role"] == "assistant")


@pytest.mark.parametrize("make", [dict, as_received_chat])
@pytest.mark.parametrize(
    ("model", "calls", "fields"),
    [
        ("openai/gpt-oss-120b", PLAIN, {"reasoning": "hm"}),
        ("deepseek-reasoner", PLAIN, {"reasoning_content": "hm"}),
        ("google/gemini-3-pro-preview", PLAIN, {"reasoning": "hm", "reasoning_details": DETAILS}),
        ("gemini-3-pro-preview", CALLS, {"extra_content": SIGNED}),
        (
            "claude-sonnet-4-5",
            PLAIN,
            {"thinking_blocks": [{"type": "thinking", "thinking": "hm", "signature": "c2ln"}]},
        ),
    ],
)
async def test_each_server_gets_back_what_it_gave_and_nothing_else(session, make, model, calls, fields):
    message = await sent_back(session, make(answer(model, calls, **fields)), model)
    assert message == {"role": "assistant", "content": None, "tool_calls": calls, **fields}


@pytest.mark.parametrize("fields", [{"reasoning": "hm"}, {"reasoning_details": DETAILS}, {"extra_content": SIGNED}])
async def test_another_model_gets_none_of_it(session, fields):
    message = await sent_back(session, answer("gpt-oss-20b", CALLS, **fields), "gpt-oss-120b")
    assert message == {"role": "assistant", "content": None, "tool_calls": PLAIN}


async def test_what_broke_off_may_be_a_part_and_stays_here(session):
    broken = answer("gpt-oss-20b", PLAIN, "length", reasoning="hm", reasoning_details=DETAILS)
    assert (await sent_back(session, broken, "gpt-oss-20b")).keys() == {"role", "content", "tool_calls"}


async def test_the_first_call_of_another_model_gets_a_stand_in_where_gemini_speaks_chat(session):
    message = await sent_back(session, answer("gpt-5", PLAIN), "gemini-3-pro-preview")
    stand_in = {"google": {"thought_signature": "skip_thought_signature_validator"}}
    assert [call.get("extra_content") for call in message["tool_calls"]] == [stand_in, None]


@pytest.mark.parametrize("model", ["gemini-2.5-pro", "gpt-5"])
async def test_nobody_else_gets_a_stand_in(session, model):
    assert (await sent_back(session, answer("gpt-4.1", PLAIN), model))["tool_calls"] == PLAIN


def test_a_key_that_is_none_of_a_servers_is_never_one_of_a_message():
    talk = reply("openai_chat", Thinking("hm", field="tool_calls"), Text("b"))
    assert talk.entries("openai_chat")[1].blocks == (Thinking("hm", field="tool_calls"), Text("b"))
    from session_actor.requests.openai_chat import messages

    said = messages(talk.entries("openai_chat"), "gpt-5")[1]
    assert said == {"role": "assistant", "content": "b", "reasoning_content": "hm"}


def test_what_several_turns_thought_is_one_list():
    from session_actor.requests.openai_chat import messages

    talk = reply("openai_chat", *turn_of(answer("gpt-5", None, content="a", reasoning_details=DETAILS[:1])).blocks)
    talk.turns(turn_of(answer("gpt-5", None, content="b", reasoning_details=DETAILS[1:])))
    assert messages(talk.entries("openai_chat"), "gpt-5")[1]["reasoning_details"] == DETAILS


def test_a_signature_is_kept_on_its_call():
    assert turn_of(answer("gemini-3-pro-preview", CALLS)).blocks == (
        ToolCall("call_1", "ls", "{}", "c2ln+/=="),
        ToolCall("call_2", "ls", "{}"),
    )
