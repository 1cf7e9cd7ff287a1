"""One view of a path as it is sent: rendered and counted once, and more as the path grows."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from session_actor.blocks import ToolCall
from session_actor.budget.costs import cost_of
from session_actor.ledger.entries import AssistantEntry, ResultsEntry, UserEntry
from session_actor.ledger.fold import Fold
from session_actor.ledger.held import NO_LOAD, Load, load_of
from session_actor.ledger.results import is_worth_a_stub

from .chunks import Finished, Piece

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from session_actor.frames import Frame
    from session_actor.ledger.entries import Chunk, Entry, Target
    from session_actor.ledger.view import Place, View
    from session_actor.models import ModelProfile
    from session_actor.requests.renderer import Renderer

_PLACEHOLDERS: Final = frozenset({"interrupted", "held"})

_COUNTED: Final = 8
"""How many entries are known by what they cost."""

_STUB_TOKENS: Final = 40
"""About what one result costs that is shown as one line."""

_STOP_CHUNKS: Final = 16
_STOPS: Final = 4
"""After so many chunks each, so many places are remembered to which a pop can go back cheaply."""

NO_PIECES: Final[Mapping[tuple[int, int], Piece]] = {}


class Part(NamedTuple):
    """A step, or what the user's side says after it."""

    start: Place
    """The turn that it begins with."""
    cost: int
    is_user: bool
    saving: int
    """How much less it costs with its results as stubs; of the newest step, whose results are never stubs: with all
    of them as short as that [tokens]."""


class _Stop(NamedTuple):
    fold: Fold
    frames: int


