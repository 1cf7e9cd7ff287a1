"""The forms that can be imported, and which one a file has."""

from __future__ import annotations

from contextlib import aclosing
from typing import TYPE_CHECKING, Any, Final

from .claude_kinds import BOOKKEEPING, SPOKEN
from .elements import elements_of
from .errors import TranscriptUnreadable
from .fields import UNREADABLE, is_fields, is_list, listed, parsed
from .lines import bare_line, document_of, lines_of
from .ndjson import FORM as OWN

if TYPE_CHECKING:
    import os
    from collections.abc import Iterable

FORMS: Final = ("ndjson", "pi", "claude-code", "openai-chat", "anthropic")
"""`ndjson` is our own export."""

_LOOKED_AT: Final = 100
"""How many lines are looked at."""

_PI: Final = frozenset({"session", "message", "model_change", "thinking_level_change"})
_PI_FIELDS: Final = frozenset({"message", "modelId", "cwd", "thinkingLevel"})
_ANTHROPIC_BLOCKS: Final = frozenset(
    {"tool_use", "tool_result", "redacted_thinking", "document", "search_result", "container_upload"}
    | {"server_tool_use", "web_search_tool_result", "web_fetch_tool_result", "mcp_tool_use", "mcp_tool_result"}
)
_CHAT_ROLES: Final = frozenset({"developer", "tool", "function"})
_CHAT_FIELDS: Final = frozenset({"tool_calls", "function_call", "tool_call_id", "refusal", "reasoning_content"})


async def form_of(path: str | os.PathLike[str]) -> str:
    """The form of a file, by its first lines that tell.

    Raises `TranscriptUnreadable` when it is of none that is known, OSError when it cannot be read.
    """
    looked = 0
    async with aclosing(lines_of(path)) as lines:
        async for line in lines:
            data = None if line.data is None else bare_line(line.data)
            if not data:
                continue
            form = _form_in(data)
            looked += 1
            if form is not None:
                return form
            if looked == 1 and data[:1] in {b"[", b"{"}:
                form = _form_in(bare_line(await document_of(path)))
                if form is not None:
                    return form
            if looked == _LOOKED_AT:
                break
    raise TranscriptUnreadable(
        str(path), 0, f"its first lines are of no form that is known ({', '.join(FORMS)}): name the form if it is one"
    )


def _form_in(data: bytes) -> str | None:
    """By what can be read of a line, or of a document."""
    if data.startswith(b"["):
        return _of_messages(element.value for element in elements_of(data))
    try:
        return _form_of(parsed(data))
    except UNREADABLE:
        return None


def _form_of(value: Any) -> str | None:
    if not is_fields(value):
        return None
    kind = value.get("type")
    if is_list(value.get("messages")):
        return "anthropic" if "system" in value or _has_schemas(value) else _of_messages(value["messages"])
    if value.get("form") == OWN or ("at_us" in value and is_fields(value.get("frame"))):  # without its first line
        return "ndjson"
    if _is_claude_code(kind, value):
        return "claude-code"
    if kind in _PI and not _PI_FIELDS.isdisjoint(value):
        return "pi"
    return _of_messages([value]) if "role" in value and "content" in value else None


def _is_claude_code(kind: object, line: dict[str, Any]) -> bool:
    if kind in SPOKEN:
        return "parentUuid" in line or "uuid" in line
    return kind in BOOKKEEPING and "role" not in line


def _has_schemas(body: dict[str, Any]) -> bool:
    tools = body.get("tools")
    return is_list(tools) and any(is_fields(tool) and "input_schema" in tool for tool in listed(tools))


def _of_messages(messages: Iterable[Any]) -> str | None:
    """Of messages: the first thing that only one of the two has; OpenAI's if there is none."""
    known = False
    for message in filter(is_fields, messages):
        if "messages" in message:
            return _form_of(message)
        known = known or "role" in message
        form = surely_of(message)
        if form is not None:
            return form
        if message.get("role") == "system" or not _CHAT_FIELDS.isdisjoint(message):
            return "openai-chat"
    return "openai-chat" if known else None


def surely_of(message: dict[str, Any]) -> str | None:
    """Whose message one is that only one of the two can have; None: both can."""
    if message.get("role") in _CHAT_ROLES:
        return "openai-chat"
    content = message.get("content")
    parts: list[Any] = listed(content) if is_list(content) else []
    if any(map(_is_anthropic, filter(is_fields, parts))):
        return "anthropic"
    return "openai-chat" if any(message.get(name) for name in _CHAT_FIELDS) else None


def _is_anthropic(part: dict[str, Any]) -> bool:
    kind = part.get("type")
    if kind == "thinking":
        return isinstance(part.get("thinking"), str)  # others have parts of that name, with a list in them
    return kind in _ANTHROPIC_BLOCKS or "source" in part
