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
from .openai_answers import json_word, sampling
from .openai_choices import choice
from .openai_content import long_text
from .problems import as_mapping, named
from .responses_items import Items
from .schemas import openai_schema
from .strict import response_format, strict_schema

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .problems import Problems

TOOL_NAME: Final = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_LEAST_OUTPUT_TOKENS: Final = 16
_INCLUDABLE: Final = frozenset({
    "code_interpreter_call.outputs", "computer_call_output.output.image_url", "file_search_call.results",
    "message.input_image.image_url", "message.output_text.logprobs", "reasoning.encrypted_content",
    "web_search_call.action.sources", "web_search_call.results",
})  # fmt: skip
_HIDDEN: Final = "reasoning.encrypted_content"
_NO_REASONING: Final = re.compile(r"(?:^|/)(?:gpt-4o|gpt-4\.1|chatgpt-4o|gpt-5-chat)(?!\d)")
"""Models that do not reason: "Encrypted content is not supported with this model"
(github.com/pydantic/pydantic-ai/issues/2865, github.com/miquido/draive/issues/399)."""
_BESIDE: Final = {"file_search": "vector_store_ids", "code_interpreter": "container", "mcp": "server_label"}
"""What a tool of the provider's own cannot be without."""
_SERVERS: Final = ("server_url", "connector_id", "tunnel_id")


def check(request: Mapping[str, Any], problems: Problems) -> None:
    """Note every problem of a request."""
    has_prompt = request.get("prompt") is not None  # one that the provider keeps: with its own model and messages
    if not has_prompt or request.get("model") is not None:
        problems.required_text("", request, "model", blank=False)
    if request.get("max_output_tokens") is not None:
        problems.positive("max_output_tokens", request["max_output_tokens"], _LEAST_OUTPUT_TOKENS)
    if request.get("instructions") is not None:
        problems.text("instructions", request["instructions"])
    _tools(request, problems)
    _stored(request, problems)
    linked = any(request.get(key) is not None for key in ("previous_response_id", "conversation"))
    _answer(request, problems, whole=not linked and not has_prompt)
    sampling(problems, request)
    value = request.get("input") if has_prompt else problems.required("", request, "input")
    if value is None:
        return
    if isinstance(value, str):  # one message of the user
        problems.text("input", value)
        long_text(problems, "input", value)
        return
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
            _own(problems, path, tool)
            continue
        tools.distinct(problems, path, tools.tool_name(problems, path, tool, TOOL_NAME), names)
        if tool.get("parameters") is not None:  # without them it takes none
            tools.object_schema(problems, f"{path}.parameters", tool["parameters"])
            openai_schema(problems, f"{path}.parameters", tool["parameters"])
        if tool.get("strict") is True:
            strict_schema(problems, f"{path}.parameters", tool.get("parameters"))
        if not isinstance(tool.get("strict"), bool | None):
            problems.add(f"{path}.strict", "type", f"must be a bool, got {named(tool['strict'])}")
    if request.get("tool_choice") == "required" and not listed:
        problems.add("tool_choice", "no-tools", "must not be 'required' without tools")
    choice(problems, request.get("tool_choice"), tools.names_of(listed), nested=False)


def _own(problems: Problems, path: str, tool: Mapping[str, Any]) -> None:
    kind = tool.get("type")
    if isinstance(kind, str) and kind in _BESIDE:
        problems.required(path, tool, _BESIDE[kind])
    if kind == "file_search" and tool.get("vector_store_ids") is not None:
        problems.sequence(f"{path}.vector_store_ids", tool["vector_store_ids"])
    if kind == "mcp" and all(tool.get(key) is None for key in _SERVERS):
        problems.add(path, "source", f"must have one of {', '.join(_SERVERS)}")


def _stored(request: Mapping[str, Any], problems: Problems) -> None:
    """Check what the provider shall keep, and go on from."""
    if request.get("previous_response_id") is not None and request.get("conversation") is not None:
        problems.add("previous_response_id", "conflict", "must not be given together with conversation")
    if request.get("background") is True and request.get("store") is False:
        problems.add("background", "conflict", "must not be true where store is false: nobody could fetch the answer")


def _answer(request: Mapping[str, Any], problems: Problems, *, whole: bool) -> None:
    """Check what is asked of the answer. `whole`: all that is said is in the request."""
    include, model = request.get("include"), request.get("model")
    if include is not None:
        for place, name in enumerate(problems.sequence("include", include, filled=False) or ()):
            if not isinstance(name, str) or name not in _INCLUDABLE:
                problems.add(f"include[{place}]", "unknown", f"is {named(name)}, which cannot be included")
            elif name == _HIDDEN and isinstance(model, str) and _NO_REASONING.search(model):
                problems.add(f"include[{place}]", "conflict", "must be left out: this model does not reason")
    text = as_mapping(request.get("text"))
    wanted = None if text is None else as_mapping(text.get("format"))
    if wanted is not None and wanted.get("type") == "json_schema":
        response_format(problems, "text.format", wanted)
    elif wanted is not None and wanted.get("type") == "json_object" and whole:
        json_word(problems, "input", "text.format", (request.get("input"), request.get("instructions")))
