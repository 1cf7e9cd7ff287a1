"""Checks of given content: what passes can be stored, and comes back equal.

Each function takes a value as a caller gave it and `where` it stood, and returns the immutable value that a record keeps:
exact str, tuples, JSON texts. It raises `InvalidArgument` or `ValueNotStorable` and has changed nothing.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, TypeAlias, TypeVar, cast

import msgspec

from session_actor.persistence import errors as store_errors
from session_actor.persistence import values

from .blocks import NULL, Block, CallRef, Document, Image, Native, Text, Thinking, ToolCall, ToolResult
from .errors import InvalidArgument, ValueNotStorable
from .frames import Tool, Turn, Usage

Rule: TypeAlias = Callable[[Any, str], object]
Kept = TypeVar("Kept", bound=msgspec.Struct)
Value = TypeVar("Value")

_INT_LIMIT: Final = 2**63
_ROLES: Final = ("user", "assistant", "tool", "system")


def text(value: object, where: str) -> str:
    """A str."""
    if type(value) is str:
        return value
    if isinstance(value, str):
        return str.__str__(value)
    raise InvalidArgument(where, f"must be a str, got {type(value).__name__}")


def texts(value: object, where: str) -> tuple[str, ...]:
    """Strs, from any iterable of them except a str."""
    return tuple(text(item, f"{where}[{place}]") for place, item in enumerate(_items(value, where)))


def flag(value: object, where: str) -> bool:
    """A bool."""
    if isinstance(value, bool):
        return value
    raise InvalidArgument(where, f"must be a bool, got {type(value).__name__}")


def count(value: object, where: str) -> int:
    """An int from 0 that fits 64 bits."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise InvalidArgument(where, f"must be an int, got {type(value).__name__}")
    if not 0 <= value < _INT_LIMIT:
        raise InvalidArgument(where, "must be from 0 to 2**63 - 1")
    return int(value)


def data(value: object, where: str) -> bytes:
    """Bytes."""
    if isinstance(value, bytes | bytearray | memoryview):
        return bytes(value)
    raise InvalidArgument(where, f"must be bytes, got {type(value).__name__}")


def free(value: object, where: str) -> msgspec.Raw:
    """Any value that JSON can hold exactly, as its JSON text. Raises `ValueNotStorable`, too."""
    try:
        if isinstance(value, msgspec.Raw):
            value = values.loads(bytes(value))
        encoded = values.dumps(value)
    except store_errors.ValueNotStorable as error:
        raise ValueNotStorable(error.where.replace("$", where, 1), error.why) from None
    except (store_errors.ValueUnreadable, ValueError):
        raise InvalidArgument(where, "is not JSON text as this package writes it") from None
    return NULL if encoded == b"null" else msgspec.Raw(encoded)


def arguments(value: object, where: str) -> str:
    """The arguments of a tool call: the JSON text that the model wrote, as it is; a mapping is written as JSON."""
    if isinstance(value, str):
        return text(value, where)
    if not isinstance(value, Mapping):
        raise InvalidArgument(where, f"must be JSON text or a dict, got {type(value).__name__}")
    try:
        written = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
        exact = json.loads(written) == value
    except (TypeError, ValueError, RecursionError):
        exact, written = False, ""
    if not exact:
        raise InvalidArgument(
            where, "must hold only what JSON can hold: dicts with str keys, lists, str, numbers, bool, None"
        )
    return written


def role(value: object, where: str) -> str:
    """A role."""
    if value in _ROLES:
        return text(value, where)
    raise InvalidArgument(where, f"must be one of {', '.join(_ROLES)}")


def call_ref(value: object, where: str) -> CallRef:
    """The name of a call."""
    if not isinstance(value, CallRef):
        raise InvalidArgument(where, f"must be a CallRef, got {type(value).__name__}")
    count(value.frame, f"{where}.frame")
    count(value.index, f"{where}.index")
    return value


def maybe(rule: Callable[[Any, str], Value]) -> Callable[[object, str], Value | None]:
    """The rule, or None."""
    return lambda value, where: None if value is None else rule(value, where)


def blocks(value: object, where: str) -> tuple[Block, ...]:
    """Blocks, from a str (one `Text`; none when empty) or any iterable of blocks and strs."""
    if isinstance(value, str):
        return (Text(text(value, where)),) if value else ()
    return tuple(_block(item, f"{where}[{place}]") for place, item in enumerate(_items(value, where)))


def turns(value: object, where: str) -> tuple[Turn, ...]:
    """Turns; calls stand in assistant turns only, results in tool turns only."""
    return tuple(turn(item, f"{where}[{place}]") for place, item in enumerate(_items(value, where)))


