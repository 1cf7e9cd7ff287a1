"""Definitions of tools, as all dialects need them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final, cast

from session_actor.errors import InvalidArgument
from session_actor.given.plain import shown
from session_actor.models.profiles import key

from .texts import clean, free_object, wire_name

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from session_actor.blocks import Native
    from session_actor.frames import Instructions, Tool


_NAMES: Final = {
    "anthropic": re.compile(r"[a-zA-Z0-9_-]{1,128}"),
    "gemini": re.compile(r"[a-zA-Z_][a-zA-Z0-9_.:-]{0,127}"),
    "openai_chat": re.compile(r"[a-zA-Z0-9_-]{1,64}"),
    "openai_responses": re.compile(r"[a-zA-Z0-9_-]{1,64}"),
}
"""The names of tools that each dialect takes (the API references: tools, function declarations)."""


_MOST: Final = 128
"""What OpenAI answers to more in Chat Completions: "Invalid 'tools': array too long. Expected an array with maximum
length 128" (github.com/zed-industries/zed/issues/42393). Other servers of that dialect take more."""
_OF_OPENAI: Final = re.compile(r"(?:chat)?gpt-(?!oss)|o\d(?:-|$)")


def check_number(instructions: Instructions | None, dialect: str, model: str) -> None:
    """Raise `InvalidArgument` for more tools than OpenAI takes: only the embedder knows which the model can do without.

    `model`: who is asked.
    """
    if dialect != "openai_chat" or instructions is None or not _OF_OPENAI.match(key(model)):
        return
    count = len(instructions.tools) + len(native_tools_of(instructions, dialect, model))
    if count > _MOST:
        raise InvalidArgument(
            "tools",
            f"are {count}: {model} takes {_MOST} at most; configure(tools=[…]) with fewer, or ask in another dialect",
        )


def check_distinct(instructions: Instructions | None, dialect: str, model: str) -> None:
    """Raise `InvalidArgument` for a tool with the name of one of the provider's own: "Tool names must be unique"."""
    own = {_name_of(tool) for tool in native_tools_of(instructions, dialect, model)}
    for place, tool in enumerate(tools_of(instructions) if own else ()):
        if tool.name in own:
            raise InvalidArgument(
                f"tools[{place}].name",
                f"is {shown(tool.name)}, as one of {dialect}'s own tools; configure(tools=[…]) with another name",
            )


def _name_of(tool: dict[str, Any]) -> object:
    """The name of a provider's own tool, if it has one; Chat Completions has it one level deeper."""
    kind = tool.get("type")
    inner = tool.get(kind) if isinstance(kind, str) else None
    return cast("dict[str, Any]", inner).get("name") if isinstance(inner, dict) else tool.get("name")


def check_names(instructions: Instructions | None, dialect: str) -> None:
    """Raise `InvalidArgument` for a tool whose name the dialect refuses: it comes back in calls, so it must stay."""
    form = _NAMES[dialect]
    for place, tool in enumerate(tools_of(instructions)):
        if not form.fullmatch(tool.name):
            raise InvalidArgument(
                f"tools[{place}].name",
                f"is {shown(tool.name)}: {dialect} takes only what matches {form.pattern}; configure(tools=[…]) with "
                "another name",
            )


def tools_of(instructions: Instructions | None) -> tuple[Tool, ...]:
    """The tools in force."""
    return () if instructions is None else instructions.tools


def native_tools_of(instructions: Instructions | None, dialect: str, model: str) -> list[dict[str, Any]]:
    """The tools in force that the provider of this dialect runs itself, verbatim."""
    if instructions is None:
        return []
    return [free_object(tool.raw) or {} for tool in instructions.native_tools if is_offered(tool, dialect, model)]


def offered(
    instructions: Instructions | None, dialect: str, model: str, form: Callable[[Tool], dict[str, Any]]
) -> list[dict[str, Any]]:
    """All tools that a request of this dialect offers: the provider's own, then the embedder's, each in its form."""
    return native_tools_of(instructions, dialect, model) + [form(tool) for tool in tools_of(instructions)]


def is_offered(tool: Native, dialect: str, model: str) -> bool:
    """Whether a provider's own tool is one of this dialect and model."""
    return tool.dialect == dialect and tool.model in (None, model)


def system_of(instructions: Instructions | None) -> str:
    """The system prompt as it is sent; `""`: none, or a blank one."""
    return "" if instructions is None or not instructions.system.strip() else clean(instructions.system)


def schema_of(tool: Tool) -> tuple[dict[str, Any], bool]:
    """The JSON schema of the tool's arguments, and whether it asks for strict decoding.

    Providers want an object with properties: both are put in where they are missing. A key `strict` beside the schema's
    own is no JSON schema: it is the switch that OpenAI and Anthropic have for a tool.
    """
    schema = free_object(tool.schema) or {}
    strict = schema.pop("strict", False) is True
    schema.setdefault("type", "object")
    schema.setdefault("properties", {})
    return schema, strict


def described(tool: Tool) -> dict[str, Any]:
    """Name and description; a tool without a description has none."""
    return {"name": tool.name, "description": clean(tool.description)} if tool.description else {"name": tool.name}


def names_of(tools_used: Sequence[str]) -> list[str]:
    """The names that calls have on the wire, each once, in a fixed order."""
    return sorted({wire_name(name) for name in tools_used})
