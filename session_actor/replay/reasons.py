"""Why a frame is in a request, or not: the words, and what tells which one it is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec

from session_actor.ledger import notes as words
from session_actor.requests.request import Note

if TYPE_CHECKING:
    from session_actor.frames import Frame, Turn
    from session_actor.ledger.view import View
    from session_actor.window.fitting import Fit

REASONS: Final[dict[str, str]] = {
    "shown": "it is in the request, whole",
    "partly": "it is in the request, but for what the notes say",
    "cut": "some turns of it are in the request: the conversation is longer than the window, the others are left out",
    "no_room": "it is in the request, a text in the place of images or other files: the request has no room for them",
    "stub": "it is in the request, its tool results as one line each: they are old, and the window fills up",
    "shortened": "it is in the request, its long tool result without its middle",
    "kept": "it is in the request though what is around it is not: it is pinned, or what the user asked for last",
    "instructions": "it holds the system prompt, the tools or the model of the request",
    "correction": "it is in the request as the note that an assumption was taken back",
    "trimmed": "it is not in the request: the conversation is longer than the window, and the oldest part is left out",
    "compacted": "it is not in the request itself: the summary of a compaction stands for it",
    "superseded": "it is not in the request: newer instructions are in force",
    "silent": "it is not in the request: it holds nothing that is said to a model",
    "omitted": "it is not in the request: nothing of what it holds can be shown to this model, as the notes say",
    "other_branch": "it is not in the request: it is not on this stack, but on another branch or a checkpoint",
    "popped": "it is not in the request: it was popped, or left behind, and nothing holds it",
    "later": "it is not in the request: it was pushed later",
    "pruned": "it is not in the request: it was pruned before",
    "nothing_sent": "there is no request: nothing of this stack can be sent",
}
"""The words of `Why.reason`, and what each of them says."""

SHOWN: Final = frozenset({
    "shown", "partly", "cut", "no_room", "stub", "shortened", "kept", "instructions", "correction",
})  # fmt: skip
_HIDING: Final = frozenset({words.THINKING, words.NATIVE, words.CALL, words.RESULT})
_OF_OTHERS: Final = frozenset({words.TRIMMED, words.SUMMARY, words.TRIM_NOTE, words.TOOL})
"""Notes whose frame is a border, or that speak of instructions."""


class Why(msgspec.Struct, frozen=True):
    """Why a frame is in a request, or is not."""

    frame: int
    shown: bool
    """Whether anything of it is in the request."""
    reason: str
    """A word of `REASONS`."""
    what: str
    """The same as a sentence, with numbers and names."""
    seq: int
    """The request as it was, or would have been, after this record."""
    request: int | None
    """The record of the request; None: the next one was asked about."""
    head: int | None
    """The newest frame of the stack that it shows; None: an empty one."""
    by: int | None = None
    """What it is due to: the number of the mark (trimmed, cut, stub, no_room) or of the compaction, the record (later),
    or the frame of the instructions that are in force (superseded); None: nothing of the kind."""
    notes: tuple[Note, ...] = ()
    """What the request says of this frame: what of it is left out, and what was put in for it."""


class Cause(NamedTuple):
    """A reason with its numbers."""

    reason: str
    more: str = ""
    """What the sentence goes on with."""
    by: int | None = None
    notes: tuple[Note, ...] = ()


def in_view(frame: Frame, fit: Fit) -> Cause:
    """Of a frame on the path: what the view of a request makes of it."""
    view = fit.rendered.view
    if view.shows(frame.id):
        return _shown(frame, fit)
    if fit.overlay is not None and frame.id <= fit.overlay.covered_frame:
        overlay = fit.overlay
        more = f"compaction {overlay.generation} covers the frames up to {overlay.covered_frame}"
        return Cause("compacted", more, overlay.generation)
    mark = fit.mark
    if mark is None:
        return Cause("trimmed", f"frames from {view.cut} on are shown")
    return Cause(
        "trimmed", f"mark {mark.number}, made at frame {mark.at}, shows frames from {mark.cut} on", mark.number
    )


def without_turns(frame: Frame, configured: int | None) -> Cause | None:
    """Of a frame on the path that says nothing itself; None: it says something."""
    if frame.retracted is not None or any(turn.blocks for turn in frame.turns):
        return None
    if frame.instructions is None:
        return Cause("silent")
    if frame.id == configured:
        return Cause("instructions")
    return Cause("superseded", f"those of frame {configured}", configured)


def _shown(frame: Frame, fit: Fit) -> Cause:
    view = fit.rendered.view
    omitted, added = fit.rendered.done.notes(fit.sent)
    of_it = [note for note in omitted if note.frame == frame.id and note.what not in _OF_OTHERS]
    notes = (*of_it, *(note for note in added if note.frame == frame.id and note.what not in _OF_OTHERS))
    said, turns = {note.what for note in of_it}, _shown_turns(frame, view)
    mark = None if fit.mark is None else fit.mark.number
    if _says_nothing([frame.turns[number] for number in turns], of_it):
        return Cause("omitted", notes=notes)
    if frame.retracted is not None:
        return Cause("correction", notes=notes)
    if len(turns) < len(frame.turns):
        return Cause("cut", f"of its {len(frame.turns)} turns {_numbers(turns)}", mark, notes)
    less = _left_out(view, said, mark) or Cause("kept" if frame.id < view.cut else "shown")
    return less._replace(notes=notes)


def _left_out(view: View, said: set[str], mark: int | None) -> Cause | None:
    """What there is less of in a frame that is shown with all its turns; None: nothing."""
    if words.STUB in said:
        return Cause("stub", f"results {_below(view)} are shown so", mark)
    if words.LONG in said:
        return Cause("shortened")
    if words.NO_ROOM in said:
        return Cause("no_room", f"those from frame {view.unseen[0]} on have room", mark)
    return Cause("partly") if said else None


def _shown_turns(frame: Frame, view: View) -> list[int]:
    """The numbers of its turns that are shown."""
    if not view.hides_turns_of(frame.id):
        return list(range(len(frame.turns)))
    return [number for number in range(len(frame.turns)) if view.shows_turn(frame.id, number)]


def _numbers(turns: list[int]) -> str:
    """Turns for people, from 1: "1, 3 to 7"."""
    runs: list[list[int]] = []
    for number in turns:
        if runs and runs[-1][1] == number:
            runs[-1][1] += 1
        else:
            runs.append([number + 1, number + 1])
    return ", ".join(f"{first} to {last}" if first < last else str(first) for first, last in runs)


def _below(view: View) -> str:
    """What is old enough to be one line."""
    if not view.stub_turn:
        return f"below frame {view.stubs}"
    return f"before turn {view.stub_turn + 1} of frame {view.stubs}"


def _says_nothing(turns: list[Turn], omitted: list[Note]) -> bool:
    """Whether all that these turns of a frame hold was left out."""
    empty = sum(note.what == words.EMPTY for note in omitted)
    if empty and empty >= len(turns):
        return True
    hidden = sum(note.what in _HIDING for note in omitted)
    return hidden > 0 and hidden + empty >= sum(max(1, len(turn.blocks)) for turn in turns)


def sentence(frame: int, cause: Cause) -> str:
    """What people read."""
    told = f"frame {frame}: {REASONS[cause.reason]}"
    if cause.more:
        told += f" ({cause.more})"
    if cause.notes:
        told += "; " + "; ".join(dict.fromkeys(_note(note) for note in cause.notes))
    return told


def _note(note: Note) -> str:
    if note.what in words.OMITTED:
        return f"left out: {words.OMITTED[note.what]}"
    return f"put in: {words.ADDED.get(note.what, note.what)}"
