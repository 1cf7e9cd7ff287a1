"""What the validator says of requests for OpenAI's Responses API."""

from __future__ import annotations

import copy

import pytest

from session_actor import validate_request

from .breaking import PIXEL, SCHEMA, Case, all_of, check_case, defect, drop, insert, put
from .sdk_shapes import shape_problems


def call(call_id: str, arguments: str = '{"city": "Oslo"}') -> dict:
    return {"type": "function_call", "call_id": call_id, "name": "weather", "arguments": arguments}


def result(call_id: str) -> dict:
    return {"type": "function_call_output", "call_id": call_id, "output": "rain"}


def reasoning(own_id: str) -> dict:
    return {"type": "reasoning", "id": own_id, "summary": [], "encrypted_content": "Z0FBQUFB"}


def said(own_id: str, text: str) -> dict:
    content = [{"type": "output_text", "text": text, "annotations": []}]
    return {"type": "message", "id": own_id, "role": "assistant", "status": "completed", "content": content}


def tool(name: str) -> dict:
    return {"type": "function", "name": name, "parameters": SCHEMA, "strict": False}


ASK = {"role": "user", "content": "Go on."}
BASE = {
    "model": "gpt-5.1",
    "max_output_tokens": 4096,
    "store": False,
    "include": ["reasoning.encrypted_content"],
    "instructions": "Be brief.",
    "tools": [tool("weather"), tool("clock"), {"type": "web_search"}],
    "input": [
        {
            "type": "message",
            "role": "user",
            "content": [
                {"type": "input_text", "text": "How is it there?"},
                {"type": "input_image", "image_url": f"data:image/png;base64,{PIXEL}", "detail": "auto"},
                {"type": "input_image", "file_id": "file-1", "detail": "auto"},
                {"type": "input_file", "filename": "a.pdf", "file_data": "data:application/pdf;base64,JVBERg=="},
                {"type": "input_file", "file_url": "https://example.org/a.pdf"},
            ],
        },
        reasoning("rs_1"),
        said("msg_1", "I look."),
        call("call_1"),
        call("call_2", "{}"),
        result("call_1"),
        {**result("call_2"), "output": [{"type": "input_text", "text": "sun"}]},
        {"type": "web_search_call", "id": "ws_1", "status": "completed", "action": {"type": "search", "query": "x"}},
        {"role": "assistant", "content": "It rains."},
        ASK,
        reasoning("rs_2"),
        call("call_3"),
        result("call_3"),
    ],
}

WANTED = {"format": {"type": "json_schema", "name": "place", "schema": SCHEMA}}

