"""Requests for OpenAI's Chat Completions API, to the letter."""

from __future__ import annotations

from itertools import chain

import pytest

from session_actor.blocks import Image, Text, Thinking, ToolCall
from session_actor.commands import AddAssistant, AddToolResult, AddUser
from session_actor.frames import Instructions, Tool
from session_actor.ledger.entries import AssistantEntry, ResultsEntry, UserEntry
from session_actor.requests import openai_chat

from .asked import Asked
from .entry_samples import everything, result
from .test_render_any import requested

TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "look",
            "description": "Looks.",
            "parameters": {"type": "object", "properties": {"where": {}}},
        },
    },
    {"type": "function", "function": {"name": "go", "parameters": {"type": "object", "properties": {}}}},
]


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
        "tools": TOOLS,
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


@pytest.mark.parametrize("count", [128, 129, 300])
def test_a_turn_of_more_calls_than_a_message_takes_is_several_each_with_its_results(count):
    live = Asked()
    live.do(AddUser("Look everywhere."))
    live.do(AddAssistant("I look.", tool_calls=[ToolCall(f"c{number}", "ls", "{}") for number in range(count)]))
    for number in range(0, count, 2):
        live.do(AddToolResult(f"c{number}", f"file {number}"))
    made = live.ask("openai_chat")["messages"][2:]
    said = [message for message in made if message["role"] == "assistant"]
    ids = [[call["id"] for call in message["tool_calls"]] for message in said]
    assert [len(some) for some in ids] == [min(128, count - start) for start in range(0, count, 128)]
    assert [*chain(*ids)] == [f"c{number}" for number in range(count)]
    assert [message["tool_call_id"] for message in made if message["role"] == "tool"] == [*chain(*ids)]
    assert [message["content"] for message in said] == ["I look.", *[None] * (len(ids) - 1)]


def test_what_was_thought_comes_with_each_part_of_the_calls_and_what_was_said_with_the_first():
    calls = [ToolCall(f"c{number}", "look", "{}") for number in range(130)]
    made = openai_chat.messages(
        [
            AssistantEntry((Thinking("Where?"), Text("I look."), *calls)),
            ResultsEntry(tuple(result(call, Text("here")) for call in calls)),
        ],
        "m",
    )
    said = [message for message in made if message["role"] == "assistant"]
    assert [message["content"] for message in said] == ["I look.", None]
    assert [message["reasoning_content"] for message in said] == ["Where?", "Where?"]
    assert [message["role"] for message in made] == ["assistant", *["tool"] * 128, "assistant", "tool", "tool"]


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
