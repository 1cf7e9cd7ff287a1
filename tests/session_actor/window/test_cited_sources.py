"""Where a text comes from, as its provider says, is kept; what takes it back gets it."""

from __future__ import annotations

from typing import Any

import pytest

from session_actor import Text, turn_of, validate_request
from session_actor.blocks import NULL
from session_actor.errors import InvalidArgument

from .openai_replies import RESPONSE
from .test_replies_anthropic import replied

CITED = {"type": "url_citation", "start_index": 0, "end_index": 4, "url": "https://example.org", "title": "Tides"}
OTHERS = [
    ("openai_chat", "gpt-5"),
    ("openai_responses", "gpt-5.1"),
    ("anthropic", "claude-sonnet-4-5"),
    ("gemini", "gemini-2.5-pro"),
]


def responses(*annotations: Any, text: str = "High at noon.") -> dict[str, Any]:
    part = {"type": "output_text", "text": text, "annotations": list(annotations), "logprobs": []}
    item = {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": [part]}
    return {**RESPONSE, "output": [item]}


def chat(**fields: Any) -> dict[str, Any]:
    message = {"role": "assistant", "content": "High at noon.", "refusal": None, **fields}
    choice = {"index": 0, "finish_reason": "stop", "message": message}
    return {"id": "c", "object": "chat.completion", "model": "gpt-4o-search-preview", "choices": [choice]}


def gemini(*texts: str, last: dict[str, Any]) -> list[dict[str, Any]]:
    chunks = [{"candidates": [{"content": {"role": "model", "parts": [{"text": text}]}}]} for text in texts]
    return [*chunks, {"candidates": [{"finishReason": "STOP", **last}], "modelVersion": "gemini-2.5-pro"}]


async def valid(session: Any, dialect: str, model: str) -> Any:
    request = await session.build_request(dialect, model=model)
    assert validate_request(dialect, request) == []
    return request


async def test_annotations_go_back_to_responses_and_to_nobody_else(session):
    await session.add_user("Tides?")
    frame = await session.add_response(responses({**CITED, "extra": None}))
    assert frame.turns[0].blocks[0].more_value["annotations"][0]["url"] == "https://example.org"
    request = await valid(session, "openai_responses", "gpt-5.1")
    content = [{"type": "output_text", "text": "High at noon.", "annotations": [CITED]}]
    assert request["input"][1] == {"type": "message", "role": "assistant", "content": content}
    for dialect, model in OTHERS:
        other = await valid(session, dialect, model)
        assert ("example.org" in str(dict(other))) is (dialect == "openai_responses")


async def test_they_are_counted_where_they_are_sent(session):
    await session.add_user("Tides?")
    frame = await session.add_response(responses())
    plain = await valid(session, "openai_responses", "gpt-5.1")
    assert plain["input"][1]["content"] == "High at noon."
    await session.goto(frame.parent)
    await session.add_response(responses(*[CITED] * 20))
    assert (await valid(session, "openai_responses", "gpt-5.1")).input_tokens > plain.input_tokens + 300


async def test_those_of_a_text_that_cannot_be_sent_as_it_is_do_not_go_back(session):
    await session.add_user("Tides?")
    await session.add_response(responses(CITED, text="High \ud800 noon."))
    assert "example.org" not in str(dict(await valid(session, "openai_responses", "gpt-5.1")))


async def test_what_chat_cites_is_kept_and_not_sent_back_since_no_request_takes_it(session):
    await session.add_user("Tides?")
    cited = {"type": "url_citation", "url_citation": {"url": "https://example.org", "start_index": 0}}
    frame = await session.add_response(chat(annotations=[cited]))
    assert frame.turns[0].blocks == (Text("High at noon.", more=frame.turns[0].blocks[0].more),)
    assert frame.turns[0].blocks[0].more_value == {"annotations": [cited]}
    for dialect, model in OTHERS:
        assert "example.org" not in str(dict(await valid(session, dialect, model)))


@pytest.mark.parametrize("fields", [{}, {"annotations": []}, {"annotations": None}])
def test_a_reply_that_cites_nothing_keeps_nothing(fields):
    assert turn_of(chat(**fields)).blocks == (Text("High at noon."),)
    assert turn_of(responses()).blocks[0].more is NULL
    assert turn_of(chat(**{**fields, "content": None})).blocks == ()


async def test_what_gemini_tells_of_its_sources_is_kept_with_the_last_text_and_not_sent_back(session):
    await session.add_user("Tides?")
    grounded = {"groundingChunks": [{"web": {"uri": "https://example.org", "title": None}}]}
    last = {"groundingMetadata": grounded, "citationMetadata": {"citationSources": [{"startIndex": 1}]}}
    frame = await session.add_response(gemini("High ", "at noon.", last=last))
    (text,) = frame.turns[0].blocks
    assert text.text == "High at noon."
    assert text.more_value == {
        "grounding_metadata": {"grounding_chunks": [{"web": {"uri": "https://example.org"}}]},
        "citation_metadata": {"citation_sources": [{"start_index": 1}]},
    }
    for dialect, model in OTHERS:
        assert "example.org" not in str(dict(await valid(session, dialect, model)))


async def test_what_claude_cites_goes_back_as_it_came(session):
    await session.add_user("Tides?")
    cited = {
        "type": "web_search_result_location",
        "url": "https://example.org",
        "cited_text": "x",
        "title": "T",
        "encrypted_index": "abc",
    }
    said = {"type": "text", "text": "High at noon.", "citations": [cited]}
    await session.add_response(replied(model="claude-sonnet-4-5", content=[said], stop_reason="end_turn"))
    await session.add_user("And?")
    request = await valid(session, "anthropic", "claude-sonnet-4-5")
    assert request["messages"][1]["content"] == [said]


async def test_what_is_no_dict_is_refused(session):
    with pytest.raises(InvalidArgument, match=r"\.more must be a dict"):
        await session.add_assistant([Text("hi", more=["x"])])
