"""A new frame: what was pushed, and what follows from its parent.

A KEYFRAME is a frame whose id is a multiple of 32, or whose parent is not the id before its own. Its record also holds
what it inherits (`Place`), unless it is the first of its stack: so any frame can be made from at most 32 records.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from session_actor.events import Place
from session_actor.frames import Frame

from .calls import open_after, still_held
from .spending import NOTHING_SPENT, plus

if TYPE_CHECKING:
    from session_actor.events import Pushed
    from session_actor.frames import Artifact, Instructions

KEYFRAMES: Final = 32
"""Every so many ids there is a keyframe."""

BLOCK: Final = KEYFRAMES - 1
"""`id & BLOCK` is 0 for those; `id & ~BLOCK` is where the block of a frame begins."""

_NONE: Final[tuple[Artifact, ...]] = ()
_NOTHING: Final = Frame(0, None, 0, 0, spent=NOTHING_SPENT)
"""Stands for the parent of a frame that has none; it is never in a table."""


def frame_on(parent: Frame | None, event: Pushed, at_us: int) -> Frame:
    """The frame of `event` on top of `parent` (None: it is the first of its stack), pushed at `at_us`."""
    below = _NOTHING if parent is None else parent
    turns, instructions = event.turns, event.instructions
    if turns is None:
        frame = frame_of_texts(below, event, at_us)
        return frame if instructions is None else _configured(frame, instructions)
    frame_id, parent_id = event.id, below.id or None
    exchange, step, open_calls, spent = below.exchange, below.step, below.open_calls, below.spent
    spoke = False
    for turn in turns:
        if turn.role == "user":
            exchange = frame_id
        elif turn.role == "assistant":
            step = frame_id
            spoke = True
        if turn.usage is not None and spent is not None:
            spent = plus(spent, turn.usage)
    if spoke or open_calls or event.holds:
        open_calls = open_after(open_calls, frame_id, turns, event.holds)
    return Frame(
        frame_id,
        parent_id,
        below.depth + 1,
        at_us,
        event.user_input,
        event.assistant_output,
        event.assumptions,
        event.decisions,
        turns,
        event.forked_from,
        event.pinned,
        instructions,
        event.holds,
        below.in_force if instructions is None else instructions,
        exchange,
        step,
        open_calls,
        below.configured if instructions is None else frame_id,
        below.run_from if parent_id == frame_id - 1 else frame_id,
        event.artifacts,
        spent,
        event.retracted,
    )


def frame_of_texts(below: Frame, event: Pushed, at_us: int) -> Frame:
    """The frame of an event without turns: its two texts say all; it notes no artifact and takes nothing back."""
    frame_id, parent_id = event.id, below.id or None
    user_input, assistant_output, open_calls = event.user_input, event.assistant_output, below.open_calls
    if open_calls and (user_input or assistant_output):
        open_calls = still_held(open_calls)
    return Frame(
        frame_id,
        parent_id,
        below.depth + 1,
        at_us,
        user_input,
        assistant_output,
        event.assumptions,
        event.decisions,
        None,
        event.forked_from,
        event.pinned,
        None,
        event.holds,
        below.in_force,
        frame_id if user_input else below.exchange,
        frame_id if assistant_output else below.step,
        open_calls,
        below.configured,
        below.run_from if parent_id == frame_id - 1 else frame_id,
        _NONE,
        below.spent,
    )


def _configured(frame: Frame, instructions: Instructions) -> Frame:
    return msgspec.structs.replace(frame, instructions=instructions, in_force=instructions, configured=frame.id)


def is_keyframe(frame_id: int, parent: int | None) -> bool:
    """Whether the record of a frame must hold its place."""
    return parent is not None and (parent != frame_id - 1 or not frame_id & BLOCK)


def place_on(parent: Frame) -> Place:
    """What a frame on `parent` inherits, but for the instructions themselves."""
    return Place(
        parent.depth,
        parent.exchange,
        parent.step,
        parent.configured,
        parent.run_from,
        parent.open_calls,
        parent.spent,
    )


def standing_in(frame_id: int, place: Place, in_force: Instructions | None) -> Frame:
    """A parent of which no more is known than what is inherited from it; `in_force`: of frame `place.configured`."""
    return Frame(
        frame_id,
        None,
        place.depth,
        0,
        in_force=in_force,
        exchange=place.exchange,
        step=place.step,
        open_calls=place.open_calls,
        configured=place.configured,
        run_from=place.run_from,
        spent=place.spent,
    )
