"""The open chunk: what its turns have brought so far, and the chunk that this makes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from session_actor.blocks import Native, Text, Thinking, ToolCall

from . import notes as words
from . import texts
from .entries import AssistantEntry, Chunk, ResultsEntry, UserEntry
from .notes import Notes
from .results import placeholder

if TYPE_CHECKING:
    from collections.abc import Sequence

    from session_actor.blocks import CallRef
    from session_actor.dialects import Dialect

    from .assistant import Call, Piece
    from .entries import Entry, ShownResult
    from .held import Held
    from .user import UserBlock
    from .view import Place


class Draft:
    """One assistant entry, the results of its calls and what the user said then; the first of a view: user's only."""

    __slots__ = (
        "after",
        "calls",
        "first",
        "held",
        "is_closed",
        "last_frame",
        "media",
        "notes",
        "paused",
        "pieces",
        "results",
        "user",
        "user_place",
    )

    def __init__(self) -> None:
        """Nothing said yet."""
        self.first: Place = (0, 0)
        self.last_frame = 0
        self.user_place: Place | None = None
        self.pieces: list[Piece] = []
        self.calls: dict[CallRef, Call] = {}
        self.results: dict[CallRef, ShownResult] = {}
        self.after: dict[CallRef, list[UserBlock]] = {}
        """What results hold that stands in the user entry."""
        self.held: dict[CallRef, str] = {}
        self.is_closed = False
        """Whether a turn ended the step: what has no result by then never gets one here."""
        self.user: list[UserBlock] = []
        self.paused = False
        self.media: list[Held] = []
        self.notes = Notes()

    def copy(self) -> Draft:
        """The same, on its own."""
        other = Draft()
        other.first, other.last_frame, other.user_place = self.first, self.last_frame, self.user_place
        other.is_closed, other.paused = self.is_closed, self.paused
        other.pieces, other.user, other.media = list(self.pieces), list(self.user), list(self.media)
        other.calls, other.results, other.held = dict(self.calls), dict(self.results), dict(self.held)
        other.after, other.notes = dict(self.after), self.notes.copy()
        return other

    def touch(self, place: Place) -> None:
        """This turn stands in it."""
        if not self.first[0]:
            self.first = place
        self.last_frame = place[0]

    def awaits(self, ref: CallRef | None) -> bool:
        """Whether it still takes the result of this call in its place."""
        return not self.is_closed and ref in self.calls and ref not in self.results

    @property
    def may_go_on(self) -> bool:
        """Whether another assistant turn can be part of the same entry."""
        return bool(self.pieces) and not self.calls and not self.user

    def say(self, pieces: Sequence[Piece]) -> None:
        """Add a part of the assistant entry."""
        self.pieces += pieces
        for piece in pieces:
            if piece.call is not None:
                self.calls[piece.call.ref] = piece.call
                self.is_closed = False

    def chunk(self, dialect: Dialect, floating: Sequence[Piece] = ()) -> Chunk:
        """What it makes. `floating`: reasoning that stands alone at the end, and is not shown there."""
        notes = self.notes.copy()
        entries: list[Entry] = []
        if self.pieces:
            entries.append(AssistantEntry(self._said(dialect, notes)))
        if self.calls:
            entries.append(ResultsEntry(tuple([self._result(call, notes) for call in self.calls.values()])))
        after = [block for ref in self.calls for block in self.after.get(ref, ())]
        if user := (*after, *self.user):
            entries.append(UserEntry(user))
        for piece in floating:
            notes.omit(words.THINKING, piece.frame)
        return Chunk(
            tuple(entries),
            self.first[0],
            self.last_frame,
            None if self.user_place is None else self.user_place[0],
            tuple(notes.omitted),
            tuple(notes.added),
            self.paused and not user,
            self.first[1],
            0 if self.user_place is None else self.user_place[1],
            tuple(self.media),
        )

    def _result(self, call: Call, notes: Notes) -> ShownResult:
        shown = self.results.get(call.ref)
        if shown is None:
            shown = placeholder(call, self.held.get(call.ref))
            notes.add(words.HELD if shown.why == "held" else words.INTERRUPTED, call.ref.frame)
        return shown

    def _said(self, dialect: Dialect, notes: Notes) -> tuple[Text | Thinking | ToolCall | Native, ...]:
        pieces = _paired(self.pieces, notes, paused=self.paused and not self.user)
        if dialect != "openai_chat":  # there it is a field of the message and has no place
            pieces = _without_last_reasoning(pieces, notes)
        if dialect == "anthropic":
            pieces = _with_reasoning_first(pieces, notes)
        if not any(piece.is_solid for piece in pieces):
            notes.add(words.BROKEN, self.last_frame)
            return (Text(texts.BROKEN_OFF),)
        blocks = [piece.block for piece in pieces]
        if dialect == "anthropic" and self.calls:  # refuses anything after a call
            blocks.sort(key=lambda block: type(block) is ToolCall)
        return tuple(blocks)


def _paired(pieces: list[Piece], notes: Notes, *, paused: bool) -> list[Piece]:
    """Without the provider's own calls that have no result, and such results without their call before them."""
    if all(piece.opens is None and piece.closes is None for piece in pieces):
        return pieces
    opened, waiting, left_out = set[str](), dict[str, int](), set[int]()
    for place, piece in enumerate(pieces):
        if piece.opens is not None:
            if piece.opens and piece.opens not in opened:
                opened.add(piece.opens)
                waiting[piece.opens] = place
            else:
                left_out.add(place)
        elif piece.closes is not None and waiting.pop(piece.closes, None) is None:
            left_out.add(place)
    if not paused:
        left_out.update(waiting.values())
    for place in left_out:
        notes.omit(words.NATIVE, pieces[place].frame)
    return [piece for place, piece in enumerate(pieces) if place not in left_out] if left_out else pieces


def _with_reasoning_first(pieces: list[Piece], notes: Notes) -> list[Piece]:
    """Anthropic refuses a message that has reasoning and does not begin with it."""
    if not pieces or pieces[0].reasoning:
        return pieces
    for piece in pieces:
        if piece.reasoning:
            notes.omit(words.THINKING, piece.frame)
    return [piece for piece in pieces if not piece.reasoning]


def _without_last_reasoning(pieces: list[Piece], notes: Notes) -> list[Piece]:
    """Reasoning that leads to nothing is refused at the end of a message."""
    end = len(pieces)
    while end and pieces[end - 1].reasoning:
        end -= 1
        notes.omit(words.THINKING, pieces[end].frame)
    return pieces[:end]