def turn(value: object, where: str) -> Turn:
    """One turn."""
    kept = struct(value, Turn, where)
    for place, block in enumerate(kept.blocks):
        wanted = _ONLY_IN.get(type(block), kept.role)
        if kept.role != wanted:
            raise InvalidArgument(
                f"{where}.blocks[{place}]", f"is a {type(block).__name__}: only {wanted} turns hold those"
            )
        if kept.role == "tool" and not isinstance(block, ToolResult):
            raise InvalidArgument(
                f"{where}.blocks[{place}]", f"is a {type(block).__name__}: tool turns hold ToolResults"
            )
    return kept


def calls(value: object, where: str) -> tuple[ToolCall, ...]:
    """Tool calls."""
    return tuple(struct(item, ToolCall, f"{where}[{place}]") for place, item in enumerate(_items(value, where)))


def tools(value: object, where: str) -> tuple[Tool, ...]:
    """Tools; no two have one name."""
    kept = tuple(struct(item, Tool, f"{where}[{place}]") for place, item in enumerate(_items(value, where)))
    names: set[str] = set()
    for tool in kept:
        if tool.name in names:
            raise InvalidArgument(where, f"has two tools named {tool.name!r}")
        names.add(tool.name)
    return kept


def usage(value: object, where: str) -> Usage:
    """What a provider charged."""
    return struct(value, Usage, where)


def struct(value: object, kind: type[Kept], where: str) -> Kept:
    """A Struct of exactly this type, each field by its rule; the same object when nothing had to be changed."""
    if type(value) is not kind:
        raise InvalidArgument(where, f"must be a {kind.__name__}, got {type(value).__name__}")
    changed: dict[str, object] = {}
    for name, rule in _RULES[kind].items():
        given = getattr(value, name)
        kept = rule(given, f"{where}.{name}")
        if kept is not given:
            changed[name] = kept
    if kind in {Image, Document}:
        _check_source(value, where)
    return cast("Kept", msgspec.structs.replace(value, **changed) if changed else value)


def _check_source(media: Any, where: str) -> None:
    given = [name for name in ("data", "url", "file_id") if getattr(media, name) is not None]
    if len(given) != 1:
        raise InvalidArgument(where, f"needs exactly one of data, url and file_id, got {', '.join(given) or 'none'}")
    if media.data is not None and not media.media_type:
        raise InvalidArgument(where, "needs a media_type with its data")


def _block(value: object, where: str) -> Block:
    if isinstance(value, str):
        return Text(text(value, where))
    if type(value) not in _BLOCKS:
        raise InvalidArgument(where, f"must be a block or a str, got {type(value).__name__}")
    return struct(value, cast("type[Block]", type(value)), where)


def _result_blocks(value: object, where: str) -> tuple[Block, ...]:
    kept = blocks(value, where)
    for place, block in enumerate(kept):
        if not isinstance(block, Text | Image | Document | Native):
            raise InvalidArgument(f"{where}[{place}]", f"is a {type(block).__name__}: a result cannot hold it")
    return kept


def _items(value: object, where: str) -> Iterable[object]:
    if isinstance(value, str | bytes | Mapping) or not isinstance(value, Iterable):
        raise InvalidArgument(where, f"must be a list or a tuple, got {type(value).__name__}")
    return cast("Iterable[object]", value)


_BLOCKS: Final = frozenset({Text, Image, Document, ToolCall, ToolResult, Thinking, Native})
_ONLY_IN: Final[dict[type, str]] = {ToolCall: "assistant", Thinking: "assistant", ToolResult: "tool"}
_MEDIA: Final[dict[str, Rule]] = {
    "data": maybe(data),
    "media_type": maybe(text),
    "url": maybe(text),
    "file_id": maybe(text),
    "dialect": maybe(text),
}
_RULES: Final[dict[type, dict[str, Rule]]] = {
    Text: {"text": text},
    Image: _MEDIA,
    Document: {**_MEDIA, "name": maybe(text)},
    ToolCall: {"id": text, "name": text, "arguments": arguments},
    ToolResult: {"call_id": text, "blocks": _result_blocks, "is_error": flag, "ref": maybe(call_ref)},
    Thinking: {"text": text, "signature": maybe(text)},
    Native: {"dialect": text, "model": maybe(text), "raw": free},
    Usage: {
        "input_tokens": count,
        "output_tokens": count,
        "cache_read_tokens": count,
        "cache_write_tokens": count,
        "reasoning_tokens": count,
        "raw": free,
    },
    Tool: {"name": text, "description": text, "schema": free},
    Turn: {
        "role": role,
        "blocks": blocks,
        "usage": maybe(usage),
        "model": maybe(text),
        "dialect": maybe(text),
        "stop_reason": maybe(text),
    },
}
"""The rule of every field. A field without one would go unchecked: a test compares this with the types."""
