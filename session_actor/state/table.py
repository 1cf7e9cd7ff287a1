"""The frame table of one session: every frame by its id."""

from __future__ import annotations

import asyncio
from contextlib import contextmanager
from itertools import islice
from typing import TYPE_CHECKING, Final

from .calls import CallsOf
from .grow import BLOCK
from .runs import contains, count, merged

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable, Sequence

    from session_actor.frames import Frame, Instructions
    from session_actor.server.cold import Shelf

    from .runs import Runs

_NO_RUNS: Final[Runs] = []
"""Shared by the many tables without gaps; never changed."""

SPAN: Final = 512
"""How many cold frames are read at once where many are wanted: about 5 ms of building them."""

_MANY_CALLS: Final = 16
"""With more calls a frame's are kept at hand: each of so many results asks for them."""

_PAGE_BITS: Final = 9
_PAGE: Final = 1 << _PAGE_BITS
"""How many ids share a list where cold frames are kept that were read."""


class FramesCold(Exception):
    """A frame is on the disk, and must not be read now."""


class Table:
    """All frames of one session; readers use it directly, as they would an ETS table.

    `frames[id - first]` is the frame of an id from `first` on, or None where there is none in memory. A list and not a
    dict: ids are 1, 2, 3 …, a list costs 8 bytes a frame, growing a dict of a million frames stops everything for 40 to
    90 ms. `first` is 0 (and `frames[0]` None), unless the table was recovered from a snapshot: then it is near the
    newest id, so that a long history costs nothing; what is below is found by `slot`, which is a little slower.
    An index below 0 is another frame: whoever uses `frames` looks at the index, or at the id of what was found.

    A frame below `cold_below` may be COLD: recovery from a snapshot leaves it on the disk, and it has no slot in memory
    until somebody asks for it. `get`, `at`, `path` and `ancestor` read it then, with the frames of its block that come
    before it: one read of the disk that blocks. `load` reads off the loop. What was read once stays in memory.

    Frames are only ever added. Pruning makes a new table, so that a stack which holds this one keeps its frames.
    """

    __slots__ = (
        "__weakref__",
        "_called",
        "_pages",
        "_shut",
        "absent",
        "cold_below",
        "first",
        "frames",
        "instructions",
        "shelf",
    )

    def __init__(self) -> None:
        """Make an empty table."""
        self.frames: list[Frame | None] = [None]
        self.first = 0
        self._shut = False
        """Whether the disk must not be touched now."""
        self._pages: dict[int, list[Frame | None]] | None = None
        """The frames below `first` that were read, by id // 512: no large dict, which stops all when it grows."""
        self._called: CallsOf | None = None
        """Those of the frame of many calls that was asked for last."""
        self.absent: Runs = _NO_RUNS
        """The ids that have no frame: pruned, or passed over. For reading."""
        self.cold_below = 1
        self.shelf: Shelf | None = None
        self.instructions: dict[int, Instructions] | None = None
        """Those of cold frames whose instructions others inherit."""

    @classmethod
    def cold(cls, next_id: int, absent: Runs, shelf: Shelf) -> Table:
        """A table whose frames below `next_id`, but for those `absent`, are all on the disk."""
        table = cls()
        table.first = max(next_id - 1, 0) & ~BLOCK  # the newest frame, mostly the head, is above it with its block
        table.frames = [None] * (next_id - table.first)
        table.absent = absent
        table.cold_below = next_id
        table.shelf = shelf
        shelf.add(table)
        return table

    # --- what is there ---

    def get(self, frame_id: int) -> Frame | None:
        """The frame of this id, None when there is none (never was, or pruned).

        A cold one is read. Raises what `Shelf` raises; nothing has changed then.
        """
        place = frame_id - self.first
        frame = self.frames[place] if 0 <= place < len(self.frames) else self.slot(frame_id)
        if frame is None and self.is_cold(frame_id):
            self.read((frame_id,))
            frame = self.slot(frame_id)
        return frame

    def slot(self, frame_id: int) -> Frame | None:
        """The frame of this id if it is in memory."""
        place = frame_id - self.first
        if place >= 0:
            return self.frames[place] if place < len(self.frames) else None
        page = None if self._pages is None else self._pages.get(frame_id >> _PAGE_BITS)
        return None if page is None else page[frame_id % _PAGE]

    def is_cold(self, frame_id: int) -> bool:
        """Whether the frame of this id is on the disk, and not in memory."""
        if not 0 < frame_id < self.cold_below or self.slot(frame_id) is not None:
            return False
        return not self.absent or not contains(self.absent, frame_id)

    def at(self, frame_id: int) -> Frame:
        """The frame of an id that must be there; else LookupError. A cold one is read, as by `get`."""
        frame = self.get(frame_id)
        if frame is None:
            raise LookupError(frame_id)
        return frame

    def calls_of(self, frame_id: int) -> CallsOf:
        """The calls of a frame, none when there is no such frame. Raises as `get` does."""
        calls = self._called
        if calls is None or calls.frame != frame_id:
            frame = self.get(frame_id)
            calls = CallsOf(frame_id, () if frame is None else frame.turns)
            if len(calls) > _MANY_CALLS:
                self._called = calls
        return calls

    def has(self, frame_id: int) -> bool:
        """Whether there is a frame of this id, in memory or on the disk."""
        return self.slot(frame_id) is not None or self.is_cold(frame_id)

    def path(self, head: int | None, limit: int | None = None) -> list[Frame]:
        """The frames from `head` downwards, newest first; at most `limit` of them (None: down to the root).

        Cold ones are read, many at once.
        """
        frames, first = self.frames, self.first
        found: list[Frame] = []
        at = head
        left = -1 if limit is None else limit
        while at is not None and left:
            frame = frames[at - first] if at >= first else self.slot(at)
            if frame is None:
                frame = self._reach(at, left, found[-1].run_from if found else at)
            left -= 1
            found.append(frame)
            at = frame.parent
        return found

    def _reach(self, frame_id: int, count: int, run_from: int) -> Frame:
        """Read a frame, and in the same go up to `count` that are known to be below it (a negative count: all).

        `run_from`: that of the frame above it.
        """
        if self.is_cold(frame_id):
            low = max(run_from, frame_id - SPAN + 1, frame_id - count + 1 if count > 0 else 1)
            self.read(range(min(low, frame_id), frame_id + 1))
        return self.at(frame_id)

    def ancestor(self, head: int, depth: int) -> Frame:
        """The frame at `depth` (1: the root) of the stack of `head`, which is at least so deep.

        Goes from run to run and reads no frame between; cold ones are read, as by `get`.
        """
        frame = self.at(head)
        while frame.id - (frame.depth - depth) < frame.run_from:
            parent = self.at(frame.run_from).parent
            frame = self.at(parent or 0)
        return self.at(frame.id - (frame.depth - depth))

    def instructions_of(self, frame_id: int) -> Instructions | None:
        """The instructions that this frame brought, if they are in memory."""
        frame = self.slot(frame_id)
        if frame is not None:
            return frame.instructions
        return None if self.instructions is None else self.instructions.get(frame_id)

    # --- the disk ---

    def read(self, ids: Sequence[int]) -> None:
        """Read those frames of `ids` that are cold; blocks. Raises what `Shelf` raises."""
        if self._shut and any(map(self.is_cold, ids)):
            raise FramesCold
        if self.shelf is not None:
            self.shelf.fill(self, ids)

    @contextmanager
    def without_the_disk(self) -> Generator[None]:
        """Let no frame be read from the disk meanwhile: who asks for a cold one gets `FramesCold`. No await in it."""
        self._shut = True
        try:
            yield
        finally:
            self._shut = False

    async def load(self, ids: Iterable[int]) -> None:
        """Read those frames of `ids` that are cold, off the loop. Raises what `Shelf` raises.

        Cancelling leaves some read and some not.
        """
        if self.shelf is None:
            return
        left = iter(ids)
        while window := tuple(islice(left, SPAN)):
            wanted = [frame_id for frame_id in window if self.is_cold(frame_id)]
            if wanted:
                await self.shelf.load(self, wanted)
            await asyncio.sleep(0)

    async def load_path(self, head: int | None) -> None:
        """Read the whole stack of `head` off the loop. Raises as `load` does."""
        at = head
        while at is not None:
            await self.load((at,))
            start = self.at(at).run_from
            await self.load(range(start, at))
            at = self.at(start).parent

    # --- changes ---

    @property
    def next_id(self) -> int:
        """The id after the highest one that is taken."""
        return self.first + len(self.frames)

    def add(self, frame: Frame) -> None:
        """Add a frame whose id is larger than every one before it."""
        frames = self.frames
        if frame.id - self.first > len(frames):
            self.pass_over(frame.id)
        frames.append(frame)

    def keep(self, frame: Frame) -> None:
        """Put a frame that was cold into its place."""
        place = frame.id - self.first
        if place >= 0:
            self.frames[place] = frame
            return
        if self._pages is None:
            self._pages = {}
        number = frame.id >> _PAGE_BITS
        page = self._pages.get(number)
        if page is None:
            page = self._pages[number] = [None] * _PAGE
        page[frame.id % _PAGE] = frame

    def pass_over(self, next_id: int) -> None:
        """Go on with `next_id`: the ids up to it get no frame."""
        here = self.next_id
        if here < next_id:
            self.frames.extend([None] * (next_id - here))
            self.absent = merged(self.absent, [(here, next_id - 1)])

    def without(self, dropped: Runs) -> Table:
        """A new table without the frames of these ids; this one stays as it is."""
        table = Table()
        table.first = self.first
        table.frames = self.frames.copy()
        if self._pages is not None:
            table._pages = {number: page.copy() for number, page in self._pages.items()}
        for first, last in dropped:
            table._clear(first, last)
        table.absent = merged(self.absent, dropped)
        table.cold_below = self.cold_below
        table.instructions = self.instructions
        table.shelf = self.shelf
        if table.shelf is not None:
            table.shelf.add(table)
        return table

    def _clear(self, first: int, last: int) -> None:
        """Take the frames of these ids out of memory."""
        if last >= self.first:
            low = max(first, self.first)
            self.frames[low - self.first : last + 1 - self.first] = [None] * (last + 1 - low)
        for number, page in () if self._pages is None else self._pages.items():
            base = number << _PAGE_BITS
            low, high = max(first, base), min(last + 1, base + _PAGE)
            if low < high:
                page[low - base : high - base] = [None] * (high - low)

    def __len__(self) -> int:
        """How many frames there are, in memory or on the disk."""
        return self.next_id - 1 - count(self.absent)

    def __repr__(self) -> str:
        """Size only."""
        return f"Table(up to frame {self.next_id - 1})"
