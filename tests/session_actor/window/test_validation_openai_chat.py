"""What the validator says of requests for OpenAI's Chat Completions API."""

from __future__ import annotations

import copy

import pytest

from session_actor import validate_request

from .breaking import PIXEL, SCHEMA, Case, all_of, check_case, defect, drop, insert, put
from .sdk_shapes import shape_problems


def call(call_id: str, arguments: str = '{"city": "Oslo"}') -> dict:
    return {"id": call_id, "type": "function", "function": {"name": "weather", "arguments": arguments}}


def result(call_id: str) -> dict:
    return {"role": "tool", "tool_call_id": call_id, "content": "rain"}


def tool(name: str) -> dict:
    return {"type": "function", "function": {"name": name, "description": "Tells it.", "parameters": SCHEMA}}


SAYING = {"role": "assistant", "content": "It rains."}
BASE = {
    "model": "gpt-4.1",
    "max_completion_tokens": 4096,
    "tools": [tool("weather"), tool("clock")],
    "messages": [
        {"role": "system", "content": "Be brief."},
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "How is it there?"},
                {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PIXEL}"}},
                {"type": "image_url", "image_url": {"url": "https://example.org/a.png", "detail": "low"}},
                {"type": "file", "file": {"filename": "a.pdf", "file_data": "data:application/pdf;base64,JVBERg=="}},
                {"type": "file", "file": {"file_id": "file-1"}},
            ],
        },
        {"role": "assistant", "content": None, "tool_calls": [call("call_1"), call("call_2", "{}")]},
        result("call_1"),
        {"role": "tool", "tool_call_id": "call_2", "content": [{"type": "text", "text": "sun"}]},
        SAYING,
        {"role": "user", "content": "Go on."},
        {"role": "assistant", "content": "I look.", "tool_calls": [call("call_3")]},
        result("call_3"),
    ],
}

WANTED = {"type": "json_schema", "json_schema": {"name": "place", "schema": SCHEMA}}
LOOSE = {**SCHEMA, "properties": {"inner": {"anyOf": [SCHEMA]}}, "additionalProperties": False}
"""Strict outside only."""

