"""Replies of OpenAI's Chat Completions API, and of the many servers that speak like it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from session_actor.blocks import Native, Text, Thinking, ToolCall
from session_actor.errors import InvalidArgument
from session_actor.frames import Turn, Usage
from session_actor.given import content
from session_actor.given.content import checked
from session_actor.given.plain import is_a
from session_actor.replies.broken import may_be_cut

from .custom import custom_call
from .said_of import with_more

if TYPE_CHECKING:
    from collections.abc import Iterator

    from session_actor.blocks import Block

    from .fields import Fields

_BACK_AS_IT_CAME: Final = ("reasoning_details", "thinking_blocks", "extra_content")
"""Fields of a message that their servers want back unchanged: OpenRouter ("Preserving reasoning blocks": Gemini refuses
calls without), LiteLLM (thinking of Claude), Google ("Thought signatures", OpenAI compatibility)."""


def read(reply: Fields) -> Turn:
    """The turn of a `ChatCompletion` with one choice."""
    choices = reply.many("choices")
    if len(choices) != 1:
        raise InvalidArgument(reply.at("choices"), f"must hold the one choice that goes on, got {len(choices)}")
    message = choices[0].one("message")
    if message is None:
        raise InvalidArgument(choices[0].at("message"), "is missing: a chunk of a stream is no reply")
    usage, stop_reason = _usage(reply.one("usage")), choices[0].word("finish_reason")
    cut = may_be_cut(stop_reason)
    model = reply.word("model")
    return Turn("assistant", tuple(_blocks(message, model, cut=cut)), usage, model, "openai_chat", stop_reason)


def _blocks(message: Fields, model: str | None, *, cut: bool) -> Iterator[Block]:
    yield from _thoughts(message)  # of other servers than OpenAI's
    plain = message.plain()
    kept = {name: value for name in _BACK_AS_IT_CAME if (value := plain.get(name))}
    if kept:
        yield Native("openai_chat", model, checked(content.free, kept, message.where))
    yield from with_more([*_said(message, model)], message.some("annotations"))
    if refusal := message.word("refusal"):
        yield Text(refusal)
    calls = message.many("tool_calls")
    for place, call in enumerate(calls):
        yield _call(call, is_cut=cut and place == len(calls) - 1)
    old = message.one("function_call")
    if old is not None:
        yield ToolCall("", old.text("name"), _arguments(old, "arguments"))


def _thoughts(message: Fields) -> Iterator[Thinking]:
    if thought := message.word("reasoning_content"):
        yield Thinking(thought)
    elif thought := message.word("reasoning"):
        yield Thinking(thought, field="reasoning")


def _said(message: Fields, model: str | None) -> Iterator[Block]:
    if is_a(message.get("content"), (list, tuple)):  # some servers give parts
        for part in message.many("content"):
            if text := part.word("text") or part.word("refusal"):
                yield Text(text)
            elif not part.has("text", "refusal"):
                yield Native("openai_chat", model, part.native())
        return
    for text in (message.word("content"), message.part("audio").word("transcript")):
        if text:
            yield Text(text)


def _call(call: Fields, *, is_cut: bool) -> ToolCall:
    custom = call.one("custom")
    if custom is not None:
        return custom_call(call.word("id") or "", custom.text("name"), custom.text("input"), is_cut=is_cut)
    function = call.one("function")
    if function is None:
        raise InvalidArgument(call.at("function"), "is missing")
    signature = call.part("extra_content").part("google").word("thought_signature")
    return ToolCall(call.word("id") or "", function.text("name"), _arguments(function, "arguments"), signature)


def _arguments(function: Fields, name: str) -> str:
    given = function.get(name)
    return "" if given is None else checked(content.arguments, given, function.at(name))


def _usage(report: Fields | None) -> Usage | None:
    """What was charged: `prompt_tokens` include what came from the cache."""
    if report is None:
        return None
    sent, made = report.part("prompt_tokens_details"), report.part("completion_tokens_details")
    return Usage(
        report.count("prompt_tokens"),
        report.count("completion_tokens"),
        sent.count("cached_tokens") or report.count("prompt_cache_hit_tokens"),
        sent.count("cache_write_tokens"),
        made.count("reasoning_tokens"),
        report.verbatim(),
    )
