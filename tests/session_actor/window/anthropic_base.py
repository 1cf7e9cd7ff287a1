"""A valid request for Anthropic's Messages API with all that may stand in one, and its parts."""

from __future__ import annotations

from .breaking import PIXEL, SCHEMA

CACHED = {"type": "ephemeral"}
TEXT = {"type": "text", "text": "and so on"}
THOUGHT = {"type": "thinking", "thinking": "hm", "signature": "c2ln"}
SEARCH = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "tides"}}
FOUND = {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": []}


def call(call_id: str) -> dict:
    return {"type": "tool_use", "id": call_id, "name": "weather", "input": {"city": "Oslo"}}


def result(call_id: str) -> dict:
    return {"type": "tool_result", "tool_use_id": call_id, "content": [{"type": "text", "text": "rain"}]}


def image(media_type: str = "image/png", data: str = PIXEL) -> dict:
    return {"type": "image", "source": {"type": "base64", "media_type": media_type, "data": data}}


BASE = {
    "model": "claude-sonnet-4-5",
    "max_tokens": 4096,
    "system": [{"type": "text", "text": "Be brief.", "cache_control": CACHED}],
    "tools": [
        {"name": "weather", "description": "Tells the weather.", "input_schema": SCHEMA},
        {"name": "clock", "input_schema": {"type": "object"}, "cache_control": CACHED},
        {"type": "web_search_20250305", "name": "web_search"},
    ],
    "messages": [
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "How is it there?"},
                image(),
                {"type": "image", "source": {"type": "url", "url": "https://example.org/a.png"}},
                {"type": "document", "source": {"type": "base64", "media_type": "application/pdf", "data": "JVBERg=="}},
                {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "a note"}},
            ],
        },
        {"role": "assistant", "content": [THOUGHT, TEXT, call("toolu_1"), call("toolu_2")]},
        {"role": "user", "content": [result("toolu_1"), result("toolu_2"), TEXT]},
        {"role": "assistant", "content": [SEARCH, FOUND, TEXT]},
        {"role": "user", "content": "Go on."},
        {"role": "assistant", "content": [call("toolu_3")]},
        {"role": "user", "content": [{**result("toolu_3"), "is_error": True}]},
    ],
}
PREFILL = {"role": "assistant", "content": [{"type": "text", "text": "It is"}]}

THINKS = {"type": "enabled", "budget_tokens": 1_024}
