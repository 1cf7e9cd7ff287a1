"""Long texts: their head and their tail, and a note of what is left out between."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from session_actor.tokens.estimate import estimate_tokens

from .texts import left_out

if TYPE_CHECKING:
    from collections.abc import Callable

_HEAD: Final = 0.7
_NOTE_TOKENS: Final = 40
_PIECE: Final = 2_048
"""A text is estimated in pieces of so many characters, and no further than it is shown."""

_MOST_BYTES: Final = 4
"""Of a character, in UTF-8; a token has at least one."""


def shortened(text: str, cap_tokens: int, family: str) -> str | None:
    """The first 70% and the last 30% of what `cap_tokens` have room for, with a note between; None when all fits.

    Costs O(`cap_tokens`), however long the text is.
    """
    if len(text) * _MOST_BYTES <= cap_tokens or _room(text, cap_tokens, family, _from_start) >= len(text):
        return None
    room = max(0, cap_tokens - _NOTE_TOKENS)
    head = _room(text, int(room * _HEAD), family, _from_start)
    tail = min(_room(text, room - int(room * _HEAD), family, _from_end), len(text) - head)
    hidden = len(text) - head - tail
    density = room / (head + tail) if head + tail else 1.0
    return f"{text[:head]}{left_out(round(hidden * density), hidden)}{text[len(text) - tail :]}"


def _from_start(text: str, begin: int, end: int) -> str:
    return text[begin:end]


def _from_end(text: str, begin: int, end: int) -> str:
    return text[len(text) - min(end, len(text)) : len(text) - begin]


def _room(text: str, tokens: int, family: str, part: Callable[[str, int, int], str]) -> int:
    """How many characters of the text, from one of its ends, take up at most `tokens`, as estimated in pieces."""
    taken, length = 0, len(text)
    for begin in range(0, length, _PIECE):
        piece = part(text, begin, begin + _PIECE)
        cost = estimate_tokens(piece, family)
        if taken + cost > tokens:
            return begin + len(piece) * (tokens - taken) // cost
        taken += cost
    return length
