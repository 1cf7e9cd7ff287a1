"""Which frames of a path a summary takes the place of, and which of those stay shown beside it. Pure."""

from __future__ import annotations

from bisect import bisect_left
from typing import TYPE_CHECKING, Final, NamedTuple

from session_actor.blocks import ToolCall, ToolResult

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from session_actor.budget.trim import Unit
    from session_actor.frames import Frame

TAIL_TOKENS: Final = 20_000
"""No more than this of what was said last stays as it is, beside what cannot be cut …"""

TAIL_SHARE: Final = 4
"""… and no more than a fourth of the window."""

_ROUNDING: Final = 2
"""A range ends where an exchange begins, if that keeps no more than half a tail in addition."""

_SHORT: Final = 4
"""The user turn of the exchange that goes on stays as it is, if it takes up no more than a fourth of a tail."""


class Range(NamedTuple):
    """What is covered, and what of it stays shown."""

    covered_frame: int
    """The last frame of the path that is covered."""
    kept: tuple[int, ...]
    """Frames up to it that stay shown as they are, ascending: no summary speaks for them."""
    tokens: int
    """What all that gives way takes up now; 0: it is not shown now."""


def tail_tokens(window: int) -> int:
    """How much of what was said last stays as it is, in a model's window [tokens]."""
    return min(TAIL_TOKENS, window // TAIL_SHARE)


def range_of(
    frames: Sequence[Frame], units: Sequence[Unit], tail: int, pinned: Collection[int] = frozenset()
) -> Range | None:
    """The frames that a summary can take the place of; None: there are none.

    They end where a step or an exchange ends, before all of the tail and before the oldest open or held call; inside a
    step only where every frame near begins with the results of the one before. The tail begins with an exchange where
    one begins near, so that old exchanges go whole; inside a longer one its old steps go.

    Args:
        frames: the path above what is covered already, oldest first; before it what stayed shown of that.
        units: what is shown now, in the order of the path. Those without frames are passed over.
        tail: how much stays as it is [tokens]; more only where a unit is longer, never less than the last unit.
        pinned: ids of frames that stay shown, besides those that were pushed pinned.

    Returns:
        The range. Of `kept` are pinned frames with the rest of their steps, and the user turn of the exchange that the
        range ends inside, if it is short and in a frame without calls that are answered later.
    """
    units = [unit for unit in units if unit.frames]
    border = _border(units, tail, _closed(units, frames))
    if not border:
        return None
    border = _between_steps(units, frames, border, tail // _ROUNDING)
    first = units[border].frames[0]
    place = bisect_left(frames, first, key=_id)
    if not place:
        return None
    asked = _asked(units, border, tail // _SHORT)
    asked = asked if _is_answered([frame for frame in frames[:place] if frame.id in asked]) else ()
    kept = _pinned(frames[:place], pinned).union(asked)
    gone = (unit for unit in units[:border] if kept.isdisjoint(unit.frames))
    return Range(frames[place - 1].id, tuple(sorted(kept)), sum(unit.cost for unit in gone))


def _id(frame: Frame) -> int:
    return frame.id


def _closed(units: Sequence[Unit], frames: Sequence[Frame]) -> int:
    """How many units come before the oldest call that waits for a result, and before the last unit."""
    calls = frames[-1].open_calls if frames else ()
    first = min((call.ref.frame for call in calls), default=None)
    most = max(0, len(units) - 1)
    if first is None:
        return most
    return next((place for place in range(most) if units[place].frames[-1] >= first), most)


def _border(units: Sequence[Unit], tail: int, most: int) -> int:
    """The place of the first unit that stays, at most `most`; 0: all stay."""
    border, spent = len(units), 0
    while border and (spent + units[border - 1].cost <= tail or border == len(units)):
        border -= 1
        spent += units[border].cost
    border = min(border, most)
    if not border:
        return 0
    begin = next(place for place in range(border + 1) if units[place].exchange == units[border].exchange)
    if sum(unit.cost for unit in units[begin:border]) <= tail // _ROUNDING:
        return begin
    return border


def _between_steps(units: Sequence[Unit], frames: Sequence[Frame], border: int, most: int) -> int:
    """The border, or a lower one: where no frame begins with results, if that keeps no more than `most` in addition.

    Results whose calls are covered are shown as late ones.
    """
    spent = 0
    for place in range(border, 0, -1):
        turns = frames[bisect_left(frames, units[place].frames[0], key=_id)].turns
        if not turns or turns[0].role != "tool":
            return place
        spent += units[place - 1].cost
        if spent > most:
            break
    return border


def _is_answered(frames: Sequence[Frame]) -> bool:
    """Whether these hold a result for each of their calls: without it a call would seem to have been interrupted."""
    blocks = [type(block) for frame in frames for turn in frame.turns for block in turn.blocks]
    return blocks.count(ToolCall) <= blocks.count(ToolResult)


def _asked(units: Sequence[Unit], border: int, most: int) -> tuple[int, ...]:
    """The frames of the user turn that the first unit that stays belongs to, if they are below it and short."""
    for unit in units[:border]:
        if unit.exchange == units[border].exchange and unit.is_user and unit.cost <= most:
            return unit.frames
    return ()


def _pinned(frames: Sequence[Frame], pinned: Collection[int]) -> set[int]:
    """The pinned frames, each with the rest of its step: results without their call would be none."""
    wanted = {frame.id for frame in frames if frame.pinned or frame.id in pinned}
    steps = _steps(frames) if wanted else ()
    return {frame.id for step in steps if not wanted.isdisjoint(map(_id, step)) for frame in step}


def _steps(frames: Sequence[Frame]) -> Iterator[list[Frame]]:
    """The frames that belong together, as user turns or steps; what begins with results goes on with a step."""
    step: list[Frame] = []
    for frame in frames:
        new = not step or (frame.exchange, frame.step) != (step[-1].exchange, step[-1].step)
        if step and new and not (frame.turns and frame.turns[0].role == "tool"):
            yield step
            step = []
        step.append(frame)
    if step:
        yield step
