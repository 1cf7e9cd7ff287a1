"""What providers charged, added up."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from session_actor.frames import Usage

if TYPE_CHECKING:
    from collections.abc import Iterable

    from session_actor.frames import Frame

NOTHING_SPENT: Final = Usage()

_MOST: Final = 2**63 - 1
"""What a record can hold; sums stop there."""


class UsageTotals(msgspec.Struct, frozen=True, gc=False):
    """What providers charged so far; sums have no `raw`."""

    session: Usage
    """For all replies that ever came into the session: those that were popped or pruned since, too, and those that
    were copied with the history of another session."""
    branch: Usage
    """For the replies on the stack."""


def plus(spent: Usage, usage: Usage) -> Usage:
    """The sum of two, without what only one reply has (`raw`, `anchor_tokens`)."""
    sent = spent.input_tokens + usage.input_tokens
    made = spent.output_tokens + usage.output_tokens
    read = spent.cache_read_tokens + usage.cache_read_tokens
    written = spent.cache_write_tokens + usage.cache_write_tokens
    reasoned = spent.reasoning_tokens + usage.reasoning_tokens
    if (sent | made | read | written | reasoned) > _MOST:
        return Usage(*(min(count, _MOST) for count in (sent, made, read, written, reasoned)))
    return Usage(sent, made, read, written, reasoned)


def spent_in(frames: Iterable[Frame]) -> Usage:
    """The sum over the turns of these frames."""
    total = NOTHING_SPENT
    for frame in frames:
        for turn in frame.given_turns or ():
            if turn.usage is not None:
                total = plus(total, turn.usage)
    return total
