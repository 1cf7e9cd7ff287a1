"""One view of a path as it is sent: its chunks rendered, counted and hashed once each, and more as the path grows."""

from __future__ import annotations

from bisect import bisect_right
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from .blocks import ToolCall
from .budget.costs import cost_of
from .ledger.entries import AssistantEntry, ResultsEntry, UserEntry
from .ledger.fold import Fold
from .requests.canonical import START, chained

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from .frames import Frame
    from .ledger.entries import Chunk, Entry, Target
    from .ledger.view import View
    from .models import ModelProfile
    from .requests.renderer import Renderer
    from .requests.request import Note

_PLACEHOLDERS: Final = frozenset({"interrupted", "held"})

_STUB_TOKENS: Final = 40
"""About what one result costs that is shown as one line."""


class Piece(NamedTuple):
    """A chunk as it is sent."""

    chunk: Chunk
    messages: list[dict[str, Any]]
    """Shared: a request gets copies."""
    cost: int
    """As `cost_of` gives it [tokens]."""
    calls: tuple[str, ...]
    """The tools that it calls."""


NO_PIECES: Final[Mapping[tuple[int, int], Piece]] = {}


class Part(NamedTuple):
    """A step, or what the user's side says after it."""

    start: int
    """The frame that it begins in."""
    cost: int
    is_user: bool
    saving: int
    """How much less it costs with its results as stubs [tokens]."""


class Rendered:
    """A view at a head. It follows from the frames, the target and the view; `take` and `grow` bring it to a head."""

    __slots__ = (
        "_added",
        "_ends",
        "_fold",
        "_omitted",
        "_parts",
        "_sums",
        "_tools",
        "chain",
        "frames",
        "messages",
        "pieces",
        "profile",
        "renderer",
        "target",
        "view",
    )

    def __init__(self, target: Target, view: View, profile: ModelProfile, renderer: Renderer) -> None:
        """Nothing is shown yet."""
        self.target = target
        self.view = view
        self.profile = profile
        self.renderer = renderer
        self.frames: list[int] = []
        """The ids of the frames that were taken, ascending."""
        self.pieces: list[Piece] = []
        """The finished chunks."""
        self.messages: list[dict[str, Any]] = []
        """All messages of those."""
        self.chain = START
        """The hash of those."""
        self._fold = Fold(target, view)
        self._sums: list[int] = []
        self._ends: list[int] = []
        self._omitted: list[Note] = []
        self._added: list[Note] = []
        self._tools: dict[str, None] = {}
        self._parts: list[tuple[Part, ...]] = []

    @property
    def head(self) -> int:
        """The newest frame that was taken; 0: none was."""
        return self.frames[-1] if self.frames else 0

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to send."""
        return self._fold.is_empty

    @property
    def cost(self) -> int:
        """What the finished chunks cost [tokens]."""
        return self._sums[-1] if self._sums else 0

    def grow(self, frames: Iterable[Frame], known: Mapping[tuple[int, int], Piece] = NO_PIECES) -> None:
        """Take the next frames of the path. `known`: pieces of the same target that may come again (`known_pieces`)."""
        fold = self._fold
        for frame in frames:
            fold.add(frame)
            self.frames.append(frame.id)
        for place in range(len(self.pieces), len(fold.chunks)):
            chunk = fold.chunks[place]
            old = known.get((chunk.first_frame, chunk.last_frame))
            self._keep(old if old is not None and old.chunk == chunk else self.piece(chunk))

    def known_pieces(self) -> Mapping[tuple[int, int], Piece]:
        """The finished pieces by their first and last frame."""
        return {(piece.chunk.first_frame, piece.chunk.last_frame): piece for piece in self.pieces}

    def parts(self, last: Piece) -> list[Part]:
        """The parts of all pieces, `last` being the open one; those of finished pieces are counted once."""
        for piece in self.pieces[len(self._parts) :]:
            self._parts.append(parts_of(self, piece))
        found = [part for parts in self._parts for part in parts]
        return found + list(parts_of(self, last))

    def _keep(self, piece: Piece) -> None:
        self.pieces.append(piece)
        self.messages.extend(piece.messages)
        self.chain = chained(self.chain, piece.messages)
        self._sums.append(self.cost + piece.cost)
        self._ends.append(piece.chunk.last_frame)
        self._omitted.extend(piece.chunk.omitted)
        self._added.extend(piece.chunk.added)
        self._tools.update(dict.fromkeys(piece.calls))

    def piece(self, chunk: Chunk) -> Piece:
        """A chunk, rendered and counted."""
        messages = self.renderer.messages(chunk.entries, self.target.model) if chunk.entries else []
        return Piece(chunk, messages, self.cost_of(chunk.entries), _calls(chunk.entries))

    def cost_of(self, entries: Sequence[Entry]) -> int:
        """What entries cost [tokens]."""
        return cost_of(entries, self.target, self.profile)

    def open_chunk(self) -> Chunk:
        """The chunk that is not finished."""
        return self._fold.open_chunk()

    def lasting(self, chunk: Chunk) -> int:
        """What of the open chunk is sent with every later request, too: all but placeholders [tokens]."""
        entries = chunk.entries
        cost = self.cost_of(entries)
        for entry in entries:
            if type(entry) is ResultsEntry:
                shown = tuple(result for result in entry.results if result.why not in _PLACEHOLDERS)
                if len(shown) < len(entry.results):
                    cost += self.cost_of((ResultsEntry(shown),)) - self.cost_of((entry,))
        return cost

    def up_to(self, total: int) -> Callable[[int], int]:
        """A function that tells what the frames up to an id cost; `total`: up to the head [tokens]."""

        def cost(frame_id: int) -> int:
            if frame_id >= self.head:
                return total
            place = bisect_right(self._ends, frame_id)
            return self._sums[place - 1] if place else 0

        return cost

    def notes(self, last: Chunk) -> tuple[tuple[Note, ...], tuple[Note, ...]]:
        """What is left out, and what is put in. `last`: the chunk behind the finished ones."""
        return (*self._omitted, *last.omitted), (*self._added, *last.added)

    def tools(self, last: Piece) -> list[str]:
        """The tools that are called, each once."""
        return list(dict.fromkeys((*self._tools, *last.calls)))


def _calls(entries: Iterable[Entry]) -> tuple[str, ...]:
    return tuple(
        block.name
        for entry in entries
        if type(entry) is AssistantEntry
        for block in entry.blocks
        if type(block) is ToolCall
    )


def parts_of(rendered: Rendered, piece: Piece) -> tuple[Part, ...]:
    """A chunk as one step, and what the user's side says after it."""
    chunk, found = piece.chunk, list[Part]()
    users = [entry for entry in chunk.entries if type(entry) is UserEntry]
    user_cost = rendered.cost_of(users) if users and chunk.user_frame is not None else 0
    if len(users) < len(chunk.entries) or chunk.user_frame is None:
        found.append(Part(chunk.first_frame, piece.cost - user_cost, is_user=False, saving=_saving(rendered, chunk)))
    if chunk.user_frame is not None:
        found.append(Part(chunk.user_frame, user_cost, is_user=True, saving=0))
    return tuple(found)


def _saving(rendered: Rendered, chunk: Chunk) -> int:
    """How much less its results cost as stubs."""
    whole = [
        result
        for entry in chunk.entries
        if type(entry) is ResultsEntry
        for result in entry.results
        if result.why in {None, "cut"}
    ]
    if not whole:
        return 0
    return max(0, rendered.cost_of((ResultsEntry(tuple(whole)),)) - _STUB_TOKENS * len(whole))
