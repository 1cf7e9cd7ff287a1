"""A new frame: what was pushed, and what follows from its parent."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from .calls import open_after, still_held
from .frames import Frame

if TYPE_CHECKING:
    from .events import Pushed

_NOTHING: Final = Frame(0, None, 0, 0)
"""Stands for the parent of a frame that has none; it is never in a table."""


def frame_on(parent: Frame | None, event: Pushed, at_us: int) -> Frame:
    """The frame of `event` on top of `parent` (None: it is the first of its stack), pushed at `at_us`."""
    below = _NOTHING if parent is None else parent
    frame_id, turns = event.id, event.turns
    exchange, step, open_calls = below.exchange, below.step, below.open_calls
    if turns is None:
        if event.user_input:
            exchange = frame_id
        if event.assistant_output:
            step = frame_id
        if open_calls and (event.user_input or event.assistant_output):
            open_calls = still_held(open_calls)
    else:
        spoke = False
        for turn in turns:
            if turn.role == "user":
                exchange = frame_id
            elif turn.role == "assistant":
                step = frame_id
                spoke = True
        if spoke or open_calls or event.holds:
            open_calls = open_after(open_calls, frame_id, turns, event.holds)
    return Frame(
        frame_id,
        event.parent,
        below.depth + 1,
        at_us,
        event.user_input,
        event.assistant_output,
        event.assumptions,
        event.decisions,
        turns,
        event.forked_from,
        event.pinned,
        event.instructions,
        event.holds,
        event.instructions or below.in_force,
        exchange,
        step,
        open_calls,
    )
