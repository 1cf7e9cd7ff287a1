"""Assumptions that are taken back: the decision, and what is contaminated by them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from session_actor import content
from session_actor.content import checked
from session_actor.errors import InvalidArgument
from session_actor.frames import Frame, Retraction
from session_actor.paths import path_runs
from session_actor.pushes import frame_without_turns
from session_actor.runs import contains

from .errors import AssumptionUnknown

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from session_actor.commands import Retract
    from session_actor.decide import Decision
    from session_actor.runs import Runs
    from session_actor.state import State
    from session_actor.table import Table


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
    stated = _statement(state, command.stated, wanted, head)
    if stated is None or wanted in retracted_on(state, head):
        raise AssumptionUnknown
    event, weight, found = frame_without_turns(state, command.on, head)
    retraction = Retraction(stated, note or None)
    return msgspec.structs.replace(event, retracted=retraction), weight + len(stated) + len(note or ""), found


def retracted_on(state: State, head: int | None) -> dict[str, str]:
    """The assumptions that are taken back on a path: each as it was stated, by what identifies it."""
    if not state.retractions or head is None:
        return {}
    runs = path_runs(state.table, head)
    return {key(one.assumption): one.assumption for frame, one in state.retractions.items() if contains(runs, frame)}


def _statement(state: State, hint: int | None, wanted: str, head: int | None) -> str | None:
    """How the path states an assumption first found from the head down; None: it does not."""
    if hint is not None and type(hint) is int and head is not None and contains(path_runs(state.table, head), hint):
        found = stated_in(state.table.at(hint), wanted)
        if found is not None:
            return found
    for frame in down(state.table, head):
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
    """Those whose frames are among these. One that was popped, say, holds no more, until somebody goes back to it."""
    return {frame: one for frame, one in retractions.items() if contains(runs, frame)}


def contamination(frames: Iterable[Frame], retractions: Mapping[int, Retraction]) -> Contamination:
    """What of these frames, root first, is contaminated by what was taken back."""
    wrong = {key(one.assumption) for one in retractions.values()}
    tainted: list[int] = []
    clean: int | None = None
    for frame in frames:
        if tainted or any(key(text) in wrong for text in frame.assumptions):
            tainted.append(frame.id)
        else:
            clean = frame.id
    return Contamination(tuple(tainted), clean)
