"""What every dialect's module offers, and which module that is. `dialect_of` imports it when it is asked for."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Protocol, cast

from session_actor.dialects import checked_dialect

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from session_actor.frames import Instructions
    from session_actor.ledger.entries import Entry


class Renderer(Protocol):
    """One dialect. Its functions decide nothing and keep nothing: equal arguments give equal requests."""

    MESSAGES: str
    """The key of a request that holds its messages."""
    OWNED: frozenset[str]
    """The keys that `merge` refuses, with a dot for one inside another: `config.tools`."""

    def messages(self, entries: Sequence[Entry], model: str, /) -> list[dict[str, Any]]:
        """Whole chunks of entries as messages, every level of them new.

        No rule reaches over the border of a chunk: messages(a + b) == messages(a) + messages(b).
        """
        ...

    def assemble(
        self,
        model: str,
        instructions: Instructions | None,
        messages: list[dict[str, Any]],
        max_output_tokens: int,
        tools_used: Sequence[str] = (),
        /,
    ) -> dict[str, Any]:
        """All keyword arguments for one call of the SDK.

        `messages`: what `messages` gave; the list and all in it belong to the request from now on. More of them can be
        put at the end of `request[MESSAGES]` later: nothing else depends on them. `tools_used`: the names of the tools
        that the messages call, in any order and number; a dialect that takes calls only beside definitions declares
        those when the instructions have no tools.
        """
        ...

    def merge(self, request: dict[str, Any], extra: Mapping[str, Any] | None, /) -> None:
        """Put the embedder's own arguments into `request`, as deep copies.

        A key that is there already is replaced, unless it is in `OWNED`. Raises `InvalidArgument` naming the key that
        is, or the place of a value that is not JSON-like; nothing has changed then.
        """
        ...


def dialect_of(name: str) -> Renderer:
    """The module of a dialect. Raises `InvalidArgument` for a name that is none."""
    return cast("Renderer", import_module(f"{__package__}.{checked_dialect(name)}"))
