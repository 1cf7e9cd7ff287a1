"""Replies of Anthropic's Messages API."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from session_actor.blocks import Native, Text, Thinking, ToolCall
from session_actor.errors import InvalidArgument
from session_actor.frames import Turn, Usage
from session_actor.given import content
from session_actor.given.content import checked
from session_actor.replies.broken import may_be_cut

if TYPE_CHECKING:
    from session_actor.blocks import Block

    from .fields import Fields

_CONTEXT: Final = ("message", "fallback_message")
"""Iterations that tell how long the context was."""

_APART: Final = ("compaction", "advisor_message")
"""Iterations that the numbers of the whole do not include."""


def read(reply: Fields) -> Turn:
    """The turn of a `Message`."""
    role = reply.get("role")
    if role != "assistant":
        raise InvalidArgument(reply.at("role"), "must be assistant")
    model, stop_reason = reply.word("model"), reply.word("stop_reason")
    parts = reply.many("content")
    blocks: list[Block] = []
    may_be_part = may_be_cut(stop_reason)
    for part in parts:
        block = _block(part, model, cut_off=may_be_part and part is parts[-1])
        if block is not None:
            blocks.append(block)
    return Turn("assistant", tuple(blocks), _usage(reply.one("usage")), model, "anthropic", stop_reason)


def _block(part: Fields, model: str | None, *, cut_off: bool) -> Block | None:
    """One block; None: it says nothing. `cut_off`: the reply may have ended in the middle of it."""
    kind = part.text("type")
    if kind == "text" and not part.get("citations"):
        text = part.text("text")
        return Text(text) if text else None
    if kind == "thinking":
        return Thinking(part.text("thinking"), part.word("signature"))
    if kind == "tool_use":
        written, more = _arguments(part, cut_off=cut_off), part.some("caller", "toolset_name")
        return ToolCall(part.text("id"), part.text("name"), written, more=more)
    return Native("anthropic", model, part.native(deep=False))


def _arguments(part: Fields, *, cut_off: bool) -> str:
    """The arguments as JSON text.

    The API and the SDK show what came of a call's JSON so far as a dict that is whole. When the reply ended there, at
    its longest too, nobody can know whether more was to come: the brace that the model did not write is left out again.
    """
    written = checked(content.arguments, part.get("input"), part.at("input"))
    return written[:-1] if cut_off and type(part.get("input")) is dict else written


def _usage(report: Fields | None) -> Usage | None:
    """What was charged: cache reads and writes come on top of `input_tokens` there, and are part of it here.

    `iterations`: the calls of the model behind one reply. The last says how long the context was; compactions and
    advice are not in the numbers of the whole.
    """
    if report is None:
        return None
    iterations = report.many("iterations")
    counted = [report, *(each for each in iterations if each.get("type") in _APART)]
    context = [_input(each) for each in iterations if each.get("type") in _CONTEXT]
    total = sum(map(_input, counted))
    return checked(
        content.usage,
        Usage(
            total,
            sum(each.count("output_tokens") for each in counted),
            sum(each.count("cache_read_input_tokens") for each in counted),
            sum(each.count("cache_creation_input_tokens") for each in counted),
            report.part("output_tokens_details").count("thinking_tokens"),
            report.verbatim(),
            context[-1] if context and context[-1] != total else None,
        ),
        report.where,
    )


def _input(report: Fields) -> int:
    fresh, read_ = report.count("input_tokens"), report.count("cache_read_input_tokens")
    return fresh + read_ + report.count("cache_creation_input_tokens")
