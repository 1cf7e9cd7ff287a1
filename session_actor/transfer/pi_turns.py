"""Messages of the Pi coding agent as turns; what a turn has no place for (details for its own display) is left out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from session_actor.blocks import Image, Text, Thinking, ToolCall, ToolResult
from session_actor.frames import Turn, Usage
from session_actor.given import content
from session_actor.given.content import checked

from .fields import UNREADABLE, UnknownName, base64_of, count, json_text, parts_of, text

if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Callable

    from session_actor.blocks import Block

_DIALECTS = {
    "anthropic-messages": "anthropic",
    "openai-completions": "openai_chat",
    "openai-responses": "openai_responses",
    "google-generative-ai": "gemini",
}


def pi_turn(message: dict[str, Any], left_out: Counter[str] | None = None) -> Turn | None:
    """The turn of a message; None: one that no model was shown. Raises what `fields` raises.

    `left_out`: counts a report of usage that cannot be read; None: such a message cannot be read either.
    """
    if message["role"] == "assistant":
        return _assistant_turn(message, left_out)
    reader = _ROLES.get(message["role"])
    if reader is None:
        raise UnknownName("an unknown role")
    return reader(message)


def _user_turn(message: dict[str, Any]) -> Turn:
    return Turn(role="user", blocks=pi_blocks(message["content"]))


def _assistant_turn(message: dict[str, Any], left_out: Counter[str] | None) -> Turn:
    return Turn(
        role="assistant",
        blocks=pi_blocks(message["content"]),
        usage=_usage(message, left_out),
        model=text(message["model"]),
        dialect=_DIALECTS.get(text(message.get("api", ""))),
        stop_reason=text(message["stopReason"]),
    )


def _tool_turn(message: dict[str, Any]) -> Turn:
    blocks = tuple(_shown(block) for block in parts_of(message["content"]))
    result = ToolResult(text(message["toolCallId"]), blocks, is_error=bool(message["isError"]))
    return Turn(role="tool", blocks=(result,))


def _command_turn(message: dict[str, Any]) -> Turn | None:
    """What the user ran by hand, as the agent shows it to its model."""
    if message.get("excludeFromContext"):
        return None
    output = text(message.get("output") or "") or "(no output)"
    return Turn("user", (Text(f"Ran `{text(message['command'])}`\n```\n{output}\n```"),))


def _summary_turn(message: dict[str, Any]) -> Turn:
    return summary_turn(message["summary"])


def summary_turn(summary: object) -> Turn:
    """The turn of a summary that stands between others."""
    return Turn("user", (Text(f"Summary of what came before:\n\n{text(summary)}"),))


_ROLES: dict[str, Callable[[dict[str, Any]], Turn | None]] = {
    "user": _user_turn,
    "toolResult": _tool_turn,
    "custom": _user_turn,
    "hookMessage": _user_turn,
    "bashExecution": _command_turn,
    "branchSummary": _summary_turn,
    "compactionSummary": _summary_turn,
}


def pi_blocks(said: object) -> tuple[Block, ...]:
    """The blocks of a message."""
    return tuple(_block(block) for block in parts_of(said))


def _block(block: dict[str, Any]) -> Block:
    if block["type"] == "thinking":
        signature = block.get("thinkingSignature")
        return Thinking(text(block["thinking"]), None if signature is None else text(signature))
    if block["type"] == "toolCall":
        return ToolCall(text(block["id"]), text(block["name"]), _arguments(block))
    return _shown(block)


def _shown(block: dict[str, Any]) -> Text | Image:
    """One block of what a person or a tool can show."""
    if block["type"] == "text":
        return Text(text(block["text"]))
    if block["type"] == "image":
        return Image(data=base64_of(block["data"]), media_type=text(block["mimeType"]))
    raise UnknownName("an unknown type of block")


def _arguments(call: dict[str, Any]) -> str:
    """The JSON text of a call's arguments; of a call that broke off, the part that the model wrote."""
    if "partialJson" in call:
        return text(call["partialJson"])
    return json_text(call["arguments"])


def _usage(message: dict[str, Any], left_out: Counter[str] | None) -> Usage | None:
    if "usage" not in message:
        return None
    try:
        return checked(content.usage, _reported(message["usage"]), "usage")
    except UNREADABLE:
        if left_out is None:
            raise
        left_out["usage"] += 1
        return None


def _reported(usage: dict[str, Any]) -> Usage:
    """What the provider charged; its `input` leaves out the cached part, ours holds it."""
    fresh, output, cached, written = (count(usage[name]) for name in ("input", "output", "cacheRead", "cacheWrite"))
    return Usage(fresh + cached + written, output, cached, written, raw=usage)
