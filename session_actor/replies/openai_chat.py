"""Replies of OpenAI's Chat Completions API, and of the many servers that speak like it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from session_actor import content
from session_actor.blocks import Text, Thinking, ToolCall
from session_actor.content import checked
from session_actor.errors import InvalidArgument
from session_actor.frames import Turn, Usage
from session_actor.plain import is_a

if TYPE_CHECKING:
    from collections.abc import Iterator

    from session_actor.blocks import Block

    from .fields import Fields


def read(reply: Fields) -> Turn:
    """The turn of a `ChatCompletion` with one choice."""
    choices = reply.many("choices")
    if len(choices) != 1:
        raise InvalidArgument(reply.at("choices"), f"must hold the one choice that goes on, got {len(choices)}")
    message = choices[0].one("message")
    if message is None:
        raise InvalidArgument(choices[0].at("message"), "is missing: a chunk of a stream is no reply")
    usage, stop_reason = _usage(reply.one("usage")), choices[0].word("finish_reason")
    return Turn("assistant", tuple(_blocks(message)), usage, reply.word("model"), "openai_chat", stop_reason)


def _blocks(message: Fields) -> Iterator[Block]:
    thought = message.word("reasoning_content") or message.word("reasoning")  # of other servers than OpenAI's
    if thought:
        yield Thinking(thought)
    yield from map(Text, filter(None, (*_said(message), message.word("refusal"))))
    yield from map(_call, message.many("tool_calls"))
    old = message.one("function_call")
    if old is not None:
        yield ToolCall("", old.text("name"), _arguments(old, "arguments"))


def _said(message: Fields) -> Iterator[str | None]:
    if is_a(message.get("content"), (list, tuple)):  # some servers give parts
        for part in message.many("content"):
            yield part.word("text") or part.word("refusal")
        return
    yield message.word("content")
    yield message.part("audio").word("transcript")


def _call(call: Fields) -> ToolCall:
    """A call; what a custom tool is given is no JSON, and kept as it is."""
    custom = call.one("custom")
    if custom is not None:
        return ToolCall(call.word("id") or "", custom.text("name"), custom.text("input"))
    function = call.one("function")
    if function is None:
        raise InvalidArgument(call.at("function"), "is missing")
    return ToolCall(call.word("id") or "", function.text("name"), _arguments(function, "arguments"))


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
