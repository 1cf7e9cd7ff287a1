"""What a summary may name: all exact names and numbers of what it was made from."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from .identifiers import found_in, measures_in
from .slices import at_once

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable

    from .frame_facts import FrameFacts


_STEP: Final = 512
"""So many frames are looked at between two pauses."""


class Known(NamedTuple):
    """Exact names and numbers."""

    names: frozenset[str]
    numbers: frozenset[str]

    def __repr__(self) -> str:
        """Without the content."""
        return f"Known({len(self.names)} names, {len(self.numbers)} numbers)"


def known_in(parts: Iterable[FrameFacts], texts: Iterable[str] = ()) -> Known:
    """What is known from frames, and from other texts, such as the summary before and the system prompt."""
    return at_once(knowing(parts, texts))


def knowing(parts: Iterable[FrameFacts], texts: Iterable[str] = ()) -> Generator[None, None, Known]:
    """`known_in` in steps, so that nothing else has to wait for long where there are many frames."""
    names: set[str] = set()
    numbers: set[str] = set()
    for place, part in enumerate(parts, 1):
        names.update([name.text for name in part.names])
        numbers |= part.numbers
        if not place % _STEP:
            yield
    for text in texts:
        yield
        found = found_in(text)
        names.update([name.text for name in (*found.names, *measures_in(text))])
        numbers |= found.numbers
    return Known(frozenset(names), frozenset(numbers))
