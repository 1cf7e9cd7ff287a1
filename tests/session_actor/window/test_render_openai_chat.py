"""Requests for OpenAI's Chat Completions API, to the letter."""

from __future__ import annotations

from session_actor.blocks import Image, Text, ToolCall
from session_actor.frames import Instructions, Tool
from session_actor.ledger.entries import AssistantEntry, ResultsEntry, UserEntry
from session_actor.requests import openai_chat

from .entry_samples import everything, result
from .test_render_any import requested


def test_a_conversation_of_everything():
    assert requested("openai_chat", everything("openai_chat")) == {
        "model": "gpt-5",
        "max_completion_tokens": 1_000,
        "messages": [
            {"role": "system", "content": "Be brief."},
            {
                "role": "user",
                "content": [
                    {"type": "text", "text": "What is here?"},
                    {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0KGgo="}},
                    {"type": "image_url", "image_url": {"url": "https://example.org/a.png"}},
                    {
                        "type": "file",
                        "file": {"filename": "a.pdf", "file_data": "data:application/pdf;base64,JVBERi0xLjc="},
                    },
                    {"type": "text", "text": "Document a.txt:\n\nwords"},
                    {"type": "file", "file": {"file_id": "file-1"}},
                ],
            },
            {
                "role": "assistant",
                "content": "I look.",
                "tool_calls": [
                    {"id": "call_1", "type": "function", "function": {"name": "look", "arguments": '{"where":"here"}'}},
                    {
                        "id": "call_2",
                        "type": "function",
                        "function": {"name": "look", "arguments": '{"where":["there",1]}'},
                    },
                ],
                "reasoning_content": "Where?",
                "reasoning_details": [{"type": "reasoning.text", "text": "hm"}],
            },
            {"role": "tool", "tool_call_id": "call_1", "content": "a cat"},
            {"role": "tool", "tool_call_id": "call_2", "content": "Error: no light"},
            {"role": "user", "content": "And?"},
            {"role": "assistant", "content": "A cat. "},
            {"role": "user", "content": "Continue."},
        ],
        "tools": [
            {
                "type": "function",
                "function": {
                    "name": "look",
                    "description": "Looks.",
                    "parameters": {"type": "object", "properties": {"where": {}}},
                },
            },
            {"type": "function", "function": {"name": "go", "parameters": {"type": "object", "properties": {}}}},
        ],
    }


def test_texts_alone_are_one_string_and_a_turn_of_calls_alone_has_no_content():
    call = ToolCall("call_1", "look", "{}")
    made = openai_chat.messages(
        [
            UserEntry((Text("One"), Text("two"))),
            AssistantEntry((call,)),
            ResultsEntry((result(call, Text("three"), Text("four")),)),
            AssistantEntry((Text("five"), Text("six"))),
        ],
        "m",
    )
    assert [message["content"] for message in made] == ["One\n\ntwo", None, "three\n\nfour", "five\n\nsix"]


def test_a_file_id_of_an_image_has_no_form_here():
    made = openai_chat.messages([UserEntry((Image(file_id="f", dialect="openai_responses"),))], "m")
    assert made == [{"role": "user", "content": "[An image that cannot be shown here: image/jpeg]"}]


def test_a_tool_is_strict_when_its_schema_says_so():
    tool = Tool("look", schema={"strict": True, "required": []})
    assert openai_chat.assemble("m", Instructions("", (tool,)), [], 1)["tools"][0]["function"] == {
        "name": "look",
        "parameters": {"required": [], "type": "object", "properties": {}},
        "strict": True,
    }
