"""Whether an export of our own is whole: it says of itself how many frames it has, which is which, and their hash."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .ndjson import hash_of_lines

if TYPE_CHECKING:
    from .ndjson import FrameLine, Tail
    from .notes import Notes


class Wholeness:
    """Looks at the lines of one export as they come."""

    def __init__(self, notes: Notes) -> None:
        """`notes`: gets what is found."""
        self._notes = notes
        self._noted_before = notes.not_whole_count
        self._hash = hash_of_lines()
        self._seen = 0
        self.newest = 0
        """The highest number of a line so far; 0: they have none."""

    def frame(self, line: FrameLine, data: bytes, offset: int) -> None:
        """The line of a frame."""
        self._seen += 1
        self._hash.update(data)
        if not line.n:
            return
        if line.n <= self.newest:
            self._notes.lacks(offset, "order")
            return
        if line.n > self.newest + 1:
            self._notes.lacks(offset, "frames", line.n - self.newest - 1)
        self.newest = line.n

    def end(self, tail: Tail | None, offset: int) -> None:
        """It is over. `offset`: of its last line, or of where that should be."""
        if tail is None:
            self._notes.lacks(offset, "tail")
            return
        missing = tail.frames - (self.newest or self._seen)
        if missing > 0:
            self._notes.lacks(offset, "frames", missing)
        elif missing < 0:
            self._notes.lacks(offset, "order")
        elif self._notes.not_whole_count == self._noted_before and tail.hash not in {"", self._hash.hexdigest()}:
            self._notes.lacks(offset, "changed")
