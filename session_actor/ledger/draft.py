"""The open chunk: what its turns have brought so far, and the chunk that this makes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias, cast

import msgspec

from session_actor.blocks import NULL, Native, Text, Thinking, ToolCall
from session_actor.given.content import checked, free

from . import notes as words
from . import texts
from .entries import AssistantEntry, Chunk, ResultsEntry, UserEntry
from .notes import Notes
from .results import placeholder

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from session_actor.blocks import CallRef
    from session_actor.dialects import Dialect

    from .assistant import Call, Piece
    from .entries import Entry, ShownResult
    from .held import Held
    from .user import UserBlock
    from .view import Place

_Said: TypeAlias = Text | Thinking | ToolCall | Native


class Draft:
    """One assistant entry, the results of its calls and what the user said then; the first of a view: user's only.

    A program that a provider runs may call us again and again, each time in an answer of its own, before its result
    comes. So long it is not known whether it can be shown, and the rounds before stay in the draft.
    """

    __slots__ = (
        "after",
        "calls",
        "first",
        "held",
        "is_closed",
        "last_frame",
        "may_wait",
        "media",
        "notes",
        "opened",
        "paused",
        "pieces",
        "results",
        "rounds",
        "user",
        "user_place",
    )

    def __init__(self) -> None:
        """Nothing said yet."""
        self.first: Place = (0, 0)
        self.last_frame = 0
        self.user_place: Place | None = None
        self.pieces: list[Piece] = []
        self.rounds: tuple[Draft, ...] = ()
        """The rounds before of programs that still run; nothing changes in them any more."""
        self.opened = frozenset[str]()
        """The provider's own calls of entries before that it may hold the results of."""
        self.calls: dict[CallRef, Call] = {}
        self.results: dict[CallRef, ShownResult] = {}
        self.after: dict[CallRef, list[UserBlock]] = {}
        """What results hold that stands in the user entry."""
        self.held: dict[CallRef, str] = {}
        self.is_closed = False
        """Whether a turn ended the step: what has no result by then never gets one here."""
        self.user: list[UserBlock] = []
        self.paused = False
        self.may_wait = False
        """Whether the model stopped for our calls: then the provider's own may wait for them."""
        self.media: list[Held] = []
        self.notes = Notes()

    def copy(self) -> Draft:
        """The same, on its own."""
        other = Draft()
        other.first, other.last_frame, other.user_place = self.first, self.last_frame, self.user_place
        other.is_closed, other.paused, other.opened = self.is_closed, self.paused, self.opened
        other.may_wait, other.rounds = self.may_wait, self.rounds
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

    def waiting(self) -> frozenset[str]:
        """The provider's own calls that it runs once it has the results of ours, if that is all it is sent.

        Anthropic does so with calls that a model makes beside ours, and with programs that make ours; the next answer
        begins with what came of them (docs, "Server tools", "Programmatic tool calling").
        """
        if not self.may_wait or not self.calls or self._after():
            return frozenset()
        own = _pairs(self.pieces, self.opened)[1]
        return frozenset((*own, *(self.opened - _closed(self.pieces))))

    def goes_on(self, pieces: Sequence[Piece]) -> bool:
        """Whether an answer of these is another round of a program that waits (docs, "Programmatic tool calling")."""
        waiting = self.waiting()
        return bool(waiting) and any(caller_of(piece.block) in waiting for piece in pieces)

    def next_round(self) -> Draft:
        """The draft of the answer that follows, behind this one's rounds and its own."""
        made = Draft()
        made.opened, made.rounds = self.waiting(), (*self.rounds, self)
        return made

    def chunk(self, dialect: Dialect, floating: Sequence[Piece] = (), answered: frozenset[str] | None = None) -> Chunk:
        """What it makes. `floating`: reasoning that stands alone at the end, and is not shown there.

        `answered`: which of the provider's own calls the next entry holds the results of; None: there is none yet.
        """
        notes, waits = Notes(), self.waiting() if answered is None else self.waiting() & answered
        rounds = (*self.rounds, self)
        shown = waits.union(*(_closed(one.pieces) for one in rounds[1:]))
        entries = [entry for one in rounds for entry in one._entries(dialect, notes, shown)]  # noqa: SLF001 - its own
        user = self._after()
        for piece in floating:
            notes.omit(words.THINKING, piece.frame)
        first = rounds[0].first
        return Chunk(
            tuple(entries),
            first[0],
            self.last_frame,
            None if self.user_place is None else self.user_place[0],
            tuple(notes.omitted),
            tuple(notes.added),
            (self.paused and not user) or (bool(waits) and answered is None),
            first[1],
            0 if self.user_place is None else self.user_place[1],
            tuple(held for one in rounds for held in one.media),
        )

    def _entries(self, dialect: Dialect, notes: Notes, shown: frozenset[str]) -> Iterator[Entry]:
        """Those of one round. `shown`: which of the provider's own calls have their result later, or wait for it."""
        notes.extend(self.notes)
        if self.pieces:
            yield AssistantEntry(self._said(dialect, notes, shown))
        if self.calls:
            yield ResultsEntry(tuple([self._result(call, notes) for call in self.calls.values()]))
        if user := self._after():
            yield UserEntry(user)

    def _paired(self, notes: Notes, later: frozenset[str]) -> list[Piece]:
        """What it says without the provider's own calls that have no result, and results without their call."""
        pieces = self.pieces
        if all(piece.opens is None and piece.closes is None for piece in pieces):
            return pieces
        left_out, waiting = _pairs(pieces, self.opened)
        if not self.paused or self.user:
            left_out.update(place for call, place in waiting.items() if call not in later)
        for place in left_out:
            notes.omit(words.NATIVE, pieces[place].frame)
        return [piece for place, piece in enumerate(pieces) if place not in left_out] if left_out else pieces

    def _after(self) -> tuple[UserBlock, ...]:
        """What stands behind the results."""
        return (*(block for ref in self.calls for block in self.after.get(ref, ())), *self.user)

    def _result(self, call: Call, notes: Notes) -> ShownResult:
        shown = self.results.get(call.ref)
        if shown is None:
            shown = placeholder(call, self.held.get(call.ref))
            notes.add(words.HELD if shown.why == "held" else words.INTERRUPTED, call.ref.frame)
        return shown

    def _said(self, dialect: Dialect, notes: Notes, later: frozenset[str]) -> tuple[_Said, ...]:
        pieces = self._paired(notes, later)
        if dialect != "openai_chat":  # there it is a field of the message and has no place
            pieces = _without_last_reasoning(pieces, notes)
        if dialect == "anthropic":
            pieces = _with_reasoning_first(pieces, notes)
        if not any(piece.is_solid for piece in pieces):
            notes.add(words.BROKEN, self.last_frame)
            return (Text(texts.BROKEN_OFF),)
        shown = (self.opened & later).union(piece.opens for piece in pieces if piece.opens)
        blocks = [_called_by(piece.block, shown) for piece in pieces]
        if dialect == "anthropic" and self.calls:  # refuses anything after a call
            blocks.sort(key=lambda block: type(block) is ToolCall)
        return tuple(blocks)


