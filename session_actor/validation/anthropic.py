"""The rules of Anthropic's Messages API: the request around its messages.

Sources: API reference "Create a Message" (max_tokens 0 only fills the cache; at most 100,000 messages); docs "Errors"
(common validation errors), "Prompt caching" (the automatic breakpoint), "Structured outputs" (schemas that are followed
strictly).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from .anthropic_blocks import content
from .anthropic_cache import Cache
from .anthropic_thinking import answer_begun, thinking
from .anthropic_tools import Tools
from .anthropic_turns import Turns
from .anthropic_whole import Whole
from .problems import as_mapping, named
from .strict import anthropic_strict_schema

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .problems import Problems

_MOST_MESSAGES: Final = 100_000
_MESSAGE_KEYS: Final = frozenset({"role", "content"})


def check(request: Mapping[str, Any], problems: Problems) -> None:
    """Note every problem of a request."""
    problems.required_text("", request, "model", blank=False)
    limit = problems.required("", request, "max_tokens")
    most = None if limit is None else problems.positive("max_tokens", limit, 0)
    cache = Cache(problems)
    tools = Tools(request, problems, cache)
    whole = Whole(problems, cache, tools.names)
    _system(request.get("system"), problems, whole)
    thinking(request, problems, most, has_tools=bool(tools))
    turns = _messages(request, problems, whole)
    _stop(request.get("stop_sequences"), problems)
    if turns.prefill is not None:
        answer_begun(request, problems, turns.prefill)
    if turns.tool_blocks and not tools:
        problems.add("tools", "no-tools", "must be given, since the messages hold tool_use or tool_result blocks")
    whole.close(has_format=_format(request, problems))
    cache.breakpoint("request", request)  # the automatic one takes one of the four
    cache.close()


def _format(request: Mapping[str, Any], problems: Problems) -> bool:
    """Check the format of the answer; return whether it has one."""
    inside = (as_mapping(request.get("output_config")) or {}).get("format")
    for path, value in (("output_format", request.get("output_format")), ("output_config.format", inside)):
        wanted = as_mapping(value)
        if wanted is not None and wanted.get("type") == "json_schema":
            if problems.required(path, wanted, "schema") is not None:
                anthropic_strict_schema(problems, f"{path}.schema", wanted["schema"])
            return True
    return False


def _system(value: object, problems: Problems, whole: Whole) -> None:
    if value not in (None, ""):
        content(problems, whole, "system", value, ("text",))


def _stop(value: object, problems: Problems) -> None:
    if value is None:
        return
    for place, text in enumerate(problems.sequence("stop_sequences", value, filled=False) or ()):
        problems.text(f"stop_sequences[{place}]", text, blank=False)


def _messages(request: Mapping[str, Any], problems: Problems, whole: Whole) -> Turns:
    turns = Turns(problems)
    value = problems.required("", request, "messages")
    messages = () if value is None else problems.sequence("messages", value) or ()
    if len(messages) > _MOST_MESSAGES:
        problems.add("messages", "limit", f"must hold at most {_MOST_MESSAGES:,} messages")
    for place, item in enumerate(messages):
        path = f"messages[{place}]"
        message = as_mapping(item)
        if message is None:
            problems.add(path, "type", f"must be an object, got {named(item)}")
            turns.broken()
            continue
        for key in message:
            if key not in _MESSAGE_KEYS:
                problems.add(path, "unknown", f"has the key {named(key)}: a message has a role and a content")
        turns.message(path, message, whole, last=place == len(messages) - 1)
    turns.close()
    return turns
