"""Tools in Anthropic's Messages API, the client's and the provider's own.

Sources: docs "Define tools" (names, schemas, tool_choice), "Tool search tool" (deferred tools: not all of them, not
cached), "Web search tool" (domains either allowed or blocked), "Structured outputs" (strict tools), "MCP connector";
the SDK's types (the names of the provider's tools); and what the API answers: "Tool names must be unique", "cannot have
both defer_loading=true and cache_control set" (github.com/router-for-me/CLIProxyAPI/issues/4561).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from . import tools
from .problems import as_mapping, named
from .schemas import anthropic_schema, list_of
from .strict import anthropic_strict_schema

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .anthropic_cache import Cache
    from .problems import Problems

TOOL_NAME: Final = re.compile(r"[a-zA-Z0-9_-]{1,128}")
_OWN_NAMES: Final = {
    "bash_2": "bash",
    "code_execution_2": "code_execution",
    "computer_2": "computer",
    "memory_2": "memory",
    "text_editor_2024": "str_replace_editor",
    "text_editor_20250124": "str_replace_editor",
    "text_editor_20250429": "str_replace_based_edit_tool",
    "text_editor_20250728": "str_replace_based_edit_tool",
    "tool_search_tool_bm25": "tool_search_tool_bm25",
    "tool_search_tool_regex": "tool_search_tool_regex",
    "web_fetch_2": "web_fetch",
    "web_search_2": "web_search",
}
"""The names of the provider's own tools, by what their types begin with."""


class Tools:
    """The tools of a request."""

    def __init__(self, request: Mapping[str, Any], problems: Problems, cache: Cache) -> None:
        """Check them, and what is said of their choice."""
        self._problems = problems
        self._listed = tools.listed(problems, request)
        self._servers = _servers(request)
        self.names = tools.names_of(self._listed)
        """What they are called."""
        names: set[str] = set()
        for path, tool in self._listed:
            cache.breakpoint(path, tool)
            self._tool(path, tool, names)
        if self._listed and all(tool.get("defer_loading") is True for _, tool in self._listed):
            problems.add("tools", "conflict", "must hold a tool that is not deferred")
        self._choice(request)

    def __bool__(self) -> bool:
        """Whether there are any."""
        return bool(self._listed)

    def _tool(self, path: str, tool: Mapping[str, Any], names: set[str]) -> None:
        problems, kind, name = self._problems, tool.get("type"), tool.get("name")
        if kind in (None, "custom"):
            name = tools.tool_name(problems, path, tool, TOOL_NAME)
            if problems.required(path, tool, "input_schema") is not None:
                tools.object_schema(problems, f"{path}.input_schema", tool["input_schema"])
                anthropic_schema(problems, f"{path}.input_schema", tool["input_schema"])
            if tool.get("strict") is True:
                anthropic_strict_schema(problems, f"{path}.input_schema", tool.get("input_schema"))
        elif (text := problems.text(f"{path}.type", kind)) is not None:  # one of the provider's own
            self._own(path, text, tool)
        if isinstance(name, str):
            tools.distinct(problems, path, name, names)
        if tool.get("defer_loading") is True and tool.get("cache_control") is not None:
            problems.add(f"{path}.cache_control", "cache", "must not stand on a tool that is deferred")

    def _own(self, path: str, kind: str, tool: Mapping[str, Any]) -> None:
        wanted = next((name for start, name in _OWN_NAMES.items() if kind.startswith(start)), None)
        if wanted is not None and (name := self._problems.required_text(path, tool, "name")) not in (None, wanted):
            self._problems.add(f"{path}.name", "tool-name", f"is {named(name)}; a tool of this type is {wanted!r}")
        if tool.get("allowed_domains") is not None and tool.get("blocked_domains") is not None:
            self._problems.add(path, "conflict", "must not have both allowed_domains and blocked_domains")
        if kind == "mcp_toolset" and (server := tool.get("mcp_server_name")) not in self._servers:
            place = f"{path}.mcp_server_name"
            self._problems.add(place, "unknown", f"no server in mcp_servers is named {named(server)}")

    def _choice(self, request: Mapping[str, Any]) -> None:
        """A choice is only taken beside tools."""
        problems = self._problems
        if request.get("tool_choice") is None:
            return
        if not request.get("tools"):
            problems.add("tool_choice", "no-tools", "must not be given without tools")
        choice = problems.mapping("tool_choice", request["tool_choice"])
        if choice is None:
            return
        kind = choice.get("type")
        if kind == "tool":
            tools.chosen(problems, "tool_choice", choice, self.names)
        elif kind not in ("auto", "any", "none"):
            problems.add("tool_choice.type", "unknown", f"is {named(kind)}; it must be 'auto', 'any', 'tool' or 'none'")
        place, single = "tool_choice.disable_parallel_tool_use", choice.get("disable_parallel_tool_use")
        if single is not None and kind == "none":
            problems.add(place, "unknown", "must be left out where there are no calls")
        elif not isinstance(single, bool | None):
            problems.add(place, "type", f"must be a bool, got {named(single)}")


def _servers(request: Mapping[str, Any]) -> set[object]:
    found = map(as_mapping, list_of(request.get("mcp_servers")) or ())
    return {server["name"] for server in found if server is not None and isinstance(server.get("name"), str)}