def _pairs(pieces: Sequence[Piece], before: frozenset[str]) -> tuple[set[int], dict[str, int]]:
    """The places of what has no part to it, and those of the provider's own calls that have no result yet.

    `before`: those of the entry before, which wait for one.
    """
    opened, waiting, left_out, still = set[str](), dict[str, int](), set[int](), set(before)
    for place, piece in enumerate(pieces):
        if piece.opens is not None:
            if piece.opens and piece.opens not in opened:
                opened.add(piece.opens)
                waiting[piece.opens] = place
            else:
                left_out.add(place)
        elif piece.closes is not None and waiting.pop(piece.closes, None) is None:
            if piece.closes in still:
                still.discard(piece.closes)
            else:
                left_out.add(place)
    return left_out, waiting


def _closed(pieces: Sequence[Piece]) -> frozenset[str]:
    return frozenset(piece.closes for piece in pieces if piece.closes)


def caller_of(block: object) -> str:
    """The id of the program that makes a call; empty for any other block, and for a call of the model itself."""
    if type(block) is not ToolCall or block.more is NULL:
        return ""
    caller = block.more_value.get("caller")
    made_by = cast("dict[str, Any]", caller).get("tool_id") if isinstance(caller, dict) else None
    return made_by if isinstance(made_by, str) else ""


def _called_by(block: _Said, shown: frozenset[str]) -> _Said:
    """A block as it is; of a call that a program made which is not shown, without saying so."""
    if type(block) is not ToolCall or caller_of(block) in {"", *shown}:
        return block
    more = block.more_value
    del more["caller"]
    return msgspec.structs.replace(block, more=checked(free, more or None, "more"))


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
