"""Gemini generateContent: `client.models.generate_content(**request)`. Source of the rules: Gemini's API docs.

The keys are those of the SDK's dicts; media and signatures are bytes there.
"""

from __future__ import annotations

import re
from base64 import b64decode, urlsafe_b64decode
from functools import partial
from typing import TYPE_CHECKING, Any, Final, cast

from session_actor.blocks import Image, Native, Text, Thinking

from . import media
from .extra import checked_extra, object_of, refuse_owned
from .texts import arguments_of, clean, free_object, visible, wire_name
from .tools import described, native_tools_of, schema_of, system_of, tools_of
from .turns import alternating, part_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from session_actor.blocks import Document, ToolCall
    from session_actor.frames import Instructions, Tool
    from session_actor.ledger.entries import AssistantEntry, Entry, ShownResult

MESSAGES: Final = "contents"
OWNED: Final = frozenset(
    {
        "model",
        "contents",
        "config.system_instruction",
        "config.tools",
        "config.max_output_tokens",
        "config.automatic_function_calling",
    }
)
_OWNED_IN_BODY: Final = frozenset({"model", "contents", "system_instruction", "tools", "max_output_tokens"})

_BETWEEN: Final = "\n\n"
_UNSIGNED: Final = b"skip_thought_signature_validator"
"""Stands for the signature of a call that this model did not make (Gemini docs, "Thought signatures", FAQ)."""
_ASKS_NO_SIGNATURE: Final = re.compile(r"gemini-[12]\b|gemma|learnlm")
_CAPITAL: Final = re.compile(r"(?<=[a-z0-9])([A-Z])")


def messages(entries: Sequence[Entry], model: str, /) -> list[dict[str, Any]]:
    """As `Renderer.messages`. Results and what the user says after them are one content, results first."""
    said = partial(_said, asks_signature=_ASKS_NO_SIGNATURE.search(model) is None)
    return alternating(entries, said, _result, _part, speaker="model", key="parts")


def assemble(
    model: str,
    instructions: Instructions | None,
    messages: list[dict[str, Any]],
    max_output_tokens: int,
    _tools_used: Sequence[str] = (),
    /,
) -> dict[str, Any]:
    """As `Renderer.assemble`. The SDK runs no functions by itself."""
    config: dict[str, Any] = {
        "max_output_tokens": max_output_tokens,
        "automatic_function_calling": {"disable": True},
    }
    if system := system_of(instructions):
        config["system_instruction"] = system
    offered = native_tools_of(instructions, "gemini", model)
    if tools := [_tool(tool) for tool in tools_of(instructions)]:
        offered.append({"function_declarations": tools})
    if offered:
        config["tools"] = offered
    return {"model": model, "contents": messages, "config": config}


def merge(request: dict[str, Any], extra: Mapping[str, Any] | None, /) -> None:
    """As `Renderer.merge`; `config` is merged key by key. Its keys may be written as the REST API writes them."""
    given = checked_extra(extra, OWNED)
    settings: dict[str, Any] = {}
    for key, value in object_of(given.pop("config", None), "extra['config']").items():
        name, where = _snake(key), f"extra['config'][{key!r}]"
        refuse_owned(f"config.{name}", OWNED, where)
        if name == "http_options":
            _refuse_in_body(object_of(value, where), where)
        settings[name] = value
    request.update(given)
    if settings:
        request["config"].update(settings)


def _refuse_in_body(options: dict[str, Any], where: str) -> None:
    """What the SDK puts over the body of what it sends, whose keys are those of the REST API."""
    for name, body in options.items():
        if _snake(name) != "extra_body":
            continue
        place = f"{where}[{name!r}]"
        for key, value in object_of(body, place).items():
            refuse_owned(_snake(key), _OWNED_IN_BODY, f"{place}[{key!r}]")
            if _snake(key) == "generation_config":
                for inner in object_of(value, f"{place}[{key!r}]"):
                    refuse_owned(_snake(inner), _OWNED_IN_BODY, f"{place}[{key!r}][{inner!r}]")


def _said(entry: AssistantEntry, *, asks_signature: bool) -> list[dict[str, Any]]:
    parts: list[dict[str, Any]] = []
    for block in entry.blocks:
        if isinstance(block, Text):
            text = clean(block.text) if block.signature else visible(block.text)
            parts.append(_signed({"text": text}, block.signature))
        elif isinstance(block, Thinking):
            parts.append(_signed({"text": clean(block.text), "thought": True}, block.signature))
        elif isinstance(block, Native):
            parts.append(_native(block))
        else:
            parts.append(_signed(_call(block), block.signature))
    if asks_signature:
        _sign_first_call(parts)
    return parts


def _sign_first_call(parts: list[dict[str, Any]]) -> None:
    """From Gemini 3 on the first call of a turn must have a signature: one of another model is given the stand-in."""
    first = next((part for part in parts if "function_call" in part), None)
    if first is not None:
        first.setdefault("thought_signature", _UNSIGNED)


def _signed(part: dict[str, Any], signature: str | bytes | None) -> dict[str, Any]:
    if signature and (given := _bytes_of(signature)) is not None:
        part["thought_signature"] = given
    return part


def _bytes_of(text: object) -> bytes | None:
    """The bytes of a base64 text of either alphabet; None when it is none. Bytes are given back."""
    if not isinstance(text, str):
        return text if isinstance(text, bytes) else None
    try:
        return urlsafe_b64decode(text) if "-" in text or "_" in text else b64decode(text, validate=True)
    except ValueError:
        return None


def _call(call: ToolCall) -> dict[str, Any]:
    made: dict[str, Any] = {"name": wire_name(call.name), "args": arguments_of(call.arguments)}
    return {"function_call": {"id": call.id, **made} if call.id else made}


def _result(result: ShownResult) -> dict[str, Any]:
    text = _BETWEEN.join(clean(block.text) for block in result.blocks if isinstance(block, Text)) or visible("")
    made: dict[str, Any] = {
        "name": wire_name(result.name),
        "response": {"error" if result.is_error else "output": text},
    }
    return {"function_response": {"id": result.call_id, **made} if result.call_id else made}


def _part(block: Text | Image | Document | Native) -> dict[str, Any]:
    return _native(block) if isinstance(block, Native) else part_of("gemini", block, _text, _media)


def _text(text: str) -> dict[str, Any]:
    return {"text": visible(text)}


def _media(block: Image | Document) -> dict[str, Any]:
    if media.is_text(block):
        return {"text": media.as_text(block)}
    kind = media.media_type(block)
    if block.data is not None:
        return {"inline_data": {"mime_type": kind, "data": block.data}}
    return {"file_data": {"mime_type": kind, "file_uri": block.file_id or block.url}}


def _native(block: Native) -> dict[str, Any]:
    """A part as the SDK's dicts write it: what JSON holds as base64 is bytes there."""
    value = free_object(block.raw)
    if value is None:
        return {"text": visible("")}
    part = {_snake(key): item for key, item in value.items()}
    part = _signed(part, part.pop("thought_signature", None))
    blob = part.get("inline_data")
    if isinstance(blob, dict):
        held = cast("dict[str, Any]", blob)
        part["inline_data"] = {**held, "data": _bytes_of(held.get("data"))}
    return part


def _snake(key: str) -> str:
    return _CAPITAL.sub(r"_\1", key).lower() if not key.islower() else key


def _tool(tool: Tool) -> dict[str, Any]:
    schema, _ = schema_of(tool)
    return {**described(tool), "parameters_json_schema": schema}
