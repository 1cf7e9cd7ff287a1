"""Reasoning goes back to the model that made it, whatever a cloud, a router or a deployment calls it."""

from __future__ import annotations

import pytest

from session_actor import Tool
from session_actor.blocks import Text, Thinking
from session_actor.models.same import is_same_model

from ..conftest import reopened
from .ledger_talk import reply
from .test_replies_session import REPLIES

BEDROCK = "us.anthropic.claude-sonnet-4-5-20250929-v1:0"
THOUGHT = {
    "type": "message",
    "role": "assistant",
    "model": "claude-sonnet-4-5-20250929",
    "stop_reason": "tool_use",
    "content": [
        {"type": "thinking", "thinking": "hm", "signature": "c2ln"},
        {"type": "tool_use", "id": "toolu_1", "name": "ls", "input": {}},
    ],
    "usage": {"input_tokens": 9, "output_tokens": 1},
}


@pytest.mark.parametrize(
    ("said", "asked"),
    [
        ("claude-sonnet-4-5-20250929", BEDROCK),
        ("claude-opus-4-6", "anthropic.claude-opus-4-6-v1"),
        ("claude-sonnet-4-5-20250929", "claude-sonnet-4-5@20250929"),
        ("claude-sonnet-4-5-20250929", "anthropic/claude-sonnet-4.5"),
        ("claude-sonnet-4-20250514", "claude-sonnet-4-0"),
        ("claude-opus-4-20250514", "claude-opus-4-0"),
        ("gpt-5-2025-08-07", "azure/gpt-5"),
        ("deepseek/deepseek-r1", "deepseek/deepseek-r1:free"),
        ("gemini-2.0-flash", "gemini-2.0-flash-001"),
        ("gemini-3-pro-preview", "models/gemini-3-pro-preview"),
    ],
)
def test_what_clouds_and_routers_put_around_a_name_makes_no_other_model(said, asked):
    assert is_same_model(said, asked)
    assert is_same_model(asked, said)


@pytest.mark.parametrize(
    ("said", "asked"),
    [
        (None, "claude-sonnet-4-5"),
        ("claude-sonnet-4", "claude-sonnet-4-5"),
        ("claude-sonnet-4-20250514", "claude-opus-4-0"),
        ("claude-opus-4-5", BEDROCK),
        ("deepseek-v2", "deepseek-v3"),
        ("gpt-oss:20b", "gpt-oss:120b"),
        ("gpt-5", "gpt-5-mini"),
        ("gemini-2.5-pro", "gemini-2.5-flash"),
    ],
)
def test_other_models_stay_others(said, asked):
    assert not is_same_model(said, asked)


def test_thinking_goes_back_to_its_model_on_another_cloud():
    talk = reply("anthropic", Thinking("hm", "c2ln"), Text("b"), model="claude-sonnet-4-5-20250929")
    assert len(talk.entries(model=BEDROCK)[1].blocks) == 2
    assert len(talk.entries(model="anthropic.claude-opus-4-5-v1:0")[1].blocks) == 1


async def ask_and_answer(session, model):
    """A call, with its thought, of a model that names itself otherwise than it was asked for."""
    await session.configure(tools=[Tool("ls", "List.", {})], model=model)
    await session.add_user("hi")
    await session.add_response(THOUGHT, request=await session.build_request("anthropic"))
    await session.add_tool_result("toolu_1", "a")


async def kinds(session, **asked):
    request = await session.build_request("anthropic", **asked)
    return [block["type"] for block in request["messages"][1]["content"]]


async def test_a_deployment_of_any_name_gets_back_what_it_thought(folder):
    from session_actor import SessionService

    async with SessionService.open(folder) as service:
        session = await service.session("user-42", create=True)
        await ask_and_answer(session, "our-own-deployment")
        assert await kinds(session) == ["thinking", "tool_use"]
        assert await kinds(session, model="another") == ["tool_use"]
        assert (await session.stack())[2].turns[0].asked == "our-own-deployment"
    async with reopened(folder) as session:
        assert await kinds(session) == ["thinking", "tool_use"]
        assert await kinds(session, model="claude-sonnet-4-5") == ["thinking", "tool_use"]


async def test_a_name_that_tells_the_model_is_not_kept_twice(session):
    await ask_and_answer(session, BEDROCK)
    assert (await session.stack())[2].turns[0].asked is None
    assert await kinds(session) == ["thinking", "tool_use"]


async def test_an_answer_of_another_dialect_was_not_asked_of_this_model(session):
    await session.configure(model="our-own-deployment")
    await session.add_user("hi")
    request = await session.build_request("anthropic")
    frame = await session.add_response(REPLIES["openai_chat"], request=request.seq)
    assert frame.turns[0].asked is None
