"""Replies that broke off: in the middle of a call, it may be, which then is none."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from session_actor.blocks import ToolCall

_BROKE_OFF: Final = frozenset(
    {
        "aborted",
        "cancelled",
        "canceled",
        "content_filter",
        "error",
        "failed",
        "incomplete",
        "interrupted",
        "length",
        "malformed_function_call",
        "max_output_tokens",
        "max_tokens",
        "model_context_window_exceeded",
        "refusal",
    }
)
"""Stop reasons, in lower case, after which a call may be a part of one."""


def broke_off(stop_reason: str | None) -> bool:
    """Whether a reply that stopped for this reason may have ended in the middle of a call. None: it did not say."""
    return stop_reason is not None and stop_reason.lower() in _BROKE_OFF


def may_be_cut(stop_reason: str | None) -> bool:
    """Whether the calls of a reply are to be looked at by `is_cut`."""
    return stop_reason is None or stop_reason.lower() in _BROKE_OFF


def is_cut(call: ToolCall, stop_reason: str | None) -> bool:
    """Whether a reply broke off in this call, so that nobody can run it: its arguments are no whole JSON object.

    Of a reply that does not say why it stopped, only those count that are no JSON at all; none are as good as `{}`.
    """
    arguments = call.arguments
    if arguments == "{}":
        return False
    if stop_reason is None and (not arguments or arguments.isspace()):
        return False
    try:
        value: object = json.loads(arguments)
    except ValueError:
        return True
    except RecursionError:  # whole or not, no request shows it
        return stop_reason is not None
    return stop_reason is not None and not isinstance(value, dict)
