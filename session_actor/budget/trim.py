"""What is left out of a view that has become too long: a pure plan."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING, Final, Literal, NamedTuple, TypeAlias

from .report import YELLOW

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from session_actor.ledger.view import Place, Portion

TARGET: Final = 0.6
"""A trim goes down to this share of the allowance, so that the next one is far away and the prefix stays."""

WHOLE_STEPS: Final = 3
"""The results of the newest steps are never stubs …"""

WHOLE_SHARE: Final = 0.25
"""… nor are those within the newest part of the view that takes up this share of the allowance."""

WORTH: Final = 0.15
"""Stubs alone are a plan only if they save this share of the allowance: a new prefix has its price, too."""

START: Final = (0, 0)
"""Before every turn."""

LARGE_SHARE: Final = 0.25
"""An old exchange that takes up more than this share of the allowance is left out step by step, not at once: what was
done last is often in it."""

Part: TypeAlias = Literal["system", "tools", "other", "pinned", "results", "last turn"]
"""What can be too big: the system prompt; the tools; what else stands in the request beside the ledger (response
format, ephemeral part); pinned frames; the results of the newest step, without which it would fit; or what is never
left out: the newest step and the user turn of its exchange."""


class Unit(NamedTuple):
    """A part of a view that is shown or left out as a whole: a user turn, or a step (never cut inside)."""

    frames: tuple[int, ...]
    """The ids of its frames, ascending. Two units share a frame where a step ends and another begins in it."""
    cost: int
    """What it takes up as it is shown now [tokens]."""
    exchange: int
    """The same for all units of one exchange, rising along the path: the id of its user turn's frame; 0: before any."""
    is_user: bool
    """Whether it is a user turn that its exchange begins with."""
    pinned: bool = False
    """Whether one of its frames is: it is never left out."""
    stub_saving: int = 0
    """How much less it takes up with its tool results as stubs; 0 when they are already [tokens]."""
    turn: int = 0
    """The number of its first turn in the first of its frames."""
    last: int = 0
    """The number of its last turn in the last of its frames."""
    portions: tuple[Portion, ...] = ()
    """What of those of its frames is its own that it shares with other units."""

    @property
    def place(self) -> Place:
        """Where it begins."""
        return self.frames[0], self.turn

    @property
    def end(self) -> Place:
        """Its last turn."""
        return self.frames[-1], self.last


class Beside(NamedTuple):
    """What a request has beside the units [tokens]."""

    system: int = 0
    tools: int = 0
    other: int = 0
    """Response format, ephemeral part, "Continue.", the note of a trim."""


class Trim(NamedTuple):
    """A plan: what a mark is made of."""

    cut: int
    """Frames from this id on are shown; never smaller than before. 0: all are."""
    kept: tuple[int, ...]
    """Frames below the cut that are shown as well, ascending."""
    stubs: int
    """Tool results in frames below this id are shown as stubs; never smaller than before. 0: none are."""
    tokens: int
    """What the request then takes up."""
    turn: int = 0
    """Of the frame `cut` only the turns from this one on are shown."""
    portions: tuple[Portion, ...] = ()
    """Turns below those that are shown as well, of frames that are not shown whole."""
    stub_turn: int = 0
    """Of the frame `stubs` only the results in turns from this one on are shown whole."""


class TooBig(NamedTuple):
    """Nothing more can be left out, and the request is still over the allowance."""

    part: Part
    """The part to blame: the biggest."""
    part_tokens: int
    tokens: int
    """What the request takes up at least."""
    allowance: int

    @property
    def room(self) -> int:
        """What the part may take up at most, with all the rest as it is; negative: even without it all is too big."""
        return self.allowance - (self.tokens - self.part_tokens)


