"""The frame table of one session: every frame by its id."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Container

    from .frames import Frame


class Table:
    """All frames of one session; readers use it directly, as they would an ETS table.

    `frames[id]` is the frame, or None where there is none (`frames[0]` always). A list and not a dict: ids are 1, 2,
    3 …, a list costs 8 bytes a frame, and growing a dict of a million frames stops everything for 40 to 90 ms.
    Frames are only ever added. Pruning makes a new table, so that a stack which holds this one keeps its frames.
    """

    __slots__ = ("frames",)

    def __init__(self) -> None:
        """Make an empty table."""
        self.frames: list[Frame | None] = [None]

    def get(self, frame_id: int) -> Frame | None:
        """The frame of this id, None when there is none (never was, or pruned)."""
        return self.frames[frame_id] if 0 < frame_id < len(self.frames) else None

    def add(self, frame: Frame) -> None:
        """Add a frame whose id is larger than every one before it."""
        frames = self.frames
        gap = frame.id - len(frames)
        if gap:
            frames.extend([None] * gap)
        frames.append(frame)

    def path(self, head: int | None, limit: int | None = None) -> list[Frame]:
        """The frames from `head` downwards, newest first; at most `limit` of them (None: down to the root)."""
        frames = self.frames
        found: list[Frame] = []
        at = head
        left = -1 if limit is None else limit
        while at is not None and left:
            left -= 1
            frame = frames[at]
            if frame is None:
                raise LookupError(at)
            found.append(frame)
            at = frame.parent
        return found

    def kept(self, ids: Container[int]) -> Table:
        """A new table with the frames of `ids` only; this one stays as it is."""
        table = Table()
        table.frames = [frame if frame is not None and frame.id in ids else None for frame in self.frames]
        return table

    def __len__(self) -> int:
        """How many frames it holds. Walks all."""
        return sum(frame is not None for frame in self.frames)

    def __repr__(self) -> str:
        """Size only."""
        return f"Table(up to frame {len(self.frames) - 1})"
