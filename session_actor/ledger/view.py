"""Views: which frames of a path are shown, and how much of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeAlias

import msgspec

from session_actor.blocks import ToolCall
from session_actor.frames import Artifact

if TYPE_CHECKING:
    from collections.abc import Callable

    from session_actor.frames import Frame, Turn


Place: TypeAlias = tuple[int, int]
"""A turn: its frame, and its number in that frame, from 0. Of a frame without turns: 0."""

Portion: TypeAlias = tuple[int, int, int]
"""Some turns of a frame: its id, the number of the first, and of the first that is not among them."""

MediaPlace: TypeAlias = tuple[int, int, int]
"""An image or another block of media: its frame, its turn's number there, and its own in that turn, from 0."""


class View(msgspec.Struct, frozen=True):
    """What is shown of a path. Equal views of one path give equal entries; the default shows all of it."""

    cut: int = 0
    """Frames with this id or a higher one are shown; below it only those of `kept`."""
    kept: tuple[int, ...] = ()
    """Frames below the cut that are shown as well."""
    stubs: int = 0
    """Tool results in frames with a lower id are shown as one line."""
    stale: int = 0
    """Reasoning and signatures in frames with a lower id are left out: what stood before them has changed since. See
    `stale_below`."""
    trimmed: bool = False
    """Whether anything is hidden that no summary stands for: the view then begins with a note that says so."""
    artifacts: tuple[Artifact, ...] = ()
    """What is known to have been read or modified in what is hidden: the note lists it."""
    more: int = 0
    """How many artifacts are known besides."""
    summary: str = ""
    """What stands for the frames up to `covered`: the view begins with it. `""`: nothing does."""
    covered: int = 0
    turn: int = 0
    """Of the frame `cut` only the turns from this one on are shown."""
    portions: tuple[Portion, ...] = ()
    """Turns below those that are shown as well, of frames that are not shown whole."""
    stub_turn: int = 0
    """Tool results in the turns of the frame `stubs` before this one are shown as one line, too."""
    unseen: MediaPlace = (0, 0, 0)
    """Media before this place are not shown; a text stands in the place of each."""

    def shows(self, frame_id: int) -> bool:
        """Whether it shows this frame of its path, or some turns of it."""
        if frame_id >= self.cut or frame_id in self.kept:
            return True
        return bool(self.portions) and any(frame_id == portion[0] for portion in self.portions)

    def hides_turns_of(self, frame_id: int) -> bool:
        """Whether it hides some turns of a frame that it shows."""
        if frame_id > self.cut or not (self.turn or self.portions) or frame_id in self.kept:
            return False
        return frame_id < self.cut or self.turn > 0

    def shows_turn(self, frame_id: int, turn: int) -> bool:
        """Whether it shows a turn of a frame that it shows."""
        if (frame_id, turn) >= (self.cut, self.turn) or frame_id in self.kept:
            return True
        return any(frame_id == frame and first <= turn < end for frame, first, end in self.portions)

    def is_old(self, frame_id: int, turn: int) -> bool:
        """Whether the results in a turn are shown as one line."""
        return (frame_id, turn) < (self.stubs, self.stub_turn)


WHOLE: Final = View()
"""All of a path."""


def stale_below(change: Frame, frame_at: Callable[[int], Frame]) -> int:
    """The id from which on reasoning stays of use although the prefix changed at `change`; for `View.stale`.

    `change`: the frame that brought new instructions, or that was the head when a mark was made. `frame_at` gives a
    frame by its id; it is asked for `change.step` at most. Where several changes lie on a path, the highest counts.

    An exchange that goes on keeps its reasoning: a model in the middle of its tool calls refuses to go on without it.
    It follows from frames up to `change` alone, so it never moves later.
    """
    step = change.step
    if step is None:
        return 0
    frame = change if step == change.id else frame_at(step)
    if (change.exchange or 0) > step or not _is_finished(frame.turns):
        return change.exchange or 0
    return change.id + 1


def _is_finished(turns: tuple[Turn, ...]) -> bool:
    """Whether the last turn that is no tool's is an answer without calls."""
    last = next((turn for turn in reversed(turns) if turn.role != "tool"), None)
    return last is not None and last.role == "assistant" and not any(type(block) is ToolCall for block in last.blocks)
