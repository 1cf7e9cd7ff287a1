"""The units of a view: what may be left out of it as a whole. For `plan_trim`."""

from __future__ import annotations

from bisect import bisect_left
from typing import TYPE_CHECKING, Final, NamedTuple

from .budget.trim import Unit
from .ledger.entries import ResultsEntry, UserEntry

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from .ledger.entries import Chunk
    from .rendered import Piece, Rendered
    from .table import Table

STUB_TOKENS: Final = 40
"""About what one result costs that is shown as one line."""


class _Part(NamedTuple):
    """A step, or what the user's side says after it."""

    start: int
    """The frame that it begins in."""
    cost: int
    is_user: bool
    saving: int


def units_of(rendered: Rendered, last: Piece, table: Table, ratio: float) -> list[Unit]:
    """The units of a view, in the order of the path. `last`: its open chunk. `ratio`: real tokens per estimated one."""
    parts = [part for piece in (*rendered.pieces, last) for part in _parts(rendered, piece)]
    groups = _grouped(parts, table)
    frames, found = rendered.frames, list[Unit]()
    for place, group in enumerate(groups):
        low = 0 if place == 0 else bisect_left(frames, group[0].start)
        high = len(frames) if place + 1 == len(groups) else bisect_left(frames, groups[place + 1][0].start)
        ids = tuple(frames[low:high])
        if ids:
            found.append(_unit(group, ids, table, ratio))
    return found


def _unit(group: Sequence[_Part], ids: tuple[int, ...], table: Table, ratio: float) -> Unit:
    return Unit(
        ids,
        round(ratio * sum(part.cost for part in group)),
        table.at(ids[-1]).exchange or 0,
        any(part.is_user for part in group),
        any(table.at(frame_id).pinned for frame_id in ids),
        round(ratio * sum(part.saving for part in group)),
    )


def _parts(rendered: Rendered, piece: Piece) -> Iterator[_Part]:
    chunk = piece.chunk
    users = [entry for entry in chunk.entries if type(entry) is UserEntry]
    user_cost = rendered.cost_of(users) if users and chunk.user_frame is not None else 0
    if len(users) < len(chunk.entries) or chunk.user_frame is None:
        yield _Part(chunk.first_frame, piece.cost - user_cost, is_user=False, saving=_saving(rendered, chunk))
    if chunk.user_frame is not None:
        yield _Part(chunk.user_frame, user_cost, is_user=True, saving=0)


def _saving(rendered: Rendered, chunk: Chunk) -> int:
    """How much less its results cost as stubs."""
    saving = 0
    for entry in chunk.entries:
        if type(entry) is ResultsEntry:
            whole = [result for result in entry.results if result.why in {None, "cut"}]
            saving += max(0, rendered.cost_of((ResultsEntry(tuple(whole)),)) - STUB_TOKENS * len(whole)) if whole else 0
    return saving


def _grouped(parts: Sequence[_Part], table: Table) -> list[list[_Part]]:
    """Those together that share a frame: none of them can be left out alone."""
    groups: list[list[_Part]] = []
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
