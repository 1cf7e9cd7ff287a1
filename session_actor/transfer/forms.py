"""The forms that can be imported, and which one a file has."""

from __future__ import annotations

from contextlib import aclosing
from typing import TYPE_CHECKING, Any, Final

from .errors import TranscriptUnreadable
from .fields import UNREADABLE, is_fields, is_list, listed, parsed
from .lines import document_of, lines_of
from .ndjson import FORM as OWN

if TYPE_CHECKING:
    import os

FORMS: Final = ("ndjson", "pi", "claude-code", "openai-chat", "anthropic")
"""`ndjson` is our own export."""

_LOOKED_AT: Final = 100
"""How many lines are looked at."""

_PI: Final = frozenset({"session", "message", "model_change", "thinking_level_change"})
_PI_FIELDS: Final = frozenset({"message", "modelId", "cwd", "thinkingLevel"})
_ANTHROPIC_BLOCKS: Final = frozenset({"tool_use", "tool_result", "thinking", "redacted_thinking", "document"})
_CHAT_ROLES: Final = frozenset({"system", "developer", "tool", "function"})
_CHAT_FIELDS: Final = frozenset({"tool_calls", "function_call", "tool_call_id", "refusal", "reasoning_content"})


async def form_of(path: str | os.PathLike[str]) -> str:
    """The form of a file, by its first lines that tell.

    Raises `TranscriptUnreadable` when it is of none that is known, OSError when it cannot be read.
    """
    looked = 0
    async with aclosing(lines_of(path)) as lines:
        async for line in lines:
            data = line.data
            if data is None or not data.strip():
                continue
            try:
                form = _form_of(parsed(data))
            except UNREADABLE:
                form = None
            looked += 1
            if form is not None:
                return form
            if looked == 1 and data.lstrip(b"\xef\xbb\xbf \t\r")[:1] in {b"[", b"{"}:
                form = await _form_of_document(path)
                if form is not None:
                    return form
            if looked == _LOOKED_AT:
                break
    raise TranscriptUnreadable(
        str(path), 0, f"its first lines are of no form that is known ({', '.join(FORMS)}): name the form if it is one"
    )


async def _form_of_document(path: str | os.PathLike[str]) -> str | None:
    try:
        return _form_of(parsed(await document_of(path)))
    except UNREADABLE:
        return None


def _form_of(value: Any) -> str | None:
    if not is_fields(value):
        return _of_messages(value) if is_list(value) else None
    kind = value.get("type")
    if is_list(value.get("messages")):
        return "anthropic" if "system" in value or _has_schemas(value) else _of_messages(value["messages"])
    if value.get("form") == OWN:
        return "ndjson"
    if _is_claude_code(kind, value):
        return "claude-code"
    if kind in _PI and not _PI_FIELDS.isdisjoint(value):
        return "pi"
    return _of_messages([value]) if "role" in value and "content" in value else None


def _is_claude_code(kind: object, line: dict[str, Any]) -> bool:
    if kind in {"user", "assistant", "system"}:
        return "parentUuid" in line or "uuid" in line
    return kind in {"summary", "file-history-snapshot", "queue-operation"} and "role" not in line


def _has_schemas(body: dict[str, Any]) -> bool:
    tools = body.get("tools")
    return is_list(tools) and any(is_fields(tool) and "input_schema" in tool for tool in listed(tools))


def _of_messages(messages: list[Any]) -> str | None:
    """Of a list of messages: the first thing that only one of the two has; OpenAI's if there is none."""
    known = False
    for message in filter(is_fields, messages):
        if "messages" in message:
            return _form_of(message)
        known = known or "role" in message
        if message.get("role") in _CHAT_ROLES or not _CHAT_FIELDS.isdisjoint(message):
            return "openai-chat"
        content = message.get("content")
        for part in filter(is_fields, content if is_list(content) else ()):
            if part.get("type") in _ANTHROPIC_BLOCKS or "source" in part:
                return "anthropic"
    return "openai-chat" if known else None