def plan_trim(
    units: Sequence[Unit],
    beside: Beside,
    allowance: int,
    *,
    cut: Place = START,
    stubs: Place = START,
    target: float = TARGET,
) -> Trim | TooBig | None:
    """What to leave out, so that a request fits again; None: leave all as it is.

    Up to 75% of the allowance nothing changes. From there on old tool results become stubs, if that is worth a new
    prefix. Above the allowance, until the request takes up at most `target` of it: old results become stubs; then the
    oldest exchanges go, each at once, or step by step when it is large; then the oldest steps of the current exchange.
    The newest step, the user turn of the current exchange and pinned units stay; the user turn of an older exchange
    stays as long as a step of it. When all that may go is gone and the request is within the allowance, that is the
    plan; else `TooBig`.

    Planning again with what a plan leaves gives None: there is no loop.

    Args:
        units: what the view shows, in the order of the path; kept ones below the present cut included.
        beside: what the request has beside them.
        allowance: how much it may take up [tokens].
        cut: of the mark in force, with the turn; by default there is none.
        stubs: the same.
        target: the share of the allowance to go down to.
    """
    now = sum(beside) + sum(unit.cost for unit in units)
    if now <= YELLOW * allowance:
        return None
    stubs = max(stubs, _stubs(units, allowance))
    costs = [unit.cost - unit.stub_saving if unit.end < stubs else unit.cost for unit in units]
    total = sum(beside) + sum(costs)
    if now <= allowance:
        return _shown(units, cut, stubs, total) if now - total >= max(1, WORTH * allowance) else None
    gone: set[int] = set()
    for bite in _bites(units, costs, LARGE_SHARE * allowance):
        if total <= target * allowance:
            break
        gone.update(bite)
        total -= sum(costs[place] for place in bite)
    if total > allowance:
        return _too_big(units, costs, gone, beside, allowance)
    return _trim(units, gone, cut, stubs, total)


def least(units: Sequence[Unit], beside: Beside, *, cut: Place = START, stubs: Place = START) -> Trim:
    """The plan that leaves out all that may go."""
    stubs = max(stubs, _stubs(units, 0))
    costs = [unit.cost - unit.stub_saving if unit.end < stubs else unit.cost for unit in units]
    gone = {place for bite in _bites(units, costs, 0) for place in bite}
    total = sum(beside) + sum(cost for place, cost in enumerate(costs) if place not in gone)
    return _trim(units, gone, cut, stubs, total)


def _stubs(units: Sequence[Unit], allowance: int) -> Place:
    """The place below which results are old: where that begins which is new enough to be shown whole.

    `START`: making stubs of what is below saves nothing.
    """
    spent = steps = 0
    border = START
    for unit in reversed(units):
        spent += unit.cost
        steps += not unit.is_user
        if steps > WHOLE_STEPS and spent > WHOLE_SHARE * allowance:
            break
        border = unit.place
    return border if any(unit.stub_saving and unit.end < border for unit in units) else START


def _bites(units: Sequence[Unit], costs: Sequence[int], large: float) -> Iterator[list[int]]:
    """The places of the units that may go, in the order in which they go, as many together as go at once."""
    exchanges = [list(places) for _, places in groupby(range(len(units)), key=lambda place: units[place].exchange)]
    for places in exchanges[:-1]:
        free = [place for place in places if not units[place].pinned]
        steps = [place for place in free if not units[place].is_user]
        if steps and sum(costs[place] for place in free) > large:
            yield from ([place] for place in steps[:-1])
            free = [place for place in free if place not in steps[:-1]]
        if free:
            yield free
    for places in exchanges[-1:]:
        steps = [place for place in places if not units[place].is_user]
        yield from ([place] for place in steps[:-1] if not units[place].pinned)


def _trim(units: Sequence[Unit], gone: Collection[int], cut: Place, stubs: Place, total: int) -> Trim:
    if gone:
        # What is gone is never the last unit: that is the newest step or the current user turn.
        cut = max(cut, units[max(gone) + 1].place)
    return _shown([unit for place, unit in enumerate(units) if place not in gone], cut, stubs, total)


def _shown(stay: Sequence[Unit], cut: Place, stubs: Place, total: int) -> Trim:
    """The plan that shows these units."""
    below = [unit for unit in stay if unit.place < cut]
    portions = tuple([portion for unit in below for portion in unit.portions if portion[:2] < cut])
    parts = {portion[0] for portion in portions}
    kept = tuple([frame for unit in below for frame in unit.frames if frame < cut[0] and frame not in parts])
    return Trim(cut[0], kept, stubs[0], total, cut[1], portions, stubs[1])


def _too_big(
    units: Sequence[Unit], costs: Sequence[int], gone: Collection[int], beside: Beside, allowance: int
) -> TooBig:
    stay = [place for place in range(len(units)) if place not in gone]
    pinned = sum(costs[place] for place in stay if units[place].pinned)
    last = sum(costs[place] for place in stay if not units[place].pinned)
    total = sum(beside) + pinned + last
    results = units[-1].stub_saving if units else 0
    if results and total - results <= allowance:
        return TooBig("results", results, total, allowance)
    parts: dict[Part, int] = {
        "system": beside.system,
        "tools": beside.tools,
        "other": beside.other,
        "pinned": pinned,
        "last turn": last,
    }
    part = max(parts, key=lambda name: parts[name])
    return TooBig(part, parts[part], total, allowance)
