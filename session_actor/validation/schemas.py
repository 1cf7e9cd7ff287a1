"""Schemas of arguments and of answers: whether each is one, all the way down, and what a provider narrows.

Sources: JSON Schema, draft 2020-12 (metaschema); and what the APIs answer. Anthropic: "JSON schema is invalid. It must
match JSON Schema draft 2020-12", "input_schema does not support oneOf, allOf, or anyOf at the top level"
(github.com/anthropics/claude-code/issues/40075), "Property keys should match pattern '^[a-zA-Z0-9_.-]{1,64}$'"
(github.com/ComposioHQ/composio/pull/3574). OpenAI: "schema must have type 'object' and not have
'oneOf'/'anyOf'/'allOf'/'enum'/'not' at the top level" (github.com/langchain-ai/langchainjs/issues/9804), "array schema
missing items" (github.com/meilisearch/meilisearch-mcp/issues/27). Gemini: "items: missing field"
(github.com/kkrishnan90/gemini-desktop/pull/7), "required[0]: property is not defined"
(github.com/Kilo-Org/kilocode/pull/11955).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from .gemini_parts import field
from .problems import as_mapping, named

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from .problems import Problems

_TYPES: Final = frozenset({"string", "number", "integer", "boolean", "object", "array", "null"})
_MAPS: Final = ("properties", "$defs", "definitions", "patternProperties", "dependentSchemas")
_LISTS: Final = ("anyOf", "allOf", "oneOf", "prefixItems")
_SINGLE: Final = ("items", "additionalProperties", "not", "if", "then", "else", "contains", "propertyNames")
_DEEPEST: Final = 50
_KEY: Final = re.compile(r"[a-zA-Z0-9_.-]{1,64}")
_COMBINED: Final = ("oneOf", "anyOf", "allOf")


def anthropic_schema(problems: Problems, path: str, value: object) -> None:
    """Check a schema of arguments as Anthropic does."""
    schema = as_mapping(value)
    if schema is None:
        return
    well_formed(problems, path, schema, tuples=False)
    _no_choice(problems, path, schema, _COMBINED)
    for key in as_mapping(schema.get("properties")) or {}:
        if isinstance(key, str) and not _KEY.fullmatch(key):  # pyright: ignore[reportUnnecessaryIsInstance] - of anything
            problems.add(path, "schema", f"has a property named {named(key)}, which must match {_KEY.pattern}")
            return


def openai_schema(problems: Problems, path: str, value: object) -> None:
    """Check a schema of arguments as OpenAI does, strict or not."""
    schema = as_mapping(value)
    if schema is None:
        return
    well_formed(problems, path, schema)
    _no_choice(problems, path, schema, (*_COMBINED, "enum", "not"))
    if any(inner.get("type") == "array" and not _has_items(inner) for inner in parts_of(schema)):
        problems.add(path, "schema", "holds an array without items")


def gemini_schema(problems: Problems, path: str, value: object) -> None:
    """Check a schema of OpenAPI, as Gemini takes it beside JSON schemas."""
    schema = as_mapping(value)
    for inner in () if schema is None else _levels(schema, _openapi_inside):
        kind = inner.get("type")
        word = kind.upper() if isinstance(kind, str) else None
        if isinstance(kind, str) and word != "TYPE_UNSPECIFIED" and kind.lower() not in _TYPES:
            problems.add(path, "schema", f"holds the type {named(kind)}, which there is not")
        elif word == "ARRAY" and inner.get("items") is None:
            problems.add(path, "schema", "holds an array without items")
        elif not _defined(inner):
            problems.add(path, "schema", "requires a property that it does not define")
        else:
            continue
        return


def well_formed(problems: Problems, path: str, schema: Mapping[str, Any], *, tuples: bool = True) -> None:
    """Check that a schema is one. `tuples`: an array may list the schemas of its items, as in drafts before 2020."""
    for inner in parts_of(schema):
        why = _fault(inner, tuples=tuples)
        if why is not None:
            problems.add(path, "schema", why)
            return


def parts_of(schema: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """A schema and every schema in it, level by level; a circle ends somewhere."""
    return _levels(schema, _inside)


def _levels(
    schema: Mapping[str, Any], inside: Callable[[Mapping[str, Any]], Iterable[Any]]
) -> Iterator[Mapping[str, Any]]:
    level = [schema]
    for _ in range(_DEEPEST):
        yield from level
        below = [as_mapping(inner) for outer in level for inner in inside(outer)]
        level = list({id(found): found for found in below if found is not None}.values())  # each once: no circle grows
        if not level:
            return


def _inside(schema: Mapping[str, Any]) -> Iterator[Any]:
    for key, value in schema.items():
        if key in _SINGLE:
            yield value
        if key in _MAPS:
            yield from (as_mapping(value) or {}).values()
        elif key in _LISTS or key == "items":
            yield from list_of(value) or ()


def _openapi_inside(schema: Mapping[str, Any]) -> Iterator[Any]:
    yield schema.get("items")
    yield from (as_mapping(schema.get("properties")) or {}).values()
    yield from list_of(field(schema, "any_of")) or ()


def list_of(value: object) -> list[Any] | tuple[Any, ...] | None:
    """A list or a tuple as it is; None: it is neither."""
    return value if isinstance(value, list | tuple) else None  # pyright: ignore[reportUnknownVariableType] - of anything


def _fault(schema: Mapping[str, Any], *, tuples: bool) -> str | None:
    """What of one level is no schema; None: nothing."""
    kind, required, enum = (schema.get(key) for key in ("type", "required", "enum"))
    if kind is not None and not _is_type(kind):
        return f"holds the type {named(kind)}, which there is not"
    names = list_of(required)
    if required is not None and (names is None or not all(isinstance(name, str) for name in names)):
        return "holds a required that is no list of names"
    if enum is not None and list_of(enum) is None:
        return "holds an enum that is no list"
    for key in (*_MAPS, *_LISTS, *_SINGLE):
        value = schema.get(key)
        if value is not None and not _holds_schemas(key, value, tuples=tuples):
            return f"holds {key} of what is no schema"
    return None


def _holds_schemas(key: str, value: object, *, tuples: bool) -> bool:
    if key in _MAPS:
        found = as_mapping(value)
        return found is not None and all(map(_is_schema, found.values()))
    listed = list_of(value)
    if key in _LISTS or (tuples and key == "items" and listed is not None):
        return bool(listed) and all(map(_is_schema, listed or ()))
    return _is_schema(value)


def _is_type(kind: object) -> bool:
    listed = list_of(kind)
    if listed is None:
        return isinstance(kind, str) and kind in _TYPES
    return bool(listed) and all(isinstance(one, str) and one in _TYPES for one in listed)


def _is_schema(value: object) -> bool:
    return isinstance(value, bool) or as_mapping(value) is not None


def _has_items(schema: Mapping[str, Any]) -> bool:
    return schema.get("items") is not None or schema.get("prefixItems") is not None


def _defined(schema: Mapping[str, Any]) -> bool:
    """Whether all properties that a schema of OpenAPI requires are there."""
    required, properties = list_of(schema.get("required")), as_mapping(schema.get("properties"))
    if required is None or properties is None or field(schema, "any_of") is not None:
        return True
    return all(name in properties for name in required if isinstance(name, str))


def _no_choice(problems: Problems, path: str, schema: Mapping[str, Any], keys: tuple[str, ...]) -> None:
    """Check that the schema itself is one object, and no choice among several."""
    for key in keys:
        if schema.get(key) is not None:
            problems.add(path, "schema", f"must not have {key} at its top: only inside its properties")
            return
