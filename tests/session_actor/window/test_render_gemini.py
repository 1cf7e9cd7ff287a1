"""Requests for Gemini's generateContent API, to the letter."""

from __future__ import annotations

import pytest

from session_actor.blocks import Image, Text, Thinking, ToolCall
from session_actor.ledger.entries import AssistantEntry, ResultsEntry, UserEntry
from session_actor.requests import gemini

from .entry_samples import PDF, PNG, everything, native, result
from .test_render_any import requested

STAND_IN = b"skip_thought_signature_validator"
TOOLS = [
    {
        "function_declarations": [
            {
                "name": "look",
                "description": "Looks.",
                "parameters_json_schema": {"type": "object", "properties": {"where": {}}},
            },
            {"name": "go", "parameters_json_schema": {"type": "object", "properties": {}}},
        ]
    }
]


def test_a_conversation_of_everything():
    assert requested("gemini", everything("gemini")) == {
        "model": "gemini-3-pro",
        "contents": [
            {
                "role": "user",
                "parts": [
                    {"text": "What is here?"},
                    {"inline_data": {"mime_type": "image/png", "data": PNG}},
                    {"file_data": {"mime_type": "image/png", "file_uri": "https://example.org/a.png"}},
                    {"inline_data": {"mime_type": "application/pdf", "data": PDF}},
                    {"text": "Document a.txt:\n\nwords"},
                    {"file_data": {"mime_type": "application/pdf", "file_uri": "file-1"}},
                ],
            },
            {
                "role": "model",
                "parts": [
                    {"text": "Where?", "thought": True, "thought_signature": b"sig"},
                    {"executable_code": {"language": "PYTHON", "code": "1"}, "thought_signature": b"sec"},
                    {"text": "I look."},
                    {
                        "function_call": {"id": "call_1", "name": "look", "args": {"where": "here"}},
                        "thought_signature": STAND_IN,
                    },
                    {"function_call": {"id": "call_2", "name": "look", "args": {"where": ["there", 1]}}},
                ],
            },
            {
                "role": "user",
                "parts": [
                    {"function_response": {"id": "call_1", "name": "look", "response": {"output": "a cat"}}},
                    {"function_response": {"id": "call_2", "name": "look", "response": {"error": "no light"}}},
                    {"text": "And?"},
                ],
            },
            {"role": "model", "parts": [{"text": "A cat. "}]},
            {"role": "user", "parts": [{"text": "Continue."}]},
        ],
        "config": {
            "max_output_tokens": 1_000,
            "automatic_function_calling": {"disable": True},
            "system_instruction": "Be brief.",
            "tools": TOOLS,
        },
    }


def test_signatures_are_sent_as_the_bytes_that_came_on_the_part_that_had_them():
    said = AssistantEntry(
        (
            Thinking("Hm", "-_8="),
            Text("", "AAE="),
            ToolCall("a", "look", "{}", "c2ln"),
            ToolCall("b", "look", "{}"),
            native("gemini", {"inlineData": {"mimeType": "image/png", "data": "AAE="}, "thoughtSignature": "AQ=="}),
        )
    )
    parts = gemini.messages([said], "gemini-3-pro")[0]["parts"]
    assert [part.get("thought_signature") for part in parts] == [b"\xfb\xff", b"\0\1", b"sig", None, b"\1"]
    assert parts[1]["text"] == ""
    assert parts[4]["inline_data"] == {"mimeType": "image/png", "data": b"\0\1"}


@pytest.mark.parametrize(
    ("model", "signed"),
    [
        ("gemini-2.5-flash", False),
        ("gemini-1.5-pro", False),
        ("models/gemini-3-pro", True),
        ("gemini-flash-latest", True),
    ],
)
def test_the_first_call_of_another_model_gets_a_stand_in_where_calls_must_be_signed(model, signed):
    said = AssistantEntry((Text("So"), ToolCall("a", "look", "{}"), ToolCall("b", "look", "{}")))
    parts = gemini.messages([said], model)[0]["parts"]
    assert [part.get("thought_signature") for part in parts] == [None, STAND_IN if signed else None, None]


def test_calls_without_ids_are_answered_without_ids():
    call = ToolCall("", "look", "{}")
    made = gemini.messages([AssistantEntry((call,)), ResultsEntry((result(call, Text("x")),))], "gemini-2.5-pro")
    assert made[0]["parts"] == [{"function_call": {"name": "look", "args": {}}}]
    assert made[1]["parts"] == [{"function_response": {"name": "look", "response": {"output": "x"}}}]


def test_an_image_of_a_type_that_it_does_not_take_leaves_a_text():
    made = gemini.messages([UserEntry((Image(data=b"GIF89a", media_type="image/gif"),))], "gemini-3-pro")
    assert made[0]["parts"] == [{"text": "[An image that cannot be shown here: image/gif]"}]
