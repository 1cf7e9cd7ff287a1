"""Replies of Gemini's generateContent API: as the SDK's objects, or as JSON of the API."""

from __future__ import annotations

import binascii
import re
from base64 import b64decode, b64encode
from typing import TYPE_CHECKING, Any, Final

import msgspec

from session_actor.blocks import Native, Text, Thinking, ToolCall
from session_actor.errors import InvalidArgument
from session_actor.frames import Turn, Usage
from session_actor.given import content
from session_actor.given.content import checked
from session_actor.given.plain import is_a, plain_str
from session_actor.requests.texts import without_absent

from .said_of import with_more

if TYPE_CHECKING:
    from collections.abc import Sequence

    from session_actor.blocks import Block

    from .fields import Fields

_HUMP: Final = re.compile(r"(?<=[a-z0-9])([A-Z])")
_FREE: Final = frozenset({"args", "response", "part_metadata"})
"""Fields that hold the keys of others: those are not ours to rename."""

_SAID_OF: Final = ("citation_metadata", "grounding_metadata", "url_context_metadata")
"""What a candidate tells of where its text comes from; a stream does so in the last chunks. No request takes it."""


def read(reply: Fields) -> Turn:
    """The turn of a `GenerateContentResponse` with one candidate, or with none: then the prompt was blocked."""
    return gathered([reply])


def gathered(chunks: Sequence[Fields]) -> Turn:
    """The turn of all chunks of a stream, in their order: each holds parts, the last one the usage of all."""
    model = stop_reason = None
    usage: Usage | None = None
    blocks: list[Block] = []
    said_of: dict[str, Any] = {}
    for chunk in chunks:
        model = chunk.word("model_version") or model
        usage = _usage(chunk.one("usage_metadata")) or usage
        candidates = chunk.many("candidates")
        if len(candidates) > 1:
            raise InvalidArgument(
                chunk.at("candidates"), f"must hold the one candidate that goes on, got {len(candidates)}"
            )
        for candidate in candidates:
            stop_reason = candidate.word("finish_reason") or stop_reason
            made = [_block(part, model) for part in candidate.part("content").many("parts")]
            _add(blocks, [block for block in made if block is not None])
            said_of |= {
                name: _snake(without_absent(part.plain())) for name in _SAID_OF if (part := candidate.one(name))
            }
        if not candidates:
            stop_reason = chunk.part("prompt_feedback").word("block_reason") or stop_reason
    more = checked(content.free, said_of or None, "candidates")
    return Turn("assistant", tuple(with_more(blocks, more)), usage, model, "gemini", stop_reason)


def _add(blocks: list[Block], more: list[Block]) -> None:
    """Add the blocks of a chunk; a text goes on where the chunk before broke off.

    Not where one has a signature: that is for the part which it came with, as it came.
    """
    if blocks and more:
        last, first = blocks[-1], more[0]
        for kind in (Text, Thinking):
            if isinstance(last, kind) and isinstance(first, kind) and last.signature is None is first.signature:
                blocks[-1], more = msgspec.structs.replace(last, text=last.text + first.text), more[1:]
    blocks.extend(more)


def _block(part: Fields, model: str | None) -> Block | None:
    """One part; None: it says nothing."""
    signature = _signature(part)
    call = part.one("function_call")
    if call is not None:
        given = call.get("args")
        arguments = "{}" if given is None else checked(content.arguments, given, call.at("args"))
        return ToolCall(call.word("id") or "", call.text("name"), arguments, signature)
    if part.get("text") is not None:
        text = part.text("text")
        if part.get("thought") is True:
            return Thinking(text, signature)
        return Text(text, signature) if text or signature else None
    native = _native(part, signature)
    if native.keys() - {"thought_signature"}:
        return Native("gemini", model, checked(content.free, native, part.where))
    return None if signature is None else Text("", signature)


def _native(part: Fields, signature: str | None) -> dict[str, Any]:
    """A part as the SDK takes it back: names in snake case, bytes as bytes."""
    native: dict[str, Any] = _snake(without_absent(part.plain()))
    if signature is not None:
        native["thought_signature"] = b64decode(signature)
    inline: Any = native.get("inline_data")
    if is_a(inline, dict) and is_a(inline.get("data"), str):
        inline["data"] = _decoded(inline["data"], part.at("inline_data.data"))
    return native


def _snake(value: Any) -> Any:
    """Plain values with the names of all fields in snake case."""
    if is_a(value, list):
        return [_snake(item) for item in value]
    if not is_a(value, dict):
        return value
    renamed: dict[Any, Any] = {}
    for key, item in value.items():
        name = _HUMP.sub(r"_\1", key).lower() if is_a(key, str) else key
        renamed[name] = item if name in _FREE else _snake(item)
    return renamed


def _signature(part: Fields) -> str | None:
    """The thought signature as base64."""
    given = part.get("thought_signature")
    if given is None:
        return None
    if is_a(given, str):
        given = _decoded(plain_str(given), part.at("thought_signature"))
    return b64encode(checked(content.data, given, part.at("thought_signature"))).decode() or None


def _decoded(text: str, where: str) -> bytes:
    """The bytes of base64 text, of the usual alphabet or that of URLs."""
    try:
        padded = text.translate(_URL_TO_USUAL) + "=" * (-len(text) % 4)
        return b64decode(padded, validate=True)
    except (binascii.Error, ValueError):
        raise InvalidArgument(where, "must be bytes, or base64 text of them") from None


_URL_TO_USUAL: Final = str.maketrans("-_", "+/")


def _usage(report: Fields | None) -> Usage | None:
    """What was charged: `prompt_token_count` includes what came from the cache, thoughts come on top of the answer.

    What tools of the provider gave the model is input, too, but no part of what was sent.
    """
    if report is None:
        return None
    prompt, tools = report.count("prompt_token_count"), report.count("tool_use_prompt_token_count")
    thoughts = report.count("thoughts_token_count")
    return checked(
        content.usage,
        Usage(
            prompt + tools,
            report.count("candidates_token_count") + thoughts,
            report.count("cached_content_token_count"),
            0,
            thoughts,
            report.verbatim(),
            prompt if tools else None,
        ),
        report.where,
    )
