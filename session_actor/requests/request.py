"""A request as the session gives it out: a dict for the SDK, with what the session knows of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

if TYPE_CHECKING:
    from collections.abc import Iterator

    from session_actor.dialects import Dialect
    from session_actor.frames import PendingCall


class Note(msgspec.Struct, frozen=True, gc=False):
    """One place where a request differs from the history."""

    what: str
    """A word that says how, such as `trimmed` or `interrupted`; docs/window.md has all of them."""
    frame: int | None = None
    """The frame concerned; None: no single one."""


class Request(dict[str, Any]):
    """Keyword arguments for one call of the SDK; every level of it is the caller's own.

    `client.messages.create(**request)` (anthropic), `client.chat.completions.create(**request)` (openai_chat),
    `client.responses.create(**request)` (openai_responses), `client.models.generate_content(**request)` (gemini).
    Anthropic's SDK waits for answers of up to 21,333 tokens; longer ones are streamed, `messages.stream(**request)`.
    Printing one shows nothing of the conversation; `dict(request)` does.
    """

    __slots__ = (
        "added",
        "dialect",
        "generation",
        "head",
        "input_tokens",
        "max_output_tokens",
        "model",
        "omitted",
        "pending",
        "seq",
    )

    seq: int
    """The number of its record: what `add_response(reply, request=…)` and `request_failed` know it by."""
    dialect: Dialect
    model: str
    head: int
    """The newest frame that it shows."""
    generation: int
    """The compaction that it shows; 0: none."""
    input_tokens: int
    """How long it is, as estimated [tokens]."""
    max_output_tokens: int
    """The longest answer that it asks for [tokens]."""
    pending: tuple[PendingCall, ...]
    """The calls that are open at its head: their results are shown as missing. One that broke off is not among them."""
    omitted: tuple[Note, ...]
    """What the history holds and it does not show: another model's thinking, what was trimmed, …"""
    added: tuple[Note, ...]
    """What it shows and the history does not hold: placeholders, bridges, "Continue.", …"""

    def __repr__(self) -> str:
        """Whom it is for, how long it is, and its keys: nothing of the conversation."""
        return f"Request({', '.join(f'{name}={value!r}' for name, value in self.__rich_repr__())})"

    def __rich_repr__(self) -> Iterator[tuple[str, object]]:
        """The same for rich, which would show the dict."""
        for name in ("dialect", "model", "head", "input_tokens"):
            if hasattr(self, name):
                yield name, getattr(self, name)
        yield "keys", list(self)
