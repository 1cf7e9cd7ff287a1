"""What a model said, read as its provider's reply."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from session_actor.errors import InvalidArgument, ValueNotStorable
from session_actor.replies import turn_of

if TYPE_CHECKING:
    from collections import Counter

    from session_actor.dialects import Dialect
    from session_actor.frames import Turn


def turn_of_reply(reply: dict[str, Any], dialect: Dialect, left_out: Counter[str]) -> Turn:
    """The turn of a reply. A report of usage that cannot be read costs itself alone."""
    try:
        return turn_of(reply, dialect)
    except (InvalidArgument, ValueNotStorable):
        if not reply.get("usage"):
            raise
        turn = turn_of({**reply, "usage": None}, dialect)
        left_out["usage"] += 1
        return turn
