"""Replies of anthropic: what the SDK gives, whole, streamed or cut off, becomes one turn."""

from __future__ import annotations

import json

import pytest

from session_actor import Native, Text, Thinking, ToolCall, turn_of
from session_actor.errors import InvalidArgument

CITED = {
    "type": "text",
    "text": "It rains.",
    "citations": [
        {
            "type": "char_location",
            "cited_text": "rain",
            "document_index": 0,
            "document_title": None,
            "start_char_index": 0,
            "end_char_index": 4,
            "file_id": None,
        }
    ],
}
SEARCH = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "rain"}}
FOUND = {
    "type": "web_search_tool_result",
    "tool_use_id": "srvtoolu_1",
    "content": [
        {
            "type": "web_search_result",
            "title": "Rain",
            "url": "https://example.org",
            "encrypted_content": "RW5j",
            "page_age": None,
        }
    ],
}
REDACTED = {"type": "redacted_thinking", "data": "ZGF0YQ=="}
CONTENT = [
    {"type": "thinking", "thinking": "Let me see", "signature": "c2ln"},
    REDACTED,
    {"type": "text", "text": "Two things: "},
    SEARCH,
    FOUND,
    CITED,
    {"type": "tool_use", "id": "toolu_1", "name": "ls", "input": {"path": "/\u00fc", "deep": [1, 2.0, None, True]}},
    {"type": "tool_use", "id": "toolu_2", "name": "ls", "input": {}},
]
USAGE = {
    "input_tokens": 7,
    "cache_read_input_tokens": 100,
    "cache_creation_input_tokens": 20,
    "output_tokens": 50,
    "output_tokens_details": {"thinking_tokens": 30},
}
REPLY = {
    "id": "msg_1",
    "type": "message",
    "role": "assistant",
    "model": "claude-sonnet-4-5",
    "content": CONTENT,
    "stop_reason": "tool_use",
    "stop_sequence": None,
    "usage": USAGE,
}


def as_sdk(reply):
    from anthropic.types import Message

    return Message.model_validate(reply)


def as_received(reply):
    """What the SDK's client makes of an answer, whatever it is."""
    from anthropic.types import Message

    return Message.construct(**reply)


def as_beta(reply):
    from anthropic.types.beta import BetaMessage

    return BetaMessage.model_validate(reply)


def replied(**fields):
    return {**REPLY, **fields}


@pytest.mark.parametrize("make", [dict, as_sdk, as_received], ids=["dict", "SDK", "SDK as it receives"])
def test_every_block_is_kept_as_its_kind_or_verbatim(make):
    turn = turn_of(make(REPLY))

    assert (turn.role, turn.dialect, turn.model, turn.stop_reason) == (
        "assistant", "anthropic", "claude-sonnet-4-5", "tool_use",
    )  # fmt: skip
    thinking, redacted, text, search, found, cited, first, second = turn.blocks
    assert thinking == Thinking("Let me see", "c2ln")
    assert text == Text("Two things: ")
    for native, given in ((redacted, REDACTED), (search, SEARCH), (found, FOUND), (cited, CITED)):
        assert type(native) is Native
        assert (native.dialect, native.model, native.value) == ("anthropic", "claude-sonnet-4-5", given)
    assert first == ToolCall("toolu_1", "ls", '{"path":"/\u00fc","deep":[1,2.0,null,true]}')
    assert second == ToolCall("toolu_2", "ls", "{}")


@pytest.mark.parametrize("make", [dict, as_sdk], ids=["dict", "SDK"])
def test_what_came_from_the_cache_or_went_there_is_part_of_the_input(make):
    usage = turn_of(make(REPLY)).usage

    assert (usage.input_tokens, usage.output_tokens) == (127, 50)
    assert (usage.cache_read_tokens, usage.cache_write_tokens, usage.reasoning_tokens) == (100, 20, 30)
    assert usage.raw_value == USAGE
    assert usage.anchor_tokens is None


def iteration(kind, sent, made, cached=0):
    return {
        "type": kind,
        "input_tokens": sent,
        "output_tokens": made,
        "cache_read_input_tokens": cached,
        "cache_creation_input_tokens": 0,
        **({"model": "claude-opus-4-6"} if kind == "advisor_message" else {}),
    }


@pytest.mark.parametrize("make", [dict, as_beta], ids=["dict", "SDK"])
def test_of_several_calls_for_one_reply_only_the_last_says_how_long_the_context_is(make):
    usage = {
        **USAGE,
        "input_tokens": 1_000 + 1_600,
        "cache_read_input_tokens": 500,
        "cache_creation_input_tokens": 0,
        "iterations": [iteration("message", 1_000, 20), iteration("message", 1_600, 30, 500)],
    }
    read = turn_of(make(replied(usage=usage))).usage

    assert read.input_tokens == 3_100
    assert read.anchor_tokens == 2_100


def test_compactions_and_advice_are_charged_on_top_and_measure_nothing():
    usage = {
        "input_tokens": 400,
        "output_tokens": 50,
        "iterations": [
            iteration("compaction", 9_000, 700),
            iteration("message", 400, 50),
            iteration("advisor_message", 3_000, 90),
        ],
    }
    read = turn_of(replied(usage=usage)).usage

    assert (read.input_tokens, read.output_tokens) == (12_400, 840)
    assert read.anchor_tokens == 400


def test_one_call_measures_what_it_says():
    usage = {**USAGE, "iterations": [iteration("message", 127, 50)]}

    assert turn_of(replied(usage=usage)).usage.anchor_tokens is None


