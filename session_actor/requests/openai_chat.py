"""OpenAI Chat Completions: `client.chat.completions.create(**request)`. Source of the rules: OpenAI's API reference.

Many servers speak this dialect, and some take fewer forms than OpenAI: what is text alone is sent as one string.
"""

from __future__ import annotations

import re
from functools import partial
from typing import TYPE_CHECKING, Any, Final, cast

from session_actor.blocks import Image, Native, Text, Thinking, ToolCall

from . import media
from .extra import checked_extra
from .many_calls import shared_out
from .texts import clean, free_object, visible, wire_name
from .tools import described, offered, schema_of, system_of
from .turns import one_by_one, part_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from session_actor.blocks import Document
    from session_actor.frames import Instructions, Tool
    from session_actor.ledger.entries import AssistantEntry, Entry, ShownResult, UserEntry

MESSAGES: Final = "messages"
OWNED: Final = frozenset({"model", "messages", "tools", "functions", "max_completion_tokens", "max_tokens"})

_BETWEEN: Final = "\n\n"
_MOST_CALLS: Final = 128
"""What the API answers to more: "Invalid 'messages[2].tool_calls': array too long. Expected an array with maximum
length 128" (github.com/openai/openai-dotnet/issues/317)."""
_OURS: Final = frozenset({"role", "content", "tool_calls", "function_call"})
_THOUGHTS: Final = ("reasoning_content", "reasoning")
"""The keys that servers have for what was thought: DeepSeek and others the first, Groq, Cerebras and others the second,
which refuse the first ("property 'reasoning_content' is unsupported")."""
_ASKS_SIGNATURE: Final = re.compile(r"gemini-(?![12](?!\d))")
_UNSIGNED: Final = "skip_thought_signature_validator"
"""Stands for the signature of a call that Gemini did not make (Gemini docs, "Thought signatures", FAQ)."""


def messages(entries: Sequence[Entry], model: str, /) -> list[dict[str, Any]]:
    """As `Renderer.messages`. Each result is a message of its own, right after the calls; 128 calls are a message."""
    said = partial(_said, asks_signature=_ASKS_SIGNATURE.search(model) is not None)
    return one_by_one(shared_out(entries, _MOST_CALLS), said, _result, _user)


def assemble(
    model: str,
    instructions: Instructions | None,
    messages: list[dict[str, Any]],
    max_output_tokens: int,
    _tools_used: Sequence[str] = (),
    /,
) -> dict[str, Any]:
    """As `Renderer.assemble`. The system prompt is the first message; newer models take it for a developer's."""
    if system := system_of(instructions):
        messages.insert(0, {"role": "system", "content": system})
    request: dict[str, Any] = {"model": model, "messages": messages, "max_completion_tokens": max_output_tokens}
    if tools := offered(instructions, "openai_chat", model, _tool):
        request["tools"] = tools
    return request


def merge(request: dict[str, Any], extra: Mapping[str, Any] | None, /) -> None:
    """As `Renderer.merge`."""
    request.update(checked_extra(extra, OWNED))


def _user(entry: UserEntry) -> dict[str, Any]:
    return {"role": "user", "content": _content([_part(block) for block in entry.blocks])}


def _said(entry: AssistantEntry, *, asks_signature: bool) -> list[dict[str, Any]]:
    calls = [_call(block) for block in entry.blocks if isinstance(block, ToolCall)]
    text = _BETWEEN.join(_texts(entry.blocks))
    message: dict[str, Any] = {"role": "assistant", "content": text or (None if calls else visible(""))}
    if calls:
        message["tool_calls"] = calls
    message |= _thoughts(entry.blocks)
    for block in entry.blocks:
        if isinstance(block, Native):
            _add_fields(message, free_object(block.raw) or {})
    if asks_signature and calls and "reasoning_details" not in message:  # which hold it, where a router serves Gemini
        calls[0].setdefault("extra_content", _signed(_UNSIGNED))
    return [message]


def _add_fields(message: dict[str, Any], fields: dict[str, Any]) -> None:
    """Put in fields of a message beside those that have blocks of their own; those of several turns are one list."""
    for key, value in fields.items():
        if key not in _OURS:
            before = message.get(key)
            message[key] = [*before, *value] if isinstance(before, list) and isinstance(value, list) else value


def _thoughts(blocks: Iterable[object]) -> dict[str, str]:
    """What was thought, by its keys: DeepSeek and others refuse calls without ("Thinking mode")."""
    found: dict[str, list[str]] = {}
    for block in blocks:
        if isinstance(block, Thinking):
            found.setdefault(block.field if block.field in _THOUGHTS else _THOUGHTS[0], []).append(clean(block.text))
    return {key: _BETWEEN.join(texts) for key, texts in found.items()}


def _texts(blocks: Iterable[object]) -> list[str]:
    return [clean(block.text) for block in blocks if isinstance(block, Text) and block.text.strip()]


def _call(call: ToolCall) -> dict[str, Any]:
    function = {"name": wire_name(call.name), "arguments": clean(call.arguments)}
    made: dict[str, Any] = {"id": call.id, "type": "function", "function": function}
    return {**made, "extra_content": _signed(call.signature)} if call.signature else made


def _signed(signature: str) -> dict[str, Any]:
    """How Google carries a signature in this form."""
    return {"google": {"thought_signature": signature}}


def _result(result: ShownResult) -> dict[str, Any]:
    text = _BETWEEN.join(_texts(result.blocks)) or visible("")
    return {"role": "tool", "tool_call_id": result.call_id, "content": f"Error: {text}" if result.is_error else text}


def _content(parts: list[dict[str, Any]]) -> str | list[dict[str, Any]]:
    if all(part.keys() == {"type", "text"} for part in parts):
        return _BETWEEN.join(cast("str", part["text"]) for part in parts)
    return parts


def _part(block: Text | Image | Document | Native) -> dict[str, Any]:
    return part_of("openai_chat", block, _text, _media)


def _media(block: Image | Document) -> dict[str, Any]:
    if isinstance(block, Image):
        return {"type": "image_url", "image_url": {"url": block.url or media.data_url(block)}}
    if media.is_text(block):
        return _text(media.as_text(block))
    if block.file_id is not None:
        return {"type": "file", "file": {"file_id": block.file_id}}
    return {"type": "file", "file": {"filename": media.file_name(block), "file_data": media.data_url(block)}}


def _text(text: str) -> dict[str, Any]:
    return {"type": "text", "text": visible(text)}


def _tool(tool: Tool) -> dict[str, Any]:
    schema, strict = schema_of(tool)
    function = {**described(tool), "parameters": schema}
    return {"type": "function", "function": {**function, "strict": True} if strict else function}
