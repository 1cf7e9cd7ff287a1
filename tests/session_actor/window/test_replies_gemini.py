"""Replies of gemini: the SDK's objects, the JSON of the API, and the chunks of a stream become one turn."""

from __future__ import annotations

import json

import pytest

from session_actor import Native, Text, Thinking, ToolCall, turn_of
from session_actor.errors import InvalidArgument

# Base64 with what tells the two alphabets apart: bytes fb ff fe.
SIGNATURE, URL_SIGNATURE = "+//+", "-__-"
PARTS = [
    {"text": "Let me see", "thought": True},
    {"text": "Two things", "thoughtSignature": SIGNATURE},
    {
        "functionCall": {"name": "ls", "args": {"path": "/\u00fc", "deepKey": [1, 2.5, None]}},
        "thoughtSignature": SIGNATURE,
    },
    {"functionCall": {"id": "call_2", "name": "ls"}},
    {"executableCode": {"language": "PYTHON", "code": "1 + 1"}},
    {"inlineData": {"mimeType": "image/png", "data": "iVBORw=="}, "thoughtSignature": SIGNATURE},
    {"text": "", "thoughtSignature": SIGNATURE},
]
USAGE = {
    "promptTokenCount": 120,
    "cachedContentTokenCount": 100,
    "candidatesTokenCount": 20,
    "thoughtsTokenCount": 30,
    "totalTokenCount": 170,
    "promptTokensDetails": [{"modality": "TEXT", "tokenCount": 120}],
}
REPLY = {
    "candidates": [{"content": {"role": "model", "parts": PARTS}, "finishReason": "STOP", "index": 0}],
    "usageMetadata": USAGE,
    "modelVersion": "gemini-3-pro",
    "responseId": "r",
}


def as_sdk(reply):
    """The object that the SDK makes of the API's JSON."""
    from google.genai import types

    return types.GenerateContentResponse.model_validate_json(json.dumps(reply))


def as_snake(reply):
    """What `model_dump` of that object gives."""
    return as_sdk(reply).model_dump(exclude_none=True)


every_form = pytest.mark.parametrize("make", [dict, as_sdk, as_snake], ids=["JSON", "SDK", "dumped"])


def replied(*parts, **fields):
    candidate = {"content": {"role": "model", "parts": list(parts)}, "finishReason": "STOP"}
    return {**REPLY, "candidates": [candidate], **fields}


@every_form
def test_every_part_is_kept_as_its_kind_or_verbatim(make):
    turn = turn_of(make(REPLY))

    assert (turn.dialect, turn.model, turn.stop_reason) == ("gemini", "gemini-3-pro", "STOP")
    thought, text, first, second, code, image, closing = turn.blocks
    assert thought == Thinking("Let me see")
    assert text == Text("Two things", SIGNATURE)
    assert first == ToolCall("", "ls", '{"path":"/\u00fc","deepKey":[1,2.5,null]}', SIGNATURE)
    assert second == ToolCall("call_2", "ls", "{}")
    assert closing == Text("", SIGNATURE)
    assert (type(code), type(image)) == (Native, Native)
    assert code.value == {"executable_code": {"language": "PYTHON", "code": "1 + 1"}}
    assert image.value == {
        "inline_data": {"mime_type": "image/png", "data": b"\x89PNG"},
        "thought_signature": b"\xfb\xff\xfe",
    }
    assert {native.model for native in (code, image)} == {"gemini-3-pro"}


def test_a_native_part_is_what_the_sdk_takes_back():
    from google.genai import types

    given = as_sdk(REPLY).candidates[0].content.parts
    natives = [block.value for block in turn_of(as_sdk(REPLY)).blocks if type(block) is Native]

    assert [types.Part(**native) for native in natives] == given[4:6]


def test_a_signature_in_the_alphabet_of_urls_is_the_same_one():
    assert turn_of(replied({"text": "x", "thoughtSignature": URL_SIGNATURE})).blocks == (Text("x", SIGNATURE),)


def test_keys_of_other_peoples_objects_stay_as_they_are():
    part = {"toolCall": {"id": "a", "toolType": "GOOGLE_SEARCH_WEB", "args": {"someKey": {"innerKey": 1}}}}
    (native,) = turn_of(replied(part)).blocks

    assert native.value["tool_call"]["args"] == {"someKey": {"innerKey": 1}}


@every_form
def test_thoughts_come_on_top_of_the_answer_and_the_cache_is_part_of_the_prompt(make):
    usage = turn_of(make(REPLY)).usage

    assert (usage.input_tokens, usage.output_tokens) == (120, 50)
    assert (usage.cache_read_tokens, usage.reasoning_tokens) == (100, 30)
    assert usage.anchor_tokens is None


