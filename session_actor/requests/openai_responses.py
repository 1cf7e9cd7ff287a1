"""OpenAI Responses: `client.responses.create(**request)`. Source of the rules: OpenAI's API reference.

Nothing is stored there: the whole conversation is sent each time, reasoning as the encrypted items that came.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final, cast

from session_actor.blocks import NULL, Image, Native, Text, ToolCall
from session_actor.errors import InvalidArgument

from . import media
from .extra import checked_extra
from .texts import clean, free_object, more_of, visible, wire_name, without_absent
from .tools import described, offered, schema_of, system_of
from .turns import one_by_one, part_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from session_actor.blocks import Document
    from session_actor.frames import Instructions, Tool
    from session_actor.ledger.entries import AssistantEntry, Entry, ShownResult, UserEntry

MESSAGES: Final = "input"
OWNED: Final = frozenset(
    {"model", "input", "instructions", "tools", "max_output_tokens", "store", "previous_response_id", "conversation"}
)

_NO_REASONING: Final = re.compile(r"(?:^|/)(?:gpt-4o|gpt-4\.1|chatgpt-4o|gpt-5-chat)(?!\d)")
"""Models that do not reason, and refuse to be asked for it: "Encrypted content is not supported with this model"."""


def messages(entries: Sequence[Entry], _model: str, /) -> list[dict[str, Any]]:
    """As `Renderer.messages`. Every block of the assistant is an item of its own, in its order."""
    return one_by_one(entries, _said, _result, _user)


def assemble(
    model: str,
    instructions: Instructions | None,
    messages: list[dict[str, Any]],
    max_output_tokens: int,
    _tools_used: Sequence[str] = (),
    /,
) -> dict[str, Any]:
    """As `Renderer.assemble`."""
    request: dict[str, Any] = {
        "model": model,
        "input": messages,
        "max_output_tokens": max_output_tokens,
        "store": False,
    }
    if not _NO_REASONING.search(model):
        request["include"] = ["reasoning.encrypted_content"]
    if system := system_of(instructions):
        request["instructions"] = system
    if tools := offered(instructions, "openai_responses", model, _tool):
        request["tools"] = tools
    return request


def merge(request: dict[str, Any], extra: Mapping[str, Any] | None, /) -> None:
    """As `Renderer.merge`; what `extra` includes comes on top of what we include."""
    given = checked_extra(extra, OWNED)
    include = given.pop("include", None)
    if include is not None:
        if not isinstance(include, list):
            raise InvalidArgument("extra['include']", f"must be a list, got {type(include).__name__}")
        ours = request.setdefault("include", [])
        ours += [item for item in cast("list[object]", include) if item not in ours]
    request.update(given)


def _user(entry: UserEntry) -> dict[str, Any]:
    return {"type": "message", "role": "user", "content": [_part(block) for block in entry.blocks]}


def _said(entry: AssistantEntry) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = []
    for block in entry.blocks:
        if isinstance(block, Text):
            item: dict[str, Any] = {"type": "message", "role": "assistant", "content": _spoken(block)}
            items.append({**item, "phase": block.phase} if block.phase else item)
        elif isinstance(block, ToolCall):
            items.append(_call(block))
        elif isinstance(block, Native) and (value := free_object(block.raw)) is not None:
            items.append(_item(value))
    return items


def _spoken(block: Text) -> str | list[dict[str, Any]]:
    """A text; with what it cites, in the form that has a place for that."""
    text, annotations = visible(block.text), None if block.more is NULL else more_of(block).get("annotations")
    if not isinstance(annotations, list):
        return text
    return [without_absent({"type": "output_text", "text": text, "annotations": annotations})]


def _item(value: dict[str, Any]) -> dict[str, Any]:
    """An item as the API takes it back. The status of reasoning is only given out: "Unknown parameter"."""
    item = without_absent(value)
    if item.get("type") == "reasoning":
        item.pop("status", None)
    return item


def _call(call: ToolCall) -> dict[str, Any]:
    name, arguments = wire_name(call.name), clean(call.arguments)
    made = {"type": "function_call", "call_id": call.id, "name": name, "arguments": arguments}
    return made if call.more is NULL else {**more_of(call), **made}


def _result(result: ShownResult) -> dict[str, Any]:
    parts = [_part(block) for block in result.blocks]
    if result.is_error:
        if parts[0]["type"] == "input_text":
            parts[0]["text"] = f"Error: {parts[0]['text']}"
        else:
            parts.insert(0, _text("Error:"))
    is_text = len(parts) == 1 and parts[0]["type"] == "input_text"
    output = parts[0]["text"] if is_text else parts
    return {"type": "function_call_output", "call_id": result.call_id, "output": output}


def _part(block: Text | Image | Document | Native) -> dict[str, Any]:
    return part_of("openai_responses", block, _text, _media)


def _media(block: Image | Document) -> dict[str, Any]:
    if isinstance(block, Image):
        file_id = block.file_id
        source = {"image_url": block.url or media.data_url(block)} if file_id is None else {"file_id": file_id}
        return {"type": "input_image", "detail": "auto", **source}
    return _text(media.as_text(block)) if media.is_text(block) else {"type": "input_file", **_file(block)}


def _file(block: Document) -> dict[str, str]:
    if block.file_id is not None:
        return {"file_id": block.file_id}
    if block.url is not None:
        return {"file_url": block.url}
    return {"filename": media.file_name(block), "file_data": media.data_url(block)}


def _text(text: str) -> dict[str, Any]:
    return {"type": "input_text", "text": visible(text)}


def _tool(tool: Tool) -> dict[str, Any]:
    schema, strict = schema_of(tool)
    return {"type": "function", **described(tool), "parameters": schema, "strict": strict}
