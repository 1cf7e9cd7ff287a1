"""Checks of given content: what passes can be stored, and comes back equal.

A rule takes a value as a caller gave it and returns the immutable value that a record keeps: exact str, tuples, JSON
texts. `checked` runs a rule; it raises `InvalidArgument` or `ValueNotStorable`, and nothing has changed.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from typing import Any, Final, Literal, TypeAlias, TypeVar, cast

import msgspec

from session_actor.blocks import (
    NULL,
    Block,
    CallRef,
    Document,
    Image,
    Native,
    Reference,
    ResultBlock,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
    thawed,
)
from session_actor.dialects import DIALECTS
from session_actor.errors import InvalidArgument, ValueNotStorable
from session_actor.frames import Tool, Turn, Usage
from session_actor.persistence.errors import ValueNotStorable as FreeValueRefused
from session_actor.persistence.errors import ValueUnreadable
from session_actor.persistence.format import values

from .plain import is_a, items_of, plain_str

Kept = TypeVar("Kept", bound=msgspec.Struct)
Value = TypeVar("Value")
Rule: TypeAlias = Callable[[object], Value]

_LIST: Final[Any] = list
_TUPLE: Final[Any] = tuple
_LISTS: Final = (list, tuple)
_INT_LIMIT: Final = 2**63
_PATH_LIMIT: Final = 4_096
_ROLES: Final = frozenset({"user", "assistant", "tool", "system"})


class _Bad(Exception):
    """Why a value is refused; the steps to it are added on the way up, so that a good value costs no text."""

    def __init__(
        self, why: str, *steps: str, error: type[InvalidArgument | ValueNotStorable] = InvalidArgument
    ) -> None:
        super().__init__(why)
        self.why = why
        self.steps = list(steps)
        self.error = error


def checked(rule: Rule[Value], value: object, where: str) -> Value:
    """What `rule` keeps of `value`, which stood at `where`. Raises `InvalidArgument`, `ValueNotStorable`."""
    try:
        return rule(value)
    except _Bad as bad:
        raise bad.error(where + "".join(reversed(bad.steps)), bad.why) from None
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:  # noqa: BLE001 - a value may be of a caller's own class, and that may raise anything
        raise InvalidArgument(where, f"cannot be read: it raised {type(error).__name__}") from None


def text(value: object) -> str:
    """A str."""
    if type(value) is str:
        return value
    if is_a(value, str):
        return plain_str(value)
    raise _Bad(f"must be a str, got {type(value).__name__}")


def texts(value: object) -> tuple[str, ...]:
    """Strs, from a list or a tuple of them."""
    return _each(text, value)


def given_texts(value: Any, where: str) -> tuple[str, ...]:
    """`checked(texts, value, where)`; what is plainly right, as nearly always, is looked at without a call for each."""
    kept: tuple[Any, ...] = value if type(value) is _TUPLE else tuple(value) if type(value) is _LIST else (None,)
    for item in kept:
        if type(item) is not str:
            return checked(texts, value, where)
    return kept


def flag(value: object) -> bool:
    """A bool."""
    if value is True or value is False:
        return value
    raise _Bad(f"must be a bool, got {type(value).__name__}")


def count(value: object) -> int:
    """An int from 0 that fits 64 bits."""
    if not is_a(value, int) or type(value) is bool:
        raise _Bad(f"must be an int, got {type(value).__name__}")
    number = int.__pos__(cast("int", value))
    if not 0 <= number < _INT_LIMIT:
        raise _Bad("must be from 0 to 2**63 - 1")
    return number


def data(value: object) -> bytes:
    """Bytes."""
    if type(value) is bytes:
        return value
    if is_a(value, (bytes, bytearray, memoryview)):
        return bytes(memoryview(cast("bytes", value)))
    raise _Bad(f"must be bytes, got {type(value).__name__}")


def free(value: object) -> msgspec.Raw:
    """Any value that JSON can hold exactly, as its JSON text."""
    try:
        if is_a(value, msgspec.Raw):
            value = values.loads(bytes(cast("msgspec.Raw", value)))
        encoded = values.dumps(value)
    except FreeValueRefused as refused:
        raise _Bad(refused.why, refused.where.removeprefix("$"), error=ValueNotStorable) from None
    except (ValueUnreadable, ValueError):
        raise _Bad("is not JSON text as this package writes it") from None
    return NULL if encoded == b"null" else msgspec.Raw(encoded)


def arguments(value: object) -> str:
    """The arguments of a tool call: the JSON text that the model wrote, as it is; a mapping is written as JSON."""
    if is_a(value, str):
        return text(value)
    if not is_a(value, dict):
        raise _Bad(f"must be JSON text or a dict, got {type(value).__name__}")
    try:
        written = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
        exact = json.loads(written) == value
    except (TypeError, ValueError, RecursionError):
        exact, written = False, ""
    if not exact:
        raise _Bad("must hold only what JSON can hold: dicts with str keys, lists, str, finite numbers, bool, None")
    return written


def role(value: object) -> str:
    """A role."""
    kept = text(value)
    if kept not in _ROLES:
        raise _Bad("must be user, assistant, tool or system")
    return kept


def artifact_path(value: object) -> str:
    """What names a file or another artifact: a str, or an object of a path (os.PathLike) that stands for one."""
    if not is_a(value, str) and is_a(value, os.PathLike):
        value = os.fspath(cast("os.PathLike[str]", value))
    kept = text(value)
    if not 0 < len(kept) <= _PATH_LIMIT:
        raise _Bad(f"must have 1 to {_PATH_LIMIT} characters, got {len(kept)}")
    return kept


def how(value: object) -> Literal["read", "modified"]:
    """What was done to an artifact."""
    kept = text(value)
    if kept not in {"read", "modified"}:
        raise _Bad("must be read or modified")
    return "read" if kept == "read" else "modified"


def call_ref(value: object) -> CallRef:
    """The name of a call."""
    if type(value) is not CallRef:
        raise _Bad(f"must be a CallRef, got {type(value).__name__}")
    return CallRef(count(value.frame), count(value.index))


def call(value: object) -> str | CallRef:
    """A call id, or the name of a call."""
    if is_a(value, str):
        return text(value)
    if type(value) is CallRef:
        return call_ref(value)
    raise _Bad(f"must be a call id or a CallRef, as `ref` of a PendingCall is, got {type(value).__name__}")


def maybe(rule: Rule[Value]) -> Rule[Value | None]:
    """The rule, or None."""
    return lambda value: None if value is None else rule(value)


def blocks(value: object) -> tuple[Block, ...]:
    """Blocks, from a str (one `Text`; none when empty) or a list or a tuple of blocks and strs."""
    if is_a(value, str):
        given = text(value)
        return (Text(given),) if given else ()
    if not is_a(value, _LISTS):
        raise _Bad(f"must be a str, or a list or a tuple of strs and blocks such as Text, got {type(value).__name__}")
    return _each(_block, value)


def result_blocks(value: object) -> tuple[ResultBlock, ...]:
    """Blocks that a result can hold."""
    kept = blocks(value)
    for place, block in enumerate(kept):
        if isinstance(block, ToolCall | ToolResult | Thinking | Reference):
            raise _Bad(f"is a {type(block).__name__}: a result cannot hold it", f"[{place}]")
    return cast("tuple[ResultBlock, ...]", kept)


def turns(value: object) -> tuple[Turn, ...]:
    """Turns; calls and thinking stand in assistant turns only, references in user turns, results in tool turns."""
    return _each(turn, value)


def turn(value: object) -> Turn:
    """One turn."""
    kept = struct(value, Turn)
    for place, block in enumerate(kept.blocks):
        wanted = _ONLY_IN.get(type(block), kept.role)
        if kept.role != wanted:
            raise _Bad(f"is a {type(block).__name__}: only {wanted} turns hold those", f".blocks[{place}]")
        if kept.role == "tool" and type(block) is not ToolResult:
            raise _Bad(f"is a {type(block).__name__}: tool turns hold ToolResults", f".blocks[{place}]")
    return kept


def calls(value: object) -> tuple[ToolCall, ...]:
    """Tool calls."""
    return _each(lambda item: struct(item, ToolCall), value)


def tools(value: object) -> tuple[tuple[Tool, ...], tuple[Native, ...]]:
    """Tools, no two of one name; and those that a provider runs itself."""
    offered = _each(_offered, value)
    kept = tuple(tool for tool in offered if isinstance(tool, Tool))
    if len({tool.name for tool in kept}) != len(kept):
        raise _Bad("has two tools of one name")
    return kept, tuple(tool for tool in offered if isinstance(tool, Native))


def _offered(value: object) -> Tool | Native:
    if type(value) is not Native:
        return struct(value, Tool)
    native = struct(value, Native)
    if native.dialect not in DIALECTS:
        raise _Bad(f"must be one of {', '.join(DIALECTS)}", ".dialect")
    if not isinstance(native.value, dict):
        raise _Bad(f"must be a dict, as the provider's API writes the tool, got {type(value.raw).__name__}", ".raw")
    return native


def tool_name(value: object) -> str:
    """The name of a tool. What form it must have is a matter of the dialect, which is not known here."""
    kept = text(value)
    if not kept:
        raise _Bad("must not be empty")
    return kept


def schema(value: object) -> msgspec.Raw:
    """The JSON schema of a tool's arguments; None: none."""
    kept = free(value)
    if kept is not NULL and not isinstance(thawed(kept), dict):
        raise _Bad(f"must be a JSON schema as a dict, or None, got {type(value).__name__}")
    return kept


