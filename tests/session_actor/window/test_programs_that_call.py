"""A program that Anthropic runs calls our tools in several rounds, each in an answer of its own, before it ends."""

from __future__ import annotations

from typing import Any

import pytest

from session_actor import validate_request

from .test_replies_anthropic import replied
from .test_waiting_server_tools import CALLER, MODEL, OURS, PROGRAM, RAN, SAYS, asked, began, said


def called(number: int, **caller: Any) -> dict[str, Any]:
    return {**OURS, "id": f"toolu_{number}", "caller": {**CALLER, **caller}}


async def rounds(session: Any, count: int) -> Any:
    """So many rounds, all answered; the last request."""
    await began(session, PROGRAM, called(1))
    await session.add_tool_result("toolu_1", "1")
    request = await asked(session)
    for number in range(2, count + 1):
        nothing = {"input_tokens": 0, "output_tokens": 0}
        reply = replied(model=MODEL, content=[called(number)], stop_reason="tool_use", usage=nothing)
        await session.add_response(reply, request=request)
        await session.add_tool_result(f"toolu_{number}", str(number))
        request = await asked(session)
    return request


async def test_the_program_goes_back_with_the_calls_of_all_its_rounds_until_it_ends(session):
    request = await rounds(session, 3)
    assert [said(request, place) for place in (1, 3, 5)] == [[PROGRAM, called(1)], [called(2)], [called(3)]]
    assert [message["role"] for message in request["messages"][1:]] == ["assistant", "user"] * 3
    assert request.omitted == ()
    await session.add_response(replied(model=MODEL, content=[RAN, SAYS], stop_reason="end_turn"), request=request)
    await session.add_user("And?")
    after = await asked(session)
    assert after["messages"][:7] == request["messages"]
    assert said(after, 7) == [RAN, SAYS]
    assert after.omitted == ()


async def test_each_request_begins_with_the_one_before(session):
    first = await rounds(session, 1)
    reply = replied(model=MODEL, content=[called(2)], stop_reason="tool_use")
    await session.add_response(reply, request=first)
    await session.add_tool_result("toolu_2", "2")
    second = await asked(session)
    assert second["messages"][: len(first["messages"])] == first["messages"]


async def test_a_program_that_is_left_behind_is_left_out_of_all_its_rounds(session):
    await rounds(session, 3)
    await session.add_user("Wait.")
    request = await asked(session)
    assert [said(request, place) for place in (1, 3, 5)] == [
        [{**OURS, "id": f"toolu_{number}"}] for number in (1, 2, 3)
    ]
    assert [note.what for note in request.omitted] == ["native"]
    await session.add_response(replied(model=MODEL, content=[RAN, SAYS], stop_reason="end_turn"))
    assert said(await asked(session), 7) == [SAYS]


async def test_an_answer_that_forgets_the_program_ends_its_wait(session):
    await rounds(session, 2)
    await session.add_response(replied(model=MODEL, content=[SAYS], stop_reason="end_turn"))
    request = await asked(session)
    assert said(request) == [{**OURS, "id": "toolu_1"}]
    assert said(request, 3) == [{**OURS, "id": "toolu_2"}]


async def test_going_back_to_any_round_and_other_providers_leave_a_valid_request(session):
    await rounds(session, 3)
    await session.add_response(replied(model=MODEL, content=[RAN, SAYS], stop_reason="end_turn"))
    for frame in reversed(list(await session.stack())[2:]):
        await session.goto(frame.id)
        await asked(session)
        for dialect, model in [("openai_chat", "gpt-5"), ("openai_responses", "gpt-5"), ("gemini", "gemini-2.5-pro")]:
            other = await session.build_request(dialect, model=model)
            assert validate_request(dialect, other) == []


async def test_two_programs_end_one_in_a_round_of_the_other(session):
    other, ran_other = {**PROGRAM, "id": "srvtoolu_8"}, {**RAN, "tool_use_id": "srvtoolu_8"}
    await began(session, PROGRAM, other, called(1), called(2, tool_id="srvtoolu_8"))
    await session.add_tool_result("toolu_1", "1")
    await session.add_tool_result("toolu_2", "2")
    await session.add_response(replied(model=MODEL, content=[ran_other, called(3)], stop_reason="tool_use"))
    await session.add_tool_result("toolu_3", "3")
    request = await asked(session)
    assert said(request) == [PROGRAM, other, called(1), called(2, tool_id="srvtoolu_8")]
    assert said(request, 3) == [ran_other, called(3)]
    await session.add_response(replied(model=MODEL, content=[RAN, SAYS], stop_reason="end_turn"))
    await session.add_user("And?")
    assert (await asked(session)).omitted == ()


async def test_a_round_that_was_charged_nothing_says_nothing_of_how_long_the_context_is(session):
    request = await rounds(session, 2)
    assert request.input_tokens > 50


@pytest.mark.parametrize("place", [1, 3])
async def test_a_call_of_a_program_that_is_nowhere_is_a_problem(session, place):
    request = await rounds(session, 2)
    request["messages"][place]["content"][-1]["caller"]["tool_id"] = "srvtoolu_gone"
    (problem,) = validate_request("anthropic", request)
    assert problem.startswith(f"messages[{place}].content[{1 if place == 1 else 0}].caller: no-call: ")
