"""The units of a view: what may be left out of it as a whole. For `plan_trim`.

They follow from the turns alone, however these are grouped in frames: a border may lie inside a frame.
"""

from __future__ import annotations

from bisect import bisect_left
from typing import TYPE_CHECKING, Final, NamedTuple

from session_actor.budget.trim import Unit
from session_actor.ledger.fold import folded
from session_actor.ledger.view import View

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from session_actor.budget.calibration import Span
    from session_actor.frames import Frame
    from session_actor.ledger.view import Place, Portion
    from session_actor.state.table import Table

    from .chunks import Piece
    from .rendered import Part, Rendered

_TURNS: Final = 1 << 20
"""No frame has so many turns."""


class _Spot(NamedTuple):
    """A turn that is shown, or a frame without turns."""

    frame: Frame
    number: int
    role: str = ""
    is_whole: bool = True
    """Whether it is all of its frame."""


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
    parts = _without_lead(rendered, rendered.parts(last))
    spots = [spot for frame_id in rendered.frames for spot in _spots(table.at(frame_id), rendered.view)]
    places = [(spot.frame.id, spot.number) for spot in spots]
    starts = [bisect_left(places, part.start) for part in parts]
    maker, found = _Maker(rendered, ratio, pinned), list[Unit]()
    for number, part in enumerate(parts):
        low = 0 if number == 0 else starts[number]
        high = starts[number + 1] if number + 1 < len(parts) else len(spots)
        if low < high:
            found.extend(maker.units(part, spots[low:high]))
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


def whole_frames(units: Iterable[Unit], table: Table) -> list[Unit]:
    """The same for what can only take whole frames: each frame is in one of them.

    Those that begin in one frame are one; so is a user turn with the results before it in its frame. An assistant turn
    behind results in one frame begins a unit all the same: where all frames are so, nothing could be taken else.
    """
    found: list[Unit] = []
    for unit in units:
        before = found[-1] if found else None
        if before is None or before.frames[-1] != unit.frames[0]:
            found.append(unit._replace(turn=0, last=0, portions=()))
        elif before.frames[0] == unit.frames[0] or (unit.is_user and table.at(unit.frames[0]).turns[0].role == "tool"):
            found[-1] = _joined(before, unit)
        else:
            found[-1] = before._replace(frames=before.frames[:-1])
            found.append(unit._replace(turn=0, last=0, portions=()))
    return found


def _joined(before: Unit, unit: Unit) -> Unit:
    return Unit(
        tuple(dict.fromkeys((*before.frames, *unit.frames))),
        before.cost + unit.cost,
        unit.exchange,
        before.is_user or unit.is_user,
        before.pinned or unit.pinned,
        before.stub_saving + unit.stub_saving,
    )


def _without_lead(rendered: Rendered, parts: list[Part]) -> list[Part]:
    """Without what the notes cost that a view begins with: leaving out frames saves nothing of it."""
    lead = rendered.lead
    return [parts[0]._replace(cost=max(0, parts[0].cost - lead)), *parts[1:]] if lead and parts else parts


def _spots(frame: Frame, view: View) -> list[_Spot]:
    turns = frame.turns
    if len(turns) < 2:  # noqa: PLR2004 - there is nothing to take apart
        return [_Spot(frame, 0, turns[0].role if turns else "")]
    hides = view.hides_turns_of(frame.id)
    return [
        _Spot(frame, number, turn.role, is_whole=False)
        for number, turn in enumerate(turns)
        if not hides or view.shows_turn(frame.id, number)
    ]


class _Maker:
    """Makes the units of one view, in their order."""

    def __init__(self, rendered: Rendered, ratio: float, pinned: Callable[[Frame], bool]) -> None:
        self._rendered = rendered
        self._ratio = ratio
        self._pinned = pinned
        self._user: Place = (0, 0)
        """The user turn that was met last."""

    def units(self, part: Part, spots: Sequence[_Spot]) -> list[Unit]:
        """A part as one unit; but user turns without an answer between them are one each."""
        turns = _by_turns(spots) if part.is_user else [spots]
        shares = [1.0] if len(turns) == 1 else _shares(self._rendered, turns)
        return [self._unit(part, share, own) for own, share in zip(turns, shares, strict=True)]

    def _unit(self, part: Part, share: float, own: Sequence[_Spot]) -> Unit:
        frames, users = _frames_of(own), [spot for spot in own if spot.role == "user"]
        return Unit(
            tuple([frame.id for frame in frames]),
            round(self._ratio * part.cost * share),
            self._exchange(own[0], users),
            part.is_user or bool(users),
            any(map(self._pinned, frames)),
            round(self._ratio * part.saving),
            own[0].number,
            own[-1].number,
            _portions(own, frames),
        )

    def _exchange(self, first: _Spot, users: Sequence[_Spot]) -> int:
        """A number for the exchange that a unit stands in: the same for all of it, rising along the path."""
        if users:
            self._user = users[-1].frame.id, users[-1].number
        elif first.frame.exchange not in {self._user[0], first.frame.id}:
            self._user = (first.frame.exchange or 0, 0)
        return self._user[0] * _TURNS + self._user[1]


def _frames_of(own: Sequence[_Spot]) -> list[Frame]:
    return list({spot.frame.id: spot.frame for spot in own}.values())


def _portions(own: Sequence[_Spot], frames: Sequence[Frame]) -> tuple[Portion, ...]:
    """What of frames that are not whole among these is."""
    if all(spot.is_whole for spot in own):
        return ()
    numbers: dict[int, list[int]] = {}
    for spot in own:
        numbers.setdefault(spot.frame.id, []).append(spot.number)
    parts = [(frame, numbers[frame.id]) for frame in frames]
    return tuple([(frame.id, some[0], some[-1] + 1) for frame, some in parts if len(some) < len(frame.turns)])


def _by_turns(spots: Sequence[_Spot]) -> list[Sequence[_Spot]]:
    """The user's side in parts: a new one from each turn of the user's or the system's own."""
    found: list[list[_Spot]] = []
    for spot in spots:
        if not found or spot.role in {"user", "system"}:
            found.append([spot])
        else:
            found[-1].append(spot)
    return list(found)


def _shares(rendered: Rendered, turns: Sequence[Sequence[_Spot]]) -> list[float]:
    """What part of their cost is each one's."""
    costs = [_cost(rendered, own) + 1 for own in turns]
    return [cost / sum(costs) for cost in costs]


def _cost(rendered: Rendered, own: Sequence[_Spot]) -> int:
    frames = _frames_of(own)
    portions = tuple([(spot.frame.id, spot.number, spot.number + 1) for spot in own])
    view = View(cut=frames[-1].id + 1, portions=portions)
    return rendered.cost_of(folded(frames, rendered.target, view).open_chunk().entries)
