"""What the validator says of requests for Anthropic's Messages API."""

from __future__ import annotations

import copy

import pytest

from session_actor import validate_request

from .anthropic_base import BASE, CACHED, FOUND, PREFILL, SEARCH, TEXT, THINKS, THOUGHT, call, image, result
from .breaking import Case, all_of, check_case, defect, drop, insert, put
from .sdk_shapes import shape_problems

CASES = [
    defect(
        "a call that is forced beside thinking",
        "conflict",
        "tool_choice",
        all_of(put("thinking", value=THINKS), put("tool_choice", value={"type": "any"})),
    ),
    defect(
        "a tool that is forced beside thinking",
        "conflict",
        "tool_choice",
        all_of(put("thinking", value=THINKS), put("tool_choice", value={"type": "tool", "name": "weather"})),
    ),
    Case(
        "a temperature beside thinking",
        "conflict",
        "temperature",
        all_of(put("thinking", value=THINKS), put("temperature", value=0.5)),
    ),
    defect(
        "an answer begun beside thinking",
        "conflict",
        "messages[7]",
        all_of(put("thinking", value=THINKS), insert("messages", 7, value=PREFILL)),
    ),
    defect("a blank stop sequence", "blank", "stop_sequences[1]", put("stop_sequences", value=["END", "\n"])),
    defect(
        "an image that is too large",
        "limit",
        "messages[0].content[1].source.data",
        put("messages", 0, "content", 1, "source", "data", value="A" * ((10 << 20) + 4)),
    ),
    Case("an argument of another call", "unknown", "request", put("max_completion_tokens", value=5)),
    defect(
        "a choice among no tools",
        "no-tools",
        "tool_choice",
        all_of(
            drop("tools"),
            put("messages", value=[{"role": "user", "content": "?"}]),
            put("tool_choice", value={"type": "auto"}),
        ),
    ),
    defect(
        "a choice of a tool that is not there",
        "unknown",
        "tool_choice.name",
        put("tool_choice", value={"type": "tool", "name": "oven"}),
    ),
    Case("a choice of no type", "unknown", "tool_choice.type", put("tool_choice", value={"type": "function"})),
    Case("no model", "missing", "model", drop("model")),
    defect("a blank model", "blank", "model", put("model", value=" ")),
    Case("no max_tokens", "missing", "max_tokens", drop("max_tokens")),
    defect("max_tokens below nothing", "limit", "max_tokens", put("max_tokens", value=-1)),
    defect("max_tokens that is a bool", "type", "max_tokens", put("max_tokens", value=True)),
    Case("no messages", "missing", "messages", drop("messages")),
    defect("an empty list of messages", "empty", "messages", put("messages", value=[])),
    Case("a message that is a text", "type", "messages[4]", put("messages", 4, value="Go on.")),
    Case("a role that nobody has", "unknown", "messages[0].role", put("messages", 0, "role", value="tool")),
    defect("a key that no message has", "unknown", "messages[0]", put("messages", 0, "name", value="Ada")),
    defect(
        "a key that no text has", "unknown", "messages[3].content[2]", put("messages", 3, "content", 2, "id", value="1")
    ),
    defect("the assistant speaks first", "first", "messages[0]", insert("messages", 0, value=PREFILL)),
    defect(
        "two user messages in a row",
        "alternate",
        "messages[5]",
        insert("messages", 5, value={"role": "user", "content": "?"}),
    ),
    defect("two assistant messages in a row", "alternate", "messages[4]", insert("messages", 4, value=PREFILL)),
    defect("an empty text", "empty", "messages[3].content[2].text", put("messages", 3, "content", 2, "text", value="")),
    defect(
        "a blank text", "blank", "messages[3].content[2].text", put("messages", 3, "content", 2, "text", value=" \n")
    ),
    defect("a blank message", "blank", "messages[4].content", put("messages", 4, "content", value="\t")),
    defect("a message of no blocks", "empty", "messages[4].content", put("messages", 4, "content", value=[])),
    defect(
        "a result of no blocks",
        "empty",
        "messages[6].content[0].content",
        put("messages", 6, "content", 0, "content", value=[]),
    ),
    Case("half a surrogate pair", "unicode", "messages[4].content", put("messages", 4, "content", value="a\ud800")),
    defect("a blank system prompt", "blank", "system[0].text", put("system", 0, "text", value=" ")),
    Case("an image in the system prompt", "unknown", "system[0]", put("system", 0, value=image())),
    defect("a call without a result", "unanswered", "messages[1].content[3]", drop("messages", 2, "content", 1)),
    defect("the last call is not answered", "unanswered", "messages[5].content[0]", drop("messages", 6)),
    defect("a result too late", "unanswered", "messages[5].content[0]", put("messages", 6, "content", value="Wait.")),
    defect(
        "a result without a call",
        "no-call",
        "messages[4].content[0]",
        put("messages", 4, "content", value=[result("toolu_1")]),
    ),
    defect(
        "two results for one call",
        "answered-twice",
        "messages[6].content[1]",
        insert("messages", 6, "content", 1, value=result("toolu_3")),
    ),
    defect(
        "a text before the results", "order", "messages[2].content[1]", insert("messages", 2, "content", 0, value=TEXT)
    ),
    defect("a text after a call", "order", "messages[5].content[1]", insert("messages", 5, "content", 1, value=TEXT)),
    defect("thinking after a text", "order", "messages[1].content[0]", insert("messages", 1, "content", 0, value=TEXT)),
    defect(
        "thinking at the end",
        "order",
        "messages[3].content[1]",
        put("messages", 3, "content", value=[THOUGHT, THOUGHT]),
    ),
    defect(
        "thinking without its signature",
        "signature",
        "messages[1].content[0].signature",
        put("messages", 1, "content", 0, "signature", value=""),
    ),
    defect(
        "an id of a form that is refused",
        "call-id",
        "messages[5].content[0].id",
        all_of(
            put("messages", 5, "content", 0, "id", value="call:3"),
            put("messages", 6, "content", 0, "tool_use_id", value="call:3"),
        ),
    ),
    defect(
        "an id used again",
        "duplicate-id",
        "messages[5].content[0].id",
        all_of(
            put("messages", 5, "content", 0, "id", value="toolu_1"),
            put("messages", 6, "content", 0, "tool_use_id", value="toolu_1"),
        ),
    ),
    Case(
        "arguments that are a text",
        "arguments",
        "messages[5].content[0].input",
        put("messages", 5, "content", 0, "input", value="{}"),
    ),
    defect(
        "arguments that JSON cannot hold",
        "arguments",
        "messages[5].content[0].input",
        put("messages", 5, "content", 0, "input", value={"city": float("nan")}),
    ),
    defect(
        "a call of a tool of no name",
        "tool-name",
        "messages[5].content[0].name",
        put("messages", 5, "content", 0, "name", value="what is it?"),
    ),
    defect("calls and no tools", "no-tools", "tools", drop("tools")),
    defect("calls and an empty list of tools", "no-tools", "tools", put("tools", value=[])),
    defect(
        "a tool's name of a form that is refused",
        "tool-name",
        "tools[0].name",
        put("tools", 0, "name", value="the weather"),
    ),
    defect("two tools of one name", "duplicate-tool", "tools[1]", put("tools", 1, "name", value="weather")),
    defect(
        "a schema of a list", "schema", "tools[0].input_schema", put("tools", 0, "input_schema", "type", value="array")
    ),
    defect("a schema of nothing", "schema", "tools[0].input_schema", put("tools", 0, "input_schema", value={})),
    Case("no schema", "missing", "tools[0].input_schema", drop("tools", 0, "input_schema")),
    defect(
        "five cache breakpoints",
        "cache",
        "request",
        all_of(*(put("messages", 0, "content", i, "cache_control", value=CACHED) for i in range(3))),
    ),
    defect(
        "a cache breakpoint on thinking",
        "cache",
        "messages[1].content[0].cache_control",
        put("messages", 1, "content", 0, "cache_control", value=CACHED),
    ),
    Case(
        "a cache breakpoint of a day",
        "cache",
        "system[0].cache_control",
        put("system", 0, "cache_control", "ttl", value="1d"),
    ),
    defect(
        "a long cache breakpoint after a short one",
        "cache",
        "messages[0].content[0].cache_control",
        put("messages", 0, "content", 0, "cache_control", value={**CACHED, "ttl": "1h"}),
    ),
    defect(
        "an image of two sources",
        "source",
        "messages[0].content[1].source",
        put("messages", 0, "content", 1, "source", "url", value="https://example.org"),
    ),
    Case(
        "an image of no source",
        "source",
        "messages[0].content[1].source",
        drop("messages", 0, "content", 1, "source", "data"),
    ),
    defect(
        "an image that is no base64",
        "base64",
        "messages[0].content[1].source.data",
        put("messages", 0, "content", 1, "source", "data", value="@@@@"),
    ),
    defect(
        "an image in lines",
        "base64",
        "messages[0].content[1].source.data",
        put("messages", 0, "content", 1, "source", "data", value="AAAA\nAAAA"),
    ),
    Case(
        "an image of a type that is not taken",
        "media-type",
        "messages[0].content[1].source.media_type",
        put("messages", 0, "content", 1, "source", "media_type", value="image/bmp"),
    ),
    defect(
        "an image in a file of this machine",
        "url",
        "messages[0].content[2].source.url",
        put("messages", 0, "content", 2, "source", "url", value="file:///a.png"),
    ),
    Case(
        "a block of no type",
        "unknown",
        "messages[0].content[0]",
        put("messages", 0, "content", 0, value={"type": "input_text", "text": "x"}),
    ),
    defect(
        "an image of the assistant's",
        "unknown",
        "messages[3].content[2]",
        put("messages", 3, "content", 2, value=image()),
    ),
    defect(
        "a call of the user's",
        "unknown",
        "messages[0].content[0]",
        put("messages", 0, "content", 0, value=call("toolu_9")),
    ),
    defect(
        "whitespace at the end of the last message",
        "trailing-space",
        "messages[7].content[0].text",
        insert("messages", 7, value={"role": "assistant", "content": [{"type": "text", "text": "It is "}]}),
    ),
    defect(
        "a result of the server's without its call",
        "no-call",
        "messages[3].content[0]",
        drop("messages", 3, "content", 0),
    ),
    defect(
        "a call of the server's without its result",
        "unanswered",
        "messages[3].content[0]",
        drop("messages", 3, "content", 1),
    ),
    defect(
        "thinking of too few tokens",
        "limit",
        "thinking.budget_tokens",
        put("thinking", value={"type": "enabled", "budget_tokens": 5}),
    ),
    defect(
        "thinking that leaves no room for the answer",
        "limit",
        "thinking.budget_tokens",
        put("thinking", value={"type": "enabled", "budget_tokens": 4096}),
    ),
    defect(
        "instructions after an assistant's message",
        "alternate",
        "messages[4]",
        insert("messages", 4, value={"role": "system", "content": "Be kind."}),
    ),
]


