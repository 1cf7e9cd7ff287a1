"""Marks: how much of a conversation is shown from a frame on. Each is recorded once, and never made again by a replay.

A conversation that has outgrown its model's window is trimmed: its oldest part is not shown any more. Where that part
ends stays until the next trim, so that what providers have cached of a request stays of use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from session_actor.budget.readings import Key
from session_actor.frames import Artifact
from session_actor.ledger.view import MediaPlace, Place, Portion
from session_actor.tokens.estimate import estimate_tokens

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

ARTIFACTS_KEPT: Final = 200
"""How many artifacts a mark knows: the newest."""

ARTIFACTS_SHARE: Final = 0.02
"""What part of the budget they may take up."""

MARKS_KEPT: Final = 64
"""How many marks a session remembers: the newest. Behind an older one a request is trimmed anew."""

ROOMIER: Final = 1.25
"""A mark that was made for a budget so many times smaller than the one at hand is passed over: there is room again.

Budgets of one model differ by less (its safety reserve shrinks when it is calibrated): those keep what they have.
"""


class Unseen(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """Media that a provider takes no more in one request."""

    dialect: str
    """Whose limits they are beyond: others are shown them."""
    place: MediaPlace
    """Those before this one."""


class Mark(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """What is shown of a path that leads through the frame `at`."""

    number: int
    """From 1, one more than the mark before it in this session."""
    at: int
    """The head when it was made: frames that came later are always shown."""
    cut: int
    """Frames with this id or a higher one are shown; below it only those of `kept`."""
    allowance: int
    """The budget that it was made for [tokens]."""
    stubs: int = 0
    """Results in frames with a lower id are shown as one line."""
    kept: tuple[int, ...] = ()
    """Frames below the cut that are shown as well: what the user asked for in the exchange that goes on, and pinned
    ones; in their order."""
    artifacts: tuple[Artifact, ...] = ()
    """What is known to have been read or modified below the cut: the newest, oldest first."""
    more: int = 0
    """How many were known besides and are not named any more."""
    result_cap: int | None = None
    """Results estimated longer are shown in part [tokens]; None: by the usual rule."""
    generation: int = 0
    """The compaction that it was made on top of: under another it says nothing. 0: none."""
    warned: Key | None = None
    """Whom it was made for after a refusal: of others it says nothing. None: it was made without."""
    turn: int = 0
    """Of the frame `cut` only the turns from this one on are shown."""
    portions: tuple[Portion, ...] = ()
    """Turns below those that are shown as well, of frames that are not shown whole; in their order."""
    stub_turn: int = 0
    """Results in the turns of the frame `stubs` before this one are shown as one line, too."""
    unseen: tuple[Unseen, ...] = ()
    """Which media are not shown, at most one for a dialect."""

    @property
    def border(self) -> Place:
        """The first turn from which on all is shown."""
        return self.cut, self.turn

    def unseen_before(self, dialect: str) -> MediaPlace:
        """Media before this place are not shown in a dialect."""
        return next((one.place for one in self.unseen if one.dialect == dialect), (0, 0, 0))


def newest_artifacts(artifacts: Sequence[Artifact], allowance: int, family: str) -> tuple[Artifact, ...]:
    """Those that a note may name: the newest, as many as take up 2% of the allowance, and 200 at most."""
    room = allowance * ARTIFACTS_SHARE
    named = 0
    for artifact in reversed(artifacts[-ARTIFACTS_KEPT:]):
        room -= estimate_tokens(artifact.path, family) + 1
        if room < 0:
            break
        named += 1
    return tuple(artifacts[len(artifacts) - named :])


def in_force(
    marks: Sequence[Mark], on_path: Callable[[int], bool], allowance: int, key: Key, generation: int = 0
) -> Mark | None:
    """The mark that holds on a path for a budget: of those made on it, and not for far less, the one that shows least.

    `key`: whom the request is for; marks that were made after refusals of others do not count. `generation`: of the
    compaction that is shown; marks of others do not count.

    Marks are made one on top of the other, so that is the newest; but one for a larger window does not undo one for a
    smaller one, where two models take turns.
    """
    fit = [
        mark
        for mark in marks
        if mark.generation == generation
        and mark.warned in {None, key}
        and allowance <= mark.allowance * ROOMIER
        and on_path(mark.at)
    ]
    return max(fit, key=_tightness, default=None)


def _tightness(mark: Mark) -> tuple[Place, Place, int]:
    return mark.border, (mark.stubs, mark.stub_turn), mark.number
