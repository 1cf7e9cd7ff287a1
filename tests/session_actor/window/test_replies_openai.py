"""Replies of OpenAI's Responses as turns, and what holds for both of its APIs."""

from __future__ import annotations

import pytest

from session_actor import Native, Text, ToolCall, turn_of, validate_request
from session_actor.commands import AddResponse, AddToolResult, AddUser
from session_actor.errors import InvalidArgument

from .asked import DIALECTS, Asked, shown
from .openai_replies import (
    ARGUMENTS,
    CHAT,
    FUTURE,
    MESSAGE,
    REASONING,
    RESPONSE,
    SEARCH,
    as_received_response,
    as_response,
    said,
)


@pytest.mark.parametrize("reply", [CHAT, RESPONSE], ids=["chat", "responses"])
def test_what_came_from_the_cache_is_part_of_the_input_already(reply):
    usage = turn_of(reply).usage

    assert (usage.input_tokens, usage.output_tokens) == (120, 50)
    assert (usage.cache_read_tokens, usage.cache_write_tokens, usage.reasoning_tokens) == (100, 7, 30)
    assert usage.raw_value == reply["usage"]


@pytest.mark.parametrize("make", [dict, as_response, as_received_response])
def test_a_response_is_a_turn_with_its_items_verbatim(make):
    turn = turn_of(make(RESPONSE))

    assert (turn.dialect, turn.model, turn.stop_reason) == ("openai_responses", "gpt-5.1", "completed")
    reasoning, search, *rest = turn.blocks
    for native, given in ((reasoning, REASONING), (search, SEARCH)):
        assert type(native) is Native
        assert (native.dialect, native.model, native.value) == ("openai_responses", "gpt-5.1", given)
    assert rest == [
        Text("Two "),
        Text("No."),
        ToolCall("call_1", "ls", ARGUMENTS),
        ToolCall("call_2", "ls", "{}"),
        ToolCall("call_3", "sql", '{"input": "SELECT 1"}'),
    ]


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}}, "max_output_tokens"),
        ({"status": "incomplete"}, "incomplete"),
        ({"status": "failed"}, "failed"),
        ({"status": "cancelled"}, "cancelled"),
        ({"status": "in_progress"}, None),
        ({"status": "queued"}, None),
    ],
)
def test_why_a_response_stopped_is_its_status_or_what_made_it_incomplete(fields, reason):
    assert turn_of({**RESPONSE, **fields}).stop_reason == reason


def test_a_call_that_a_response_did_not_finish_is_kept_as_far_as_it_came():
    item = {"type": "function_call", "call_id": "call_1", "name": "ls", "arguments": '{"pa', "status": "in_progress"}
    turn = turn_of({**RESPONSE, "status": "in_progress", "output": [item], "usage": None})

    assert turn.blocks == (ToolCall("call_1", "ls", '{"pa'),)


def test_a_stream_of_a_response_is_a_whole_reply(streams):
    started = {**RESPONSE, "status": "in_progress", "output": [], "usage": None}
    events = [
        {"type": "response.created", "response": started, "sequence_number": 0},
        {"type": "response.completed", "response": RESPONSE, "sequence_number": 1},
    ]

    turn, given = turn_of(streams.response(events)), turn_of(RESPONSE)

    assert [getattr(block, "value", block) for block in turn.blocks] == [
        getattr(block, "value", block) for block in given.blocks
    ]
    assert (turn.usage.raw_value, turn.stop_reason) == (given.usage.raw_value, given.stop_reason)


@pytest.mark.parametrize(
    ("where", "reply"),
    [
        ("reply.choices", {**CHAT, "choices": []}),
        ("reply.choices", {**CHAT, "choices": [CHAT["choices"][0]] * 2}),
        ("reply.choices", {**CHAT, "choices": "x"}),
        ("reply.choices[0].message", {**CHAT, "choices": [{"delta": {}}]}),
        ("reply.choices[0].message", {**CHAT, "choices": [{"message": 7}]}),
        ("reply.choices[0].message.content", said(content=7)),
        ("reply.choices[0].message.content[0].text", said(content=[{"text": 7}])),
        ("reply.choices[0].message.tool_calls", said(tool_calls={})),
        ("reply.choices[0].message.tool_calls[0].function", said(tool_calls=[{"id": "a"}])),
        ("reply.choices[0].message.tool_calls[0].function.name", said(tool_calls=[{"id": "a", "function": {}}])),
        (
            "reply.choices[0].message.tool_calls[0].function.arguments",
            said(tool_calls=[{"id": "a", "function": {"name": "t", "arguments": 7}}]),
        ),
        ("reply.choices[0].finish_reason", {**CHAT, "choices": [{"message": MESSAGE, "finish_reason": 7}]}),
        ("reply.usage.prompt_tokens", {**CHAT, "usage": {"prompt_tokens": True}}),
        ("reply.usage.prompt_tokens_details", {**CHAT, "usage": {"prompt_tokens_details": []}}),
        ("reply", {"object": "chat.completion.chunk", "choices": [{"delta": {}}]}),
        ("reply.output", {**RESPONSE, "output": {}}),
        ("reply.output[0].type", {**RESPONSE, "output": [{}]}),
        ("reply.output[0].call_id", {**RESPONSE, "output": [{"type": "function_call", "name": "x"}]}),
        ("reply.output[0].content[0].type", {**RESPONSE, "output": [{"type": "message", "content": [{"type": 7}]}]}),
        ("reply.output[0].content[0].type", {**RESPONSE, "output": [{"type": "message", "content": [{}]}]}),
        ("reply.status", {**RESPONSE, "status": 7}),
    ],
)
def test_what_is_wrong_is_named_by_its_place(where, reply):
    with pytest.raises(InvalidArgument) as caught:
        turn_of(reply)

    assert caught.value.what == where