class Rendered:
    """A view at a head. It follows from the frames, the target and the view; `grow` brings it to a head."""

    __slots__ = (
        "_counted",
        "_fold",
        "_parts",
        "_stops",
        "done",
        "frames",
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
        self.done = Finished()
        """The finished chunks."""
        self._fold = Fold(target, view)
        self._parts: list[tuple[Part, ...]] = []
        self._stops: deque[_Stop] = deque(maxlen=_STOPS)
        self._counted: deque[tuple[Entry, int]] = deque(maxlen=_COUNTED)

    @property
    def head(self) -> int:
        """The newest frame that was taken; 0: none was."""
        return self.frames[-1] if self.frames else 0

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to send."""
        return self._fold.is_empty

    # --- growing ---

    def grow(self, frames: Sequence[Frame], known: Mapping[tuple[int, int], Piece] = NO_PIECES) -> None:
        """Take the next frames of the path. `known`: pieces of the same target that may come again, by their frames."""
        fold = self._fold
        if frames and frames[0].id < self.view.cut:
            frames = [frame for frame in frames if self.view.shows(frame.id)]
        far = len(frames) - 4 * _STOPS * _STOP_CHUNKS
        for place, frame in enumerate(frames):
            fold.add(frame)
            self.frames.append(frame.id)
            if place >= far:
                self._stop()
        for chunk in fold.chunks[len(self.done.pieces) :]:
            old = known.get((chunk.first_frame, chunk.last_frame))
            self.done.keep(old if old is not None and old.chunk == chunk else self.piece(chunk))

    def _stop(self) -> None:
        stops, fold = self._stops, self._fold
        newest = len(stops[-1].fold.chunks) if stops else 0
        if len(fold.chunks) >= newest + _STOP_CHUNKS:
            stops.append(_Stop(fold.copy(), len(self.frames)))

    def back(self, on_path: Callable[[int], bool]) -> Rendered | None:
        """Another of the same view, gone back to where it is on a path; None: that is too far down."""
        for stop in reversed(self._stops):
            if on_path(self.frames[stop.frames - 1]):
                other = Rendered(self.target, self.view, self.profile, self.renderer)
                other.frames = self.frames[: stop.frames]
                other.done = self.done.first(len(stop.fold.chunks))
                other._fold = stop.fold.copy()
                other._parts = self._parts[: len(stop.fold.chunks)]
                other._stops.extend(kept for kept in self._stops if kept.frames <= stop.frames)
                return other
        return None

    # --- what it comes to ---

    def piece(self, chunk: Chunk) -> Piece:
        """A chunk, rendered and counted."""
        messages, cost = self.messages(chunk), self.cost_of(chunk.entries)
        return Piece(chunk, messages, cost, _calls(chunk.entries), load_in(chunk))

    def messages(self, chunk: Chunk) -> list[dict[str, Any]]:
        """A chunk, rendered."""
        return self.renderer.messages(chunk.entries, self.target.model) if chunk.entries else []

    def cost_of(self, entries: Sequence[Entry]) -> int:
        """What entries cost [tokens]. Those counted last are known: an open chunk is counted again and again."""
        return sum([self._cost(entry) for entry in entries])

    def _cost(self, entry: Entry) -> int:
        counted = self._counted
        for known, cost in counted:
            if known == entry:
                return cost
        cost = cost_of((entry,), self.target, self.profile)
        counted.append((entry, cost))
        return cost

    def open_chunk(self) -> Chunk:
        """The chunk that is not finished."""
        return self._fold.open_chunk()

    def lasting(self, chunk: Chunk) -> int:
        """What of the open chunk is sent with every later request, too: all but placeholders [tokens]."""
        cost = self.cost_of(chunk.entries)
        for entry in chunk.entries:
            if type(entry) is ResultsEntry:
                shown = tuple(result for result in entry.results if result.why not in _PLACEHOLDERS)
                if len(shown) < len(entry.results):
                    cost += self.cost_of((ResultsEntry(shown),)) - self.cost_of((entry,))
        return cost

    @property
    def lead(self) -> int:
        """What the notes cost that a view begins with: no frame's [tokens]."""
        if not self.view.summary and not self.view.trimmed:
            return 0
        return self.cost_of(Fold(self.target, self.view).open_chunk().entries)

    def up_to(self, total: int) -> Callable[[int], int]:
        """A function that tells what the frames up to an id cost; `total`: up to the head [tokens]."""
        return lambda frame_id: total if frame_id >= self.head else self.done.cost_up_to(frame_id)

    def tools(self, last: Piece) -> list[str]:
        """The tools that are called, each once."""
        return list(dict.fromkeys((*self.done.tools, *last.calls)))

    def parts(self, last: Piece) -> list[Part]:
        """The parts of all pieces, `last` being the open one; those of finished pieces are counted once."""
        for piece in self.done.pieces[len(self._parts) :]:
            self._parts.append(_parts(self, piece))
        found = [part for parts in self._parts for part in parts]
        return found + list(_parts(self, last, is_newest=True))


def load_in(chunk: Chunk) -> Load:
    """What the media of a chunk come to."""
    first = chunk.entries[0] if chunk.entries else None
    said = first if type(first) is AssistantEntry else None
    return load_of(chunk.media, said) if chunk.media or said is not None else NO_LOAD


def _calls(entries: Iterable[Entry]) -> tuple[str, ...]:
    return tuple(
        block.name
        for entry in entries
        if type(entry) is AssistantEntry
        for block in entry.blocks
        if type(block) is ToolCall
    )


def _parts(rendered: Rendered, piece: Piece, *, is_newest: bool = False) -> tuple[Part, ...]:
    """A chunk as one step, and what the user's side says after it."""
    chunk, found = piece.chunk, list[Part]()
    users = [entry for entry in chunk.entries if type(entry) is UserEntry]
    user_cost = rendered.cost_of(users) if users and chunk.user_frame is not None else 0
    if len(users) < len(chunk.entries) or chunk.user_frame is None:
        start = (chunk.first_frame, chunk.first_turn)
        saving = _saving(rendered, chunk, short_ones=is_newest)
        found.append(Part(start, piece.cost - user_cost, is_user=False, saving=saving))
    if chunk.user_frame is not None:
        found.append(Part((chunk.user_frame, chunk.user_turn), user_cost, is_user=True, saving=0))
    return tuple(found)


def _saving(rendered: Rendered, chunk: Chunk, *, short_ones: bool) -> int:
    """How much less its results cost as stubs. `short_ones`: those, too, that are too short to become one."""
    whole = [
        result
        for entry in chunk.entries
        if type(entry) is ResultsEntry
        for result in entry.results
        if result.why in {None, "cut"} and (short_ones or is_worth_a_stub(result.blocks))
    ]
    if not whole:
        return 0
    return max(0, rendered.cost_of((ResultsEntry(tuple(whole)),)) - _STUB_TOKENS * len(whole))
