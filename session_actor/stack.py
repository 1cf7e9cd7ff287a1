"""A stack: the path from the root to a head, as an immutable value."""

from __future__ import annotations

from abc import ABCMeta
from collections.abc import Iterator, Mapping, Sequence
from operator import index as operator_index
from typing import TYPE_CHECKING, NamedTuple, overload

import msgspec

from .frames import Frame, Retraction
from .given.private import as_repr

if TYPE_CHECKING:
    from .compaction.retracting import Contamination
    from .frames import Turn
    from .state.table import Table  # noqa: TC004 - the fields are never decoded


class Retractions(NamedTuple):
    """What was taken back in a session when a stack was taken."""

    frames: Mapping[int, Retraction]
    """By the frames that did so, popped ones too."""
    tips: frozenset[int]
    """Where the head, the branches and the checkpoints were."""


class _SequenceStruct(msgspec.StructMeta, ABCMeta):
    """A Struct that is a Sequence: one is taken after every change, at half the time of a plain class."""


class Stack(Sequence[Frame], msgspec.Struct, eq=False, gc=False, metaclass=_SequenceStruct):
    """The frames from the root to `head`, root first.

    Taking one costs O(1): it is the table and the id of the head. Length, the newest frame and the test for being empty
    cost O(1), too; everything else lists the path once, O(n), and keeps the list. A stack never changes: push, pop,
    prune, passivation and restart of its session do not touch it.

    Frames that were there when its session was last recovered may be COLD: still on the disk, each read once, when it
    is asked for. Any method may then read, which blocks the event loop: the newest frame and `stack[i]` for a block of
    32 frames (about 0.2 ms, and once more for every fork or pop that lies above), a list of all of them much longer.
    `await stack.load()` reads everything without blocking; it must come before the service is closed or the session is
    deleted if the stack is to outlive them. Reading raises `StoreCorrupt`, `FrameUnreadable`, `SessionDeleted`,
    `StoreClosed`.
    """

    _table: Table
    head: int | None
    """The id of the newest frame, which must be in the table; None: the empty stack."""
    _frames: tuple[Frame, ...] | None = None
    _retractions: Retractions | None = None

    def __len__(self) -> int:
        """How many frames; O(1)."""
        top = self.top
        return 0 if top is None else top.depth

    @property
    def top(self) -> Frame | None:
        """The newest frame, None when empty; O(1)."""
        head = self.head
        if head is None:
            return None
        table = self._table
        return (table.frames[head - table.first] if head >= table.first else None) or table.get(head)

    async def load(self) -> Stack:
        """Read its cold frames, off the event loop, and return the stack itself; none is cold from then on.

        Raises `StoreCorrupt`, `FrameUnreadable`, `SessionDeleted`, `StoreClosed`. Cancelling leaves some of them cold.
        """
        if self._frames is None:
            await self._table.load_path(self.head)
        return self

    @overload
    def __getitem__(self, index: int) -> Frame: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Frame, ...]: ...
    def __getitem__(self, index: int | slice) -> Frame | tuple[Frame, ...]:
        """A frame by its place (0: the root, -1: the newest), or a tuple of them. Raises IndexError."""
        if index == -1 and (top := self.top) is not None:
            return top
        if self._frames is None and self._table.cold_below > 1 and not isinstance(index, slice):
            return self._at(index)
        return self.frames()[index]

    def _at(self, index: int) -> Frame:
        """One frame, without the others: they may be cold."""
        place, length = operator_index(index), len(self)
        if not -length <= place < length or self.head is None:
            raise IndexError("stack index out of range")
        return self._table.ancestor(self.head, place % length + 1)

    def __iter__(self) -> Iterator[Frame]:
        """Root first."""
        return iter(self.frames())

    def __reversed__(self) -> Iterator[Frame]:
        """Newest first."""
        return reversed(self.frames())

    def __contains__(self, item: object) -> bool:
        """Whether an equal frame is on it; O(n) at most."""
        if type(item) is Frame and type(item.depth) is int:
            return 0 < item.depth <= len(self) and self[item.depth - 1] == item
        return item in self.frames()

    def frames(self) -> tuple[Frame, ...]:
        """All frames, root first. O(n) the first time."""
        if self._frames is None:
            found = self._table.path(self.head)
            found.reverse()
            self._frames = tuple(found)
        return self._frames

    def contaminated(self) -> Contamination:
        """What of it came after an assumption that was retracted in this session before the stack was taken; O(n).

        The frame that stated it, and all above; and the newest frame below, to go back to. A retraction counts that the
        head, a branch or a checkpoint held when the stack was taken; one that was popped does not.
        """
        from .compaction.retracting import contamination, still_held
        from .state.history import runs_below

        known = self._retractions
        held = {} if known is None else still_held(known.frames, runs_below(self._table, known.tips))
        return contamination(self.frames(), held)

    def turns(self) -> tuple[Turn, ...]:
        """All messages of all frames, oldest first."""
        return tuple(turn for frame in self.frames() for turn in frame.turns)

    def exchanges(self) -> tuple[tuple[Frame, ...], ...]:
        """The frames in groups, each from one with a user turn up to before the next; earlier frames are left out."""
        return self._groups([frame.exchange for frame in self.frames()])

    def steps(self) -> tuple[tuple[Frame, ...], ...]:
        """The frames in groups, each from one with an assistant turn up to before the next turn that is not a tool's.

        Frames outside any step (before the first, and from a user turn up to the next assistant turn) are left out.
        """
        starts: list[int | None] = []
        for frame in self.frames():
            ended = frame.exchange is not None and frame.step is not None and frame.exchange > frame.step
            starts.append(None if ended else frame.step)
        return self._groups(starts)

    def _groups(self, starts: Sequence[int | None]) -> tuple[tuple[Frame, ...], ...]:
        groups: dict[int, list[Frame]] = {}
        for frame, start in zip(self.frames(), starts, strict=True):
            if start is not None:
                groups.setdefault(start, []).append(frame)
        return tuple(tuple(group) for group in groups.values())

    def __eq__(self, other: object) -> bool:
        """Whether the other is a stack of equal frames; O(1) for two stacks of one table."""
        if not isinstance(other, Stack):
            return NotImplemented
        if self._table is other._table:
            return self.head == other.head
        return self.head == other.head and self.frames() == other.frames()

    def __hash__(self) -> int:
        """By the head: equal stacks have equal heads."""
        return hash(self.head)

    def __repr__(self) -> str:
        """Size and head only."""
        return f"Stack({len(self)} frames, head={self.head})"

    __rich_repr__ = as_repr
