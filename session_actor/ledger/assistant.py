"""What of an assistant turn is shown to a target: its own reasoning and natives, texts, and calls that can be sent."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from session_actor.blocks import NULL, CallRef, Document, Image, Native, Text, Thinking, ToolCall
from session_actor.models.same import is_same_model
from session_actor.replies.broken import broke_off, may_be_cut
from session_actor.requests.texts import clean

from . import notes as words
from .media import no_room, said_media
from .natives import known_of
from .wire import is_clean, object_text

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import msgspec

    from session_actor.blocks import Block
    from session_actor.frames import Turn

    from .entries import Target
    from .held import Media
    from .notes import Notes
    from .wire import WireIds


class Call(NamedTuple):
    """A call as it is shown."""

    ref: CallRef
    call_id: str
    """On the wire."""
    name: str
    toolset: str | None = None
    """Whose member the tool is, as Anthropic names it; its result says so, too."""


class Piece(NamedTuple):
    """A part of what an assistant entry shows."""

    block: Text | Thinking | ToolCall | Native
    frame: int
    reasoning: bool = False
    opens: str | None = None
    """The provider's own tool call that it is: shown only with its result, unless the provider paused between."""
    closes: str | None = None
    call: Call | None = None

    @property
    def is_solid(self) -> bool:
        """Whether it can stand alone."""
        return not self.reasoning and not (type(self.block) is Text and not self.block.text)


class Said(NamedTuple):
    """What of one assistant turn is shown."""

    pieces: list[Piece]
    refused: dict[CallRef, str | None]
    """The calls that are not: the tool, when their results are shown in spite of it, since they may explain it."""

    @property
    def is_solid(self) -> bool:
        """Whether there is anything that can stand alone."""
        return any(piece.is_solid for piece in self.pieces)


def said_by(
    turn: Turn, frame: int, first_index: int, *, target: Target, stale: bool, ids: WireIds, notes: Notes, media: Media
) -> Said:
    """What of `turn` is shown. Its first call is number `first_index` of `frame`; `stale`: no reasoning is shown."""
    reader = _Reader(turn, frame, first_index, target, ids, notes, media)
    reader.stale = stale
    pieces = [reader.piece(block) for block in turn.blocks]
    if target.dialect == "openai_responses":
        _keep_groups_whole(pieces, frame, notes)
    return Said([piece for piece in pieces if piece is not None], reader.refused)


