"""Native blocks: which are reasoning, which can go back to their dialect, which are plain text for any other."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, TypeAlias, cast

import msgspec

if TYPE_CHECKING:
    from session_actor.blocks import Native

_REASONING: Final = frozenset({"thinking", "redacted_thinking", "reasoning"})
"""Types of Anthropic's and OpenAI's blocks of reasoning; Gemini's have a mark `thought`."""

_THOUGHTS: Final = frozenset({"thinking_blocks", "extra_content"})
"""Fields of messages of Chat Completions that hold reasoning or its signatures, beside those named `reasoning…`."""

_WANT_AN_ANSWER: Final = frozenset(
    {
        "tool_use",
        "tool_result",
        "function",
        "function_call",
        "function_call_output",
        "custom",
        "custom_tool_call",
        "custom_tool_call_output",
        "computer_call",
        "computer_call_output",
        "local_shell_call",
        "local_shell_call_output",
        "shell_call",
        "shell_call_output",
        "apply_patch_call",
        "apply_patch_call_output",
        "mcp_approval_request",
        "mcp_approval_response",
    }
)
"""Types of blocks that the caller's side answers, and of such answers: alone, providers refuse them."""

_SAID: Final = ("output_text", "refusal")
"""The parts of a message of the assistant in Responses."""

_GEMINI_CALLS: Final = frozenset({"function_call", "functionCall", "function_response", "functionResponse"})
_CHAT_OURS: Final = frozenset({"role", "content", "tool_calls", "function_call", "type", "text"})

_UNFINISHED: Final = frozenset(
    {"calling", "generating", "in_progress", "incomplete", "interpreting", "queued", "searching"}
)
"""States of what a provider's own tools do in Responses, but for how it can end."""

_TAKEN: Final[dict[str, dict[str, frozenset[str]]]] = {
    "user": {
        "anthropic": frozenset({"container_upload", "document", "image", "search_result", "text"}),
        "openai_chat": frozenset({"file", "image_url", "input_audio", "text"}),
        "openai_responses": frozenset({"input_file", "input_image", "input_text"}),
        "gemini": frozenset({"inline_data", "inlineData", "file_data", "fileData"}),
    },
    "result": {
        "anthropic": frozenset({"document", "image", "search_result", "text", "tool_reference"}),
        "openai_responses": frozenset({"input_file", "input_image", "input_text"}),
    },
}
"""What each dialect takes in a user's message and in a result: types of blocks; for Gemini the key of a part."""

_UNSENDABLE: Final = re.compile(rb'"\$(?:esc|float|int|blob)[":]')
"""In a stored value: what JSON in UTF-8 cannot carry. Bytes are for Gemini only."""


Place: TypeAlias = Literal["assistant", "user", "result"]
"""Where a block stands."""


class Known(NamedTuple):
    """What is to be known of a native block to decide whether it is shown."""

    text: str | None = None
    """What it says, when it is plainly text."""
    reasoning: bool = False
    sendable: bool = False
    """Whether it can go back to its own dialect."""
    opens: str | None = None
    """The id of the provider's own tool call that it is."""
    closes: str | None = None
    """The id of the one that it answers."""
    item: str = ""
    """The id of the item that it is, in Responses, or of the provider's own call: no two may share one; `""`: none."""
    is_half: bool = False
    """Whether it is an item of Responses that was not finished yet: of a reply that broke off nothing comes of it."""


def known_of(native: Native, place: Place) -> Known:
    """Look into the block, which stands in such a place."""
    value = native.value
    if type(value) is not dict:
        return Known()
    fields = cast("dict[str, Any]", value)
    kind = fields.get("type")
    kind = kind if type(kind) is str else ""
    text = fields.get("text")
    reasoning = kind in _REASONING or bool(fields.get("thought"))
    if native.dialect == "openai_chat" and any(key.startswith("reasoning") or key in _THOUGHTS for key in fields):
        reasoning = True
    plain = text if type(text) is str and not reasoning else None
    if plain is not None and not plain.strip():
        return Known()
    sendable = _is_storable(native) and (
        _goes_back(native.dialect, fields, kind)
        if place == "assistant"
        else _goes_in(native.dialect, fields, kind, _TAKEN[place])
    )
    if kind.endswith("tool_use"):
        return Known(plain, reasoning, sendable, opens=_id(fields.get("id")), item=_id(fields.get("id")))
    if kind.endswith("_tool_result"):
        return Known(plain, reasoning, sendable, closes=_id(fields.get("tool_use_id")))
    if native.dialect != "openai_responses":
        return Known(plain, reasoning, sendable)
    return Known(plain, reasoning, sendable, item=_id(fields.get("id")), is_half=_is_half(fields))


def _is_half(fields: dict[str, Any]) -> bool:
    """Whether an item of Responses is not finished. An image that is there is, whatever is said of it.

    Of a search that `max_output_tokens` cut off not even the query is given out, without which no request takes it
    (github.com/openai/openai-openapi/issues/556); a whole image is said to be `generating`
    (github.com/openai-php/client/pull/742).
    """
    return fields.get("status") in _UNFINISHED and not fields.get("result")


def _id(value: object) -> str:
    return value if type(value) is str else ""


def _is_storable(native: Native) -> bool:
    """Whether JSON in UTF-8 can carry it."""
    stored = bytes(native.raw) if isinstance(native.raw, msgspec.Raw) else b""
    return not _UNSENDABLE.search(stored) and (native.dialect == "gemini" or b'"$b64":' not in stored)


def _goes_back(dialect: str, fields: dict[str, Any], kind: str) -> bool:
    """Whether the dialect takes it back in an assistant's message."""
    if dialect == "gemini":
        return bool(fields) and _GEMINI_CALLS.isdisjoint(fields)
    if dialect == "openai_chat":  # there it is fields of the message, not a part of its content
        return bool(fields) and _CHAT_OURS.isdisjoint(fields)
    if kind == "reasoning" and not fields.get("encrypted_content"):
        return False  # it names what the provider stored, and we ask it to store nothing
    if kind == "message" and dialect == "openai_responses" and not _is_said(fields.get("content")):
        return False
    return bool(kind) and kind not in _WANT_AN_ANSWER


def _is_said(content: object) -> bool:
    """Whether a message of Responses holds only what is known to be taken back in one of the assistant."""
    if not isinstance(content, list):
        return isinstance(content, str)
    parts = [cast("dict[str, Any]", part) for part in cast("list[object]", content) if isinstance(part, dict)]
    return len(parts) == len(cast("list[object]", content)) and all(part.get("type") in _SAID for part in parts)


def _goes_in(dialect: str, fields: dict[str, Any], kind: str, taken: dict[str, frozenset[str]]) -> bool:
    """Whether the dialect takes it in the user's message, or in a result."""
    kinds = taken.get(dialect, frozenset())
    return not kinds.isdisjoint(fields) if dialect == "gemini" else kind in kinds
