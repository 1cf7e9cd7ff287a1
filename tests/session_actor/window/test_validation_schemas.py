"""Schemas of tools and of answers: what each provider refuses of them, and what it takes."""

from __future__ import annotations

import copy

import pytest

from session_actor import validate_request

from .bases import BASES
from .breaking import Pair, all_of, check_pair, put

CHAT, RESPONSES, CLAUDE, GEMINI = "openai_chat", "openai_responses", "anthropic", "gemini"
SCHEMAS = {
    CHAT: ("tools", 0, "function", "parameters"),
    RESPONSES: ("tools", 0, "parameters"),
    CLAUDE: ("tools", 0, "input_schema"),
    GEMINI: ("config", "tools", 0, "function_declarations", 0, "parameters"),
}
PATHS = {
    CHAT: "tools[0].function.parameters",
    RESPONSES: "tools[0].parameters",
    CLAUDE: "tools[0].input_schema",
    GEMINI: "config.tools[0].function_declarations[0].parameters",
}
STRICT = {CHAT: ("tools", 0, "function", "strict"), RESPONSES: ("tools", 0, "strict"), CLAUDE: ("tools", 0, "strict")}
TEXT = {"type": "string"}
OPEN_AI = (CHAT, RESPONSES)
JSON_SCHEMAS = (*OPEN_AI, CLAUDE)


def holding(**properties):
    return {"type": "object", "properties": properties}


def closed(**properties):
    return {**holding(**properties), "required": list(properties), "additionalProperties": False}


def tool(dialect, sentence, bad, good):
    """A schema of a tool that is refused, and one that is taken."""
    older = put(*SCHEMAS[GEMINI][:-1], value={"name": "weather"}) if dialect == GEMINI else all_of()
    steps = SCHEMAS[dialect]
    return Pair(
        dialect,
        sentence,
        "schema",
        PATHS[dialect],
        all_of(older, put(*steps, value=bad)),
        all_of(older, put(*steps, value=good)),
    )


def strict(dialect, sentence, bad, good):
    """A schema that is refused, and one that is taken, where it shall be followed strictly."""
    pair = tool(dialect, sentence, bad, good)
    switch = put(*STRICT[dialect], value=True)
    return pair._replace(bad=all_of(pair.bad, switch), good=all_of(pair.good, switch))


