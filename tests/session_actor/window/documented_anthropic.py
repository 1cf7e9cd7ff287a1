"""Requests with the structure of the examples in Anthropic's documentation, by the page that shows each."""

from __future__ import annotations

from typing import Any

from .anthropic_base import image
from .breaking import PIXEL

CACHED = {"type": "ephemeral"}
CITED = {"citations": {"enabled": True}}
FORECAST = {
    "name": "forecast",
    "description": "Tells the weather of a place.",
    "input_schema": {
        "type": "object",
        "properties": {
            "place": {"type": "string", "description": "Town and country"},
            "unit": {"type": "string", "enum": ["celsius", "fahrenheit"]},
        },
        "required": ["place"],
    },
}


def user(*blocks: Any) -> dict[str, Any]:
    return {"role": "user", "content": blocks[0] if len(blocks) == 1 and isinstance(blocks[0], str) else list(blocks)}


def assistant(*blocks: Any) -> dict[str, Any]:
    return {**user(*blocks), "role": "assistant"}


def text(words: str, **more: Any) -> dict[str, Any]:
    return {"type": "text", "text": words, **more}


def call(call_id: str = "toolu_01A", **given: Any) -> dict[str, Any]:
    return {"type": "tool_use", "id": call_id, "name": "forecast", "input": given or {"place": "Bergen, Norway"}}


def result(content: Any, call_id: str = "toolu_01A", **more: Any) -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": call_id, "content": content, **more}


def asked(*messages: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"model": "claude-sonnet-4-5", "max_tokens": 2048, "messages": list(messages), **more}


def document(kind: str = "text", **source: Any) -> dict[str, Any]:
    return {"type": "document", "source": {"type": kind, **source}}


