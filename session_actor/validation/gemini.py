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
        content = as_mapping(item)
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
    names: set[str] = set()
    listed = config.get("tools")
    for place, item in enumerate(
        () if listed is None else problems.sequence("config.tools", listed, filled=False) or ()
    ):
        path = f"config.tools[{place}]"
        tool = as_mapping(item)
        if tool is not None:
            _tool(path, tool, problems, names)
        elif not callable(item):  # the SDK takes functions, and makes their declarations
            problems.add(path, "type", f"must be a Tool, got {named(item)}")


def _tool(path: str, tool: Mapping[str, Any], problems: Problems, names: set[str]) -> None:
    declarations = field(tool, "function_declarations")
    if declarations is None:  # one of the provider's own
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
