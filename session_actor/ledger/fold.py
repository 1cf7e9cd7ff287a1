"""The fold: frames of a view, one by one, to entries in chunks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .view import WHOLE

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from session_actor.blocks import Block
    from session_actor.frames import Frame

    from .entries import Chunk, Target
    from .view import View


class Fold:
    """Turns frames into entries, incrementally: `add` costs O(what the frame holds).

    A fold depends on its target, its view and the frames added, in their order, and on nothing else; it never reads a
    frame again. `chunks` only ever grows: a chunk in it is final. What is not final is the open chunk.
    """

    target: Target
    view: View
    chunks: list[Chunk]
    """The finished chunks, oldest first. For reading."""

    def __init__(self, target: Target, view: View = WHOLE) -> None:
        """An empty fold."""
        raise NotImplementedError

    def add(self, frame: Frame) -> None:
        """Take the next frame of the path, root first. A frame that the view does not show is passed over."""
        raise NotImplementedError

    def open_chunk(self) -> Chunk:
        """The chunk that the next frame may still change, as it is sent when the head is here; O(that chunk).

        Its calls without a result show placeholders. The whole view is `[*chunks, open_chunk()]`; before `tail` it may
        end with an assistant entry. It has no entries while nothing was said (`is_empty`).
        """
        raise NotImplementedError

    @property
    def is_empty(self) -> bool:
        """Whether no turn that was added says anything: there is nothing to send."""
        raise NotImplementedError

    def copy(self) -> Fold:
        """A fold of its own that goes on from here; costs a copy of the lists, not of what they hold."""
        raise NotImplementedError


def folded(frames: Iterable[Frame], target: Target, view: View = WHOLE) -> Fold:
    """The fold of all these frames, root first."""
    raise NotImplementedError


def tail(chunk: Chunk, target: Target, ephemeral: Sequence[Block] = ()) -> Chunk:
    """The last chunk of a request: `chunk` (an open one), and what stands after it only when it is the last.

    After an assistant entry: the user's "Continue.", unless the chunk is `paused`. `ephemeral`: blocks of a user turn,
    put at the end of the user's side (left out when paused: nothing may stand there).
    """
    raise NotImplementedError