class _Reader:
    """Reads the blocks of one turn, in their order."""

    def __init__(  # noqa: PLR0917 - made in one place
        self, turn: Turn, frame: int, index: int, target: Target, ids: WireIds, notes: Notes, media: Media
    ) -> None:
        self.turn = turn
        self.frame = frame
        self.index = index
        self.target = target
        self.stale = False
        self.ids = ids
        self.notes = notes
        self.media = media
        self.refused = dict[CallRef, str | None]()

    def piece(self, block: Block) -> Piece | None:
        """What is shown of a block; None: nothing."""
        if type(block) is Text:
            return self._text(block)
        if type(block) is ToolCall:
            return self._call(block)
        if type(block) is Thinking:
            return self._thinking(block)
        if type(block) is Native:
            return self._native(block)
        if isinstance(block, Image | Document):
            return self._media(block)
        return None

    def _text(self, block: Text) -> Piece | None:
        signature = self._signature(block.signature, ("gemini",))
        text = self._clean(block.text)
        if not text.strip():
            return None if signature is None else Piece(Text("", signature), self.frame)
        return Piece(Text(text, signature, self._phase(block), self._more(block, text)), self.frame)

    def _more(self, block: Text, shown: str) -> msgspec.Raw:
        """Responses alone takes back what it says of a text, which counts the characters of just this one."""
        goes_back = self.turn.dialect == self.target.dialect == "openai_responses" and shown is block.text
        return block.more if goes_back else NULL

    def _phase(self, block: Text) -> str | None:
        """Models that do not have phases may refuse them, so they go back to their own model only."""
        goes_back = block.phase is not None and self.turn.dialect == self.target.dialect == "openai_responses"
        return block.phase if goes_back and self._is_asked(self.turn.model) and is_clean(block.phase) else None

    def _call(self, call: ToolCall) -> Piece | None:
        ref = CallRef(self.frame, self.index)
        self.index += 1
        cut = broke_off(self.turn.stop_reason)
        written = "{}" if not call.arguments.strip() and not cut else call.arguments
        arguments = object_text(written)
        if arguments is None:
            self.refused[ref] = None if cut else clean(call.name)
            self.notes.omit(words.CALL, self.frame)
            return None
        name, call_id = self._clean(call.name), self.ids.give(ref, call.id, self.turn.dialect)
        more = call.more if self.turn.dialect == self.target.dialect else NULL
        signature = self._signature(call.signature, ("gemini", "openai_chat"))
        shown = ToolCall(call_id, name, arguments, signature, more)
        toolset = None if more is NULL else shown.more_value.get("toolset_name")
        return Piece(shown, self.frame, call=Call(ref, call_id, name, toolset if isinstance(toolset, str) else None))

    def _thinking(self, block: Thinking) -> Piece | None:
        """Anthropic and Gemini want it signed; what speaks Chat Completions does not sign, Responses has natives."""
        target = self.target
        signed = bool(block.signature) or (target.dialect == "openai_chat" and not broke_off(self.turn.stop_reason))
        is_own = self.turn.dialect == target.dialect != "openai_responses"
        if is_own and signed and self._may_think(self.turn.model) and is_clean(block.text, block.signature):
            return Piece(block, self.frame, reasoning=True)
        self.notes.omit(words.THINKING, self.frame)
        return None

    def _native(self, block: Native) -> Piece | None:
        known = known_of(block, "assistant")
        self.media.pass_by()
        is_part = block.dialect == "openai_chat" and known.reasoning and broke_off(self.turn.stop_reason)
        is_part = is_part or (known.is_half and may_be_cut(self.turn.stop_reason))
        is_own = block.dialect == self.target.dialect and known.sendable and not is_part
        if is_own and (not known.reasoning or self._may_think(block.model or self.turn.model)):
            if self.ids.claim(known.item):
                if known.reasoning or self.media.shows(block, is_own=True):
                    return Piece(block, self.frame, known.reasoning, known.opens, known.closes)
                return Piece(no_room("A file", self.frame, self.notes), self.frame)
        elif known.text is not None:
            return Piece(Text(self._clean(known.text)), self.frame)
        self.notes.omit(words.THINKING if known.reasoning else words.NATIVE, self.frame)
        return None

    def _media(self, block: Image | Document) -> Piece:
        return Piece(said_media(block, self.frame, self.notes), self.frame)

    def _may_think(self, model: str | None) -> bool:
        return not self.stale and self._is_asked(model)

    def _is_asked(self, model: str | None) -> bool:
        """Whether what this model said goes back to it: by its name, or by the one that it was asked under."""
        asked = self.target.model
        return is_same_model(model, asked) or (model == self.turn.model and self.turn.asked == asked)

    def _signature(self, signature: str | None, carried_by: tuple[str, ...]) -> str | None:
        """A signature for who made it. `carried_by`: the dialects that have a place for it."""
        if not signature:
            return None
        goes_back = self.turn.dialect == self.target.dialect and self.target.dialect in carried_by
        if goes_back and self._may_think(self.turn.model) and is_clean(signature):
            return signature
        self.notes.omit(words.THINKING, self.frame)
        return None

    def _clean(self, text: str) -> str:
        sendable = clean(text)
        if sendable is not text:
            self.notes.omit(words.SURROGATES, self.frame)
        return sendable


def _keep_groups_whole(pieces: list[Piece | None], frame: int, notes: Notes) -> None:
    """Drop reasoning whose group is not whole: Responses takes it only with all that it led to."""
    for group in _groups(pieces):
        led_to = [pieces[place] for place in group if not _is_reasoning(pieces[place])]
        if led_to and None not in led_to:
            continue
        for place in group:
            if _is_reasoning(pieces[place]):
                pieces[place] = None
                notes.omit(words.THINKING, frame)


def _groups(pieces: Sequence[Piece | None]) -> Iterator[list[int]]:
    """Reasoning and what follows it up to the next: the places of each group."""
    group: list[int] = []
    for place, piece in enumerate(pieces):
        if _is_reasoning(piece) and group and not _is_reasoning(pieces[group[-1]]):
            yield group
            group = []
        if group or _is_reasoning(piece):
            group.append(place)
    if group:
        yield group


def _is_reasoning(piece: Piece | None) -> bool:
    return piece is not None and piece.reasoning