CASES = [
    defect(
        "a schema of the answer without a name",
        "missing",
        "response_format.json_schema.name",
        all_of(put("response_format", value=WANTED), put("response_format", "json_schema", "name", value=None)),
    )._replace(structural=False),
    defect(
        "a strict schema of the answer that takes anything besides",
        "schema",
        "response_format.json_schema.schema",
        all_of(
            put("response_format", value=WANTED),
            put("response_format", "json_schema", "schema", value=LOOSE),
            put("response_format", "json_schema", "strict", value=True),
        ),
    ),
    defect(
        "a strict tool that takes anything besides",
        "schema",
        "tools[0].function.parameters",
        put("tools", 0, "function", "strict", value=True),
    ),
    defect(
        "more tools than are taken",
        "limit",
        "tools",
        put("tools", value=[tool(f"tool_{number}") for number in range(129)]),
    ),
    defect("more texts to stop at than are taken", "limit", "stop", put("stop", value=list("abcde"))),
    Case(
        "a detail of an image that nobody knows",
        "unknown",
        "messages[1].content[2].image_url.detail",
        put("messages", 1, "content", 2, "image_url", "detail", value="huge"),
    ),
    defect("top_logprobs without logprobs", "missing", "logprobs", put("top_logprobs", value=2)),
    Case("an argument of another call", "unknown", "request", put("max_output_tokens", value=5)),
    defect(
        "a choice among no tools", "no-tools", "tool_choice", all_of(drop("tools"), put("tool_choice", value="auto"))
    ),
    defect(
        "parallel calls of no tools",
        "no-tools",
        "parallel_tool_calls",
        all_of(drop("tools"), put("parallel_tool_calls", value=True)),
    ),
    defect(
        "a choice of a tool that is not there",
        "unknown",
        "tool_choice.function.name",
        put("tool_choice", value={"type": "function", "function": {"name": "oven"}}),
    ),
    Case("a choice of no kind", "unknown", "tool_choice", put("tool_choice", value="any")),
    Case("no model", "missing", "model", drop("model")),
    defect("a blank model", "blank", "model", put("model", value="\n")),
    defect("a limit of nothing", "limit", "max_completion_tokens", put("max_completion_tokens", value=0)),
    Case("a limit that is a text", "type", "max_completion_tokens", put("max_completion_tokens", value="many")),
    defect("two limits", "limit", "max_completion_tokens", put("max_tokens", value=5)),
    Case("no messages", "missing", "messages", drop("messages")),
    defect("nothing but instructions", "last", "messages", put("messages", value=[{"role": "system", "content": "x"}])),
    Case("a message that is a text", "type", "messages[5]", put("messages", 5, value="It rains.")),
    Case("a role that nobody has", "unknown", "messages[5].role", put("messages", 5, "role", value="model")),
    defect("the assistant speaks first", "first", "messages[1]", insert("messages", 1, value=SAYING)),
    defect(
        "two user messages in a row",
        "alternate",
        "messages[7]",
        insert("messages", 7, value={"role": "user", "content": "?"}),
    ),
    defect("two assistant messages in a row", "alternate", "messages[6]", insert("messages", 6, value=SAYING)),
    defect("the assistant speaks last", "last", "messages[9]", insert("messages", 9, value=SAYING)),
    defect("an empty message", "empty", "messages[6].content", put("messages", 6, "content", value="")),
    defect("a message of no parts", "empty", "messages[6].content", put("messages", 6, "content", value=[])),
    defect("an empty part", "empty", "messages[1].content[0].text", put("messages", 1, "content", 0, "text", value="")),
    Case("half a surrogate pair", "unicode", "messages[6].content", put("messages", 6, "content", value="\udfff")),
    defect("an assistant's message of nothing", "empty", "messages[5]", put("messages", 5, "content", value=None)),
    defect("an empty list of calls", "empty", "messages[5].tool_calls", put("messages", 5, "tool_calls", value=[])),
    defect("a call without a result", "unanswered", "messages[2].tool_calls[1]", drop("messages", 4)),
    defect(
        "a message between the results",
        "unanswered",
        "messages[2].tool_calls[1]",
        put("messages", 4, value={"role": "system", "content": "x"}),
    ),
    defect("a result without a call", "no-call", "messages[9]", insert("messages", 9, value=result("call_1"))),
    defect("two results for one call", "answered-twice", "messages[9]", insert("messages", 9, value=result("call_3"))),
    Case(
        "a result that names no call",
        "missing",
        "messages[9].tool_call_id",
        insert("messages", 9, value={"role": "tool", "content": "x"}),
    ),
    defect(
        "an id of 41 characters",
        "call-id",
        "messages[7].tool_calls[0].id",
        all_of(
            put("messages", 7, "tool_calls", 0, "id", value="c" * 41),
            put("messages", 8, "tool_call_id", value="c" * 41),
        ),
    ),
    defect(
        "an id with a space",
        "call-id",
        "messages[7].tool_calls[0].id",
        all_of(put("messages", 7, "tool_calls", 0, "id", value="c 3"), put("messages", 8, "tool_call_id", value="c 3")),
    ),
    defect(
        "two calls of one id in a turn",
        "duplicate-id",
        "messages[7].tool_calls[1].id",
        insert("messages", 7, "tool_calls", 1, value=call("call_3")),
    ),
    defect(
        "arguments cut off",
        "arguments",
        "messages[7].tool_calls[0].function.arguments",
        put("messages", 7, "tool_calls", 0, "function", "arguments", value='{"city": "Os'),
    ),
    defect(
        "arguments that are a list",
        "arguments",
        "messages[7].tool_calls[0].function.arguments",
        put("messages", 7, "tool_calls", 0, "function", "arguments", value="[]"),
    ),
    defect(
        "arguments that are no number",
        "arguments",
        "messages[7].tool_calls[0].function.arguments",
        put("messages", 7, "tool_calls", 0, "function", "arguments", value='{"n": NaN}'),
    ),
    defect(
        "arguments without an end",
        "arguments",
        "messages[7].tool_calls[0].function.arguments",
        put("messages", 7, "tool_calls", 0, "function", "arguments", value="[" * 99_999),
    ),
    Case(
        "arguments that are an object",
        "type",
        "messages[7].tool_calls[0].function.arguments",
        put("messages", 7, "tool_calls", 0, "function", "arguments", value={}),
    ),
    Case(
        "a call of no type",
        "unknown",
        "messages[7].tool_calls[0].type",
        put("messages", 7, "tool_calls", 0, "type", value=None),
    ),
    defect(
        "a call of a tool of no name",
        "tool-name",
        "messages[7].tool_calls[0].function.name",
        put("messages", 7, "tool_calls", 0, "function", "name", value="a.b"),
    ),
    defect("an empty list of tools", "empty", "tools", put("tools", value=[])),
    defect(
        "a tool's name of a form that is refused",
        "tool-name",
        "tools[0].function.name",
        put("tools", 0, "function", "name", value="x" * 65),
    ),
    defect(
        "two tools of one name",
        "duplicate-tool",
        "tools[1].function",
        put("tools", 1, "function", "name", value="weather"),
    ),
    defect(
        "a schema of a text",
        "schema",
        "tools[0].function.parameters",
        put("tools", 0, "function", "parameters", value={"type": "string"}),
    ),
    Case("a tool of no type", "unknown", "tools[0].type", drop("tools", 0, "type")),
    defect(
        "an image that is no base64",
        "base64",
        "messages[1].content[1].image_url.url",
        put("messages", 1, "content", 1, "image_url", "url", value="data:image/png;base64,%%%%"),
    ),
    defect(
        "an image of a type that is not taken",
        "media-type",
        "messages[1].content[1].image_url.url",
        put("messages", 1, "content", 1, "image_url", "url", value="data:image/bmp;base64,AAAA"),
    ),
    defect(
        "a data: URL of no type",
        "url",
        "messages[1].content[1].image_url.url",
        put("messages", 1, "content", 1, "image_url", "url", value="data:,x"),
    ),
    defect(
        "an image in a file of this machine",
        "url",
        "messages[1].content[2].image_url.url",
        put("messages", 1, "content", 2, "image_url", "url", value="/tmp/a.png"),
    ),
    defect(
        "a file of two sources",
        "source",
        "messages[1].content[3].file",
        put("messages", 1, "content", 3, "file", "file_id", value="file-2"),
    ),
    defect(
        "a file of no source",
        "source",
        "messages[1].content[4].file",
        drop("messages", 1, "content", 4, "file", "file_id"),
    ),
    defect(
        "a file without a name",
        "missing",
        "messages[1].content[3].file.filename",
        drop("messages", 1, "content", 3, "file", "filename"),
    ),
    Case(
        "an image of the assistant's",
        "unknown",
        "messages[5].content[0]",
        put("messages", 5, "content", value=[{"type": "image_url", "image_url": {"url": "https://example.org"}}]),
    ),
    Case(
        "an image of a tool's",
        "unknown",
        "messages[8].content[0]",
        put("messages", 8, "content", value=[{"type": "image_url", "image_url": {"url": "https://example.org"}}]),
    ),
]


