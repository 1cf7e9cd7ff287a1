"""The errors of requests: why none can be built. Nothing was changed then."""

from __future__ import annotations

from typing import Final, Literal, TypeAlias

from session_actor.errors import Refused

Part: TypeAlias = Literal["system", "tools", "format", "messages", "ephemeral"]
"""What takes room in a request: the system prompt, the tools, what `extra` brings (such as a response format), the
messages that must be shown, what is lent to this one request."""

_CALLED: Final[dict[str, str]] = {
    "system": "its system prompt takes",
    "tools": "its tools take",
    "format": "its response format, or what else `extra` brings, takes",
    "messages": "its messages take",
    "ephemeral": "its ephemeral part takes",
}

_ADVICE: Final[dict[str, str]] = {
    "system": "shorten the system prompt (configure)",
    "tools": "offer fewer tools, or describe them more briefly (configure)",
    "format": "shorten what `extra` brings",
    "messages": "pop what is too long, split it, or unpin it; what is shown at least is the newest step and what it "
    "answers, with what is pinned and the summary, if there are any",
    "ephemeral": "lend less to the request",
}


class NothingToSend(Refused):
    """The path has no message to answer: it is empty, or nothing on it can be shown to a model."""

    def __init__(self) -> None:
        """It is always the same."""
        super().__init__("there is nothing to send: no message of this path can be shown; add_user(…) first")


class ContextOverflow(Refused):
    """A part that cannot be left out is too large for the model's window."""

    def __init__(self, part: Part, tokens: int, allowance: int, model: str = "") -> None:
        """`part`: the largest of what must be shown. `tokens`: about what it takes. `allowance`: what all may take.

        `model`: for which; `""`: not said.
        """
        of = f" of model {model!r}" if model else ""
        super().__init__(
            f"the request does not fit: {_CALLED[part]} about {tokens} tokens of a "
            f"budget{of} of {allowance}; nothing was changed: {_ADVICE[part]}, ask for less output, or take a model "
            "with a larger window"
        )
        self.part: Part = part
        self.tokens = tokens
        self.allowance = allowance


class RequestForgotten(Refused):
    """The request that a key stands for is not known any more; a session remembers the newest few."""

    def __init__(self, key: str) -> None:
        """`key`: as given."""
        super().__init__(f"the request that was built under key {key!r} is not known any more; build another")
        self.key = key
