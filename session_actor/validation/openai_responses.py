"""The rules of OpenAI's Responses API.

Sources: API reference "Create a model response" (items of the input; max_output_tokens is at least 16); docs "Function
calling", "Reasoning" (keep reasoning items with the calls that follow them; encrypted content when nothing is stored);
and what the API answers: "No tool output found for function call", "No tool call found for function call output",
"Item of type 'reasoning' was provided without its required following item" (github.com/vercel/ai/issues/7099),
"Duplicate item found with id", ids "string too long. Expected a string with maximum length 64".
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from . import tools
from .problems import as_mapping, named
from .responses_items import Items

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .problems import Problems

TOOL_NAME: Final = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_LEAST_OUTPUT_TOKENS: Final = 16
_CHOICES: Final = ("none", "auto", "required")


def check(request: Mapping[str, Any], problems: Problems) -> None:
    """Note every problem of a request."""
    problems.required_text("", request, "model", blank=False)
    if request.get("max_output_tokens") is not None:
        problems.positive("max_output_tokens", request["max_output_tokens"], _LEAST_OUTPUT_TOKENS)
    if request.get("instructions") is not None:
        problems.text("instructions", request["instructions"])
    _tools(request, problems)
    value = problems.required("", request, "input")
    if value is None:
        return
    if isinstance(value, str):  # one message of the user
        problems.text("input", value)
        return
    linked = any(request.get(key) is not None for key in ("previous_response_id", "conversation"))
    items = Items(problems, TOOL_NAME, stored=request.get("store") is not False, linked=linked)
    listed = problems.sequence("input", value) or ()
    for place, item in enumerate(listed):
        items.item(f"input[{place}]", item)
    if listed:
        items.close()


def _tools(request: Mapping[str, Any], problems: Problems) -> None:
    names: set[str] = set()
    listed = tools.listed(problems, request)
    for path, tool in listed:
        kind = problems.required_text(path, tool, "type")
        if kind not in ("function", "custom"):  # the provider's own
            continue
        tools.distinct(problems, path, tools.tool_name(problems, path, tool, TOOL_NAME), names)
        if tool.get("parameters") is not None:  # without them it takes none
            tools.object_schema(problems, f"{path}.parameters", tool["parameters"])
        if not isinstance(tool.get("strict"), bool | None):
            problems.add(f"{path}.strict", "type", f"must be a bool, got {named(tool['strict'])}")
    if request.get("tool_choice") == "required" and not listed:
        problems.add("tool_choice", "no-tools", "must not be 'required' without tools")
    _choice(request.get("tool_choice"), problems, tools.names_of(listed))


def _choice(value: object, problems: Problems, known: set[str]) -> None:
    choice = as_mapping(value)
    if choice is None:
        if value not in (None, *_CHOICES):
            problems.add(
                "tool_choice", "unknown", f"is {named(value)}; it must be one of {', '.join(_CHOICES)}, or a tool"
            )
    elif choice.get("type") == "function":
        tools.chosen(problems, "tool_choice", choice, known)