def test_what_the_providers_tools_gave_the_model_is_input_but_was_not_sent():
    usage = turn_of({**REPLY, "usageMetadata": {**USAGE, "toolUsePromptTokenCount": 800}}).usage

    assert (usage.input_tokens, usage.anchor_tokens) == (920, 120)


@every_form
def test_a_prompt_that_was_blocked_is_a_turn_that_says_nothing(make):
    turn = turn_of(make({"promptFeedback": {"blockReason": "SAFETY"}, "usageMetadata": USAGE}))

    assert (turn.blocks, turn.stop_reason) == ((), "SAFETY")


@pytest.mark.parametrize(
    "content", [{}, {"content": None}, {"content": {"role": "model"}}, {"content": {"parts": None}}]
)
def test_a_candidate_that_ended_before_it_said_anything_has_no_blocks(content):
    turn = turn_of({**REPLY, "candidates": [{**content, "finishReason": "MALFORMED_FUNCTION_CALL"}]})

    assert (turn.blocks, turn.stop_reason) == ((), "MALFORMED_FUNCTION_CALL")


def chunk(*parts, **fields):
    return {
        "candidates": [{"content": {"role": "model", "parts": list(parts)}}],
        "modelVersion": "gemini-3-pro",
        **fields,
    }


CHUNKS = [
    chunk({"text": "Let ", "thought": True}),
    chunk({"text": "me see", "thought": True}),
    chunk({"text": "Two "}),
    chunk({"text": "things"}, usageMetadata={"promptTokenCount": 120, "candidatesTokenCount": 1}),
    chunk({"functionCall": {"name": "ls", "args": {"a": 1}}, "thoughtSignature": SIGNATURE}),
    chunk({"functionCall": {"name": "ls", "args": {"a": 2}}}),
    {**replied({"text": "", "thoughtSignature": SIGNATURE}), "usageMetadata": USAGE},
]


@every_form
def test_the_chunks_of_a_stream_are_gathered(make):
    turn = turn_of([make(each) for each in CHUNKS])

    assert turn.blocks == (
        Thinking("Let me see"),
        Text("Two things"),
        ToolCall("", "ls", '{"a":1}', SIGNATURE),
        ToolCall("", "ls", '{"a":2}'),
        Text("", SIGNATURE),
    )
    assert (turn.stop_reason, turn.model) == ("STOP", "gemini-3-pro")
    assert turn.usage.output_tokens == 50


def test_the_chunks_of_a_stream_that_broke_off_are_what_came():
    turn = turn_of(CHUNKS[:3], "gemini")

    assert turn.blocks == (Thinking("Let me see"), Text("Two "))
    assert (turn.stop_reason, turn.usage) == (None, None)


def test_a_text_with_a_signature_is_not_joined_with_another():
    signed = {"text": "b", "thoughtSignature": SIGNATURE}
    turn = turn_of([chunk({"text": "a"}), chunk(signed), chunk({"text": "c"})])

    assert turn.blocks == (Text("a"), Text("b", SIGNATURE), Text("c"))


def test_neighbours_in_one_reply_are_not_joined():
    assert turn_of(replied({"text": "a"}, {"text": "b"})).blocks == (Text("a"), Text("b"))


@pytest.mark.parametrize(
    ("where", "reply"),
    [
        ("reply.candidates", {**REPLY, "candidates": REPLY["candidates"] * 2}),
        ("reply.candidates[0]", {**REPLY, "candidates": ["x"]}),
        ("reply.candidates[0].content", {**REPLY, "candidates": [{"content": "x"}]}),
        ("reply.candidates[0].content.parts[1].text", replied({"text": "a"}, {"text": 7})),
        ("reply.candidates[0].content.parts[0].function_call.name", replied({"functionCall": {}})),
        (
            "reply.candidates[0].content.parts[0].function_call.args",
            replied({"functionCall": {"name": "x", "args": [1]}}),
        ),
        ("reply.candidates[0].content.parts[0].thought_signature", replied({"text": "a", "thoughtSignature": "?"})),
        ("reply.candidates[0].content.parts[0].thought_signature", replied({"text": "a", "thoughtSignature": 7})),
        (
            "reply.candidates[0].content.parts[0].inline_data.data",
            replied({"inlineData": {"mimeType": "image/png", "data": "\u00fc"}}),
        ),
        ("reply.usage_metadata.prompt_token_count", {**REPLY, "usageMetadata": {"promptTokenCount": -1}}),
        ("reply", []),
        ("reply", [CHUNKS[0], {"choices": []}]),
        ("reply[1]", [CHUNKS[0], 7]),
    ],
)
def test_what_is_wrong_is_named_by_its_place(where, reply):
    with pytest.raises(InvalidArgument) as caught:
        turn_of(reply)

    assert caught.value.what == where