def test_the_base_is_valid_and_the_types_take_it():
    assert validate_request("anthropic", BASE) == []
    assert shape_problems("anthropic", BASE) == []


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.sentence)
def test_a_change_breaks_just_its_rule(case):
    check_case("anthropic", BASE, case)


@pytest.mark.parametrize(
    ("sentence", "added"),
    [
        ("an assistant's message to go on with", [PREFILL]),
        ("instructions after a user's message", [{"role": "system", "content": "Be kind."}]),
        ("a paused turn", [{"role": "assistant", "content": [{**SEARCH, "id": "srvtoolu_2"}]}]),
        (
            "thinking between the server's tools",
            [
                {
                    "role": "assistant",
                    "content": [
                        THOUGHT,
                        TEXT,
                        {**SEARCH, "id": "srvtoolu_2"},
                        {**FOUND, "tool_use_id": "srvtoolu_2"},
                        THOUGHT,
                        TEXT,
                    ],
                }
            ],
        ),
        (
            "a program of the server's that calls our tool",
            [
                {
                    "role": "assistant",
                    "content": [{**SEARCH, "id": "srvtoolu_2", "name": "code_execution"}, call("toolu_4")],
                },
                {"role": "user", "content": [result("toolu_4")]},
                {
                    "role": "assistant",
                    "content": [
                        {
                            "type": "code_execution_tool_result",
                            "tool_use_id": "srvtoolu_2",
                            "content": {
                                "type": "code_execution_result",
                                "stdout": "",
                                "stderr": "",
                                "return_code": 0,
                                "content": [],
                            },
                        },
                        TEXT,
                    ],
                },
            ],
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_providers_take_is_valid(sentence, added):
    request = copy.deepcopy(BASE)
    request["messages"] += added
    assert validate_request("anthropic", request) == []
    assert shape_problems("anthropic", request) == []
