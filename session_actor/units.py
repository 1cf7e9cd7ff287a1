"""The units of a view: what may be left out of it as a whole. For `plan_trim`."""

from __future__ import annotations

from bisect import bisect_left
from typing import TYPE_CHECKING

from .budget.trim import Unit

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .finished import Piece
    from .rendered import Part, Rendered
    from .table import Table


def units_of(rendered: Rendered, last: Piece, table: Table, ratio: float) -> list[Unit]:
    """The units of a view, in the order of the path. `last`: its open chunk. `ratio`: real tokens per estimated one."""
    groups = _grouped(rendered.parts(last), table)
    frames, found = rendered.frames, list[Unit]()
    for place, group in enumerate(groups):
        low = 0 if place == 0 else bisect_left(frames, group[0].start)
        high = len(frames) if place + 1 == len(groups) else bisect_left(frames, groups[place + 1][0].start)
        ids = tuple(frames[low:high])
        if ids:
            found.append(_unit(group, ids, table, ratio))
    return found


def _unit(group: Sequence[Part], ids: tuple[int, ...], table: Table, ratio: float) -> Unit:
    return Unit(
        ids,
        round(ratio * sum(part.cost for part in group)),
        table.at(ids[-1]).exchange or 0,
        any(part.is_user for part in group),
        any(table.at(frame_id).pinned for frame_id in ids),
        round(ratio * sum(part.saving for part in group)),
    )


def _grouped(parts: Sequence[Part], table: Table) -> list[list[Part]]:
    """Those together that share a frame: none of them can be left out alone."""
    groups: list[list[Part]] = []
    for part in parts:
        if groups and (part.start <= groups[-1][-1].start or _goes_on(table, part.start)):
            groups[-1].append(part)
        else:
            groups.append([part])
    return groups


def _goes_on(table: Table, frame_id: int) -> bool:
    """Whether a frame begins with results: they belong to the step before."""
    turns = table.at(frame_id).turns
    return bool(turns) and turns[0].role == "tool"
