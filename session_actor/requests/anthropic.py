"""Anthropic Messages: `client.messages.create(**request)`. Source of the rules: Anthropic's API reference."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from session_actor.blocks import NULL, Image, Native, Text, Thinking, ToolCall

from . import media
from .extra import checked_extra
from .texts import arguments_of, clean, free_object, more_of, visible, wire_name
from .tools import described, names_of, offered, schema_of, system_of
from .turns import alternating, part_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from session_actor.blocks import Document
    from session_actor.frames import Instructions, Tool
    from session_actor.ledger.entries import AssistantEntry, Entry, ShownResult

MESSAGES: Final = "messages"
OWNED: Final = frozenset({"model", "messages", "system", "tools", "max_tokens"})

_CACHED: Final = {"type": "ephemeral"}


def messages(entries: Sequence[Entry], _model: str, /) -> list[dict[str, Any]]:
    """As `Renderer.messages`. Results and what the user says after them are one message, results first."""
    return alternating(entries, _said, _result, _block, speaker="assistant", key="content")


def assemble(
    model: str,
    instructions: Instructions | None,
    messages: list[dict[str, Any]],
    max_output_tokens: int,
    tools_used: Sequence[str] = (),
    /,
) -> dict[str, Any]:
    """As `Renderer.assemble`. The only cache breakpoints are the ends of the tools and of the system prompt.

    Calls are refused without `tools`: those of a session that has no tools now are declared, and may not be used.
    """
    request: dict[str, Any] = {"model": model, "max_tokens": max_output_tokens, "messages": messages}
    if system := system_of(instructions):
        request["system"] = [{"type": "text", "text": system, "cache_control": dict(_CACHED)}]
    if tools := offered(instructions, "anthropic", model, _tool):
        _mark_end(tools)
        request["tools"] = tools
    elif tools_used:
        request["tools"] = [_past_tool(name) for name in names_of(tools_used)]
        request["tool_choice"] = {"type": "none"}
    return request


def merge(request: dict[str, Any], extra: Mapping[str, Any] | None, /) -> None:
    """As `Renderer.merge`."""
    request.update(checked_extra(extra, OWNED))


def _said(entry: AssistantEntry) -> list[dict[str, Any]]:
    """The assistant's blocks in their order, but calls last: nothing may follow a `tool_use`."""
    blocks: list[dict[str, Any]] = []
    calls: list[dict[str, Any]] = []
    for block in entry.blocks:
        if isinstance(block, Text):
            blocks.append(_text(block.text))
        elif isinstance(block, ToolCall):
            calls.append(_call(block))
        elif isinstance(block, Thinking):
            blocks.append({"type": "thinking", "thinking": clean(block.text), "signature": block.signature or ""})
        elif (value := free_object(block.raw)) is not None:
            blocks.append(value)
    if not calls and isinstance(entry.blocks[-1], Text):  # a final message may not end in white space
        blocks[-1]["text"] = blocks[-1]["text"].rstrip()
    return blocks + calls


def _call(call: ToolCall) -> dict[str, Any]:
    made = {"type": "tool_use", "id": call.id, "name": wire_name(call.name), "input": arguments_of(call.arguments)}
    return made if call.more is NULL else {**more_of(call), **made}


def _result(result: ShownResult) -> dict[str, Any]:
    made: dict[str, Any] = {"type": "tool_result", "tool_use_id": result.call_id, "content": _shown(result)}
    if result.is_error:
        made["is_error"] = True
    if result.toolset is not None:
        made["toolset_name"] = clean(result.toolset)
    return made


def _shown(result: ShownResult) -> str | list[dict[str, Any]]:
    """A text alone as it is: less to copy for every request."""
    first = result.blocks[0]
    if len(result.blocks) == 1 and isinstance(first, Text):
        return visible(first.text)
    return [_block(block) for block in result.blocks]


def _block(block: Text | Image | Document | Native) -> dict[str, Any]:
    return part_of("anthropic", block, _text, _media)


def _media(block: Image | Document) -> dict[str, Any]:
    if isinstance(block, Image):
        return {"type": "image", "source": _source(block)}
    made: dict[str, Any] = {"type": "document", "source": _source(block)}
    if block.name:
        made["title"] = clean(block.name)
    return made


def _source(block: media.Media) -> dict[str, Any]:
    if block.file_id is not None:
        return {"type": "file", "file_id": block.file_id}
    if block.url is not None:
        return {"type": "url", "url": block.url}
    if media.is_text(block):
        return {"type": "text", "media_type": "text/plain", "data": media.text_of(block)}
    return {"type": "base64", "media_type": media.media_type(block), "data": media.base64_of(block)}


def _text(text: str) -> dict[str, Any]:
    return {"type": "text", "text": visible(text)}


def _tool(tool: Tool) -> dict[str, Any]:
    schema, strict = schema_of(tool)
    made = {**described(tool), "input_schema": schema}
    return {**made, "strict": True} if strict else made


def _mark_end(tools: list[dict[str, Any]]) -> None:
    """Put a cache breakpoint at the end of the tools: at the last one that is not deferred, since only these can be."""
    for tool in reversed(tools):
        if tool.get("defer_loading") is not True:
            tool.setdefault("cache_control", dict(_CACHED))
            return


def _past_tool(name: str) -> dict[str, Any]:
    return {"name": name, "input_schema": {"type": "object", "properties": {}}}
