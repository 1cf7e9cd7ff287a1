"""The rules of Anthropic's Messages API: the request around its messages.

Sources: API reference "Create a Message"; docs "Errors" (common validation errors), "Prompt caching" (at most four
breakpoints; longer ones first), "Define tools" (names and schemas), "Thinking" (budget), "Mid-conversation system
messages".
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final, cast

from . import tools
from .anthropic_blocks import Cache, content
from .anthropic_turns import Turns
from .problems import as_mapping, named

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .problems import Problems

TOOL_NAME: Final = re.compile(r"[a-zA-Z0-9_-]{1,128}")
_LEAST_THINKING_TOKENS: Final = 1024
_INTERLEAVED: Final = "interleaved-thinking"
"""What the name of the beta begins with."""
_MESSAGE_KEYS: Final = frozenset({"role", "content"})


def check(request: Mapping[str, Any], problems: Problems) -> None:
    """Note every problem of a request."""
    problems.required_text("", request, "model", blank=False)
    limit = problems.required("", request, "max_tokens")
    most = None if limit is None else problems.positive("max_tokens", limit)
    cache = Cache(problems)
    own = _tools(request, problems, cache)
    _system(request.get("system"), problems, cache)
    _thinking(request.get("thinking"), most, problems, between_tools=own and _interleaves(request))
    turns = _messages(request, problems, cache)
    _stop(request.get("stop_sequences"), problems)
    _beside_thinking(request, problems, turns)
    if turns.tool_blocks and not own:
        problems.add("tools", "no-tools", "must be given, since the messages hold tool_use or tool_result blocks")
    cache.breakpoint("request", request)  # the automatic one takes one of the four
    cache.close()


def _tools(request: Mapping[str, Any], problems: Problems, cache: Cache) -> bool:
    names: set[str] = set()
    listed = tools.listed(problems, request)
    for path, tool in listed:
        cache.breakpoint(path, tool)
        if tool.get("type") in (None, "custom"):
            name = tools.tool_name(problems, path, tool, TOOL_NAME)
            tools.distinct(problems, path, name, names)
            if problems.required(path, tool, "input_schema") is not None:
                tools.object_schema(problems, f"{path}.input_schema", tool["input_schema"])
        else:  # one of the provider's own
            problems.text(f"{path}.type", tool["type"])
    _choice(request, problems, tools.names_of(listed))
    return bool(listed)


def _choice(request: Mapping[str, Any], problems: Problems, known: set[str]) -> None:
    """A choice is only taken beside tools."""
    if request.get("tool_choice") is None:
        return
    if not request.get("tools"):
        problems.add("tool_choice", "no-tools", "must not be given without tools")
    choice = problems.mapping("tool_choice", request["tool_choice"])
    if choice is None:
        return
    kind = choice.get("type")
    if kind == "tool":
        tools.chosen(problems, "tool_choice", choice, known)
    elif kind not in ("auto", "any", "none"):
        problems.add("tool_choice.type", "unknown", f"is {named(kind)}; it must be 'auto', 'any', 'tool' or 'none'")


def _system(value: object, problems: Problems, cache: Cache) -> None:
    if value is None:
        return
    content(problems, cache, "system", value, ("text",))


def _interleaves(request: Mapping[str, Any]) -> bool:
    """Whether the request itself asks for thinking between calls (docs "Extended thinking", interleaved thinking)."""
    headers = cast("Mapping[object, object]", as_mapping(request.get("extra_headers")) or {})
    asked = [value for key, value in headers.items() if isinstance(key, str) and key.lower() == "anthropic-beta"]
    betas = request.get("betas")
    asked += betas if isinstance(betas, list | tuple) else ()
    return any(isinstance(value, str) and _INTERLEAVED in value for value in asked)


def _thinking(value: object, most: int | None, problems: Problems, *, between_tools: bool) -> None:
    """A budget is at least 1,024 tokens, and below max_tokens: only thinking between tools may go over it."""
    if value is None:
        return
    thinking = problems.mapping("thinking", value)
    if thinking is None:
        return
    kind = problems.required_text("thinking", thinking, "type")
    if kind != "enabled":
        return
    given = problems.required("thinking", thinking, "budget_tokens")
    budget = None if given is None else problems.positive("thinking.budget_tokens", given, _LEAST_THINKING_TOKENS)
    if budget is not None and most is not None and budget >= most and not between_tools:
        problems.add("thinking.budget_tokens", "limit", "must be below max_tokens")


def _stop(value: object, problems: Problems) -> None:
    if value is None:
        return
    for place, text in enumerate(problems.sequence("stop_sequences", value, filled=False) or ()):
        problems.text(f"stop_sequences[{place}]", text, blank=False)


def _beside_thinking(request: Mapping[str, Any], problems: Problems, turns: Turns) -> None:
    """What does not go with thinking (docs "Thinking", feature compatibility)."""
    thinking = as_mapping(request.get("thinking"))
    if thinking is None or thinking.get("type") != "enabled":
        return
    choice = as_mapping(request.get("tool_choice"))
    if choice is not None and choice.get("type") in ("any", "tool"):
        problems.add("tool_choice", "conflict", "must be 'auto' or 'none' beside thinking: it may not force a call")
    if request.get("temperature") not in (None, 1):
        problems.add("temperature", "conflict", "must be 1, or left out, beside thinking")
    if turns.prefill is not None:
        problems.add(turns.prefill, "conflict", "must be a user's message: thinking goes on with no answer begun")


def _messages(request: Mapping[str, Any], problems: Problems, cache: Cache) -> Turns:
    turns = Turns(problems)
    value = problems.required("", request, "messages")
    messages = () if value is None else problems.sequence("messages", value) or ()
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
        turns.message(path, message, cache, last=place == len(messages) - 1)
    turns.close()
    return turns
