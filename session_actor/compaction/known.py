"""What a summary may name: all exact names and numbers of what it was made from."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from .identifiers import found_in, measures_in

if TYPE_CHECKING:
    from collections.abc import Iterable

    from .frame_facts import FrameFacts


class Known(NamedTuple):
    """Exact names and numbers."""

    names: frozenset[str]
    numbers: frozenset[str]

    def __repr__(self) -> str:
        """Without the content."""
        return f"Known({len(self.names)} names, {len(self.numbers)} numbers)"


def known_in(parts: Iterable[FrameFacts], texts: Iterable[str] = ()) -> Known:
    """What is known from frames, and from other texts, such as the summary before and the system prompt."""
    names: set[str] = set()
    numbers: set[str] = set()
    for part in parts:
        names.update([name.text for name in part.names])
        numbers |= part.numbers
    for text in texts:
        found = found_in(text)
        names.update([name.text for name in (*found.names, *measures_in(text))])
        numbers |= found.numbers
    return Known(frozenset(names), frozenset(numbers))
