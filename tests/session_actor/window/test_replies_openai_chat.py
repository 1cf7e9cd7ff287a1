"""Replies of OpenAI's Chat Completions, and of servers that speak it, as turns."""

from __future__ import annotations

import pytest
from pydantic import BaseModel

from session_actor import Text, Thinking, ToolCall, turn_of, validate_request

from .asked import DIALECTS, shown
from .openai_replies import ARGUMENTS, CHAT, FUTURE, as_chat, as_received_chat, said


@pytest.mark.parametrize("make", [dict, as_chat, as_received_chat])
def test_a_chat_completion_is_a_turn_with_its_calls_as_the_model_wrote_them(make):
    turn = turn_of(make(CHAT))

    assert (turn.dialect, turn.model, turn.stop_reason) == ("openai_chat", "gpt-5.1", "tool_calls")
    assert turn.blocks == (
        Text("Two things"),
        ToolCall("call_1", "ls", ARGUMENTS),
        ToolCall("call_2", "ls", '{"pa'),
        ToolCall("call_3", "sql", '{"input": "SELECT 1"}'),
    )


@pytest.mark.parametrize(
    ("message", "blocks"),
    [
        ({"content": None, "refusal": "No."}, (Text("No."),)),
        ({"content": ""}, ()),
        ({"content": "a", "reasoning_content": "Hm"}, (Thinking("Hm"), Text("a"))),
        ({"content": "a", "reasoning": "Hm"}, (Thinking("Hm", field="reasoning"), Text("a"))),
        (
            {"content": "a", "reasoning_content": "Hm", "reasoning": "Hm"},
            (Thinking("Hm"), Text("a")),
        ),
        ({"content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]}, (Text("a"), Text("b"))),
        ({"content": None, "audio": {"id": "a", "data": "eA==", "transcript": "spoken"}}, (Text("spoken"),)),
        ({"content": None, "function_call": {"name": "ls", "arguments": "{}"}}, (ToolCall("", "ls", "{}"),)),
        ({"tool_calls": [{"id": None, "function": {"name": "t", "arguments": None}}]}, (ToolCall("", "t", ""),)),
        (
            {"tool_calls": [{"id": "a", "function": {"name": "t", "arguments": {"b": 1}}}]},
            (ToolCall("a", "t", '{"b":1}'),),
        ),
    ],
)
def test_a_message_of_any_form_says_what_it_says(message, blocks):
    assert turn_of(said(**message)).blocks == blocks


def test_a_server_that_says_less_is_understood():
    turn = turn_of({"choices": [{"message": {"role": "assistant", "content": "hi"}}]})

    assert turn.blocks == (Text("hi"),)
    assert (turn.usage, turn.model, turn.stop_reason) == (None, None, None)


def test_a_cache_that_is_reported_in_another_place_counts():
    usage = {"prompt_tokens": 9, "completion_tokens": 1, "prompt_cache_hit_tokens": 4, "prompt_cache_miss_tokens": 5}

    assert turn_of({**CHAT, "usage": usage}).usage.cache_read_tokens == 4


class Answer(BaseModel):
    """What a caller wants answers parsed into."""

    city: str


def chunks(*deltas, finish="tool_calls"):
    made = [
        {
            "id": "chatcmpl-1",
            "object": "chat.completion.chunk",
            "created": 1,
            "model": "gpt-5.1",
            "choices": [{"index": 0, "delta": delta, "finish_reason": None}],
        }
        for delta in deltas
    ]
    if finish:
        made.append({**made[0], "choices": [{"index": 0, "delta": {}, "finish_reason": finish}]})
    return made


DELTAS = [
    {"role": "assistant", "content": "Two "},
    {"content": "things"},
    {
        "tool_calls": [
            {"index": 0, "id": "call_1", "type": "function", "function": {"name": "ls", "arguments": '{"a":'}}
        ]
    },
    {"tool_calls": [{"index": 0, "function": {"arguments": " 1}"}}]},
    {"tool_calls": [{"index": 1, "id": "call_2", "type": "function", "function": {"name": "ls", "arguments": '{"b'}}]},
]


def test_a_stream_of_chat_is_a_whole_reply(streams):
    turn = turn_of(streams.chat(chunks(*DELTAS)))

    assert turn.blocks == (Text("Two things"), ToolCall("call_1", "ls", '{"a": 1}'), ToolCall("call_2", "ls", '{"b'))
    assert turn.stop_reason == "tool_calls"


@pytest.mark.parametrize("cut", range(1, len(DELTAS) + 1))
def test_a_stream_of_chat_that_breaks_off_is_what_came(streams, cut):
    turn = turn_of(streams.chat(chunks(*DELTAS[:cut], finish=None), breaks=True))

    assert turn.stop_reason is None
    assert turn.text == ("Two " if cut == 1 else "Two things")
    written = [block.arguments for block in turn.blocks if type(block) is ToolCall]
    assert written == [[], [], ['{"a":'], ['{"a": 1}'], ['{"a": 1}', '{"b']][cut - 1]


def test_what_the_sdk_parsed_for_a_caller_is_left_aside():
    from openai.types.chat import ParsedChatCompletion

    parsed = ParsedChatCompletion[Answer].construct(**said(content='{"city":"Ulm"}', parsed=Answer(city="Ulm")))

    assert turn_of(parsed).blocks == (Text('{"city":"Ulm"}'),)


@pytest.mark.parametrize("make", [dict, as_received_chat])
@pytest.mark.parametrize(
    ("finish", "arguments"),
    [("tool_calls", '{"input": "SELECT \\"é\\n"}'), ("length", 'SELECT "é\n'), (None, 'SELECT "é\n')],
)
def test_the_input_of_a_custom_tool_of_chat_is_whole_unless_the_reply_broke_off_in_it(make, finish, arguments):
    calls = [{"id": f"call_{n}", "type": "custom", "custom": {"name": "sql", "input": 'SELECT "é\n'}} for n in (1, 2)]
    reply = said(content=None, tool_calls=calls)
    reply["choices"][0]["finish_reason"] = finish
    assert [call.arguments for call in turn_of(make(reply)).blocks] == ['{"input": "SELECT \\"é\\n"}', arguments]


async def test_a_part_of_a_chat_s_message_that_is_not_known_yet_is_kept_and_the_rest_is_shown(session):
    thought = {"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]}
    await session.add_user("hi")
    frame = await session.add_response(said(content=[thought, FUTURE, {"type": "text", "text": "a"}]))
    assert [block.value for block in frame.turns[0].blocks[:2]] == [thought, FUTURE]
    for dialect in DIALECTS:
        request = await session.build_request(dialect, model="gpt-5.1")
        assert validate_request(dialect, request) == []
        assert "rose" not in shown(request)
        assert "hm" not in shown(request)
