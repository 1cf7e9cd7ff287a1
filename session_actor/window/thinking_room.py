"""Room for thinking: an answer must be longer than what the model may think before it, as both come out of one figure.

Source: Anthropic's docs "Extended thinking": `budget_tokens` must be less than `max_tokens`; thinking between calls
alone ("Interleaved thinking") may go over it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, cast

from session_actor.errors import InvalidArgument

if TYPE_CHECKING:
    from .request_options import Ask

_ANSWER: Final = 4_096
"""What is left for the answer behind the thinking when nobody said how long it may be [tokens]."""

_INTERLEAVED: Final = b'"interleaved-thinking'


def with_room_to_think(asked: Ask) -> Ask:
    """The same, with an answer as long as the thinking that its `extra` allows needs.

    A length that the embedder asked for is left alone. Raises `InvalidArgument` when there is no room for an answer
    behind the thinking.
    """
    budget = _budget(asked)
    if budget is None:
        return asked
    if asked.wanted_output is None and asked.output() < budget + _ANSWER:
        asked = asked.with_output(budget + _ANSWER)
    most = min(asked.output(), asked.output(calibrated=True))
    if budget >= most:
        raise InvalidArgument(
            "extra['thinking']['budget_tokens']",
            f"is {budget}, and must be less than the longest answer, which is {most} here: lower it, or give a larger "
            f"max_output_tokens (model {asked.model!r} writes {asked.profile.max_output} at most)",
        )
    return asked


def _budget(asked: Ask) -> int | None:
    """How much may be thought within the answer [tokens]; None: nothing was said of it."""
    text = bytes(asked.extra)
    if asked.dialect != "anthropic" or b'"budget_tokens"' not in text:
        return None
    instructions = asked.instructions
    if _INTERLEAVED in text and instructions is not None and (instructions.tools or instructions.native_tools):
        return None
    extra = asked.extra_value or {}
    said = _object(_object(extra.get("extra_body")).get("thinking")) or _object(extra.get("thinking"))
    budget = said.get("budget_tokens")
    return budget if said.get("type") == "enabled" and type(budget) is int else None


def _object(value: object) -> dict[str, Any]:
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}