PLAIN = {"media_type": "text/plain", "data": "Rain falls. Snow drifts."}
THOUGHT = {"type": "thinking", "thinking": "They ask for rain.", "signature": "EqoBCkgIARABGAIi"}
TOOLS = {"tools": [FORECAST]}
QUESTION = user("What is the weather in Bergen?")
SEARCH = {"type": "web_search_20250305", "name": "web_search", "max_uses": 5}
BIG = {"thinking": {"type": "enabled", "budget_tokens": 10_000}, "max_tokens": 16_000}
CODE = {"type": "code_execution_20250825", "name": "code_execution"}
HITS = [
    {
        "type": "web_search_result",
        "url": "https://example.org/tides",
        "title": "Tides",
        "encrypted_content": "EqgfCioIARgB",
        "page_age": "April 30, 2025",
    }
]
QUOTE = {
    "type": "web_search_result_location",
    "url": "https://example.org/tides",
    "title": "Tides",
    "encrypted_index": "Eo8BCioIAhgB",
    "cited_text": "High water is at noon.",
}
DOCUMENTED: dict[str, dict[str, Any]] = {
    "Get started": asked(user("Hello there")),
    "Using the Messages API: several turns": asked(
        user("Hello."), assistant("Hi! How are you?"), user("Explain tides.")
    ),
    "Using the Messages API: putting words in its mouth": asked(user("Tides? (A) moon (B) sun"), assistant("(")),
    "Vision: an image in base64": asked(user(image("image/png", PIXEL), text("What is it?"))),
    "Vision: several images by address": asked(
        user(
            text("Image 1:"),
            {"type": "image", "source": {"type": "url", "url": "https://example.org/1.jpg"}},
            text("Image 2:"),
            {"type": "image", "source": {"type": "url", "url": "https://example.org/2.jpg"}},
            text("How do they differ?"),
        ),
        system="Answer in French.",
    ),
    "Files API": asked(
        user(
            {"type": "image", "source": {"type": "file", "file_id": "file_abc"}}, document("file", file_id="file_def")
        ),
        betas=["files-api-2025-04-14"],
    ),
    "PDF support": asked(
        user(document("url", url="https://example.org/a.pdf"), text("What does it say?")),
        assistant("A lot."),
        user(
            {**document("base64", media_type="application/pdf", data="JVBERi0xLjcK"), "cache_control": CACHED},
            text("And?"),
        ),
    ),
    "Tool use: first call": asked(QUESTION, **TOOLS, tool_choice={"type": "auto"}),
    "Handle tool calls": asked(QUESTION, assistant(text("I look."), call()), user(result("15 degrees")), **TOOLS),
    "Handle tool calls: an image": asked(
        QUESTION, assistant(call()), user(result([text("A map:"), image()]), text("Is it cold?")), **TOOLS
    ),
    "Handle tool calls: an empty result": asked(
        QUESTION, assistant(call()), user({"type": "tool_result", "tool_use_id": "toolu_01A"}), **TOOLS
    ),
    "Handle tool calls: an error": asked(
        QUESTION, assistant(call()), user(result("ConnectionError: no answer", is_error=True)), **TOOLS
    ),
    "Parallel tool use": asked(
        QUESTION,
        assistant(text("Both."), call("toolu_01A"), call("toolu_02B", place="Oslo")),
        user(result("15", "toolu_01A"), result("16", "toolu_02B")),
        tools=[FORECAST],
        tool_choice={"type": "auto", "disable_parallel_tool_use": False},
    ),
    "Define tools: forced": asked(QUESTION, **TOOLS, tool_choice={"type": "tool", "name": "forecast"}),
    "Define tools: examples": asked(
        QUESTION, tools=[{**FORECAST, "input_examples": [{"place": "Oslo"}]}], tool_choice={"type": "any"}
    ),
    "Fine-grained tool streaming": asked(QUESTION, tools=[{**FORECAST, "eager_input_streaming": True}], stream=True),
    "Prompt caching: a long system prompt": asked(
        user("Summarise it."), system=[text("You read books."), text("A whole book.", cache_control=CACHED)]
    ),
    "Prompt caching: lives of two lengths": asked(
        user(text("Hello", cache_control=CACHED)),
        system=[text("A whole book.", cache_control={"type": "ephemeral", "ttl": "1h"})],
        tools=[FORECAST, {**FORECAST, "name": "tides", "cache_control": {"type": "ephemeral", "ttl": "1h"}}],
    ),
    "Prompt caching: automatic": asked(user("Hello"), cache_control=CACHED, system="Be brief."),
    "Prompt caching: filled beforehand": asked(user("Hello"), system="A whole book.", max_tokens=0),
    "Extended thinking": asked(user("How many primes are there?"), **BIG),
    "Extended thinking: with tools": asked(QUESTION, assistant(THOUGHT, call()), user(result("15")), **BIG, **TOOLS),
    "Extended thinking: redacted": asked(
        user("Hm?"), assistant({"type": "redacted_thinking", "data": "EmwKAhgB"}, text("Yes.")), user("So?"), **BIG
    ),
    "Extended thinking: between calls": asked(
        QUESTION,
        tools=[FORECAST],
        thinking={"type": "enabled", "budget_tokens": 10_000},
        extra_headers={"anthropic-beta": "interleaved-thinking-2025-05-14"},
    ),
    "Adaptive thinking": {
        **asked(user("Why?"), thinking={"type": "adaptive"}, output_config={"effort": "xhigh"}),
        "model": "claude-opus-4-7",
    },
    "Web search tool": asked(
        user("What about tides?"),
        tools=[
            {
                **SEARCH,
                "allowed_domains": ["example.org"],
                "user_location": {"type": "approximate", "city": "Bergen", "country": "NO", "timezone": "Europe/Oslo"},
            }
        ],
    ),
    "Web search tool: what it found, sent back": asked(
        user("What about tides?"),
        assistant(
            text("I look."),
            {"type": "server_tool_use", "id": "srvtoolu_01Wq", "name": "web_search", "input": {"query": "tides"}},
            {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_01Wq", "content": HITS},
            text("At noon.", citations=[QUOTE]),
        ),
        user("And tomorrow?"),
        tools=[SEARCH],
    ),
    "Code execution tool": asked(user("What is 7! / 3?"), tools=[CODE]),
    "Programmatic tool calling": asked(
        QUESTION,
        assistant(
            {
                "type": "server_tool_use",
                "id": "srvtoolu_01C",
                "name": "code_execution",
                "input": {"code": "forecast()"},
            },
            {**call(), "caller": {"type": "code_execution_20250825", "tool_id": "srvtoolu_01C"}},
        ),
        user(result("[15, 16]")),
        tools=[CODE, {**FORECAST, "allowed_callers": ["code_execution_20250825"]}],
    ),
    "Text editor, bash and memory tools": asked(
        user("Mend my file."),
        tools=[
            {"type": "text_editor_20250728", "name": "str_replace_based_edit_tool", "max_characters": 10_000},
            {"type": "bash_20250124", "name": "bash"},
            {"type": "memory_20250818", "name": "memory"},
        ],
    ),
    "Computer use tool": asked(
        user("Save a picture of a cat."),
        tools=[{"type": "computer_20250124", "name": "computer", "display_width_px": 1024, "display_height_px": 768}],
        betas=["computer-use-2025-01-24"],
    ),
    "Tool search tool": asked(
        QUESTION,
        tools=[
            {"type": "tool_search_tool_regex_20251119", "name": "tool_search_tool_regex"},
            {**FORECAST, "defer_loading": True},
        ],
    ),
    "Citations": asked(
        user(
            {**document(**PLAIN), "title": "Weather", "context": "A trustworthy note.", **CITED},
            {**document("content", content=[text("First."), text("Second.")]), **CITED},
            text("What falls?"),
        )
    ),
    "Search results": asked(
        QUESTION,
        assistant(call()),
        user(
            result(
                [
                    {
                        "type": "search_result",
                        "source": "https://example.org",
                        "title": "Rain",
                        "content": [text("It rains.")],
                        **CITED,
                    }
                ]
            )
        ),
        **TOOLS,
    ),
    "Structured outputs": asked(
        user("Who wrote to us?"),
        output_config={
            "format": {
                "type": "json_schema",
                "schema": {
                    "type": "object",
                    "properties": {"name": {"type": "string"}, "demo": {"type": "boolean"}},
                    "required": ["name"],
                    "additionalProperties": False,
                },
            }
        },
    ),
    "Strict tool use": asked(
        QUESTION,
        tools=[
            {**FORECAST, "strict": True, "input_schema": {**FORECAST["input_schema"], "additionalProperties": False}}
        ],
    ),
    "MCP connector": asked(
        user("What tools have you?"),
        mcp_servers=[{"type": "url", "url": "https://example.org/sse", "name": "notes", "authorization_token": "x"}],
        tools=[{"type": "mcp_toolset", "mcp_server_name": "notes"}],
        betas=["mcp-client-2025-11-20"],
    ),
    "Mid-conversation system messages": asked(
        user("Hello"), assistant("Hi!"), user("Go on."), {"role": "system", "content": "The user is in a hurry."}
    ),
    "Context editing": asked(
        QUESTION,
        **TOOLS,
        context_management={"edits": [{"type": "clear_tool_uses_20250919", "keep": {"type": "tool_uses", "value": 3}}]},
        betas=["context-management-2025-06-27"],
    ),
    "Create a Message": asked(
        user("Count."),
        temperature=0.2,
        stop_sequences=["\n\nHuman:", "END"],
        metadata={"user_id": "13803d75-b4b5-4c3e-b2a2-6f21399b021b"},
        service_tier="auto",
    ),
}