def free_dict(value: object) -> msgspec.Raw:
    """A dict that JSON can hold exactly, as its JSON text; None: none."""
    kept = free(value)
    if kept is not NULL and not isinstance(thawed(kept), dict):
        raise _Bad(f"must be a dict, or None, got {type(value).__name__}")
    return kept


def usage(value: object) -> Usage:
    """What a provider charged."""
    return struct(value, Usage)


def struct(value: object, kind: type[Kept]) -> Kept:
    """A Struct of exactly this type, each field by its rule; the same object when nothing had to be changed."""
    if type(value) is not kind:
        raise _Bad(f"must be a {kind.__name__}, got {type(value).__name__}")
    changed: dict[str, object] = {}
    name = ""
    try:
        for name, rule, default in _RULES[kind]:
            given = getattr(value, name)
            if given is not default and (kept := rule(given)) is not given:
                changed[name] = kept
    except _Bad as bad:
        bad.steps.append(f".{name}")
        raise
    if isinstance(value, Image | Document):
        _check_source(value)
    return msgspec.structs.replace(value, **changed) if changed else value


def _check_source(media: Image | Document) -> None:
    given = [name for name in ("data", "url", "file_id") if getattr(media, name) is not None]
    if len(given) != 1:
        raise _Bad(f"needs exactly one of data, url and file_id, got {', '.join(given) or 'none'}")
    if media.data is not None and not media.media_type:
        raise _Bad("needs a media_type with its data")