CASES = [
    defect(
        "two conversations to go on from",
        "conflict",
        "previous_response_id",
        all_of(put("previous_response_id", value="resp_1"), put("conversation", value="conv_1")),
    ),
    defect("an answer in the background that is not stored", "conflict", "background", put("background", value=True)),
    Case("what cannot be included", "unknown", "include[1]", insert("include", 1, value="everything")),
    Case("messages", "unknown", "request", put("messages", value=[])),
    Case("the limit of another call", "unknown", "request", put("max_tokens", value=5)),
    Case("the format of another call", "unknown", "request", put("response_format", value={"type": "text"})),
    Case(
        "a schema of the answer without a name",
        "missing",
        "text.format.name",
        all_of(put("text", value=WANTED), drop("text", "format", "name")),
    ),
    defect(
        "a strict schema of the answer that takes anything besides",
        "schema",
        "text.format.schema",
        all_of(put("text", value=WANTED), put("text", "format", "strict", value=True)),
    ),
    defect(
        "a strict tool that takes anything besides",
        "schema",
        "tools[0].parameters",
        put("tools", 0, "strict", value=True),
    ),
    defect(
        "a choice among no tools",
        "no-tools",
        "tool_choice",
        all_of(drop("tools"), put("tool_choice", value="required")),
    ),
    defect(
        "a choice of a tool that is not there",
        "unknown",
        "tool_choice.name",
        put("tool_choice", value={"type": "function", "name": "oven"}),
    ),
    Case("a choice of no kind", "unknown", "tool_choice", put("tool_choice", value="any")),
    defect("no model", "missing", "model", drop("model")),
    defect("an empty model", "empty", "model", put("model", value="")),
    defect("a limit below sixteen", "limit", "max_output_tokens", put("max_output_tokens", value=15)),
    Case("a limit that is a list", "type", "max_output_tokens", put("max_output_tokens", value=[])),
    defect("no input", "missing", "input", drop("input")),
    defect("an empty input", "empty", "input", put("input", value=[])),
    defect("an input of an empty text", "empty", "input", put("input", value="")),
    defect("empty instructions", "empty", "instructions", put("instructions", value="")),
    Case("an item that is a text", "type", "input[9]", put("input", 9, value="Go on.")),
    Case(
        "an item of no type that there is", "unknown", "input[9].type", put("input", 9, value={"type": "tool_result"})
    ),
    Case("a role that nobody has", "unknown", "input[9].role", put("input", 9, "role", value="tool")),
    defect("a status of reasoning", "unknown", "input[1].status", put("input", 1, "status", value="completed")),
    Case("reasoning with a status of None", "unknown", "input[1].status", put("input", 1, "status", value=None)),
    Case("reasoning with a content of None", "unknown", "input[1].content", put("input", 1, "content", value=None)),
    Case(
        "a search with no queries",
        "unknown",
        "input[7].action.queries",
        put("input", 7, "action", "queries", value=None),
    ),
    defect("an empty message", "empty", "input[9].content", put("input", 9, "content", value="")),
    defect("a message of no parts", "empty", "input[9].content", put("input", 9, "content", value=[])),
    defect("an empty part", "empty", "input[2].content[0].text", put("input", 2, "content", 0, "text", value="")),
    Case("half a surrogate pair", "unicode", "input[12].output", put("input", 12, "output", value="\ud83d")),
    Case(
        "what the user says as the model's",
        "unknown",
        "input[9].content[0]",
        put("input", 9, "content", value=[{"type": "output_text", "text": "x"}]),
    ),
    Case(
        "what the model says as the user's",
        "unknown",
        "input[2].content[0]",
        put("input", 2, "content", 0, value={"type": "input_image", "image_url": "https://example.org"}),
    ),
    defect("the assistant speaks last", "last", "input[13]", insert("input", 13, value=said("msg_2", "It rains."))),
    defect(
        "instructions at the end", "last", "input[13]", insert("input", 13, value={"role": "developer", "content": "x"})
    ),
    defect("a call without an output", "unanswered", "input[4]", drop("input", 6)),
    defect("the last call is not answered", "unanswered", "input[11]", put("input", 12, value=ASK)),
    defect("a message between the outputs", "unanswered", "input[4]", put("input", 6, value=ASK)),
    defect("an output without a call", "no-call", "input[13]", insert("input", 13, value=result("call_9"))),
    defect("an output of an earlier call", "no-call", "input[13]", insert("input", 13, value=result("call_1"))),
    defect("two outputs for one call", "answered-twice", "input[13]", insert("input", 13, value=result("call_3"))),
    defect(
        "an output of another kind of call",
        "no-call",
        "input[12]",
        put("input", 12, "type", value="custom_tool_call_output"),
    ),
    defect(
        "an id of 65 characters",
        "call-id",
        "input[11].call_id",
        all_of(put("input", 11, "call_id", value="c" * 65), put("input", 12, "call_id", value="c" * 65)),
    ),
    defect(
        "a call id used again",
        "duplicate-id",
        "input[11].call_id",
        all_of(put("input", 11, "call_id", value="call_1"), put("input", 12, "call_id", value="call_1")),
    ),
    defect("an item's id used again", "duplicate-id", "input[10].id", put("input", 10, "id", value="rs_1")),
    defect("reasoning before a user's message", "reasoning", "input[9]", insert("input", 9, value=reasoning("rs_3"))),
    defect("reasoning before an output", "reasoning", "input[12]", insert("input", 12, value=reasoning("rs_3"))),
    defect(
        "reasoning whose call is gone",
        "reasoning",
        "input[10]",
        all_of(drop("input", 12), drop("input", 11), insert("input", 11, value=ASK)),
    ),
    defect("reasoning that cannot be read again", "reasoning", "input[10]", drop("input", 10, "encrypted_content")),
    Case("reasoning without a summary", "missing", "input[10].summary", drop("input", 10, "summary")),
    Case("reasoning without an id", "missing", "input[10].id", all_of(drop("input", 10, "id"), drop("store"))),
    defect(
        "arguments cut off", "arguments", "input[11].arguments", put("input", 11, "arguments", value='{"city": "Os')
    ),
    defect(
        "arguments that are a text", "arguments", "input[11].arguments", put("input", 11, "arguments", value='"Oslo"')
    ),
    defect("a call of a tool of no name", "tool-name", "input[11].name", put("input", 11, "name", value="a b")),
    defect(
        "a tool's name of a form that is refused", "tool-name", "tools[0].name", put("tools", 0, "name", value="a.b")
    ),
    defect("two tools of one name", "duplicate-tool", "tools[1]", put("tools", 1, "name", value="weather")),
    defect("a schema of no type", "schema", "tools[0].parameters", drop("tools", 0, "parameters", "type")),
    defect(
        "an image of two sources",
        "source",
        "input[0].content[1]",
        put("input", 0, "content", 1, "file_id", value="file-2"),
    ),
    defect("an image of no source", "source", "input[0].content[2]", drop("input", 0, "content", 2, "file_id")),
    defect(
        "a file of two sources",
        "source",
        "input[0].content[3]",
        put("input", 0, "content", 3, "file_url", value="https://example.org"),
    ),
    defect(
        "a file without a name", "missing", "input[0].content[3].filename", drop("input", 0, "content", 3, "filename")
    ),
    defect(
        "an image that is no base64",
        "base64",
        "input[0].content[1].image_url",
        put("input", 0, "content", 1, "image_url", value="data:image/png;base64,A"),
    ),
    defect(
        "an image of a type that is not taken",
        "media-type",
        "input[0].content[1].image_url",
        put("input", 0, "content", 1, "image_url", value="data:image/tiff;base64,AAAA"),
    ),
    defect(
        "a file at no address",
        "url",
        "input[0].content[4].file_url",
        put("input", 0, "content", 4, "file_url", value="a.pdf"),
    ),
]


