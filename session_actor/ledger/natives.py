"""Native blocks: which are reasoning, which can go back to their dialect, which are plain text for any other."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final, NamedTuple, cast

import msgspec

if TYPE_CHECKING:
    from session_actor.blocks import Native

_REASONING: Final = frozenset({"thinking", "redacted_thinking", "reasoning"})
"""Types of Anthropic's and OpenAI's blocks of reasoning; Gemini's have a mark `thought`."""

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

_GEMINI_CALLS: Final = frozenset({"function_call", "functionCall", "function_response", "functionResponse"})

_UNSENDABLE: Final = re.compile(rb'"\$(?:esc|float|int|blob)[":]')
"""In a stored value: what JSON in UTF-8 cannot carry. Bytes are for Gemini only."""


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


def known_of(native: Native) -> Known:
    """Look into the block."""
    value = native.value
    if type(value) is not dict:
        return Known()
    fields = cast("dict[str, Any]", value)
    kind = fields.get("type")
    kind = kind if type(kind) is str else ""
    text = fields.get("text")
    reasoning = kind in _REASONING or bool(fields.get("thought"))
    plain = text if type(text) is str and not reasoning else None
    if plain is not None and not plain.strip():
        return Known()
    sendable = _is_sendable(native, fields, kind)
    if kind.endswith("tool_use"):
        return Known(plain, reasoning, sendable, opens=_id(fields.get("id")))
    if kind.endswith("_tool_result"):
        return Known(plain, reasoning, sendable, closes=_id(fields.get("tool_use_id")))
    return Known(plain, reasoning, sendable)


def _id(value: object) -> str:
    return value if type(value) is str else ""


def _is_sendable(native: Native, fields: dict[str, Any], kind: str) -> bool:
    stored = bytes(native.raw) if isinstance(native.raw, msgspec.Raw) else b""
    if _UNSENDABLE.search(stored):
        return False
    if native.dialect == "gemini":
        return bool(fields) and _GEMINI_CALLS.isdisjoint(fields)
    return bool(kind) and kind not in _WANT_AN_ANSWER and b'"$b64":' not in stored
