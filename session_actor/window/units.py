"""The units of a view: what may be left out of it as a whole. For `plan_trim`."""

from __future__ import annotations

from bisect import bisect_left
from typing import TYPE_CHECKING

from session_actor.budget.trim import Unit
from session_actor.ledger.fold import folded

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from session_actor.budget.calibration import Span
    from session_actor.frames import Frame
    from session_actor.table import Table

    from .chunks import Piece
    from .rendered import Part, Rendered


def units_of(
    rendered: Rendered,
    last: Piece,
    table: Table,
    ratio: float,
    pinned: Callable[[Frame], bool] = lambda frame: frame.pinned,
) -> list[Unit]:
    """The units of a view, in the order of the path.

    `last`: its open chunk. `ratio`: real tokens per estimated one. `pinned`: whether a frame must stay.
    """
    groups = _grouped(_without_lead(rendered, rendered.parts(last)), table)
    ids, found = rendered.frames, list[Unit]()
    for place, group in enumerate(groups):
        low = 0 if place == 0 else bisect_left(ids, group[0].start)
        high = len(ids) if place + 1 == len(groups) else bisect_left(ids, groups[place + 1][0].start)
        frames = [table.at(frame_id) for frame_id in ids[low:high]]
        if frames:
            found.extend(_units(rendered, group, frames, ratio, pinned))
    return found


def repriced(units: Sequence[Unit], spans: Sequence[Span], scale: float) -> list[Unit]:
    """Units of which each costs what its stretch of the view does, times `scale`. `spans`: the newest first."""
    found: list[Unit] = []
    top = spans[0].top
    for unit in reversed(units):
        bottom = max(0, top - unit.cost)
        real = sum(span.rate * max(0, min(top, span.top) - max(bottom, span.bottom)) for span in spans)
        rate = scale * real / (top - bottom) if top > bottom else scale
        found.append(unit._replace(cost=round(rate * unit.cost), stub_saving=round(rate * unit.stub_saving)))
        top = bottom
    return found[::-1]


def _without_lead(rendered: Rendered, parts: list[Part]) -> list[Part]:
    """Without what the notes cost that a view begins with: leaving out frames saves nothing of it."""
    lead = rendered.lead
    return [parts[0]._replace(cost=max(0, parts[0].cost - lead)), *parts[1:]] if lead and parts else parts


def _units(
    rendered: Rendered, group: Sequence[Part], frames: Sequence[Frame], ratio: float, pinned: Callable[[Frame], bool]
) -> Iterator[Unit]:
    """A group as one unit; but user turns without an answer between them are one each."""
    cost = ratio * sum(part.cost for part in group)
    saving = round(ratio * sum(part.saving for part in group))
    only_user = all(part.is_user for part in group)
    turns = _by_turns(frames) if only_user else [frames]
    shares = [1.0] if len(turns) == 1 else _shares(rendered, turns)
    for part, share in zip(turns, shares, strict=True):
        yield Unit(
            tuple([frame.id for frame in part]),
            round(cost * share),
            part[-1].exchange or 0,
            only_user or any(frame.exchange == frame.id for frame in part),
            any(map(pinned, part)),
            saving,
        )


def _by_turns(frames: Sequence[Frame]) -> list[list[Frame]]:
    """Frames of the user's side, a new list from each that has a turn of its own; the first has one."""
    found: list[list[Frame]] = []
    for frame in frames:
        if not found or (frame.turns and frame.turns[0].role != "tool"):
            found.append([frame])
        else:
            found[-1].append(frame)
    return found


def _shares(rendered: Rendered, turns: Sequence[Sequence[Frame]]) -> list[float]:
    """What part of their cost is each one's."""
    costs = [rendered.cost_of(folded(frames, rendered.target).open_chunk().entries) + 1 for frames in turns]
    return [cost / sum(costs) for cost in costs]


def _grouped(parts: Sequence[Part], table: Table) -> list[list[Part]]:
    """Those together that share a frame: none of them can be left out alone."""
    groups: list[list[Part]] = []
    for part in parts:
        if groups and (part.start <= groups[-1][-1].start or _goes_on(part, table)):
            groups[-1].append(part)
        else:
            groups.append([part])
    return groups


def _goes_on(part: Part, table: Table) -> bool:
    """Whether the frame that a user's turn stands in has results of the step before it.

    An assistant turn behind results in one frame begins a unit all the same: where all frames are so, nothing could be
    left out else. The results are shown as user text where their call is hidden.
    """
    turns = table.at(part.start).turns if part.is_user else ()
    return bool(turns) and turns[0].role == "tool"
