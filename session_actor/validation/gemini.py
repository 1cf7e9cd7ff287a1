"""The rules of Gemini's generateContent, as google-genai takes it: model, contents, config.

Keys may be written in snake_case (as the SDK does) or in camelCase (as the REST API does). Sources: API reference
"Generating content" and "Caching" (Content, Part, Tool), docs "Function calling", "Thought signatures" (sent back as
they came), "Image understanding", "Document processing".
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from . import tools
from .gemini_parts import field, instruction
from .gemini_turns import Turns
from .problems import as_mapping, named

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .problems import Problems

TOOL_NAME: Final = re.compile(r"[a-zA-Z_][a-zA-Z0-9_.:-]{0,127}")
_MODES: Final = ("MODE_UNSPECIFIED", "AUTO", "ANY", "NONE", "VALIDATED")
_MODES_THAT_NAME: Final = ("ANY", "VALIDATED")
_SIGNS: Final = re.compile(r"gemini-(?:[3-9]|\d{2})(?!.*image)")


def check(request: Mapping[str, Any], problems: Problems) -> None:
    """Note every problem of a request."""
    problems.required_text("", request, "model", blank=False)
    if request.get("config") is not None:
        config = problems.mapping("config", request["config"])
        if config is not None:
            _config(config, problems)
    value = problems.required("", request, "contents")
    if value is None:
        return
    if isinstance(value, str):  # one turn of the user
        problems.text("contents", value)
        return
    contents = problems.sequence("contents", value) or ()
    model = request.get("model")
    signs = isinstance(model, str) and _SIGNS.search(model) is not None
    turns = Turns(problems, TOOL_NAME, asks_signature=signs)
    for place, item in enumerate(contents):
        path = f"contents[{place}]"
        if isinstance(item, str) and place and isinstance(contents[place - 1], str):
            problems.text(path, item)  # the SDK makes one content of the user's of those that stand together
            continue
        content = {"role": "user", "parts": [{"text": item}]} if isinstance(item, str) else as_mapping(item)
        if content is None:
            problems.add(path, "type", f"must be a Content, got {named(item)}")
            turns.broken()
        else:
            turns.content(path, content, alone=len(contents) == 1)
    turns.close()


def _config(config: Mapping[str, Any], problems: Problems) -> None:
    limit = field(config, "max_output_tokens")
    if limit is not None:
        problems.positive("config.max_output_tokens", limit)
    system = field(config, "system_instruction")
    if system is not None:
        instruction(problems, "config.system_instruction", system)
    if field(config, "candidate_count") is not None:
        problems.positive("config.candidate_count", field(config, "candidate_count"))
    for key in ("response_schema", "response_json_schema"):
        if field(config, key) is not None and field(config, "response_mime_type") is None:
            problems.add("config.response_mime_type", "missing", f"must be given beside {key}")
    names: set[str] = set()
    listed = config.get("tools")
    for place, item in enumerate(
        () if listed is None else problems.sequence("config.tools", listed, filled=False) or ()
    ):
        path = f"config.tools[{place}]"
        tool = as_mapping(item)
        if tool is not None:
            _tool(path, tool, problems, names)
        elif callable(item):  # the SDK takes functions, and makes their declarations
            names.add(getattr(item, "__name__", ""))
        else:
            problems.add(path, "type", f"must be a Tool, got {named(item)}")
    _choice(config, problems, names)


def _choice(config: Mapping[str, Any], problems: Problems, names: set[str]) -> None:
    """Check which functions the model may or must call (docs "Function calling", modes)."""
    settings = as_mapping(field(config, "tool_config"))
    calling = None if settings is None else as_mapping(field(settings, "function_calling_config"))
    if calling is None:
        return
    path = "config.tool_config.function_calling_config"
    mode = calling.get("mode")
    word = mode.upper() if isinstance(mode, str) else mode
    if word not in (None, *_MODES):
        problems.add(f"{path}.mode", "unknown", f"is {named(mode)}; it must be one of {', '.join(_MODES)}")
        return
    allowed = field(calling, "allowed_function_names")
    if allowed is None:
        return
    where = f"{path}.allowed_function_names"
    if word not in _MODES_THAT_NAME:
        problems.add(where, "conflict", f"may only be given in the modes {', '.join(_MODES_THAT_NAME)}")
    for place, name in enumerate(problems.sequence(where, allowed, filled=False) or ()):
        if not isinstance(name, str) or name not in names:
            problems.add(f"{where}[{place}]", "unknown", f"no function is named {named(name)}")


def _tool(path: str, tool: Mapping[str, Any], problems: Problems, names: set[str]) -> None:
    declarations = field(tool, "function_declarations")
    if declarations is None:  # one of the provider's own
        if all(value is None for value in tool.values()):
            problems.add(path, "empty", "must hold functions or a tool of the provider's own")
        return
    place = f"{path}.function_declarations"
    for number, item in enumerate(problems.sequence(place, declarations) or ()):
        where = f"{place}[{number}]"
        declaration = problems.mapping(where, item)
        if declaration is None:
            continue
        tools.distinct(problems, where, tools.tool_name(problems, where, declaration, TOOL_NAME), names)
        plain, json_schema = field(declaration, "parameters"), field(declaration, "parameters_json_schema")
        if plain is not None and json_schema is not None:
            problems.add(where, "schema", "must not have both parameters and parameters_json_schema")
        if plain is not None:
            tools.object_schema(problems, f"{where}.parameters", plain, any_case=True)
        if json_schema is not None:
            tools.object_schema(problems, f"{where}.parameters_json_schema", json_schema)
