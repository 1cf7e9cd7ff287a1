"""Messages of OpenAI's Chat Completions API as turns."""

from __future__ import annotations

import binascii
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import unquote_to_bytes

import msgspec

from session_actor.blocks import Document, Image, Native, Text, ToolResult
from session_actor.frames import Tool, Turn
from session_actor.given import content
from session_actor.given.content import checked

from .fields import UnknownName, base64_of, fields, is_list, listed, parts_of, text, word
from .replied import turn_of_reply

if TYPE_CHECKING:
    from collections import Counter

    from session_actor.blocks import ResultBlock

SYSTEM: Final = frozenset({"system", "developer"})
"""The roles of instructions."""

_LEFT_OUT: Final = ("annotations", "audio", "name")
"""Fields that a turn has no place for: where sources stand in the text, the sound of what was said, which user."""


def chat_turns(message: dict[str, Any], left_out: Counter[str]) -> tuple[Turn, ...]:
    """The turns of one message. What they have no place for is counted in `left_out`."""
    role = message["role"]
    if role == "user":
        turns = (Turn("user", tuple(_shown(part) for part in _parts(message))),)
    elif role == "assistant":
        turns = (_assistant(message, left_out),)
    elif role in {"tool", "function"}:
        blocks: list[ResultBlock] = [_shown(part) for part in _parts(message)]
        call_id = text(message["tool_call_id"]) if role == "tool" else word(message.get("tool_call_id")) or ""
        turns = (Turn("tool", (ToolResult(call_id, tuple(blocks)),)),)
    elif role in SYSTEM:
        turns = (Turn("system", (Text(system_of(message)),)),)
    else:
        raise UnknownName("an unknown role")
    left_out.update(name for name in _LEFT_OUT if message.get(name) and (name, role) != ("name", "function"))
    return turns


def system_of(message: dict[str, Any]) -> str:
    """The text of instructions."""
    return "\n\n".join(text(part["text"]) for part in _parts(message))


def _assistant(message: dict[str, Any], left_out: Counter[str]) -> Turn:
    """As a reply is read; a message alone does not say why it ended, and was whole."""
    asks = message.get("tool_calls") or message.get("function_call")
    finish = word(message.get("finish_reason")) or ("tool_calls" if asks else "stop")
    choice = {"index": 0, "message": message, "finish_reason": finish}
    reply = {"choices": [choice], "model": message.get("model"), "usage": message.get("usage")}
    turn = turn_of_reply(reply, "openai_chat", left_out)
    said = message.get("content")
    others = [_native(part) for part in map(fields, listed(said)) if not _is_told(part)] if is_list(said) else []
    return msgspec.structs.replace(turn, blocks=(*turn.blocks, *others)) if others else turn


def _is_told(part: dict[str, Any]) -> bool:
    """Whether a part is text, so that the reply tells it."""
    return part.get("type") in {None, "text", "refusal"} or bool(part.get("text") or part.get("refusal"))


def _parts(message: dict[str, Any]) -> list[dict[str, Any]]:
    said = message.get("content")
    return [] if said is None else parts_of(said)


def _shown(part: dict[str, Any]) -> Text | Image | Document | Native:
    kind = text(part["type"])
    if kind == "text":
        return Text(text(part["text"]))
    if kind == "image_url":
        given = part["image_url"]
        return _image(text(given if isinstance(given, str) else fields(given)["url"]))
    if kind == "file" and isinstance(part.get("file"), dict):
        made = _file(fields(part["file"]))
        if made is not None:
            return made
    return _native(part)


def _native(part: dict[str, Any]) -> Native:
    return Native("openai_chat", None, checked(content.free, part, "part"))


def _image(url: str) -> Image:
    data, media_type = _data_of(url)
    return Image(url=url) if data is None else Image(data=data, media_type=media_type or "image/png")


def _file(file: dict[str, Any]) -> Document | None:
    name = word(file.get("filename"))
    if word(file.get("file_id")):
        return Document(file_id=text(file["file_id"]), dialect="openai_chat", name=name)
    if word(file.get("file_data")) is None:
        return None
    data, media_type = _data_of(text(file["file_data"]))
    if data is None:
        data = base64_of(file["file_data"])
    return Document(data=data, media_type=media_type or "application/pdf", name=name)


def _data_of(url: str) -> tuple[bytes | None, str | None]:
    """What a `data:` URL holds, and its media type; None: it is another URL."""
    if not url.startswith("data:"):
        return None, None
    head, _, body = url[5:].partition(",")
    media_type = head.partition(";")[0] or None
    if not head.endswith(";base64"):
        return unquote_to_bytes(body), media_type
    return binascii.a2b_base64(body.encode("ascii"), strict_mode=True), media_type


def chat_tools(given: object) -> tuple[Tool, ...]:
    """The tools of a request: functions; `functions` of old ones are such themselves."""
    made: list[Tool] = []
    for part in map(fields, listed(given)):
        function = fields(part["function"]) if "function" in part else part
        made.append(Tool(text(function["name"]), word(function.get("description")) or "", function.get("parameters")))
    tools, _ = checked(content.tools, made, "tools")
    return tools