def test_the_base_is_valid_and_the_types_take_it():
    assert validate_request("openai_responses", BASE) == []
    assert shape_problems("openai_responses", BASE) == []


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.sentence)
def test_a_change_breaks_just_its_rule(case):
    check_case("openai_responses", BASE, case)


@pytest.mark.parametrize(
    ("sentence", "changes"),
    [
        ("a text alone", {"input": "Hello"}),
        (
            "a call of the conversation that the provider keeps",
            {"input": [result("call_9")], "previous_response_id": "resp_1"},
        ),
        (
            "several reasoning items before one call",
            {"input": [ASK, reasoning("rs_1"), reasoning("rs_2"), call("a"), result("a")]},
        ),
        ("calls without tools", {"tools": []}),
        ("a result that says nothing", {"input": [ASK, call("a"), {**result("a"), "output": ""}]}),
        ("an answer by a schema", {"text": WANTED}),
        ("an answer in the background", {"background": True, "store": True}),
        (
            "reasoning that the provider keeps",
            {"store": True, "input": [ASK, {"type": "reasoning", "id": "rs_1", "summary": []}, call("a"), result("a")]},
        ),
        (
            "a local shell, whose output has the call's id for its own",
            {
                "input": [
                    ASK,
                    {
                        "type": "local_shell_call",
                        "id": "lsh_1",
                        "call_id": "a",
                        "status": "completed",
                        "action": {"type": "exec", "command": ["ls"], "env": {}},
                    },
                    {"type": "local_shell_call_output", "id": "a", "output": "{}"},
                ]
            },
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_providers_take_is_valid(sentence, changes):
    request = {**copy.deepcopy(BASE), **changes}
    assert validate_request("openai_responses", request) == []
    assert shape_problems("openai_responses", request) == []


def test_reasoning_that_nobody_stores_needs_no_id():
    request = copy.deepcopy(BASE)
    del request["input"][10]["id"]
    assert validate_request("openai_responses", request) == []


def test_items_of_a_reply_of_the_sdk_may_stand_in_the_input_as_they_came():
    from openai.types.responses import ResponseFunctionToolCall, ResponseReasoningItem

    request = copy.deepcopy(BASE)
    request["input"][10] = ResponseReasoningItem.model_validate(request["input"][10])
    request["input"][11] = ResponseFunctionToolCall.model_validate(request["input"][11])
    assert validate_request("openai_responses", request) == []
    del request["input"][12]
    assert [problem.split(": ")[1] for problem in validate_request("openai_responses", request)] == [
        "unanswered",
        "last",
    ]
