"""What the validator says of requests for Gemini's generateContent."""

from __future__ import annotations

import base64
import copy

import pytest

from session_actor import validate_request

from .breaking import PIXEL, Case, all_of, check_case, defect, drop, insert, put
from .sdk_shapes import shape_problems

SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}}


def call(name: str, call_id: str | None = None, signature: bytes | None = None) -> dict:
    made: dict = {"function_call": {"name": name, "args": {"city": "Oslo"}}}
    if call_id is not None:
        made["function_call"]["id"] = call_id
    if signature is not None:
        made["thought_signature"] = signature
    return made


def response(name: str, call_id: str | None = None) -> dict:
    made: dict = {"function_response": {"name": name, "response": {"output": "rain"}}}
    if call_id is not None:
        made["function_response"]["id"] = call_id
    return made


def declaration(name: str) -> dict:
    return {"name": name, "description": "Tells it.", "parameters_json_schema": SCHEMA}


TEXT = {"text": "and so on"}
SAYING = {"role": "model", "parts": [TEXT]}
BASE = {
    "model": "gemini-3-pro",
    "contents": [
        {
            "role": "user",
            "parts": [
                {"text": "How is it there?"},
                {"inline_data": {"mime_type": "image/png", "data": base64.b64decode(PIXEL)}},
                {"inline_data": {"mime_type": "application/pdf", "data": b"%PDF"}},
                {"file_data": {"file_uri": "https://example.org/a.mp4", "mime_type": "video/mp4"}},
            ],
        },
        {
            "role": "model",
            "parts": [
                {"text": "hm", "thought": True},
                TEXT,
                call("weather", signature=b"\x01\x02"),
                call("weather"),
                call("clock", "fc_3"),
            ],
        },
        {"role": "user", "parts": [response("weather"), response("weather"), response("clock", "fc_3"), TEXT]},
        {"role": "model", "parts": [{"text": "", "thought_signature": b"\x03"}, TEXT]},
        {"role": "user", "parts": [{"text": "Go on."}]},
        {"role": "model", "parts": [call("weather", "fc_4", b"\x04"), call("clock", "fc_5")]},
        {"role": "user", "parts": [response("clock", "fc_5"), response("weather", "fc_4")]},
    ],
    "config": {
        "max_output_tokens": 4096,
        "system_instruction": "Be brief.",
        "tools": [{"function_declarations": [declaration("weather"), declaration("clock")]}],
    },
}
DECLARED = ("config", "tools", 0, "function_declarations")
NAME = "config.tools[0].function_declarations"

CALLING = ("config", "tool_config")
MODE = "config.tool_config.function_calling_config"


def calling(**settings) -> dict:
    return {"function_calling_config": settings}