PAIRS = [
    *(
        tool(dialect, sentence, holding(a=bad), holding(a=good))
        for dialect in JSON_SCHEMAS
        for sentence, bad, good in (
            ("a type that there is not", {"type": "dict"}, {"type": "object"}),
            ("a type in capitals", {"type": "STRING"}, TEXT),
            ("types of which one there is not", {"type": ["string", "any"]}, {"type": ["string", "null"]}),
            ("no type in a list of them", {"type": []}, {}),
            ("a property that is required by itself", {"type": "string", "required": True}, TEXT),
            ("required names that are numbers", {**holding(), "required": [1]}, {**holding(), "required": []}),
            ("an enum that is a text", {"enum": "a, b"}, {"enum": ["a", 1, None]}),
            ("properties in a list", {"type": "object", "properties": ["b"]}, {"type": "object", "properties": {}}),
            ("properties that are no schemas", holding(b="text"), holding(b=True)),
            ("a choice of one", {"anyOf": TEXT}, {"anyOf": [TEXT]}),
            ("a choice of none", {"oneOf": []}, {"oneOf": [TEXT, {"type": "null"}]}),
            ("items that are a word", {"type": "array", "items": "string"}, {"type": "array", "items": TEXT}),
            ("what is no schema besides", {"additionalProperties": "no"}, {"additionalProperties": {}}),
        )
    ),
    tool(
        CLAUDE,
        "items by their places, as older drafts had them",
        holding(a={"type": "array", "items": [TEXT]}),
        holding(a={"type": "array", "prefixItems": [TEXT]}),
    ),
    *(
        tool(CLAUDE, f"{key} at the top", {**holding(), key: [holding()]}, holding(a={key: [holding()]}))
        for key in ("anyOf", "oneOf", "allOf")
    ),
    *(
        tool(CLAUDE, f"a property named {name[:9]!r}", holding(**{name: TEXT}), holding(a=holding(**{name: TEXT})))
        for name in ("filter[id]", "$top", "a b", "é", "", "x" * 65)
    ),
    *(
        tool(dialect, f"{key} at the top", {**holding(), key: value}, holding(a={key: value}))
        for dialect in OPEN_AI
        for key, value in (("anyOf", [holding()]), ("oneOf", [TEXT]), ("allOf", [TEXT]), ("enum", ["x"]), ("not", TEXT))
    ),
    *(
        tool(dialect, f"an array without items, {where}", bad, good)
        for dialect in OPEN_AI
        for where, bad, good in (
            ("at once", holding(a={"type": "array"}), holding(a={"type": "array", "items": {}})),
            (
                "further down",
                holding(a={"type": "array", "items": {"type": "array"}}),
                holding(a={"type": "array", "items": [{"type": "array", "items": TEXT}]}),
            ),
            ("in a choice", holding(a={"anyOf": [{"type": "array"}]}), holding(a={"anyOf": [{"type": "null"}]})),
            ("in a definition", {**holding(), "$defs": {"b": {"type": "array"}}}, {**holding(), "$defs": {"b": TEXT}}),
        )
    ),
    tool(GEMINI, "a type that there is not", holding(a={"type": "FLOAT"}), holding(a={"type": "NUMBER"})),
    tool(GEMINI, "an array without items", holding(a={"type": "ARRAY"}), holding(a={"type": "ARRAY", "items": TEXT})),
    tool(
        GEMINI,
        "a required property that is not there",
        {**holding(a=TEXT), "required": ["b"]},
        {**holding(a=TEXT), "required": ["a"]},
    ),
    *(
        strict(dialect, sentence, bad, good)
        for dialect in OPEN_AI
        for sentence, bad, good in (
            (
                "a property that may be left out",
                {**closed(a=TEXT), "required": []},
                closed(a={"type": ["string", "null"]}),
            ),
            ("no required at all", {**holding(a=TEXT), "additionalProperties": False}, closed(a=TEXT)),
            ("other properties inside", closed(a={**closed(), "additionalProperties": True}), closed(a=closed())),
            ("all of several", closed(a={"allOf": [TEXT]}), closed(a={"anyOf": [TEXT, {"type": "null"}]})),
            ("one of several", closed(a={"oneOf": [TEXT]}), closed(a={"$ref": "#/$defs/b"}) | {"$defs": {"b": TEXT}}),
            ("a property of no type", closed(a={"description": "any"}), closed(a={"enum": ["x"]})),
        )
    ),
    strict(CLAUDE, "strict and open", holding(a=TEXT), {**holding(a=TEXT), "additionalProperties": False}),
    strict(CLAUDE, "strict and open inside", closed(a=holding()), closed(a=closed())),
    strict(
        CLAUDE,
        "a range of numbers",
        closed(a={"type": "integer", "minimum": 1}),
        closed(a={"type": "integer", "enum": [1, 2]}),
    ),
    strict(CLAUDE, "a range of lengths", closed(a={**TEXT, "maxLength": 9}), closed(a={**TEXT, "format": "date"})),
    Pair(
        CLAUDE,
        "an answer of an open object",
        "schema",
        "output_config.format.schema",
        put("output_config", value={"format": {"type": "json_schema", "schema": holding(a=TEXT)}}),
        put("output_config", value={"format": {"type": "json_schema", "schema": closed(a=TEXT)}, "effort": "low"}),
    ),
    Pair(
        CLAUDE,
        "an answer of no schema",
        "missing",
        "output_config.format.schema",
        put("output_config", value={"format": {"type": "json_schema"}}),
        put("output_config", value={"format": None}),
    ),
    *(
        Pair(
            CHAT,
            f"an answer by a schema, {sentence}",
            rule,
            f"response_format.json_schema.{key}",
            put("response_format", value={"type": "json_schema", "json_schema": {**GOOD, key: bad}}),
            put("response_format", value={"type": "json_schema", "json_schema": {**GOOD, key: good}}),
        )
        for GOOD in ({"name": "place", "strict": True, "schema": closed(a=TEXT)},)
        for sentence, rule, key, bad, good in (
            ("of a name with a space", "name", "name", "a place", "a-place_1"),
            (
                "a list",
                "schema",
                "schema",
                {"type": "array", "items": TEXT},
                closed(a={"type": "array", "items": TEXT}),
            ),
            ("a choice", "schema", "schema", {"anyOf": [closed()]}, closed(a={"anyOf": [closed(), TEXT]})),
        )
    ),
    Pair(
        RESPONSES,
        "an answer by a schema of a name with a dot",
        "name",
        "text.format.name",
        put("text", value={"format": {"type": "json_schema", "name": "a.b", "schema": closed()}}),
        put("text", value={"format": {"type": "json_schema", "name": "a-b", "schema": closed()}}),
    ),
    Pair(
        GEMINI,
        "two schemas of the answer",
        "conflict",
        "config.response_schema",
        put(
            "config",
            value={
                "response_mime_type": "application/json",
                "response_schema": {"type": "STRING"},
                "response_json_schema": TEXT,
            },
        ),
        put("config", value={"response_mime_type": "application/json", "response_json_schema": TEXT}),
    ),
    Pair(
        GEMINI,
        "a schema of an answer that is plain text",
        "conflict",
        "config.response_mime_type",
        put("config", value={"response_mime_type": "text/plain", "response_schema": {"type": "STRING"}}),
        put(
            "config", value={"response_mime_type": "text/x.enum", "response_schema": {"type": "STRING", "enum": ["a"]}}
        ),
    ),
    Pair(
        GEMINI,
        "a schema of an answer with an array of anything",
        "schema",
        "config.response_schema",
        put("config", value={"response_mime_type": "application/json", "response_schema": {"type": "ARRAY"}}),
        put(
            "config",
            value={"response_mime_type": "application/json", "response_schema": {"type": "ARRAY", "items": {}}},
        ),
    ),
]


@pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: f"{pair.dialect}: {pair.sentence}")
def test_a_schema_is_refused_and_its_neighbour_is_not(pair):
    check_pair(BASES[pair.dialect], pair)


@pytest.mark.parametrize("dialect", sorted(SCHEMAS))
def test_a_schema_that_contains_itself_ends(dialect):
    circle = holding(a=TEXT)
    circle["properties"] |= {"b": circle, "c": circle, "d": holding(e=circle)}
    request = copy.deepcopy(BASES[dialect])
    *steps, last = SCHEMAS[dialect]
    holder = request
    for step in steps:
        holder = holder[step]
    holder[last] = circle
    assert {problem.split(": ")[1] for problem in validate_request(dialect, request)} <= {"schema"}
