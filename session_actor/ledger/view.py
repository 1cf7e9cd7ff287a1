"""Views: which frames of a path are shown, and how much of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from session_actor.blocks import ToolCall
from session_actor.frames import Artifact

if TYPE_CHECKING:
    from collections.abc import Callable

    from session_actor.frames import Frame, Turn


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

    def shows(self, frame_id: int) -> bool:
        """Whether it shows this frame of its path."""
        return frame_id >= self.cut or frame_id in self.kept


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