CASES = [
    defect("a tool of nothing", "empty", "config.tools[1]", insert("config", "tools", 1, value={})),
    defect(
        "a call that nobody declared is allowed",
        "unknown",
        f"{MODE}.allowed_function_names[1]",
        put(*CALLING, value=calling(mode="ANY", allowed_function_names=["clock", "oven"])),
    ),
    defect(
        "calls that are named and free",
        "conflict",
        f"{MODE}.allowed_function_names",
        put(*CALLING, value=calling(mode="AUTO", allowed_function_names=["clock"])),
    ),
    defect(
        "a schema of the answer without its type",
        "missing",
        "config.response_mime_type",
        put("config", "response_schema", value={"type": "OBJECT"}),
    ),
    defect("no answer at all", "limit", "config.candidate_count", put("config", "candidate_count", value=0)),
    Case("an argument of another SDK", "unknown", "request", put("generation_config", value={"top_k": 1})),
    defect(
        "a call of the current turn without its signature",
        "signature",
        "contents[5].parts[0]",
        drop("contents", 5, "parts", 0, "thought_signature"),
    ),
    Case("no model", "missing", "model", drop("model")),
    defect("a blank model", "blank", "model", put("model", value=" ")),
    defect("a limit of nothing", "limit", "config.max_output_tokens", put("config", "max_output_tokens", value=0)),
    Case(
        "a limit that is a text", "type", "config.max_output_tokens", put("config", "max_output_tokens", value="many")
    ),
    Case("no contents", "missing", "contents", drop("contents")),
    defect("no content at all", "empty", "contents", put("contents", value=[])),
    defect("an empty text for contents", "empty", "contents", put("contents", value="")),
    Case("a content that is a number", "type", "contents[4]", put("contents", 4, value=7)),
    defect("a role that nobody has", "unknown", "contents[4].role", put("contents", 4, "role", value="assistant")),
    defect("no role among several contents", "unknown", "contents[4].role", drop("contents", 4, "role")),
    defect("the model speaks first", "first", "contents[0]", insert("contents", 0, value=SAYING)),
    defect(
        "two contents of the user",
        "alternate",
        "contents[5]",
        insert("contents", 5, value={"role": "user", "parts": [TEXT]}),
    ),
    defect("two contents of the model", "alternate", "contents[4]", insert("contents", 4, value=SAYING)),
    defect("the model speaks last", "last", "contents[7]", insert("contents", 7, value=SAYING)),
    defect("an empty text", "empty", "contents[4].parts[0].text", put("contents", 4, "parts", 0, "text", value="")),
    defect("a content of no parts", "empty", "contents[4].parts", put("contents", 4, "parts", value=[])),
    defect("a content without parts", "missing", "contents[4].parts", drop("contents", 4, "parts")),
    defect("a part of nothing", "source", "contents[4].parts[0]", put("contents", 4, "parts", 0, value={})),
    defect(
        "a part of two kinds",
        "source",
        "contents[4].parts[0]",
        put("contents", 4, "parts", 0, "file_data", value={"file_uri": "https://example.org"}),
    ),
    Case(
        "half a surrogate pair",
        "unicode",
        "contents[4].parts[0].text",
        put("contents", 4, "parts", 0, "text", value="\ud800"),
    ),
    defect(
        "an empty system instruction",
        "empty",
        "config.system_instruction",
        put("config", "system_instruction", value=""),
    ),
    defect(
        "a system instruction of an empty part",
        "empty",
        "config.system_instruction.parts[0].text",
        put("config", "system_instruction", value={"parts": [{"text": ""}]}),
    ),
    defect("a call without a response", "count", "contents[2]", drop("contents", 2, "parts", 0)),
    defect("a response too many", "count", "contents[6]", insert("contents", 6, "parts", 2, value=response("clock"))),
    defect("calls and no response at all", "unanswered", "contents[6]", put("contents", 6, "parts", value=[TEXT])),
    defect(
        "responses and no call at all",
        "no-call",
        "contents[4]",
        insert("contents", 4, "parts", 0, value=response("clock")),
    ),
    defect(
        "a response of another name",
        "no-call",
        "contents[2].parts[0]",
        put("contents", 2, "parts", 0, value=response("clock")),
    ),
    defect(
        "a response of another id",
        "no-call",
        "contents[6].parts[0]",
        put("contents", 6, "parts", 0, value=response("clock", "fc_9")),
    ),
    defect(
        "two responses of one call",
        "no-call",
        "contents[6].parts[1]",
        put("contents", 6, "parts", 1, value=response("clock", "fc_5")),
    ),
    defect(
        "two calls of one id",
        "duplicate-id",
        "contents[5]",
        all_of(
            put("contents", 5, "parts", 1, value=call("clock", "fc_4")),
            put("contents", 6, "parts", 0, value=response("clock", "fc_4")),
        ),
    ),
    defect(
        "a text before the responses", "order", "contents[6].parts[1]", insert("contents", 6, "parts", 0, value=TEXT)
    ),
    defect(
        "a call of the user's", "unknown", "contents[4].parts[0]", put("contents", 4, "parts", 0, value=call("clock"))
    ),
    defect(
        "a response of the model's",
        "unknown",
        "contents[3].parts[1]",
        put("contents", 3, "parts", 1, value=response("clock")),
    ),
    defect(
        "a thought of the user's",
        "unknown",
        "contents[4].parts[0]",
        put("contents", 4, "parts", 0, "thought", value=True),
    ),
    defect("a text in a tool's content", "unknown", "contents[2]", put("contents", 2, "role", value="tool")),
    Case(
        "a signature that is no base64",
        "base64",
        "contents[1].parts[2].thought_signature",
        put("contents", 1, "parts", 2, "thought_signature", value="é"),
    ),
    defect(
        "an empty signature",
        "empty",
        "contents[1].parts[2].thought_signature",
        put("contents", 1, "parts", 2, "thought_signature", value=b""),
    ),
    Case(
        "arguments that are a text",
        "arguments",
        "contents[5].parts[0].function_call.args",
        put("contents", 5, "parts", 0, "function_call", "args", value="{}"),
    ),
    defect(
        "arguments that JSON cannot hold",
        "arguments",
        "contents[5].parts[0].function_call.args",
        put("contents", 5, "parts", 0, "function_call", "args", value={"n": float("inf")}),
    ),
    Case(
        "a response that is a text",
        "type",
        "contents[6].parts[0].function_response.response",
        put("contents", 6, "parts", 0, "function_response", "response", value="rain"),
    ),
    defect(
        "a response of nothing",
        "missing",
        "contents[6].parts[0].function_response.response",
        drop("contents", 6, "parts", 0, "function_response", "response"),
    ),
    defect(
        "a call of a tool of no name",
        "tool-name",
        "contents[5].parts[0].function_call.name",
        all_of(
            put("contents", 5, "parts", 0, "function_call", "name", value="1st"),
            put("contents", 6, "parts", 1, "function_response", "name", value="1st"),
        ),
    ),
    defect(
        "a tool's name of a form that is refused",
        "tool-name",
        f"{NAME}[0].name",
        put(*DECLARED, 0, "name", value="1st"),
    ),
    defect("two tools of one name", "duplicate-tool", f"{NAME}[1]", put(*DECLARED, 1, "name", value="weather")),
    defect(
        "a schema of a list",
        "schema",
        f"{NAME}[0].parameters_json_schema",
        put(*DECLARED, 0, "parameters_json_schema", "type", value="array"),
    ),
    defect(
        "two schemas of one tool", "schema", f"{NAME}[0]", put(*DECLARED, 0, "parameters", value={"type": "OBJECT"})
    ),
    defect("no declaration in a list of them", "empty", NAME, put(*DECLARED, value=[])),
    defect(
        "an image of a type that is not taken",
        "media-type",
        "contents[0].parts[1].inline_data.mime_type",
        put("contents", 0, "parts", 1, "inline_data", "mime_type", value="image/gif"),
    ),
    defect(
        "an image of no type",
        "missing",
        "contents[0].parts[1].inline_data.mime_type",
        drop("contents", 0, "parts", 1, "inline_data", "mime_type"),
    ),
    defect(
        "an image of no bytes",
        "missing",
        "contents[0].parts[1].inline_data.data",
        drop("contents", 0, "parts", 1, "inline_data", "data"),
    ),
    Case(
        "an image that is no base64",
        "base64",
        "contents[0].parts[1].inline_data.data",
        put("contents", 0, "parts", 1, "inline_data", "data", value="%%%%"),
    ),
    defect(
        "a file at no address",
        "missing",
        "contents[0].parts[3].file_data.file_uri",
        drop("contents", 0, "parts", 3, "file_data", "file_uri"),
    ),
]


