"""A provider's own calls that wait for the results of ours, and what else a provider says of a call."""

from __future__ import annotations

from typing import Any

import pytest

from session_actor import Native, Tool, turn_of, validate_request
from session_actor.blocks import NULL, Image, ToolCall
from session_actor.errors import InvalidArgument

from .ledger_talk import FOUND, PNG, SEARCH
from .openai_replies import RESPONSE
from .test_replies_anthropic import replied

MODEL = "claude-sonnet-4-5"
OURS = {"type": "tool_use", "id": "toolu_1", "name": "ls", "input": {}}
PROGRAM = {"type": "server_tool_use", "id": "srvtoolu_9", "name": "code_execution", "input": {"code": "ls()"}}
RAN = {"type": "code_execution_tool_result", "tool_use_id": "srvtoolu_9", "content": {"type": "x", "stdout": ""}}
CALLER = {"type": "code_execution_20250825", "tool_id": "srvtoolu_9"}
SAYS = {"type": "text", "text": "Found."}


async def began(session: Any, *content: Any, stop_reason: str = "tool_use") -> None:
    """A question, and an answer that calls a tool of ours and others."""
    tools = [Tool("ls", "List.", {}), Native("anthropic", None, {"type": "web_search_20250305", "name": "web_search"})]
    await session.configure(tools=tools, model=MODEL)
    await session.add_user("hi")
    await session.add_response(replied(model=MODEL, content=list(content), stop_reason=stop_reason))


async def asked(session: Any, **fields: Any) -> Any:
    request = await session.build_request("anthropic", **fields)
    assert validate_request("anthropic", request) == []
    return request


def said(request: Any, place: int = 1) -> list[Any]:
    return request["messages"][place]["content"]


@pytest.mark.parametrize(("call", "result"), [(SEARCH, FOUND), (PROGRAM, RAN)])
async def test_a_call_that_waits_for_ours_goes_back_and_its_result_comes_in_the_next_answer(session, call, result):
    await began(session, call, OURS)
    await session.add_tool_result("toolu_1", "a")
    request = await asked(session)
    assert said(request) == [call, OURS]
    assert [block["type"] for block in said(request, 2)] == ["tool_result"]
    await session.add_response(replied(model=MODEL, content=[result, SAYS], stop_reason="end_turn"), request=request)
    await session.add_user("And?")
    after = await asked(session)
    assert said(after) == [call, OURS]
    assert said(after, 3) == [result, SAYS]
    assert after["messages"][:3] == request["messages"]
    assert after.omitted == ()


async def test_nothing_that_is_lent_stands_beside_results_that_such_a_call_waits_for(session):
    await began(session, SEARCH, OURS)
    await session.add_tool_result("toolu_1", "a")
    request = await asked(session, ephemeral="It is noon.")
    assert [block["type"] for block in said(request, 2)] == ["tool_result"]
    assert [note.what for note in request.omitted] == ["ephemeral"]


async def test_when_the_user_speaks_it_is_left_out_and_so_is_what_came_of_it(session):
    await began(session, SEARCH, OURS)
    await session.add_tool_result("toolu_1", "a")
    await session.add_user("Wait.")
    assert said(await asked(session)) == [OURS]
    await session.add_response(replied(model=MODEL, content=[FOUND, SAYS], stop_reason="end_turn"))
    assert said(await asked(session), 3) == [SAYS]


async def test_when_the_next_answer_does_not_hold_its_result_it_is_left_out(session):
    await began(session, SEARCH, OURS)
    await session.add_tool_result("toolu_1", "a")
    await session.add_response(replied(model=MODEL, content=[SAYS], stop_reason="end_turn"))
    request = await asked(session)
    assert said(request) == [OURS]
    assert [note.what for note in request.omitted] == ["native"]


async def test_a_result_that_brings_an_image_behind_the_results_ends_the_wait(session):
    await began(session, SEARCH, OURS)
    await session.add_tool_result("toolu_1", [Image(data=PNG, media_type="image/png")], is_error=True)
    assert said(await asked(session)) == [OURS]


@pytest.mark.parametrize("stop_reason", ["max_tokens", "end_turn", None])
async def test_of_an_answer_that_did_not_stop_for_our_calls_none_waits(session, stop_reason):
    await began(session, SEARCH, OURS, SAYS, stop_reason=stop_reason)
    assert SEARCH not in said(await asked(session))


async def test_going_back_and_another_provider_leave_a_valid_request(session):
    await began(session, SEARCH, OURS)
    result = await session.add_tool_result("toolu_1", "a")
    await session.add_response(replied(model=MODEL, content=[FOUND, SAYS], stop_reason="end_turn"))
    for dialect, model in [("openai_chat", "gpt-5"), ("openai_responses", "gpt-5"), ("gemini", "gemini-2.5-pro")]:
        request = await session.build_request(dialect, model=model)
        assert validate_request(dialect, request) == []
    await session.goto(result.id)
    assert said(await asked(session)) == [SEARCH, OURS]
    await session.add_response(RESPONSE)
    assert said(await asked(session)) == [OURS]


async def test_a_call_says_which_program_made_it_as_long_as_that_is_shown(session):
    made = {**OURS, "caller": CALLER}
    await began(session, PROGRAM, made)
    await session.add_tool_result("toolu_1", "a")
    assert said(await asked(session)) == [PROGRAM, made]
    await session.add_user("Wait.")
    assert said(await asked(session)) == [OURS]


async def test_a_member_of_a_toolset_goes_back_as_one_with_its_result(session):
    made = {**OURS, "name": "screenshot", "toolset_name": "computer"}
    await began(session, made)
    frame = (await session.stack())[-1]
    assert frame.turns[0].blocks[0].more_value == {"toolset_name": "computer"}
    request = await asked(session)
    assert said(request) == [made]
    assert said(request, 2)[0]["toolset_name"] == "computer"
    await session.add_tool_result("toolu_1", "a")
    assert said(await asked(session), 2) == [
        {"type": "tool_result", "tool_use_id": "toolu_1", "content": "a", "toolset_name": "computer"}
    ]
    other = await session.build_request("openai_chat", model="gpt-5")
    assert "computer" not in str(dict(other))


async def test_the_namespace_of_a_function_goes_back_to_responses_alone(session):
    item = {"type": "function_call", "call_id": "call_1", "name": "ls", "arguments": "{}", "namespace": "files"}
    await session.add_user("hi")
    await session.add_response({**RESPONSE, "output": [{**item, "id": "fc_1", "status": "completed"}]})
    request = await session.build_request("openai_responses", model="gpt-5.1")
    assert validate_request("openai_responses", request) == []
    assert request["input"][1] == item
    assert "files" not in str(dict(await session.build_request("anthropic", model=MODEL)))


def test_what_every_call_says_is_not_kept():
    turn = turn_of(replied(content=[{**OURS, "caller": {"type": "direct"}, "toolset_name": None}]))
    assert turn.blocks == (ToolCall("toolu_1", "ls", "{}"),)
    assert turn.blocks[0].more is NULL
    assert turn.blocks[0].more_value == {}


async def test_what_is_no_dict_is_refused(session):
    with pytest.raises(InvalidArgument, match=r"\.more must be a dict"):
        await session.add_assistant("", tool_calls=[ToolCall("c1", "ls", more=["x"])])
