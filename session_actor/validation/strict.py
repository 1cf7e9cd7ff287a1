"""Schemas that decoding shall follow strictly, and formats of answers.

Sources: OpenAI, docs "Structured outputs", supported schemas; and what the API answers: "'required' is required to be
supplied and to be an array including every key in properties" (github.com/sherifkozman/the-llm-council/issues/9),
"'allOf' is not permitted" (github.com/makenotion/notion-mcp-server/issues/102). Anthropic, docs "Structured outputs",
JSON Schema limitations: "For 'integer' type, property 'minimum' is not supported"
(github.com/agentjido/req_llm/issues/302).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from .problems import as_mapping, named
from .schemas import list_of, parts_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .problems import Problems

_NAME: Final = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_NOT_PERMITTED: Final = (
    "allOf", "oneOf", "not", "dependentRequired", "dependentSchemas", "if", "then", "else",
)  # fmt: skip
_TELLS_TYPE: Final = ("type", "anyOf", "$ref", "enum", "const", *_NOT_PERMITTED)
_RANGES: Final[dict[str, tuple[str, ...]]] = {
    "integer": ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"),
    "number": ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"),
    "string": ("minLength", "maxLength"),
}


def strict_schema(problems: Problems, path: str, schema: object) -> None:
    """Check that OpenAI can follow a schema strictly."""
    found = as_mapping(schema)
    if found is None:
        return
    if not _is_object(found) or found.get("anyOf") is not None:
        problems.add(path, "schema", "is strict: it must be an object itself, and no choice")
        return
    for inner in parts_of(found):
        if (why := _openai_fault(inner)) is not None:
            problems.add(path, "schema", f"is strict: {why}")
            return


def anthropic_strict_schema(problems: Problems, path: str, schema: object) -> None:
    """Check that Anthropic can follow a schema strictly."""
    found = as_mapping(schema)
    for inner in () if found is None else parts_of(found):
        kind = inner.get("type")
        ranges = [key for key in _RANGES.get(kind, ()) if inner.get(key) is not None] if isinstance(kind, str) else []
        if _is_object(inner) and inner.get("additionalProperties") is not False:
            problems.add(path, "schema", "is strict: every object in it must have additionalProperties false")
        elif ranges:
            problems.add(path, "schema", f"is strict: of type {named(kind)} it must not have {ranges[0]}")
        else:
            continue
        return


def response_format(problems: Problems, path: str, holder: Mapping[str, Any]) -> None:
    """Check the format of an answer that is a schema: it has a name."""
    name = problems.required_text(path, holder, "name")
    if name is not None and not _NAME.fullmatch(name):
        problems.add(f"{path}.name", "name", f"{named(name)} must match {_NAME.pattern}")
    if holder.get("strict") is True:
        strict_schema(problems, f"{path}.schema", holder.get("schema"))


def _openai_fault(schema: Mapping[str, Any]) -> str | None:
    if _is_object(schema):
        if schema.get("additionalProperties") is not False:
            return "every object in it must have additionalProperties false"
        required = list_of(schema.get("required")) or ()
        if any(key not in required for key in as_mapping(schema.get("properties")) or {}):
            return "every object in it must require all its properties"
    given = [key for key in _NOT_PERMITTED if schema.get(key) is not None]
    if given:
        return f"it must not have {given[0]}"
    if all(key not in schema for key in _TELLS_TYPE):
        return "every schema in it must have a type"
    return None


def _is_object(schema: Mapping[str, Any]) -> bool:
    kind = schema.get("type")
    return kind == "object" or "object" in (list_of(kind) or ())
