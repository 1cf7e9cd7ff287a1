"""Schemas that decoding shall follow strictly. Source: OpenAI, docs "Structured outputs", supported schemas."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from .problems import as_mapping

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from .problems import Problems

_BY_NAME: Final = ("properties", "$defs", "definitions")
_DEEPEST: Final = 50


def strict_schema(problems: Problems, path: str, schema: object) -> None:
    """Check that every object in a schema takes no other properties than its own."""
    found = as_mapping(schema)
    if found is None:
        return
    level = [found]
    for _ in range(_DEEPEST):
        if any(_is_object(inner) and inner.get("additionalProperties") is not False for inner in level):
            problems.add(path, "schema", "is strict: every object in it must have additionalProperties false")
            return
        level = [inner for outer in level for inner in _inside(outer)]


def response_format(problems: Problems, path: str, holder: Mapping[str, Any]) -> None:
    """Check the format of an answer that is a schema: it has a name."""
    problems.required_text(path, holder, "name")
    if holder.get("strict") is True:
        strict_schema(problems, f"{path}.schema", holder.get("schema"))


def _is_object(schema: Mapping[str, Any]) -> bool:
    kind = schema.get("type")
    return kind == "object" or (isinstance(kind, list) and "object" in kind)


def _inside(schema: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    for key in _BY_NAME:
        yield from filter(None, map(as_mapping, (as_mapping(schema.get(key)) or {}).values()))
    for key in ("anyOf", "allOf", "oneOf"):
        listed: Any = schema.get(key)
        yield from filter(None, map(as_mapping, listed if isinstance(listed, list) else ()))  # pyright: ignore[reportUnknownArgumentType] - of anything
    items = as_mapping(schema.get("items"))
    if items is not None:
        yield items
