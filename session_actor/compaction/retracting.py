"""Assumptions that are taken back: the decision, and what is contaminated by them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from session_actor.errors import InvalidArgument
from session_actor.frames import Frame, Retraction
from session_actor.given import content
from session_actor.given.content import checked
from session_actor.state.paths import path_runs
from session_actor.state.pushes import frame_without_turns
from session_actor.state.runs import contains

from .errors import AssumptionUnknown

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping

    from session_actor.commands import Retract
    from session_actor.state.decide import Decision
    from session_actor.state.runs import Runs
    from session_actor.state.state import State
    from session_actor.state.table import Table


class Contamination(msgspec.Struct, frozen=True, gc=False):
    """What of a branch came after an assumption that was taken back."""

    frames: tuple[int, ...]
    """The frame that stated it first and all above it, root first."""
    last_clean: int | None
    """The newest frame below: where to go back to. None: there is none."""

    def __bool__(self) -> bool:
        """Whether anything is contaminated."""
        return bool(self.frames)


def key(text: str) -> str:
    """What two assumptions share that count as the same: NFC, white space folded, else exact."""
    from .texts import key as identity

    return identity(text)


def retract(state: State, command: Retract, head: int | None) -> Decision:
    """A frame that takes an assumption back."""
    assumption = checked(content.text, command.assumption, "assumption")
    note = None if command.note is None else checked(content.text, command.note, "note")
    wanted = key(assumption)
    if not wanted:
        raise InvalidArgument("assumption", "must not be empty")
    stated = _statement(state, command.stated, wanted, head, above=_taken_back(state, head, wanted))
    if stated is None:
        raise AssumptionUnknown
    event, weight, found = frame_without_turns(state, command.on, head)
    retraction = Retraction(stated, note or None)
    return msgspec.structs.replace(event, retracted=retraction), weight + len(stated) + len(note or ""), found


def retracted_on(state: State, head: int | None) -> dict[str, int]:
    """The assumptions that are taken back on a path, as they were stated; each with the newest frame that did so.

    One that was stated anew above that frame is live again.
    """
    if not state.retractions or head is None:
        return {}
    runs = path_runs(state.table, head)
    found: dict[str, tuple[str, int]] = {}
    for frame, one in sorted(state.retractions.items()):
        if contains(runs, frame):
            found[key(one.assumption)] = (one.assumption, frame)
    return dict(found.values())


def _taken_back(state: State, head: int | None, wanted: str) -> int:
    """The newest frame of a path that takes an assumption back; 0: none does."""
    return max((frame for text, frame in retracted_on(state, head).items() if key(text) == wanted), default=0)


def _statement(state: State, hint: int | None, wanted: str, head: int | None, above: int) -> str | None:
    """How the newest frame of a path states an assumption; None: none above frame `above` does."""
    if type(hint) is int and hint > above and head is not None and contains(path_runs(state.table, head), hint):
        found = stated_in(state.table.at(hint), wanted)
        if found is not None:
            return found
    for frame in down(state.table, head):
        if frame.id <= above:
            return None
        found = stated_in(frame, wanted)
        if found is not None:
            return found
    return None


def stated_in(frame: Frame, wanted: str) -> str | None:
    """How a frame states an assumption; None: it does not."""
    return next((text for text in frame.assumptions if key(text) == wanted), None)


def down(table: Table, head: int | None) -> Iterator[Frame]:
    """The frames of a path, newest first."""
    at = head
    while at is not None:
        frame = table.at(at)
        yield frame
        at = frame.parent


def still_held(retractions: Mapping[int, Retraction], runs: Runs) -> dict[int, Retraction]:
    """Those whose frames are among these. One that was popped, say, holds no more, until somebody goes back to it.

    What a copy knows of frames that it does not have, below 0, it knows for good.
    """
    return {abs(frame): one for frame, one in retractions.items() if frame < 0 or contains(runs, frame)}


def left_behind(state: State, ids: Collection[int], held: Runs) -> tuple[tuple[int, Retraction], ...]:
    """The retractions that a copy of the frames `ids` has to know of, though it does not get their frames.

    They are of what one of those frames states. `held`: what the head, the branches and the checkpoints hold now.
    """
    others = {at: one for at, one in still_held(state.retractions, held).items() if at not in ids}
    wanted = {key(one.assumption) for one in others.values()}
    stated: dict[str, int] = {}
    for frame_id in ids if others else ():
        for text in state.table.at(frame_id).assumptions:
            if key(text) in wanted:
                stated[key(text)] = min(frame_id, stated.get(key(text), frame_id))
    return tuple((at, one) for at, one in sorted(others.items()) if stated.get(key(one.assumption), at) < at)


def contamination(frames: Iterable[Frame], retractions: Mapping[int, Retraction]) -> Contamination:
    """What of these frames, root first, is contaminated by what was taken back.

    A retraction is of what was stated before it: what is stated anew afterwards, somewhere else, is not wrong for it.
    """
    until: dict[str, int] = {}
    for at, one in retractions.items():
        until[key(one.assumption)] = max(at, until.get(key(one.assumption), 0))
    tainted: list[int] = []
    clean: int | None = None
    for frame in frames:
        if tainted or any(frame.id < until.get(key(text), 0) for text in frame.assumptions):
            tainted.append(frame.id)
        else:
            clean = frame.id
    return Contamination(tuple(tainted), clean)
