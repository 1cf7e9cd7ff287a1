"""Reads agent transcripts: JSON lines of the Pi coding agent, as they are, into turns and blocks.

A line has a `type`: `session` (the header), `message` (a turn), `model_change` or `thinking_level_change`. Messages of
the roles `user`, `assistant` and `toolResult` become turns of the roles `user`, `assistant` and `tool`; what a turn has
no place for (clock times, details for the agent's own display) is left out.
"""

from __future__ import annotations

import binascii
import json
from typing import TYPE_CHECKING, Any, NamedTuple

from .blocks import Image, Text, Thinking, ToolCall, ToolResult
from .frames import Turn, Usage

if TYPE_CHECKING:
    import os
    from collections.abc import AsyncIterator, Callable

    from .blocks import Block

_CHUNK_BYTES = 1 << 16
_DIALECTS = {
    "anthropic-messages": "anthropic",
    "openai-completions": "openai_chat",
    "openai-responses": "openai_responses",
    "google-generative-ai": "gemini",
}
_OTHER_TYPE = "a field has another type than expected"


class ModelChange(NamedTuple):
    """From here on another model answers."""

    model: str


class Entry(NamedTuple):
    """One line that says something: where it begins [bytes], and the turn or the change of model."""

    offset: int
    content: Turn | ModelChange


class UnreadableLine(NamedTuple):
    """One line that could not be read: where it begins [bytes], its number from 1, and why; never its text."""

    offset: int
    number: int
    reason: str


class Transcript:
    """The turns of one transcript file, read lazily and off the event loop.

    `async for entry in Transcript(path)` gives each Entry in the order of the file. A line that cannot be read is added
    to `unreadable` and the reading goes on. Every iteration begins at the start of the file, with an empty list.

    Raises OSError, from the iteration, when the file cannot be opened or read.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        """Name the file; nothing is read yet."""
        self.path = path
        self.unreadable: list[UnreadableLine] = []

    async def __aiter__(self) -> AsyncIterator[Entry]:
        """Read the file from its start; cancelling closes it."""
        import aiofiles

        self.unreadable = []
        offset = number = 0
        async with aiofiles.open(self.path, "rb") as file:
            while lines := await file.readlines(_CHUNK_BYTES):
                for line in lines:
                    number += 1
                    content = self._content(line, offset, number)
                    if content is not None:
                        yield Entry(offset, content)
                    offset += len(line)

    def _content(self, line: bytes, offset: int, number: int) -> Turn | ModelChange | None:
        """Read one line; None when it says nothing or cannot be read."""
        if not line.strip():
            return None
        try:
            return _read_line(json.loads(line))
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            self.unreadable.append(UnreadableLine(offset, number, _reason(error)))
            return None


def _reason(error: Exception) -> str:
    """Say why without a word of the line's text."""
    for kind, reason in _REASONS:
        if isinstance(error, kind):
            return reason
    if isinstance(error, KeyError):
        return f"the field {error} is missing"
    return str(error) if isinstance(error, _UnknownName) else "a value that cannot be read"


_REASONS: tuple[tuple[type[Exception], str], ...] = (
    (UnicodeDecodeError, "not UTF-8"),
    (json.JSONDecodeError, "not JSON"),
    (binascii.Error, "not base64"),
    (RecursionError, "nested too deep"),
    (TypeError, _OTHER_TYPE),
    (AttributeError, _OTHER_TYPE),
)


class _UnknownName(ValueError):
    """A type or role that this format does not know."""


def _read_line(line: dict[str, Any]) -> Turn | ModelChange | None:
    kind = line["type"]
    if kind == "message":
        return _turn(line["message"])
    if kind in ("session", "model_change"):
        return ModelChange(_text(line["modelId"]))
    if kind == "thinking_level_change":
        return None
    raise _UnknownName("an unknown type of line")


def _turn(message: dict[str, Any]) -> Turn:
    reader = _ROLES.get(message["role"])
    if reader is None:
        raise _UnknownName("an unknown role")
    return reader(message)


def _user_turn(message: dict[str, Any]) -> Turn:
    return Turn(role="user", blocks=_blocks(message["content"]))


def _assistant_turn(message: dict[str, Any]) -> Turn:
    return Turn(
        role="assistant",
        blocks=_blocks(message["content"]),
        usage=_usage(message["usage"]) if "usage" in message else None,
        model=_text(message["model"]),
        dialect=_DIALECTS.get(_text(message.get("api", ""))),
        stop_reason=_text(message["stopReason"]),
    )


def _tool_turn(message: dict[str, Any]) -> Turn:
    blocks = tuple(_shown(block) for block in _listed(message["content"]))
    result = ToolResult(_text(message["toolCallId"]), blocks, is_error=bool(message["isError"]))
    return Turn(role="tool", blocks=(result,))


_ROLES: dict[str, Callable[[dict[str, Any]], Turn]] = {
    "user": _user_turn,
    "assistant": _assistant_turn,
    "toolResult": _tool_turn,
}


def _listed(content: str | list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return a message's content as blocks; a bare string is one text."""
    return [{"type": "text", "text": content}] if isinstance(content, str) else content


def _blocks(content: str | list[dict[str, Any]]) -> tuple[Block, ...]:
    return tuple(_block(block) for block in _listed(content))


def _block(block: dict[str, Any]) -> Block:
    if block["type"] == "thinking":
        signature = block.get("thinkingSignature")
        return Thinking(_text(block["thinking"]), None if signature is None else _text(signature))
    if block["type"] == "toolCall":
        return ToolCall(_text(block["id"]), _text(block["name"]), _arguments(block))
    return _shown(block)


def _shown(block: dict[str, Any]) -> Text | Image:
    """Read one block of what a person or a tool can show."""
    if block["type"] == "text":
        return Text(_text(block["text"]))
    if block["type"] == "image":
        data = binascii.a2b_base64(_text(block["data"]), strict_mode=True)
        return Image(data=data, media_type=_text(block["mimeType"]))
    raise _UnknownName("an unknown type of block")


def _arguments(call: dict[str, Any]) -> str:
    """Return the JSON text of a call's arguments; of a call that broke off, the part that the model wrote."""
    if "partialJson" in call:
        return _text(call["partialJson"])
    return json.dumps(call["arguments"], ensure_ascii=not _is_utf8(call["arguments"]), separators=(",", ":"))


def _is_utf8(value: object) -> bool:
    """Tell whether the JSON text of a value can be written as UTF-8, or needs escapes for lone surrogates."""
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return False
    return True


def _usage(usage: dict[str, Any]) -> Usage:
    """Read what the provider charged; its `input` leaves out the cached part, ours holds it."""
    fresh, output, cached, written = (_count(usage[name]) for name in ("input", "output", "cacheRead", "cacheWrite"))
    return Usage(fresh + cached + written, output, cached, written, raw=usage)


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError
    return value


def _count(value: object) -> int:
    if type(value) is not int:
        raise TypeError
    return value
