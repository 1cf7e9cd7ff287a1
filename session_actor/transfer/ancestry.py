"""Which frame stands on which: found in runs, and not frame by frame."""

from __future__ import annotations


class Ancestry:
    """The parents of the frames that were planted."""

    def __init__(self) -> None:
        """No frame yet."""
        self.parents: dict[int, int | None] = {}
        """For reading."""
        self._starts: dict[int, int] = {}
        """Of every frame: from this id up to its own, without a gap, each frame stands on the one before."""

    def add(self, frame: int, parent: int | None) -> None:
        """Count in a frame, which stands on one that was counted in, or on none."""
        self.parents[frame] = parent
        self._starts[frame] = self._starts[parent] if parent is not None and parent == frame - 1 else frame

    def is_below(self, frame: int | None, head: int | None) -> bool:
        """Whether a frame is on the path of another, maybe it itself; None, the empty stack, is on every path."""
        while head is not None and (frame is None or head > frame):
            start = self._starts[head]
            if frame is not None and start <= frame:
                return True
            head = self.parents[start]
        return head == frame