def events(*, cut=None):
    """The events of a stream: a thought, a text, two calls; `cut`: how many of them come."""
    made = [{"type": "message_start", "message": replied(content=[], stop_reason=None)}]
    blocks = [
        ({"type": "thinking", "thinking": "", "signature": ""}, ["Let ", "me"], "thinking"),
        ({"type": "text", "text": ""}, ["Two ", "things"], "text"),
        ({"type": "tool_use", "id": "toolu_1", "name": "ls", "input": {}}, ['{"path": "/h', 'ome"}'], "partial_json"),
        ({"type": "tool_use", "id": "toolu_2", "name": "rm", "input": {}}, ['{"path": "/h', 'ome/x"}'], "partial_json"),
    ]
    kinds = {"thinking": "thinking_delta", "text": "text_delta", "partial_json": "input_json_delta"}
    for place, (block, parts, field) in enumerate(blocks):
        made.append({"type": "content_block_start", "index": place, "content_block": block})
        for part in parts:
            delta = {"type": kinds[field], field: part}
            made.append({"type": "content_block_delta", "index": place, "delta": delta})
        if field == "thinking":
            delta = {"type": "signature_delta", "signature": "c2ln"}
            made.append({"type": "content_block_delta", "index": place, "delta": delta})
        made.append({"type": "content_block_stop", "index": place})
    made.append(
        {
            "type": "message_delta",
            "delta": {"stop_reason": "tool_use", "stop_sequence": None},
            "usage": {"output_tokens": 77},
        }
    )
    made.append({"type": "message_stop"})
    return made if cut is None else made[:cut]


def test_a_stream_to_its_end_is_a_whole_reply(streams):
    turn = turn_of(streams.anthropic(events()))

    assert turn.stop_reason == "tool_use"
    assert turn.blocks == (
        Thinking("Let me", "c2ln"),
        Text("Two things"),
        ToolCall("toolu_1", "ls", '{"path":"/home"}'),
        ToolCall("toolu_2", "rm", '{"path":"/home/x"}'),
    )
    assert (turn.usage.input_tokens, turn.usage.output_tokens) == (127, 77)


@pytest.mark.parametrize("cut", range(2, len(events()) - 2))
def test_wherever_a_stream_breaks_off_its_last_call_does_not_pass_for_complete(streams, cut):
    turn = turn_of(streams.anthropic(events(cut=cut), breaks=True))

    assert turn.stop_reason is None
    calls = [block for block in turn.blocks if type(block) is ToolCall]
    if calls and turn.blocks[-1] is calls[-1]:
        with pytest.raises(json.JSONDecodeError):
            json.loads(calls[-1].arguments)
    assert all(json.loads(call.arguments) == {"path": "/home"} for call in calls[:-1])


@pytest.mark.parametrize("reason", ["max_tokens", "model_context_window_exceeded", "refusal"])
async def test_a_call_in_which_a_reply_came_to_its_end_is_not_to_be_run(session, reason):
    calls = [{"type": "tool_use", "id": f"toolu_{n}", "name": "rm", "input": {"path": "/home"}} for n in (1, 2)]
    await session.add_user("hi")
    frame = await session.add_response(replied(content=calls, stop_reason=reason))
    assert [block.arguments for block in frame.turns[0].blocks] == ['{"path":"/home"}', '{"path":"/home"']
    assert [call.id for call in await session.pending_calls()] == ["toolu_1"]


async def test_a_call_after_which_a_reply_went_on_is_whole(session):
    content = [{"type": "tool_use", "id": "toolu_1", "name": "rm", "input": {}}, {"type": "text", "text": "and"}]
    await session.add_user("hi")
    await session.add_response(replied(content=content, stop_reason="max_tokens"))
    assert [call.arguments for call in await session.pending_calls()] == ["{}"]


def test_thinking_that_was_cut_off_has_no_signature(streams):
    assert turn_of(streams.anthropic(events(cut=3), breaks=True)).blocks == (Thinking("Let "),)


def test_a_reply_that_says_nothing_is_a_turn_without_blocks():
    turn = turn_of(replied(content=[{"type": "text", "text": ""}], stop_reason="end_turn", usage=None))

    assert turn.blocks == ()
    assert turn.usage is None


@pytest.mark.parametrize(
    ("where", "fields"),
    [
        ("reply.role", {"role": "user"}),
        ("reply.content", {"content": "text"}),
        ("reply.content[0]", {"content": [7]}),
        ("reply.content[0].type", {"content": [{}]}),
        ("reply.content[1].text", {"content": [CITED, {"type": "text", "text": 7}]}),
        ("reply.content[0].id", {"content": [{"type": "tool_use", "name": "x", "input": {}}]}),
        ("reply.content[0].input", {"content": [{"type": "tool_use", "id": "x", "name": "x"}]}),
        ("reply.content[0].input", {"content": [{"type": "tool_use", "id": "x", "name": "x", "input": {1: 2}}]}),
        ("reply.content[0].signature", {"content": [{"type": "thinking", "thinking": "x", "signature": 7}]}),
        ("reply.usage", {"usage": 7}),
        ("reply.usage.input_tokens", {"usage": {"input_tokens": -1}}),
        ("reply.usage.output_tokens", {"usage": {"output_tokens": "5"}}),
        ("reply.usage.input_tokens", {"usage": {"input_tokens": 2**63 - 1, "cache_read_input_tokens": 1}}),
        ("reply.stop_reason", {"stop_reason": 7}),
        ("reply.model", {"model": b"m"}),
    ],
)
def test_what_is_wrong_is_named_by_its_place(where, fields):
    with pytest.raises(InvalidArgument) as caught:
        turn_of(replied(**fields))

    assert caught.value.what == where
