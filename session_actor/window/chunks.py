"""The finished chunks of a view as they are sent: rendered, counted and hashed once each."""

from __future__ import annotations

from bisect import bisect_right
from typing import TYPE_CHECKING, Any, NamedTuple

from session_actor.ledger.held import NO_LOAD, Load
from session_actor.requests.canonical import START, chained

if TYPE_CHECKING:
    from collections.abc import Mapping

    from session_actor.ledger.entries import Chunk
    from session_actor.requests.request import Note


class Piece(NamedTuple):
    """A chunk as it is sent."""

    chunk: Chunk
    messages: list[dict[str, Any]]
    """Shared: a request gets copies."""
    cost: int
    """As `cost_of` gives it [tokens]."""
    calls: tuple[str, ...]
    """The tools that it calls."""
    load: Load = NO_LOAD
    """What its media come to."""


class Finished:
    """Pieces in their order, and what they come to. Pieces are only added; `first` makes another of fewer."""

    __slots__ = ("_added", "_chains", "_counts", "_ends", "_omitted", "_sums", "messages", "pieces", "tools")

    def __init__(self) -> None:
        """None yet."""
        self.pieces: list[Piece] = []
        self.messages: list[dict[str, Any]] = []
        """All messages of those."""
        self.tools: dict[str, None] = {}
        """The tools that they call, each once."""
        self._chains: list[bytes] = []
        self._sums: list[int] = []
        self._ends: list[int] = []
        self._omitted: list[Note] = []
        self._added: list[Note] = []
        self._counts: list[tuple[int, int, int, Load]] = []

    @property
    def cost(self) -> int:
        """What they cost [tokens]."""
        return self._sums[-1] if self._sums else 0

    @property
    def chain(self) -> bytes:
        """The hash of their messages (see `requests.canonical`)."""
        return self._chains[-1] if self._chains else START

    @property
    def load(self) -> Load:
        """What their media come to."""
        return self._counts[-1][3] if self._counts else NO_LOAD

    def keep(self, piece: Piece) -> None:
        """Add the next one."""
        self._chains.append(chained(self.chain, piece.messages))
        self._sums.append(self.cost + piece.cost)
        self._ends.append(piece.chunk.last_frame)
        self.pieces.append(piece)
        self.messages.extend(piece.messages)
        self._omitted.extend(piece.chunk.omitted)
        self._added.extend(piece.chunk.added)
        load = self.load if piece.load is NO_LOAD else self.load.and_all(piece.load)
        self._counts.append((len(self.messages), len(self._omitted), len(self._added), load))
        if piece.calls:
            self.tools.update(dict.fromkeys(piece.calls))

    def first(self, count: int) -> Finished:
        """The same with the first `count` pieces only; the two share the pieces."""
        other = Finished()
        messages, omitted, added, _ = self._counts[count - 1] if count else (0, 0, 0, NO_LOAD)
        other.pieces, other.messages = self.pieces[:count], self.messages[:messages]
        other._chains, other._sums, other._ends = self._chains[:count], self._sums[:count], self._ends[:count]
        other._omitted, other._added, other._counts = self._omitted[:omitted], self._added[:added], self._counts[:count]
        other.tools = dict.fromkeys(call for piece in other.pieces for call in piece.calls)
        return other

    def by_frames(self) -> Mapping[tuple[int, int], Piece]:
        """The pieces by their first and last frame."""
        return {(piece.chunk.first_frame, piece.chunk.last_frame): piece for piece in self.pieces}

    def cost_up_to(self, frame_id: int) -> int:
        """What those cost whose last frame is this one or a lower one [tokens]."""
        place = bisect_right(self._ends, frame_id)
        return self._sums[place - 1] if place else 0

    def notes(self, last: Chunk) -> tuple[tuple[Note, ...], tuple[Note, ...]]:
        """What is left out, and what is put in. `last`: the chunk that follows."""
        return (*self._omitted, *last.omitted), (*self._added, *last.added)
