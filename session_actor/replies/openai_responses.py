"""Replies of OpenAI's Responses API."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from session_actor.blocks import Native, Text, ToolCall
from session_actor.frames import Turn, Usage
from session_actor.given import content
from session_actor.given.content import checked
from session_actor.replies.broken import may_be_cut

from .custom import custom_call

if TYPE_CHECKING:
    from collections.abc import Iterator

    from session_actor.blocks import Block

    from .fields import Fields

_UNFINISHED: Final = ("in_progress", "queued")
_TEXTS: Final = {"output_text": "text", "refusal": "refusal"}
"""The parts of a message that are text, and where they have it."""


def read(reply: Fields) -> Turn:
    """The turn of a `Response`."""
    model = reply.word("model")
    items, stop_reason = reply.many("output"), _stop_reason(reply)
    last = len(items) - 1 if may_be_cut(stop_reason) else -1
    blocks = tuple(block for place, item in enumerate(items) for block in _blocks(item, model, is_cut=place == last))
    return Turn("assistant", blocks, _usage(reply.one("usage")), model, "openai_responses", stop_reason)


def _stop_reason(reply: Fields) -> str | None:
    """Why it is incomplete, if it is; else its status; None while it is being made."""
    status = reply.word("status")
    if status == "incomplete":
        return reply.part("incomplete_details").word("reason") or status
    return None if status in _UNFINISHED else status


def _blocks(item: Fields, model: str | None, *, is_cut: bool) -> Iterator[Block]:
    kind = item.text("type")
    if kind == "message":
        yield from _said(item, model)
    elif kind == "function_call":
        more = item.some("caller", "namespace")
        yield ToolCall(item.text("call_id"), item.text("name"), item.word("arguments") or "", more=more)
    elif kind == "custom_tool_call":
        yield custom_call(item.text("call_id"), item.text("name"), item.word("input") or "", is_cut=is_cut)
    else:
        yield Native("openai_responses", model, item.native())


def _said(message: Fields, model: str | None) -> Iterator[Block]:
    """What a message says; a part of a kind that is not known is a message of its own, verbatim."""
    phase = message.word("phase")
    for part in message.many("content"):
        key = _TEXTS.get(part.text("type"))
        if key is None:
            alone = {"type": "message", "role": "assistant", "content": [part.plain()]}
            yield Native("openai_responses", model, checked(content.free, alone, part.where))
        elif text := part.word(key):
            yield Text(text, phase=phase, more=part.some("annotations"))


def _usage(report: Fields | None) -> Usage | None:
    """What was charged: `input_tokens` include what came from the cache."""
    if report is None:
        return None
    sent = report.part("input_tokens_details")
    return Usage(
        report.count("input_tokens"),
        report.count("output_tokens"),
        sent.count("cached_tokens"),
        sent.count("cache_write_tokens"),
        report.part("output_tokens_details").count("reasoning_tokens"),
        report.verbatim(),
    )
