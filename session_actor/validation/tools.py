"""What all dialects say of tools and of the arguments of calls."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from .problems import as_mapping, named

if TYPE_CHECKING:
    import re
    from collections.abc import Collection, Iterable, Mapping

    from .problems import Problems


def tool_name(problems: Problems, path: str, holder: Mapping[str, Any], form: re.Pattern[str]) -> str | None:
    """The name of a tool, or of the tool that a call is for; None after a problem."""
    name = problems.required_text(path, holder, "name")
    if name is not None and not form.fullmatch(name):
        problems.add(f"{path}.name", "tool-name", f"{named(name)} must match {form.pattern}")
        return None
    return name


def distinct(problems: Problems, path: str, name: str | None, names: set[str]) -> None:
    """Check that no other tool has this name."""
    if name is None:
        return
    if name in names:
        problems.add(path, "duplicate-tool", f"another tool is named {named(name)}")
    names.add(name)


def object_schema(problems: Problems, path: str, value: object, *, any_case: bool = False) -> None:
    """Check a schema of arguments: it must be that of an object, so its type must say so."""
    schema = problems.free_object(path, value, "schema")
    if schema is None:
        return
    kind = schema.get("type")
    word = kind.lower() if any_case and isinstance(kind, str) else kind
    if word != "object":
        problems.add(path, "schema", f"must be of type 'object', not {named(kind)}")


def json_arguments(problems: Problems, path: str, holder: Mapping[str, Any]) -> None:
    """Check arguments that are written as JSON text: one object."""
    text = problems.required(path, holder, "arguments")
    if text is None:
        return
    place = f"{path}.arguments"
    if not isinstance(text, str):
        problems.add(place, "type", f"must be JSON in a str, got {named(text)}")
        return
    try:
        value: object = json.loads(text, parse_constant=_refuse)
    except (ValueError, RecursionError):
        problems.add(place, "arguments", "is no valid JSON")
        return
    if not isinstance(value, dict):
        problems.add(place, "arguments", "must be a JSON object")
    problems.text(place, text)


def _refuse(constant: str) -> None:
    raise ValueError(constant)


def chosen(problems: Problems, path: str, choice: Mapping[str, Any], known: Collection[str]) -> None:
    """Check that the tool which the model shall call is one of those that it is given."""
    name = problems.required_text(path, choice, "name")
    if name is not None and name not in known:
        problems.add(f"{path}.name", "unknown", f"no tool is named {named(name)}")


def names_of(found: Iterable[tuple[str, Mapping[str, Any]]]) -> set[str]:
    """The names of tools, the provider's own too where they have one."""
    return {name for _, tool in found if isinstance(name := tool.get("name"), str)}


def listed(problems: Problems, request: Mapping[str, Any], key: str = "tools") -> list[tuple[str, Mapping[str, Any]]]:
    """Every tool that is an object, with its path; an absent list is none."""
    value = request.get(key)
    if value is None:
        return []
    found: list[tuple[str, Mapping[str, Any]]] = []
    for place, item in enumerate(problems.sequence(key, value, filled=False) or ()):
        path = f"{key}[{place}]"
        tool = as_mapping(item)
        if tool is None:
            problems.add(path, "type", f"must be an object, got {named(item)}")
        else:
            found.append((path, tool))
    return found
