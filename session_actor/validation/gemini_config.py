"""The config of Gemini's generateContent: settings, schemas of the answer, thinking, tools and their choice.

Sources: API reference "Generating content" (GenerationConfig, at most five stop sequences; SafetySetting: one a
category) and "Caching" (Tool); docs "Thinking" (level or budget, budgets by model), "Function calling" (modes); and
what the API answers: "thinking_level is not supported by this model" (github.com/QwenLM/qwen-code/pull/9094), "Function
calling with a response mime type: 'application/json' is unsupported", "Tool use with function calling is unsupported"
(both github.com/symfony/ai/issues/803, of models before Gemini 3), "CachedContent can not be used with GenerateContent
request setting system_instruction, tools or tool_config" (github.com/BerriAI/litellm/issues/17304).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from . import tools
from .gemini_parts import field, instruction
from .problems import as_mapping, named
from .schemas import gemini_schema, list_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .problems import Problems

TOOL_NAME: Final = re.compile(r"[a-zA-Z_][a-zA-Z0-9_.:-]{0,127}")
_MODES: Final = ("MODE_UNSPECIFIED", "AUTO", "ANY", "NONE", "VALIDATED")
_MODES_THAT_NAME: Final = ("ANY", "VALIDATED")
_SCHEMAS: Final = ("response_schema", "response_json_schema")
_WITH_SCHEMA: Final = ("application/json", "text/x.enum")
_MOST_STOPS: Final = 5
_BEFORE_3: Final = re.compile(r"(?:^|/)gemini-[12](?:\.\d)?-")
_THINKS_2_5: Final = re.compile(r"(?:^|/)gemini-2\.5-(pro|flash-lite|flash)(?:-(?:preview|exp)?[0-9-]*)?")
_BUDGETS: Final = {"pro": (128, 32_768), "flash": (1, 24_576), "flash-lite": (512, 24_576)}
_FREE_BUDGETS: Final = {"pro": (-1,), "flash": (-1, 0), "flash-lite": (-1, 0)}
"""-1: as much as the model likes; 0: no thinking."""
_IN_CACHE: Final = ("system_instruction", "tools", "tool_config")


def check_config(problems: Problems, config: Mapping[str, Any], model: str) -> None:
    """Note every problem of a config for a model."""
    limit = field(config, "max_output_tokens")
    if limit is not None:
        problems.positive("config.max_output_tokens", limit)
    system = field(config, "system_instruction")
    if system is not None:
        instruction(problems, "config.system_instruction", system)
    _stops(problems, config)
    _answer(problems, config)
    _thinking(problems, config, model)
    _safety(problems, config)
    found = _Tools(problems, config)
    _choice(problems, config, found.names)
    if found.functions and _BEFORE_3.search(model):
        if found.others:
            problems.add("config.tools", "conflict", "must hold functions or the provider's own: this model takes one")
        if field(config, "response_mime_type") == "application/json":
            problems.add("config.response_mime_type", "conflict", "must not be JSON beside functions of this model")
    if field(config, "cached_content") is not None:
        for key in _IN_CACHE:
            if field(config, key) is not None:
                problems.add(f"config.{key}", "conflict", "must stand in the cached content itself")


def _stops(problems: Problems, config: Mapping[str, Any]) -> None:
    value = field(config, "stop_sequences")
    listed = () if value is None else problems.sequence("config.stop_sequences", value, filled=False) or ()
    if len(listed) > _MOST_STOPS:
        problems.add("config.stop_sequences", "limit", f"must hold at most {_MOST_STOPS} texts")
    for place, text in enumerate(listed):
        problems.text(f"config.stop_sequences[{place}]", text)


def _answer(problems: Problems, config: Mapping[str, Any]) -> None:
    """Check what is asked of the answer."""
    given = [key for key in _SCHEMAS if field(config, key) is not None]
    kind = field(config, "response_mime_type")
    for key in given:
        if kind is None:
            problems.add("config.response_mime_type", "missing", f"must be given beside {key}")
        elif kind not in _WITH_SCHEMA:
            problems.add("config.response_mime_type", "conflict", f"must be one of {', '.join(_WITH_SCHEMA)}")
    if len(given) > 1:
        problems.add("config.response_schema", "conflict", "must not be given together with response_json_schema")
    gemini_schema(problems, "config.response_schema", field(config, "response_schema"))
    if field(config, "logprobs") is not None and field(config, "response_logprobs") is not True:
        problems.add("config.response_logprobs", "missing", "must be true beside logprobs")


def _thinking(problems: Problems, config: Mapping[str, Any], model: str) -> None:
    """Check that thinking has a level or a budget, as the model takes it."""
    value = field(config, "thinking_config")
    found = None if value is None else problems.mapping("config.thinking_config", value)
    if found is None:
        return
    level, budget = field(found, "thinking_level"), field(found, "thinking_budget")
    path = "config.thinking_config"
    if level is not None and budget is not None:
        problems.add(path, "conflict", "must not have both a thinking_level and a thinking_budget")
    elif level is not None and _BEFORE_3.search(model):
        problems.add(f"{path}.thinking_level", "conflict", "must be a thinking_budget: this model takes no level")
    if budget is None:
        return
    if not isinstance(budget, int) or isinstance(budget, bool):
        problems.add(f"{path}.thinking_budget", "type", f"must be an int, got {named(budget)}")
        return
    kind = _THINKS_2_5.search(model)
    name = kind[1] if kind is not None and kind.end() == len(model) else None
    low, high = _BUDGETS[name] if name else (-1, budget)
    if budget not in _FREE_BUDGETS.get(name or "", ()) and not low <= budget <= high:
        most = f" to {high:,}" if name else ""
        problems.add(f"{path}.thinking_budget", "limit", f"must be from {low:,}{most} for this model")


def _safety(problems: Problems, config: Mapping[str, Any]) -> None:
    """Check that no category has two settings."""
    seen: set[str] = set()
    for place, item in enumerate(list_of(field(config, "safety_settings")) or ()):
        category = (as_mapping(item) or {}).get("category")
        word = str(getattr(category, "value", category))
        if category is not None and word in seen:
            problems.add(f"config.safety_settings[{place}]", "conflict", f"{named(word)} has a setting already")
        seen.add(word)


def _choice(problems: Problems, config: Mapping[str, Any], names: set[str]) -> None:
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


class _Tools:
    """The tools of a config."""

    def __init__(self, problems: Problems, config: Mapping[str, Any]) -> None:
        self._problems = problems
        self.names: set[str] = set()
        self.functions = self.others = False
        """Whether there are functions, and tools of the provider's own."""
        value = config.get("tools")
        listed = () if value is None else problems.sequence("config.tools", value, filled=False) or ()
        for place, item in enumerate(listed):
            tool = as_mapping(item)
            if tool is not None:
                self._tool(f"config.tools[{place}]", tool)
            elif callable(item) or hasattr(item, "list_tools"):  # the SDK makes declarations of functions and of MCP
                self.names.add(getattr(item, "__name__", ""))
                self.functions = True
            else:
                problems.add(f"config.tools[{place}]", "type", f"must be a Tool, got {named(item)}")

    def _tool(self, path: str, tool: Mapping[str, Any]) -> None:
        problems, declarations = self._problems, field(tool, "function_declarations")
        given = [key for key, value in tool.items() if value is not None]
        if not given:
            problems.add(path, "empty", "must hold functions or a tool of the provider's own")
        self.functions = self.functions or declarations is not None
        self.others = self.others or len(given) > (declarations is not None)
        place = f"{path}.function_declarations"
        for number, item in enumerate(() if declarations is None else problems.sequence(place, declarations) or ()):
            declaration = problems.mapping(f"{place}[{number}]", item)
            if declaration is not None:
                self._declaration(f"{place}[{number}]", declaration)

    def _declaration(self, path: str, declaration: Mapping[str, Any]) -> None:
        problems = self._problems
        tools.distinct(problems, path, tools.tool_name(problems, path, declaration, TOOL_NAME), self.names)
        plain, json_schema = field(declaration, "parameters"), field(declaration, "parameters_json_schema")
        if plain is not None and json_schema is not None:
            problems.add(path, "schema", "must not have both parameters and parameters_json_schema")
        if plain is not None:
            tools.object_schema(problems, f"{path}.parameters", plain, any_case=True)
            gemini_schema(problems, f"{path}.parameters", plain)
        if json_schema is not None:
            tools.object_schema(problems, f"{path}.parameters_json_schema", json_schema)
