"""Requests for OpenAI's Responses API, to the letter."""

from __future__ import annotations

import pytest

from session_actor import validate_request
from session_actor.blocks import Document, Image, Text, ToolCall
from session_actor.ledger.entries import AssistantEntry, ResultsEntry, UserEntry
from session_actor.requests import openai_responses

from .entry_samples import PDF, REASONING, everything, native, result
from .ledger_talk import Talk
from .test_render_any import requested


def test_a_conversation_of_everything():
    picture = {"type": "input_image", "detail": "auto", "image_url": "data:image/png;base64,iVBORw0KGgo="}
    assert requested("openai_responses", everything("openai_responses")) == {
        "model": "gpt-5",
        "max_output_tokens": 1_000,
        "store": False,
        "include": ["reasoning.encrypted_content"],
        "instructions": "Be brief.",
        "input": [
            {
                "type": "message",
                "role": "user",
                "content": [
                    {"type": "input_text", "text": "What is here?"},
                    picture,
                    {"type": "input_image", "detail": "auto", "image_url": "https://example.org/a.png"},
                    {
                        "type": "input_file",
                        "filename": "a.pdf",
                        "file_data": "data:application/pdf;base64,JVBERi0xLjc=",
                    },
                    {"type": "input_text", "text": "Document a.txt:\n\nwords"},
                    {"type": "input_file", "file_id": "file-1"},
                ],
            },
            REASONING["openai_responses"],
            {"type": "message", "role": "assistant", "content": "I look."},
            {"type": "function_call", "call_id": "call_1", "name": "look", "arguments": '{"where":"here"}'},
            {"type": "function_call", "call_id": "call_2", "name": "look", "arguments": '{"where":["there",1]}'},
            {
                "type": "function_call_output",
                "call_id": "call_1",
                "output": [{"type": "input_text", "text": "a cat"}, picture],
            },
            {"type": "function_call_output", "call_id": "call_2", "output": "Error: no light"},
            {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "And?"}]},
            {"type": "message", "role": "assistant", "content": "A cat. "},
            {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Continue."}]},
        ],
        "tools": [
            {
                "type": "function",
                "name": "look",
                "description": "Looks.",
                "parameters": {"type": "object", "properties": {"where": {}}},
                "strict": False,
            },
            {"type": "function", "name": "go", "parameters": {"type": "object", "properties": {}}, "strict": False},
        ],
    }


def test_reasoning_stands_where_it_stood():
    first, second = ({"type": "reasoning", "id": name, "summary": []} for name in ("rs_1", "rs_2"))
    said = AssistantEntry(
        (
            native("openai_responses", first),
            Text("One."),
            native("openai_responses", second),
            ToolCall("call_1", "look", "{}"),
            Text("Two."),
        )
    )
    made = openai_responses.messages([said], "m")
    assert [item.get("id", item["type"]) for item in made] == ["rs_1", "message", "rs_2", "function_call", "message"]


def test_an_error_that_is_an_image_says_that_it_is_an_error():
    call = ToolCall("call_1", "look", "{}")
    shown = result(call, Image(url="https://example.org/a.png"), is_error=True)
    output = openai_responses.messages([AssistantEntry((call,)), ResultsEntry((shown,))], "m")[1]["output"]
    assert [part["type"] for part in output] == ["input_text", "input_image"]
    assert output[0]["text"] == "Error:"


def test_documents_by_address_and_without_a_name():
    said = UserEntry(
        (
            Document(url="https://example.org/a.docx"),
            Document(data=PDF, media_type="application/pdf"),
            Document(data=b"x", media_type="application/msword"),
        )
    )
    content = openai_responses.messages([said], "m")[0]["content"]
    assert content[0] == {"type": "input_file", "file_url": "https://example.org/a.docx"}
    assert [part["filename"] for part in content[1:]] == ["document.pdf", "document.doc"]


def test_reasoning_without_its_encrypted_content_is_left_out_because_nothing_is_stored_there():
    bare = {"type": "reasoning", "id": "rs_1", "summary": []}
    talk = Talk()
    talk.user("Hi")
    talk.says(native("openai_responses", bare), Text("Ho"), model="gpt-5", dialect="openai_responses")
    talk.user("Go on")
    chunks = talk.chunks("openai_responses")
    made = openai_responses.messages([entry for chunk in chunks for entry in chunk.entries], "gpt-5")
    assert [item["type"] for item in made] == ["message", "message", "message"]
    assert [note.what for chunk in chunks for note in chunk.omitted] == ["thinking"]


def test_what_is_none_and_what_is_only_given_out_is_not_sent_back():
    dumped = {"type": "reasoning", "id": "rs_1", "summary": [], "content": None, "status": "completed"}
    search = {
        "type": "web_search_call",
        "id": "ws_1",
        "action": {"type": "search", "queries": None},
        "status": "failed",
    }
    code = {"type": "code_interpreter_call", "id": "ci_1", "code": None, "container_id": "c", "outputs": None}
    said = AssistantEntry(tuple(native("openai_responses", item) for item in (dumped, search, code)))
    assert openai_responses.messages([said], "m") == [
        {"type": "reasoning", "id": "rs_1", "summary": []},
        {"type": "web_search_call", "id": "ws_1", "action": {"type": "search"}, "status": "failed"},
        code,
    ]


@pytest.mark.parametrize("model", ["gpt-4o-mini", "gpt-4.1-2025-04-14", "openai/gpt-4o", "gpt-5-chat-latest"])
def test_a_model_that_does_not_reason_is_not_asked_for_its_reasoning(model):
    request = openai_responses.assemble(model, None, [{"role": "user", "content": "Hello"}], 100)
    assert "include" not in request
    assert validate_request("openai_responses", request) == []
    openai_responses.merge(request, {"include": ["message.output_text.logprobs"]})
    assert request["include"] == ["message.output_text.logprobs"]