def camel(value):
    """The same request as the REST API spells it."""
    if isinstance(value, dict):
        return {
            key.split("_")[0] + "".join(word.title() for word in key.split("_")[1:]): camel(inner)
            for key, inner in value.items()
        }
    return [camel(inner) for inner in value] if isinstance(value, list) else value


def test_the_base_is_valid_and_the_types_take_it():
    assert validate_request("gemini", BASE) == []
    assert shape_problems("gemini", BASE) == []


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.sentence)
def test_a_change_breaks_just_its_rule(case):
    check_case("gemini", BASE, case)


def test_keys_may_be_written_in_either_way_and_signatures_as_base64():
    request = camel(copy.deepcopy(BASE))
    request["contents"][1]["parts"][2]["thoughtSignature"] = "AQ-_"
    assert validate_request("gemini", request) == []
    del request["contents"][6]["parts"][0]
    assert [problem.split(": ")[1] for problem in validate_request("gemini", request)] == ["count"]


def test_models_of_the_sdk_may_stand_for_dicts():
    from google.genai import types

    contents = [types.Content.model_validate(content) for content in BASE["contents"]]
    config = types.GenerateContentConfig.model_validate(BASE["config"])
    request = {"model": "gemini-3-pro", "contents": contents, "config": config}
    assert validate_request("gemini", request) == []
    request["contents"][6].parts.pop()
    assert [problem.split(": ")[1] for problem in validate_request("gemini", request)] == ["count"]


@pytest.mark.parametrize(
    ("sentence", "contents"),
    [
        ("a text alone", "Hello"),
        ("texts in a list", ["Hello", "and so on"]),
        ("a text after a content", [{"role": "user", "parts": [TEXT]}, SAYING, "And now?"]),
        ("one content without a role", [{"parts": [TEXT]}]),
        (
            "responses of the role tool",
            [
                {"role": "user", "parts": [TEXT]},
                {"role": "model", "parts": [call("clock", signature=b"1")]},
                {"role": "tool", "parts": [response("clock")]},
            ],
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_providers_take_is_valid(sentence, contents):
    request = {"model": "gemini-3-pro", "contents": contents}
    assert validate_request("gemini", request) == []
    assert shape_problems("gemini", request) == []


def test_a_mode_of_calling_that_nobody_knows_is_a_problem():
    request = copy.deepcopy(BASE)
    request["config"]["tool_config"] = calling(mode="FORCE")
    assert [problem.split(": ")[:2] for problem in validate_request("gemini", request)] == [[f"{MODE}.mode", "unknown"]]


@pytest.mark.parametrize("mode", ["any", "ANY", "VALIDATED"])
def test_calls_may_be_named_where_they_are_declared(mode):
    request = copy.deepcopy(BASE)
    request["config"]["toolConfig"] = {"functionCallingConfig": {"mode": mode, "allowedFunctionNames": ["clock"]}}
    assert validate_request("gemini", request) == []


@pytest.mark.parametrize("model", ["gemini-2.5-pro", "gemini-3-pro-image", "models/gemini-1.5-flash"])
def test_older_models_and_those_for_images_ask_for_no_signature(model):
    request = copy.deepcopy(BASE)
    request["model"] = model
    del request["contents"][5]["parts"][0]["thought_signature"]
    assert validate_request("gemini", request) == []


def test_calls_of_earlier_turns_need_no_signature():
    request = copy.deepcopy(BASE)
    del request["contents"][1]["parts"][2]["thought_signature"]
    assert validate_request("gemini", request) == []