@pytest.mark.parametrize("make", [dict, as_response])
@pytest.mark.parametrize(
    ("status", "arguments"),
    [("completed", '{"input": "SELECT 1"}'), ("incomplete", "SELECT 1"), ("queued", "SELECT 1")],
)
def test_the_input_of_a_custom_tool_of_responses_is_whole_unless_the_reply_broke_off_in_it(make, status, arguments):
    item = {"id": "ct_1", "type": "custom_tool_call", "call_id": "c", "name": "sql", "input": "SELECT 1"}
    turn = turn_of(make({**RESPONSE, "status": status, "output": [{**item, "call_id": "b"}, item]}))
    assert [call.arguments for call in turn.blocks] == ['{"input": "SELECT 1"}', arguments]


@pytest.mark.parametrize("reply", [CHAT, RESPONSE], ids=["chat", "responses"])
def test_a_call_of_a_custom_tool_is_asked_for_and_shown_with_its_answer(reply):
    live = Asked()
    live.do(AddUser("How many?"))
    live.do(AddResponse(turn_of(reply)))
    live.do(AddToolResult("call_3", "one row"))
    for dialect in DIALECTS:
        request = shown(live.ask(dialect))
        assert "SELECT 1" in request
        assert "one row" in request


def test_what_a_dump_says_is_none_was_never_sent():
    items = [REASONING, SEARCH]
    whole = as_response(RESPONSE | {"output": items})
    dumped = whole.model_dump()
    assert dumped["output"][0]["status"] is None
    assert dumped["output"][1]["action"]["queries"] is None
    assert turn_of(dumped).blocks == turn_of(whole).blocks
    assert [block.value for block in turn_of(dumped).blocks] == items  # type: ignore[union-attr]


async def test_whether_a_message_is_commentary_goes_back_to_the_model_that_said_so(session):
    says = [
        {"type": "message", "id": f"msg_{n}", "role": "assistant", "status": "completed", "phase": phase,
         "content": [{"type": "output_text", "text": text, "annotations": []}]}
        for n, (phase, text) in enumerate([("commentary", "I look."), ("final_answer", "At noon.")])
    ]  # fmt: skip
    await session.add_user("When?")
    frame = await session.add_response({**RESPONSE, "model": "gpt-5.5", "output": says})
    assert frame.turns[0].blocks == (Text("I look.", phase="commentary"), Text("At noon.", phase="final_answer"))
    request = await session.build_request("openai_responses", model="gpt-5.5-2026-04-23")
    assert validate_request("openai_responses", request) == []
    assert [item.get("phase") for item in request["input"]] == [None, "commentary", "final_answer", None]
    for dialect, model in [("openai_responses", "gpt-4.1"), ("openai_chat", "gpt-5.5"), ("gemini", "gemini-3-pro")]:
        assert "final_answer" not in str(dict(await session.build_request(dialect, model=model)))


@pytest.mark.parametrize("make", [dict, as_received_response])
async def test_a_part_of_a_message_that_is_not_known_yet_is_kept_and_the_rest_is_shown(session, make):
    content = [{"type": "output_text", "text": "a", "annotations": []}, FUTURE, {"type": "refusal", "refusal": "No."}]
    item = {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": content}
    await session.add_user("hi")
    frame = await session.add_response(make({**RESPONSE, "output": [item]}))
    first, kept, last = frame.turns[0].blocks
    assert (first, last) == (Text("a"), Text("No."))
    assert kept.value["content"] == [FUTURE]
    for dialect in DIALECTS:
        request = await session.build_request(dialect, model="gpt-5.1")
        assert validate_request(dialect, request) == []
        assert "rose" not in shown(request)
        assert "No." in shown(request)
