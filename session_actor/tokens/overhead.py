"""What a request has besides its texts: the tokens around messages, calls, results and tools, by dialect.

No provider publishes all of it. Known are: OpenAI's cookbook, "How to count tokens with tiktoken" (3 for a message and
1 for its role, 3 to begin the reply), and its response format harmony (a call is a message with the tool's name and
some marks in its header); Anthropic's "Tool use: pricing" (what tools bring along; it stands in the profiles as
`tools_prompt`). Anthropic's other figures were fitted to a real session of 410 calls whose usage is known: 4 a message,
48 a call (its id among them), 8 a result with its name, and the arguments as plain values: as JSON text they would
count for a fifth more than they cost. The rest is what templates of open models add, rounded up. What error is left,
the calibration takes out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

    from session_actor.dialects import Dialect


class Overhead(NamedTuple):
    """Tokens that come on top of the texts."""

    request: int
    """Once: the beginning of the conversation and of the reply."""
    message: int
    """For each message: its role and its end. The results of a step count as one message."""
    call: int
    """For each tool call, beside its name and arguments."""
    result: int
    """For each tool result, beside the tool's name and what it shows."""
    tool: int
    """For each tool, beside the JSON text of its name, description and schema."""
    plain_arguments: bool = False
    """Whether the model gets a call's arguments as plain values, without the escapes of JSON."""


OVERHEADS: Final[Mapping[Dialect, Overhead]] = {
    "openai_chat": Overhead(request=3, message=4, call=8, result=8, tool=8),
    "openai_responses": Overhead(request=3, message=4, call=8, result=8, tool=8),
    "anthropic": Overhead(request=3, message=4, call=48, result=6, tool=16, plain_arguments=True),
    "gemini": Overhead(request=3, message=4, call=12, result=8, tool=8),
}
