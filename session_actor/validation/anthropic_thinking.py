"""Thinking, and what goes with it, in Anthropic's Messages API.

Sources: docs "Thinking" (budget; feature compatibility; which models take which type), "Errors" (prefill not
supported), "Migrating to Claude Opus 4.7" (no sampling parameters, no budgets); and what the API answers:
"`temperature` may only be set to 1 when thinking is enabled or in adaptive mode"
(github.com/dotCipher/opencode-claude-bridge/pull/1),
"`top_k` must be unset when thinking is enabled" (github.com/quarkiverse/quarkus-langchain4j/issues/1812),
"`temperature` and `top_p` cannot both be specified for this model" (github.com/open-webui/functions/pull/9),
"This model does not support assistant message prefill" (github.com/anthropics/claude-code/issues/52433),
""thinking.type.enabled" is not supported for this model" (github.com/NousResearch/hermes-agent/issues/11137).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final, cast

from .problems import as_mapping, named
from .schemas import list_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .problems import Problems

_LEAST_TOKENS: Final = 1024
_LEAST_TOP_P: Final = 0.95
_INTERLEAVED: Final = "interleaved-thinking"
"""What the name of the beta begins with."""
_TYPES: Final = ("enabled", "disabled", "adaptive", "between_tools")
_THINKS: Final = ("enabled", "adaptive")
_ONE_SAMPLER: Final = re.compile(r"claude-(?:opus-4-[15]|sonnet-4-5|haiku-4-5)(?!\d)")
_NO_SAMPLERS: Final = re.compile(r"claude-opus-4-[78](?!\d)")
_ALWAYS_AT_EFFORT: Final = re.compile(r"claude-opus-5(?!\d)")
_MOST_EFFORT: Final = ("xhigh", "max")
_NO_PREFILL: Final = re.compile(r"claude-(?:opus|sonnet)-4-[678](?!\d)")


def thinking(request: Mapping[str, Any], problems: Problems, most: int | None, *, has_tools: bool) -> None:
    """Check the settings of thinking, and the sampling beside it. `most`: max_tokens, where that is a number."""
    model = request.get("model")
    name = model if isinstance(model, str) else ""
    value = request.get("thinking")
    found = None if value is None else problems.mapping("thinking", value)
    kind = None if found is None else problems.required_text("thinking", found, "type")
    if found is not None and kind is not None:
        _config(found, kind, problems, most, between_tools=has_tools and _interleaves(request))
        if kind == "enabled" and _NO_SAMPLERS.search(name):
            problems.add("thinking.type", "conflict", "must be 'adaptive': this model takes no budget")
    effort = (as_mapping(request.get("output_config")) or {}).get("effort")
    if kind == "disabled" and effort in _MOST_EFFORT and _ALWAYS_AT_EFFORT.search(name):
        problems.add("thinking.type", "conflict", "must not be 'disabled' at this effort: this model thinks then")
    if kind in _THINKS:
        _beside(request, problems)
    _sampling(request, problems, name)


def answer_begun(request: Mapping[str, Any], problems: Problems, path: str) -> None:
    """Check that the model goes on with an answer that the last message, at `path`, begins."""
    found, model = as_mapping(request.get("thinking")), request.get("model")
    if found is not None and found.get("type") == "enabled":
        problems.add(path, "conflict", "must be a user's message: thinking goes on with no answer begun")
    elif isinstance(model, str) and _NO_PREFILL.search(model):
        problems.add(path, "last", "must be a user's message: this model goes on with no answer begun")


def _config(found: Mapping[str, Any], kind: str, problems: Problems, most: int | None, *, between_tools: bool) -> None:
    """A budget is at least 1,024 tokens, and below max_tokens: only thinking between tools may go over it."""
    if kind not in _TYPES:
        problems.add("thinking.type", "unknown", f"is {named(kind)}; it must be one of {', '.join(_TYPES)}")
    if kind != "enabled":
        if found.get("budget_tokens") is not None:
            problems.add("thinking", "unknown", "has budget_tokens, which only thinking of type 'enabled' has")
        return
    given = problems.required("thinking", found, "budget_tokens")
    budget = None if given is None else problems.positive("thinking.budget_tokens", given, _LEAST_TOKENS)
    if budget is not None and most is not None and budget >= most and not between_tools:
        problems.add("thinking.budget_tokens", "limit", "must be below max_tokens")


def _interleaves(request: Mapping[str, Any]) -> bool:
    """Whether the request itself asks for thinking between calls (docs "Extended thinking", interleaved thinking)."""
    headers = cast("Mapping[object, object]", as_mapping(request.get("extra_headers")) or {})
    asked: list[object] = [
        value for key, value in headers.items() if isinstance(key, str) and key.lower() == "anthropic-beta"
    ]
    asked += list_of(request.get("betas")) or ()
    return any(isinstance(value, str) and _INTERLEAVED in value for value in asked)


def _beside(request: Mapping[str, Any], problems: Problems) -> None:
    """What does not go with thinking."""
    choice, thinks = as_mapping(request.get("tool_choice")), as_mapping(request.get("thinking")) or {}
    if thinks.get("type") == "enabled" and choice is not None and choice.get("type") in ("any", "tool"):
        problems.add("tool_choice", "conflict", "must be 'auto' or 'none' beside thinking: it may not force a call")
    if request.get("temperature") not in (None, 1):
        problems.add("temperature", "conflict", "must be 1, or left out, beside thinking")
    if request.get("top_k") is not None:
        problems.add("top_k", "conflict", "must be left out beside thinking")
    top_p = request.get("top_p")
    if isinstance(top_p, int | float) and top_p < _LEAST_TOP_P:
        problems.add("top_p", "conflict", f"must be at least {_LEAST_TOP_P}, or left out, beside thinking")


def _sampling(request: Mapping[str, Any], problems: Problems, model: str) -> None:
    """What single models take."""
    heat, top_p = request.get("temperature"), request.get("top_p")
    if heat is not None and top_p is not None and _ONE_SAMPLER.search(model):
        problems.add("top_p", "conflict", "must not be given together with temperature: this model takes one of them")
    if not _NO_SAMPLERS.search(model) or as_mapping(request.get("thinking")):
        return
    if heat not in (None, 1):
        problems.add("temperature", "conflict", "must be left out: this model has its own")
    if request.get("top_k") is not None:
        problems.add("top_k", "conflict", "must be left out: this model has its own")
