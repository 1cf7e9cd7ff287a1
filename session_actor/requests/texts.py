"""Texts, names and arguments as every provider takes them."""

from __future__ import annotations

import json
import math
import re
from typing import TYPE_CHECKING, Any, Final, cast

from session_actor.blocks import thawed
from session_actor.persistence.format.values import MAX_DEPTH

if TYPE_CHECKING:
    from session_actor.blocks import Text, ToolCall

EMPTY: Final = "(empty)"
"""Shown where a text has no visible character: providers refuse such texts."""

_INVALID_IN_NAMES: Final = re.compile(r"[^a-zA-Z0-9_-]")
_NAME: Final = re.compile(r"[a-zA-Z_][a-zA-Z0-9_-]{0,63}")
_NAME_LENGTH: Final = 64
_FREE: Final = frozenset({"arguments", "args", "input", "input_schema", "parameters", "schema"})
"""Keys of values that a model or an embedder wrote: None is a value there."""
_NULLABLE: Final = frozenset({"code", "outputs", "result"})
"""Keys that must be there, and may be None (OpenAI Responses: code_interpreter_call, image_generation_call)."""


def visible(text: str) -> str:
    """`text`, such that it is visible and can be sent: never blank, no lone surrogates (UTF-8 cannot carry them)."""
    return EMPTY if not text or text.isspace() else clean(text)


def clean(text: str) -> str:
    """`text` with surrogate pairs joined, and each lone surrogate as U+FFFD."""
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text


def wire_name(name: str) -> str:
    """The name of a tool in a call of the past, in a form that all dialects take; most names stay as they are.

    Models call tools by names that nobody defined, and providers refuse the whole request for one such name in it
    (OpenAI: letters, digits, underscore and dash, 64 at most; Anthropic the same, 128; Gemini: begins with a letter or
    an underscore).
    """
    if _NAME.fullmatch(name):
        return name
    kept = _INVALID_IN_NAMES.sub("_", name)[:_NAME_LENGTH]
    return kept if _NAME.fullmatch(kept) else f"_{kept}"[:_NAME_LENGTH]


def arguments_of(text: str) -> dict[str, Any]:
    """The arguments of a call as a value; `{}` for a text that is no JSON object, which no entry holds."""
    try:
        value: object = json.loads(text)
        return _object(value) or {}
    except (ValueError, RecursionError):
        return {}


def free_object(raw: object) -> dict[str, Any] | None:
    """A free value that is an object, as it can be sent; None for any other."""
    return _object(thawed(raw))


def more_of(block: ToolCall | Text) -> dict[str, Any]:
    """What else a block's provider says of it, as it can be sent."""
    return _object(block.more_value) or {}


def without_absent(value: dict[str, Any]) -> dict[str, Any]:
    """A provider's object without the keys, at any level, whose value is None: to providers None is an unknown value.

    Responses: "Unknown parameter: 'input[1].status'".
    """
    return {
        key: item if key in _FREE else _without_absent(item)
        for key, item in value.items()
        if item is not None or key in _NULLABLE
    }


def _without_absent(value: object) -> object:
    if isinstance(value, dict):
        return without_absent(cast("dict[str, Any]", value))
    return [_without_absent(item) for item in cast("list[object]", value)] if isinstance(value, list) else value


def _object(value: object) -> dict[str, Any] | None:
    return cast("dict[str, Any]", _sendable(cast("object", value), 1)) if isinstance(value, dict) else None


def _sendable(value: object, depth: int) -> object:
    """The value without what JSON in UTF-8 cannot carry: lone surrogates and numbers that are not finite."""
    if depth > MAX_DEPTH:
        raise ValueError
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, dict):
        return {clean(key): _sendable(item, depth + 1) for key, item in cast("dict[str, object]", value).items()}
    if isinstance(value, list):
        return [_sendable(item, depth + 1) for item in cast("list[object]", value)]
    return None if isinstance(value, float) and not math.isfinite(value) else value
