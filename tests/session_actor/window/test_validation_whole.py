"""Anthropic's tools, and what is asked of all documents and images of a request together."""

from __future__ import annotations

import base64
import struct

import pytest

from session_actor import validate_request

from .anthropic_base import BASE, CACHED, TEXT, call, image, result
from .breaking import PIXEL, SCHEMA, Pair, all_of, check_pair, drop, insert, put

DEFERRED = {"name": "seek", "input_schema": SCHEMA, "defer_loading": True}
FINDER = {"type": "tool_search_tool_regex_20251119", "name": "tool_search_tool_regex"}
SERVER = {"type": "url", "url": "https://example.org/mcp", "name": "notes"}
SERVERS = put("mcp_servers", value=[SERVER])
NOTE = {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "a note"}}
CITED = {**NOTE, "citations": {"enabled": True}}
FOUND = {"type": "search_result", "source": "s", "title": "t", "content": [TEXT]}
FORMAT = put("output_config", value={"format": {"type": "json_schema", "schema": {"type": "string"}}})


def png(side: int) -> str:
    header = b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR" + struct.pack(">II", side, 10) + bytes(5)
    return base64.b64encode(header).decode()


def pair(sentence, rule, path, bad, good):
    return Pair("anthropic", sentence, rule, path, bad, good)


def said(*blocks):
    """The first message, of these blocks."""
    return put("messages", 0, "content", value=[TEXT, *blocks])


def answered(*blocks, is_error=True):
    """The last result, of these blocks."""
    return put("messages", 6, "content", value=[{**result("toolu_3"), "content": list(blocks), "is_error": is_error}])


def named(kind, bad, good):
    """A tool of the provider's own that has a name of its own."""
    return pair(
        f"{kind} of another name",
        "tool-name",
        "tools[3].name",
        insert("tools", 3, value={"type": kind, "name": bad}),
        insert("tools", 3, value={"type": kind, "name": good}),
    )


def server_ids(bad, good):
    """The id of a call of the server's, on both sides."""
    both = ((3, "content", 0, "id"), (3, "content", 1, "tool_use_id"))
    change, other = (all_of(*(put("messages", *steps, value=value) for steps in both)) for value in (bad, good))
    return pair(f"the id {bad!r} of a server's call", "call-id", "messages[3].content[0].id", change, other)


