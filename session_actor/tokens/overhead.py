"""What a request has besides its texts: the tokens around messages, calls, results and tools, by dialect.

No provider publishes all of it. What is known comes from OpenAI's cookbook ("How to count tokens with tiktoken": 3 a
message, 3 to begin the reply; a tool call is a message of its own with the tool's name in its header) and from its
published response format (harmony); from Anthropic's documentation ("Tool use: pricing": the prompt that tools bring,
which a profile holds as `tools_prompt`); the rest is measured or estimated with what a template of such a model adds,
and rounded up. Calibration (`budget.calibration`) takes out what is left of the error.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

    from session_actor.ledger.entries import Dialect


class Overhead(NamedTuple):
    """Tokens that come on top of the texts."""

    request: int
    """Once: the beginning of the conversation and of the reply."""
    message: int
    """For each message: its role and its end."""
    call: int
    """For each tool call, beside its name and arguments."""
    result: int
    """For each tool result, beside what it shows."""
    tool: int
    """For each tool, beside the JSON text of its name, description and schema."""


OVERHEADS: Final[Mapping[Dialect, Overhead]] = {
    "openai_chat": Overhead(request=3, message=4, call=8, result=8, tool=8),
    "openai_responses": Overhead(request=3, message=4, call=8, result=8, tool=8),
    "anthropic": Overhead(request=3, message=4, call=40, result=24, tool=16),
    "gemini": Overhead(request=3, message=4, call=12, result=12, tool=8),
}
