"""Which tool OpenAI's models may or must call. Source: API references of both calls, tool_choice."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from . import tools
from .problems import as_mapping, named

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .problems import Problems

_CHOICES: Final = ("none", "auto", "required")
_MODES: Final = ("auto", "required")
_NAMED: Final = ("function", "custom")


def choice(problems: Problems, value: object, known: set[str], *, nested: bool) -> None:
    """Check a tool_choice. `nested`: what a type has stands under a key of that name, as in Chat Completions."""
    found = as_mapping(value)
    if found is None:
        if value not in (None, *_CHOICES):
            problems.add(
                "tool_choice", "unknown", f"is {named(value)}; it must be one of {', '.join(_CHOICES)}, or a tool"
            )
    elif found.get("type") in _NAMED:
        _one(problems, "tool_choice", found, known, nested=nested)
    elif found.get("type") == "allowed_tools":
        path, inner = _inner(problems, "tool_choice", found, nested=nested)
        if inner is not None:
            _allowed(problems, path, inner, known, nested=nested)


def _one(problems: Problems, path: str, found: Mapping[str, Any], known: set[str], *, nested: bool) -> None:
    place, inner = _inner(problems, path, found, nested=nested)
    if inner is not None:
        tools.chosen(problems, place, inner, known)


def _inner(
    problems: Problems, path: str, found: Mapping[str, Any], *, nested: bool
) -> tuple[str, Mapping[str, Any] | None]:
    if not nested:
        return path, found
    key = str(found["type"])
    value = problems.required(path, found, key)
    return f"{path}.{key}", None if value is None else problems.mapping(f"{path}.{key}", value)


def _allowed(problems: Problems, path: str, inner: Mapping[str, Any], known: set[str], *, nested: bool) -> None:
    if inner.get("mode") not in _MODES:
        problems.add(f"{path}.mode", "unknown", f"is {named(inner.get('mode'))}; it must be 'auto' or 'required'")
    value = problems.required(path, inner, "tools")
    for place, item in enumerate(() if value is None else problems.sequence(f"{path}.tools", value) or ()):
        tool = problems.mapping(f"{path}.tools[{place}]", item)
        if tool is not None and tool.get("type") in _NAMED:
            _one(problems, f"{path}.tools[{place}]", tool, known, nested=nested)
