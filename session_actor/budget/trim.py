"""What is left out of a view that has become too long: a pure plan."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal, NamedTuple, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Sequence

TARGET: Final = 0.6
"""A trim goes down to this share of the allowance, so that the next one is far away and the prefix stays."""

YELLOW: Final = 0.75
"""From this share of the allowance on, old tool results are shown as stubs."""

WHOLE_STEPS: Final = 3
"""The results of the newest steps are never stubs …"""

WHOLE_SHARE: Final = 0.25
"""… nor are those within the newest part of the view that takes up this share of the allowance."""

WORTH: Final = 0.1
"""Stubs alone are a plan only if they save this share of the allowance: a new prefix has its price, too."""

Part: TypeAlias = Literal["system", "tools", "other", "pinned", "last turn"]
"""What can be too big: the system prompt; the tools; what else stands in the request beside the ledger (response
format, ephemeral part); pinned frames; what is never left out (the newest step, the user turn that it answers)."""


class Unit(NamedTuple):
    """A part of a view that is shown or left out as a whole: a user turn, or a step (never cut inside)."""

    frames: tuple[int, ...]
    """The ids of its frames, ascending. A frame with several turns is one unit with all that shares a step with it."""
    cost: int
    """What it takes up as it is shown now [tokens: the estimate times `ratio_of`]."""
    exchange: int
    """The same for all units of one exchange, rising along the path: the id of its user turn's frame; 0: before any."""
    is_user: bool
    """Whether it is the user turn of its exchange."""
    pinned: bool = False
    """Whether one of its frames is: it is never left out."""
    stub_saving: int = 0
    """How much less it takes up with its tool results as stubs; 0 when they are already [tokens]."""


class Beside(NamedTuple):
    """What a request has beside the units [tokens]."""

    system: int = 0
    tools: int = 0
    other: int = 0
    """Response format, ephemeral part, "Continue.", the note of a trim."""


class Trim(NamedTuple):
    """A plan: what a mark is made of."""

    cut: int
    """Frames from this id on are shown whole; 1 or the oldest unit's first frame when nothing is left out."""
    kept: tuple[int, ...]
    """Frames below the cut that are shown as well, ascending."""
    stubs: int
    """Tool results in frames below this id are shown as stubs; never smaller than before."""
    tokens: int
    """What the request then takes up."""


class TooBig(NamedTuple):
    """Nothing more can be left out, and the request is still over the allowance."""

    part: Part
    """The part to blame: the biggest."""
    part_tokens: int
    tokens: int
    """What the request takes up at least."""
    allowance: int


def plan_trim(
    units: Sequence[Unit], beside: Beside, allowance: int, *, cut: int = 0, stubs: int = 0, target: float = TARGET
) -> Trim | TooBig | None:
    """What to leave out, so that a request fits again; None: leave all as it is.

    Up to 75% of the allowance nothing changes. From there on old tool results become stubs, if that is worth a new
    prefix. Above the allowance, until the request takes up at most `target` of it: old results become stubs; then the
    oldest exchanges go, each as a whole; then the oldest steps of the current exchange. The newest step, the user
    turn of the current exchange and pinned units stay. When all that may go is gone and the request is within the
    allowance, that is the plan; else `TooBig`.

    Planning again with what a plan leaves gives None, or `TooBig` again: there is no loop.

    Args:
        units: what the view shows, in the order of the path; kept ones below the present cut included.
        beside: what the request has beside them.
        allowance: how much it may take up [tokens].
        cut: of the mark in force; 0: there is none.
        stubs: of the mark in force; 0: there is none.
        target: the share of the allowance to go down to.
    """
    del units, beside, allowance, cut, stubs, target
    return None
