"""Definitions of tools, as all dialects need them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .texts import clean, free_object, wire_name

if TYPE_CHECKING:
    from collections.abc import Sequence

    from session_actor.frames import Instructions, Tool


def tools_of(instructions: Instructions | None) -> tuple[Tool, ...]:
    """The tools in force."""
    return () if instructions is None else instructions.tools


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
