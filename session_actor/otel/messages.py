"""What was said, as JSON of the conventions' shape: messages of a role and parts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import orjson

from session_actor.blocks import Reference, Text, Thinking, ToolCall, ToolResult

if TYPE_CHECKING:
    from collections.abc import Iterable

    from session_actor.blocks import Block
    from session_actor.frames import Turn
    from session_actor.requests.request import Request

Part = dict[str, Any]
_TEXTS: Final = ("text", "input_text", "output_text")


def of_turns(turns: Iterable[Turn]) -> tuple[str, str]:
    """What the model said, and what it was told; `""` where there is nothing."""
    said = [_message(turn) for turn in turns if turn.role == "assistant"]
    heard = [_message(turn) for turn in turns if turn.role != "assistant"]
    return _json(said) if said else "", _json(heard) if heard else ""


def _message(turn: Turn) -> Part:
    parts = [_part(block) for block in turn.blocks]
    message: Part = {"role": turn.role, "parts": parts}
    if turn.role == "assistant":
        message["finish_reason"] = turn.stop_reason or "stop"
    return message


def _part(block: Block) -> Part:
    match block:
        case Text(text=text) | Reference(text=text):
            return {"type": "text", "content": text}
        case Thinking(text=text):
            return {"type": "reasoning", "content": text}
        case ToolCall():
            return {"type": "tool_call", "id": block.id, "name": block.name, "arguments": block.arguments}
        case ToolResult():
            return {
                "type": "tool_call_response",
                "id": block.call_id,
                "response": [_part(inner) for inner in block.blocks],
            }
        case _:
            return {"type": type(block).__name__.lower()}  # media, and what one provider alone understands


def of_request(request: Request) -> tuple[str | None, str]:
    """The system prompt of a request (None: it has none), and its messages."""
    given = dict(request)
    config: Any = given.get("config") or {}
    system = given.get("system") or given.get("instructions") or config.get("system_instruction")
    items: Any = given.get("messages") or given.get("input") or given.get("contents") or []
    messages = [_item(item) for item in items]
    return (_json([{"type": "text", "content": system}]) if system else None), _json(messages)


def _item(item: Any) -> Part:
    """One message, or one item, of any dialect."""
    if item.get("type") == "function_call":
        call = {"type": "tool_call", "id": item.get("call_id"), "name": item.get("name")}
        return {"role": "assistant", "parts": [{**call, "arguments": item.get("arguments")}]}
    if item.get("type") == "function_call_output":
        answer = {"type": "tool_call_response", "id": item.get("call_id"), "response": item.get("output")}
        return {"role": "tool", "parts": [answer]}
    content: Any = item.get("content") or item.get("parts") or []
    parts = (
        [_piece({"type": "text", "text": content})] if isinstance(content, str) else [_piece(one) for one in content]
    )
    for call in item.get("tool_calls") or ():
        function: Any = call.get("function") or {}
        made: Part = {"type": "tool_call", "id": call.get("id"), "name": function.get("name")}
        parts.append({**made, "arguments": function.get("arguments")})
    if item.get("role") == "tool":
        parts = [{"type": "tool_call_response", "id": item.get("tool_call_id"), "response": parts}]
    return {"role": item.get("role") or item.get("type"), "parts": parts}


def _piece(piece: Any) -> Part:  # noqa: PLR0911 - one a kind
    kind = piece.get("type")
    if kind in _TEXTS or (kind is None and "text" in piece):
        return {"type": "text", "content": piece.get("text")}
    if kind == "tool_use":
        call = {"type": "tool_call", "id": piece.get("id"), "name": piece.get("name")}
        return {**call, "arguments": piece.get("input")}
    if kind == "tool_result":
        return {"type": "tool_call_response", "id": piece.get("tool_use_id"), "response": piece.get("content")}
    if "function_call" in piece:
        made = piece["function_call"]
        return {"type": "tool_call", "id": made.get("id"), "name": made.get("name"), "arguments": made.get("args")}
    if "function_response" in piece:
        answer = piece["function_response"]
        return {"type": "tool_call_response", "id": answer.get("id"), "response": answer.get("response")}
    if kind == "thinking":
        return {"type": "reasoning", "content": piece.get("thinking")}
    return {"type": kind or "media"}


def _json(value: object) -> str:
    try:
        return orjson.dumps(value, default=str).decode()
    except (TypeError, ValueError):  # a lone surrogate, or a number too long for it
        import json

        return json.dumps(value, default=str)
