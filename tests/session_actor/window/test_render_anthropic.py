"""Requests for Anthropic's Messages API, to the letter."""

from __future__ import annotations

from session_actor.blocks import Image, Native, Text, ToolCall
from session_actor.frames import Instructions, Tool
from session_actor.ledger.entries import AssistantEntry, ResultsEntry, UserEntry
from session_actor.requests import anthropic

from .entry_samples import REASONING, everything, native, result
from .test_render_any import INSTRUCTIONS, requested

CACHED = {"type": "ephemeral"}


def test_a_conversation_of_everything():
    request = requested("anthropic", everything("anthropic"))
    picture = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo="}}
    assert request["messages"] == [
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "What is here?"},
                picture,
                {"type": "image", "source": {"type": "url", "url": "https://example.org/a.png"}},
                {
                    "type": "document",
                    "source": {"type": "base64", "media_type": "application/pdf", "data": "JVBERi0xLjc="},
                    "title": "a.pdf",
                },
                {
                    "type": "document",
                    "source": {"type": "text", "media_type": "text/plain", "data": "words"},
                    "title": "a.txt",
                },
                {"type": "document", "source": {"type": "file", "file_id": "file-1"}},
            ],
        },
        {
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": "Where?", "signature": "c2ln"},
                REASONING["anthropic"],
                {"type": "text", "text": "I look."},
                {"type": "tool_use", "id": "call_1", "name": "look", "input": {"where": "here"}},
                {"type": "tool_use", "id": "call_2", "name": "look", "input": {"where": ["there", 1]}},
            ],
        },
        {
            "role": "user",
            "content": [
                {
                    "type": "tool_result",
                    "tool_use_id": "call_1",
                    "content": [{"type": "text", "text": "a cat"}, picture],
                },
                {"type": "tool_result", "tool_use_id": "call_2", "content": "no light", "is_error": True},
                {"type": "text", "text": "And?"},
            ],
        },
        {"role": "assistant", "content": [{"type": "text", "text": "A cat."}]},
        {"role": "user", "content": [{"type": "text", "text": "Continue."}]},
    ]


def test_instructions_end_in_the_only_cache_breakpoints():
    request = requested("anthropic", everything("anthropic"))
    assert request["max_tokens"] == 1_000
    assert request["system"] == [{"type": "text", "text": "Be brief.", "cache_control": CACHED}]
    assert request["tools"] == [
        {"name": "look", "description": "Looks.", "input_schema": {"type": "object", "properties": {"where": {}}}},
        {"name": "go", "input_schema": {"type": "object", "properties": {}}, "cache_control": CACHED},
    ]
    assert "cache_control" not in str(request["messages"])


def test_calls_of_a_session_without_tools_are_declared_and_not_offered():
    request = requested("anthropic", everything("anthropic"), Instructions("Be brief."))
    assert request["tools"] == [{"name": "look", "input_schema": {"type": "object", "properties": {}}}]
    assert request["tool_choice"] == {"type": "none"}
    assert "tools" not in requested("anthropic", everything("anthropic")[:1], Instructions("Be brief."))


def test_what_the_assistant_says_after_a_call_stands_before_it():
    call = ToolCall("call_1", "look", "{}")
    said = AssistantEntry((call, Text("So. "), native("anthropic", {"type": "server_tool_use", "id": "s"})))
    assert [block["type"] for block in anthropic.messages([said], "m")[0]["content"]] == [
        "text",
        "server_tool_use",
        "tool_use",
    ]


def test_no_answer_ends_in_white_space_but_inside_it_stays():
    said = AssistantEntry((Text("One \n"), Text("two \n")))
    assert [block["text"] for block in anthropic.messages([said], "m")[0]["content"]] == ["One \n", "two"]


def test_an_image_that_cannot_be_sent_leaves_a_text():
    said = UserEntry((Image(data=b"BM", media_type="image/bmp"), Image(file_id="f", dialect="gemini")))
    assert anthropic.messages([said], "m")[0]["content"] == [
        {"type": "text", "text": "[An image that cannot be shown here: image/bmp]"},
        {"type": "text", "text": "[An image that cannot be shown here: image/jpeg]"},
    ]


def test_a_native_block_of_the_user_is_sent_as_it_came():
    value = {"type": "search_result", "source": "s", "title": "t", "content": [{"type": "text", "text": "c"}]}
    call = ToolCall("call_1", "look", "{}")
    blocks: tuple[Native, ...] = (native("anthropic", value),)
    made = anthropic.messages([AssistantEntry((call,)), ResultsEntry((result(call, *blocks),)), UserEntry(blocks)], "m")
    assert made[1]["content"][0]["content"] == [value]
    assert made[1]["content"][1] == value


def test_a_tool_is_strict_when_its_schema_says_so():
    tool = Tool("look", schema={"type": "object", "properties": {}, "strict": True})
    request = anthropic.assemble("m", Instructions("", (tool,)), [], 1)
    assert request["tools"][0] == {
        "name": "look",
        "input_schema": {"type": "object", "properties": {}},
        "strict": True,
        "cache_control": CACHED,
    }
    assert "strict" not in anthropic.assemble("m", INSTRUCTIONS, [], 1)["tools"][0]