def _block(value: object) -> Block:
    if is_a(value, str):
        return Text(text(value))
    if type(value) not in _BLOCKS or not isinstance(value, Block):  # the second for type checkers
        raise _Bad(f"must be a str or a block such as Text, got {type(value).__name__}")
    return struct(value, type(value))


def _each(rule: Rule[Value], value: object) -> tuple[Value, ...]:
    if not is_a(value, _LISTS):
        raise _Bad(f"must be a list or a tuple, got {type(value).__name__}")
    kept: list[Value] = []
    try:
        for item in items_of(value):
            kept.append(rule(item))  # noqa: PERF401 - the place of a bad one is how many are kept
    except _Bad as bad:
        bad.steps.append(f"[{len(kept)}]")
        raise
    return tuple(kept)


_BLOCKS: Final = frozenset({Text, Image, Document, ToolCall, ToolResult, Thinking, Native, Reference})
_ONLY_IN: Final[dict[type, str]] = {
    ToolCall: "assistant",
    Thinking: "assistant",
    ToolResult: "tool",
    Reference: "user",
}
_MEDIA: Final[dict[str, Rule[object]]] = {
    "data": maybe(data),
    "media_type": maybe(text),
    "url": maybe(text),
    "file_id": maybe(text),
    "dialect": maybe(text),
}
_FIELDS: Final[dict[type[msgspec.Struct], dict[str, Rule[object]]]] = {
    Text: {"text": text, "signature": maybe(text), "phase": maybe(text), "more": free_dict},
    Reference: {"text": text, "source": maybe(text)},
    Image: _MEDIA,
    Document: {**_MEDIA, "name": maybe(text)},
    ToolCall: {"id": text, "name": text, "arguments": arguments, "signature": maybe(text), "more": free_dict},
    ToolResult: {"call_id": text, "blocks": result_blocks, "is_error": flag, "ref": maybe(call_ref)},
    Thinking: {"text": text, "signature": maybe(text), "field": maybe(text)},
    Native: {"dialect": text, "model": maybe(text), "raw": free},
    Usage: {
        "input_tokens": count,
        "output_tokens": count,
        "cache_read_tokens": count,
        "cache_write_tokens": count,
        "reasoning_tokens": count,
        "raw": free,
        "anchor_tokens": maybe(count),
    },
    Tool: {"name": tool_name, "description": text, "schema": schema},
    Turn: {
        "role": role,
        "blocks": blocks,
        "usage": maybe(usage),
        "model": maybe(text),
        "dialect": maybe(text),
        "stop_reason": maybe(text),
        "asked": maybe(text),
    },
}
"""The rule of every field."""

_RULES: Final[dict[type[msgspec.Struct], tuple[tuple[str, Rule[object], object], ...]]] = {
    kind: tuple((field.name, rules[field.name], field.default) for field in msgspec.structs.fields(kind))
    for kind, rules in _FIELDS.items()
}
"""The same with each field's default, which needs no check. A field without a rule fails here, at import."""