PAIRS = [
    pair(
        "a tool of the provider's name",
        "duplicate-tool",
        "tools[3]",
        insert("tools", 3, value={"name": "web_search", "input_schema": SCHEMA}),
        insert("tools", 3, value={"name": "search_web", "input_schema": SCHEMA}),
    ),
    named("bash_20250124", "shell", "bash"),
    named("text_editor_20250728", "str_replace_editor", "str_replace_based_edit_tool"),
    named("text_editor_20250124", "str_replace_based_edit_tool", "str_replace_editor"),
    named("code_execution_20250825", "python", "code_execution"),
    named("memory_20250818", "notes", "memory"),
    named("web_fetch_20250910", "fetch", "web_fetch"),
    pair(
        "domains allowed and blocked",
        "conflict",
        "tools[2]",
        all_of(
            put("tools", 2, "allowed_domains", value=["a.org"]), put("tools", 2, "blocked_domains", value=["b.org"])
        ),
        all_of(put("tools", 2, "allowed_domains", value=["a.org"]), put("tools", 2, "blocked_domains", value=None)),
    ),
    pair(
        "a deferred tool that is cached",
        "cache",
        "tools[3].cache_control",
        insert("tools", 3, value={**DEFERRED, "cache_control": CACHED}),
        insert("tools", 3, value=DEFERRED),
    ),
    pair(
        "all tools deferred",
        "conflict",
        "tools",
        put("tools", value=[DEFERRED]),
        put("tools", value=[FINDER, DEFERRED]),
    ),
    pair(
        "tools of a server that is not there",
        "unknown",
        "tools[3].mcp_server_name",
        all_of(
            SERVERS,
            put("mcp_servers", 0, "name", value="other"),
            insert("tools", 3, value={"type": "mcp_toolset", "mcp_server_name": "notes"}),
        ),
        all_of(SERVERS, insert("tools", 3, value={"type": "mcp_toolset", "mcp_server_name": "notes"})),
    ),
    pair(
        "single calls of no call",
        "unknown",
        "tool_choice.disable_parallel_tool_use",
        put("tool_choice", value={"type": "none", "disable_parallel_tool_use": True}),
        put("tool_choice", value={"type": "auto", "disable_parallel_tool_use": True}),
    ),
    pair(
        "a tool found that is not there",
        "unknown",
        "messages[6].content[0].content[0].tool_name",
        answered({"type": "tool_reference", "tool_name": "oven"}, is_error=False),
        answered({"type": "tool_reference", "tool_name": "clock"}, is_error=False),
    ),
    pair(
        "an image of an error", "unknown", "messages[6].content[0].content[1]", answered(TEXT, image()), answered(TEXT)
    ),
    pair(
        "an image without a text of an error",
        "unknown",
        "messages[6].content[0].content[0]",
        answered(image()),
        answered(image(), is_error=False),
    ),
    server_ids("toolu_9", "srvtoolu_01Ab"),
    server_ids("srvtoolu_a-b", "srvtoolu_a_b"),
    pair(
        "citations of one document and not of another",
        "conflict",
        "messages[0].content[2]",
        said(CITED, NOTE),
        said(CITED, CITED),
    ),
    pair(
        "citations of one search and not of another",
        "conflict",
        "messages[0].content[1]",
        all_of(said(FOUND), answered({**FOUND, "citations": {"enabled": True}}, is_error=False)),
        all_of(said(FOUND), answered({**FOUND, "citations": {"enabled": False}}, is_error=False)),
    ),
    pair(
        "citations in an answer that has a format",
        "conflict",
        "messages[0].content[1]",
        all_of(said(CITED), FORMAT),
        all_of(said(NOTE), FORMAT),
    ),
    pair(
        "a large image among many",
        "limit",
        "messages[0].content[1].source",
        said(image(data=png(2_001)), *[image()] * 20),
        said(image(data=png(2_000)), *[image()] * 20),
    ),
    pair(
        "a large image in a result, among many",
        "limit",
        "messages[6].content[0].content[0].source",
        all_of(said(*[image()] * 20), answered(image(data=png(2_001)), is_error=False)),
        all_of(said(*[image()] * 19), answered(image(data=png(2_001)), is_error=False)),
    ),
    pair(
        "a very large image",
        "limit",
        "messages[0].content[1].source",
        said(image(data=png(8_001))),
        said(image(data=png(8_000))),
    ),
    pair(
        "an image that is of another type",
        "media-type",
        "messages[0].content[1].source.media_type",
        said(image("image/jpeg", PIXEL)),
        said(image("image/jpeg", base64.b64encode(b"\xff\xd8\xff\xe0").decode())),
    ),
    pair(
        "more messages than are taken",
        "limit",
        "messages",
        put(
            "messages",
            value=[{"role": role, "content": "x"} for role in ("user", "assistant")] * 50_000
            + [{"role": "user", "content": "x"}],
        ),
        put("messages", value=[{"role": "user", "content": "x"}]),
    ),
]


@pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: pair.sentence)
def test_it_is_refused_and_its_neighbour_is_not(pair):
    check_pair(BASE, pair)


@pytest.mark.parametrize("change", [put("max_tokens", value=0), put("system", value=""), drop("system")])
def test_nothing_to_say_is_taken(change):
    request = {**BASE}
    change(request)
    assert validate_request("anthropic", request) == []


def test_a_call_of_ours_needs_no_beginning_of_its_own():
    request = {
        **BASE,
        "messages": [
            {"role": "user", "content": "x"},
            {"role": "assistant", "content": [call("a-1")]},
            {"role": "user", "content": [result("a-1")]},
        ],
    }
    assert validate_request("anthropic", request) == []