def test_the_base_is_valid_and_the_types_take_it():
    assert validate_request("openai_chat", BASE) == []
    assert shape_problems("openai_chat", BASE) == []


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.sentence)
def test_a_change_breaks_just_its_rule(case):
    check_case("openai_chat", BASE, case)


def test_developer_instructions_and_calls_without_tools_are_taken():
    request = copy.deepcopy(BASE)
    request["messages"][0]["role"] = "developer"
    del request["tools"]
    assert validate_request("openai_chat", request) == []
    assert shape_problems("openai_chat", request) == []


@pytest.mark.parametrize(
    ("sentence", "change"),
    [
        ("an empty text beside calls", put("messages", 2, "content", value="")),
        ("a result that says nothing", put("messages", 8, "content", value="")),
        (
            "instructions between two messages of the user",
            all_of(
                insert("messages", 2, value={"role": "user", "content": "And now?"}),
                insert("messages", 2, value={"role": "system", "content": "Be kind."}),
            ),
        ),
        ("four texts to stop at", put("stop", value=list("abcd"))),
        ("logprobs", all_of(put("logprobs", value=True), put("top_logprobs", value=2))),
        ("an answer by a schema", put("response_format", value=WANTED)),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_providers_take_is_valid(sentence, change):
    request = copy.deepcopy(BASE)
    change(request)
    assert validate_request("openai_chat", request) == []
    assert shape_problems("openai_chat", request) == []


def test_an_id_may_come_again_in_another_turn():
    request = copy.deepcopy(BASE)
    request["messages"][7]["tool_calls"][0]["id"] = request["messages"][8]["tool_call_id"] = "call_1"
    assert validate_request("openai_chat", request) == []


def test_a_reply_of_the_sdk_may_stand_among_the_messages_as_it_came():
    from openai.types.chat import ChatCompletionMessage

    request = copy.deepcopy(BASE)
    request["messages"][7] = ChatCompletionMessage.model_validate(request["messages"][7])
    assert validate_request("openai_chat", request) == []
    del request["messages"][8]
    assert [problem.split(": ")[1] for problem in validate_request("openai_chat", request)] == ["last", "unanswered"]
