"""Content of Anthropic's Messages API as turns: what a user, a tool or the model said."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from session_actor.blocks import Document, Image, Native, Text, ToolResult
from session_actor.frames import Tool, Turn
from session_actor.given import content
from session_actor.given.content import checked

from .fields import UnknownName, base64_of, fields, json_text, listed, parts_of, text, word
from .replied import turn_of_reply

if TYPE_CHECKING:
    from collections import Counter

    from session_actor.blocks import Block, ResultBlock

_SYNTHETIC = "<synthetic>"
"""The model of what the agent itself wrote in the model's place."""

_LEFT_OUT = ("context", "citations")
"""Fields of a document that a block has no place for: what it is about, and whether to cite from it."""


def message_turns(message: dict[str, Any], left_out: Counter[str]) -> tuple[Turn, ...]:
    """The turns of one message. What they have no place for is counted in `left_out`."""
    role = message["role"]
    if role == "user":
        return user_turns(message["content"], left_out)
    if role == "assistant":
        return (assistant_turn(message, left_out),)
    if role == "system":
        return (Turn("system", tuple(_shown(part, left_out) for part in parts_of(message["content"]))),)
    raise UnknownName("an unknown role")


def user_turns(said: object, left_out: Counter[str]) -> tuple[Turn, ...]:
    """The results in a user's message as a tool turn, the rest as the user's own."""
    results: list[Block] = []
    rest: list[Block] = []
    for part in parts_of(said):
        if part["type"] == "tool_result":
            results.append(_result(part, left_out))
        elif part["type"] != "text" or part.get("text") != "":
            rest.append(_shown(part, left_out))
    made = ((Turn("tool", tuple(results)),) if results else ()) + ((Turn("user", tuple(rest)),) if rest else ())
    return made or (Turn("user"),)


def assistant_turn(message: dict[str, Any], left_out: Counter[str]) -> Turn:
    """The turn of the model: as a reply is read; one that does not say why it stopped was whole."""
    said = parts_of(message["content"])
    asks = any(part.get("type") == "tool_use" for part in said)
    model = word(message.get("model"))
    reply = {
        "type": "message",
        "role": "assistant",
        "content": said,
        "model": None if model == _SYNTHETIC else model,
        "usage": message.get("usage") if model != _SYNTHETIC else None,
        "stop_reason": word(message.get("stop_reason")) or ("tool_use" if asks else None),
    }
    return turn_of_reply(reply, "anthropic", left_out)


def _result(part: dict[str, Any], left_out: Counter[str]) -> ToolResult:
    blocks: list[ResultBlock] = [_shown(shown, left_out) for shown in parts_of(part.get("content") or [])]
    return ToolResult(text(part["tool_use_id"]), tuple(blocks), is_error=part.get("is_error") is True)


def _shown(part: dict[str, Any], left_out: Counter[str]) -> Text | Image | Document | Native:
    """One block of what a person or a tool can show; of a kind that is not known, verbatim."""
    kind = text(part["type"])
    if kind == "text" and not part.get("citations"):
        return Text(text(part["text"]))
    if kind == "tool_reference":  # of a tool that a request may not have, which then would be refused
        return Text(json_text(part))
    source = part.get("source")
    if kind in {"image", "document"} and isinstance(source, dict):
        made = _media(kind, fields(source), word(part.get("title")))  # pyright: ignore[reportUnknownArgumentType] - the same
        if made is not None:
            left_out.update(name for name in _LEFT_OUT if part.get(name))
            return made
    return Native("anthropic", None, checked(content.free, part, "block"))


def _media(kind: str, source: dict[str, Any], title: str | None) -> Image | Document | None:
    """An image or a document; None: its source is of a kind that is not known."""
    given: dict[str, Any]
    if source.get("type") == "base64":
        given = {"data": base64_of(source["data"]), "media_type": text(source["media_type"])}
    elif source.get("type") == "url":
        given = {"url": text(source["url"])}
    elif source.get("type") == "file":
        given = {"file_id": text(source["file_id"]), "dialect": "anthropic"}
    elif source.get("type") == "text" and kind == "document":
        data = text(source["data"]).encode("utf-8", "surrogatepass")
        given = {"data": data, "media_type": word(source.get("media_type")) or "text/plain"}
    else:
        return None
    return Image(**given) if kind == "image" else Document(name=title, **given)


def system_text(system: object) -> str:
    """A system prompt: a text, or blocks of text."""
    return system if isinstance(system, str) else "\n\n".join(text(part["text"]) for part in parts_of(system))


def tools_of(given: object) -> tuple[tuple[Tool, ...], tuple[Native, ...]]:
    """The tools of a request."""
    tools: list[Tool | Native] = []
    for part in map(fields, listed(given)):
        if "input_schema" in part:
            tools.append(Tool(text(part["name"]), word(part.get("description")) or "", part["input_schema"]))
        else:
            tools.append(Native("anthropic", None, part))
    return checked(content.tools, tools, "tools")
