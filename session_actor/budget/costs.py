"""What the parts of a request cost [tokens], before any calibration: estimates that never look at base64.

All is linear in the length of the content. What the model gets as text is counted by the estimator of its tokenizer
family, images by their pixels, documents by their pages, the rest by the constants of `tokens.overhead`.
"""

from __future__ import annotations

import json
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, cast

import msgspec

from session_actor.blocks import NULL, Document, Image, Native, Text, Thinking, ToolCall
from session_actor.ledger.entries import ResultsEntry
from session_actor.requests.tools import is_offered
from session_actor.tokens.estimate import estimate_tokens
from session_actor.tokens.overhead import OVERHEADS

from .media_costs import document_cost, image_cost
from .native_costs import opaque_cost, value_cost

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from session_actor.blocks import Block
    from session_actor.frames import Instructions
    from session_actor.ledger.entries import Entry, ShownResult, Target
    from session_actor.models.profile import ModelProfile
    from session_actor.tokens.overhead import Overhead

NOT_PROMPT: Final = frozenset({
    "extra_headers", "extra_query", "http_options", "include", "logit_bias", "metadata", "modalities",
    "prediction", "safety_settings", "stop", "stop_sequences", "stream_options", "timeout", "user",
})  # fmt: skip
"""Keys of `extra` that change how a model is run, and are no part of what it reads."""


class Fixed(msgspec.Struct, frozen=True, gc=False):
    """What every request costs before a word of the conversation [tokens]."""

    system: int
    """The system prompt; 0: none."""
    tools: int
    """The tools with their schemas, and what the provider adds when there are tools; 0: none."""
    request: int
    """What surrounds the conversation."""

    @property
    def total(self) -> int:
        """All of it."""
        return self.system + self.tools + self.request


def cost_of(entries: Iterable[Entry], target: Target, profile: ModelProfile) -> int:
    """Return what entries cost in a request for this target.

    A chunk may be counted alone: the cost of several is the sum of their costs. Thinking and native blocks are counted
    as they are sent; what is encrypted in them (signatures, encrypted reasoning) counts as the text that it holds.

    Args:
        entries: whole chunks of the ledger, or a single entry.
        target: whom the request is for.
        profile: of the target's model.

    Returns:
        Tokens; 0 for no entries.

    Raises:
        InvalidArgument: the target's family or dialect is none that is known.
    """
    overhead = _overhead(target)
    return sum(_entry(entry, target.family, overhead, profile.image_rule) for entry in entries)


def cost_of_instructions(instructions: Instructions | None, target: Target, profile: ModelProfile) -> Fixed:
    """Return what instructions cost in every request, and what a request costs besides.

    A tool counts as the JSON text of its name, description and schema, which is at least what providers make of it.

    Args:
        instructions: as configured; None: none.
        target: whom the request is for.
        profile: of the target's model.

    Returns:
        The parts.

    Raises:
        InvalidArgument: the target's family or dialect is none that is known.
    """
    overhead, family = _overhead(target), target.family
    if instructions is None:
        return Fixed(0, 0, overhead.request)
    system = estimate_tokens(instructions.system, family) + overhead.message if instructions.system else 0
    natives = [tool for tool in instructions.native_tools if is_offered(tool, target.dialect, target.model)]
    tools = profile.tools_prompt if instructions.tools or natives else 0
    tools += sum(value_cost(tool.value, family) + overhead.tool for tool in natives)
    for tool in instructions.tools:
        text = json.dumps({"name": tool.name, "description": tool.description}, ensure_ascii=False)
        tools += estimate_tokens(text + _json_text(tool.schema), family) + overhead.tool
    return Fixed(system, tools, overhead.request)


def cost_of_extra(extra: Mapping[str, object] | None, target: Target) -> int:
    """Return what further arguments of a request cost: response formats, the provider's own tools and the like.

    Every list and dict counts as its JSON text, but for the keys of `NOT_PROMPT`; single numbers, flags and words are
    settings and cost nothing.

    Args:
        extra: as given for the request; None: none.
        target: whom the request is for.

    Returns:
        Tokens.

    Raises:
        InvalidArgument: the target's family is none that is known.
    """
    if not extra:
        return 0
    parts = [value for name, value in extra.items() if name not in NOT_PROMPT and type(value) in {dict, list, tuple}]
    return sum(value_cost(part, target.family) for part in parts)


def _overhead(target: Target) -> Overhead:
    found = OVERHEADS.get(target.dialect)
    if found is None:
        from session_actor.errors import InvalidArgument

        raise InvalidArgument("dialect", f"must be one of {', '.join(OVERHEADS)}")
    return found


def _entry(entry: Entry, family: str, overhead: Overhead, rule: str) -> int:
    if isinstance(entry, ResultsEntry):
        return overhead.message + sum(_result(result, family, overhead, rule) for result in entry.results)
    cost = overhead.message
    for block in entry.blocks:
        cost += _call(block, family, overhead) if isinstance(block, ToolCall) else _block(block, family, rule)
    return cost


def _call(call: ToolCall, family: str, overhead: Overhead) -> int:
    arguments = _plain(call.arguments) if overhead.plain_arguments else call.arguments
    return overhead.call + _name(call.name, family) + estimate_tokens(arguments, family) + _signed(call.signature)


def _result(result: ShownResult, family: str, overhead: Overhead, rule: str) -> int:
    blocks = sum(_block(block, family, rule) for block in result.blocks)
    return overhead.result + _name(result.name, family) + blocks


@lru_cache(maxsize=1_024)
def _name(name: str, family: str) -> int:
    """Estimate a tool's name: there are few, and each is counted with every call and result."""
    return estimate_tokens(name, family)


def _block(block: Block, family: str, rule: str) -> int:
    if isinstance(block, Text):
        cited = 0 if block.more is NULL else value_cost(block.more_value, family)
        return estimate_tokens(block.text, family) + _signed(block.signature) + cited
    if isinstance(block, Thinking):  # a signature holds all of the thinking, of which the text may be a summary
        return max(estimate_tokens(block.text, family), _signed(block.signature))
    if isinstance(block, Image):
        return image_cost(block, rule, family)
    if isinstance(block, Document):
        return document_cost(block, rule, family)
    if isinstance(block, Native):
        return value_cost(block.value, family, rule)
    raise TypeError(f"not a block that is shown: {type(block).__name__}")


def _plain(arguments: str) -> str:
    """Return arguments as names and values, one a line; what is no JSON object, as it is."""
    try:
        values: object = json.loads(arguments)
    except (ValueError, RecursionError):
        return arguments
    if not isinstance(values, dict):
        return arguments
    fields = cast("dict[str, object]", values).items()
    return "\n".join(
        f"{name}\n{value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)}"
        for name, value in fields
    )


def _signed(signature: str | None) -> int:
    return 0 if signature is None else opaque_cost(len(signature))


def _json_text(schema: Any) -> str:
    if type(schema) is msgspec.Raw:
        return bytes(schema).decode("utf-8", "surrogatepass")
    return json.dumps(schema, ensure_ascii=False, default=str)
