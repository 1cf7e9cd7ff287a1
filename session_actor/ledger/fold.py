"""The fold: frames of a view, one by one, to entries in chunks."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from session_actor.blocks import CallRef, Text, ToolCall, ToolResult
from session_actor.requests.texts import clean

from . import notes as words
from . import texts
from .assistant import said_by
from .draft import Draft
from .entries import AssistantEntry, Chunk, UserEntry
from .held import Media
from .notes import Notes
from .results import read_result, result_as_user, shown_result
from .user import system_blocks, user_blocks
from .view import WHOLE
from .wire import WireIds

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from session_actor.blocks import Block
    from session_actor.frames import Frame, Retraction, Turn

    from .assistant import Call, Piece
    from .entries import Entry, Target
    from .user import UserBlock
    from .view import Place, View


class Fold:
    """Turns frames into entries, incrementally: `add` costs O(what the frame holds).

    A fold depends on its target, its view and the frames added, in their order, and on nothing else; it never reads a
    frame again. `chunks` only ever grows: a chunk in it is final. What is not final is the open chunk.
    """

    __slots__ = (
        "_calls",
        "_draft",
        "_floating",
        "_floats_from",
        "_hidden",
        "_ids",
        "_media",
        "_newest",
        "_refused",
        "_spoke",
        "chunks",
        "target",
        "view",
    )

    chunks: list[Chunk]
    """The finished chunks, oldest first. For reading."""

    def __init__(self, target: Target, view: View = WHOLE) -> None:
        """An empty fold."""
        self.target = target
        self.view = view
        self.chunks = []
        self._draft = Draft()
        self._floating: list[Piece] = []
        """Reasoning of turns that say nothing else: it belongs to the assistant turn that follows …"""
        self._floats_from: Place = (0, 0)
        """… and stands from this turn on."""
        self._ids = WireIds(target.dialect, short=target.short_call_ids)
        self._calls: dict[CallRef, Call] = {}
        """All calls that are shown: a late result names its own."""
        self._refused: dict[CallRef, str | None] = {}
        """Those that are not, with their tools; None: their results are not shown either."""
        self._media = Media(target.dialect, view.unseen)
        self._newest: int | None = None
        """The frame added last."""
        self._hidden = False
        """Whether turns of it were passed over since something was shown."""
        self._spoke = False
        if view.summary:
            self._draft.user.append(Text(texts.summary(clean(view.summary))))
            self._draft.notes.add(words.SUMMARY, view.covered)
            self._spoke = True
        if view.trimmed:
            self._draft.user.append(Text(texts.trim_note(view.artifacts, view.more)))
            self._draft.notes.add(words.TRIM_NOTE)
            self._draft.notes.omit(words.TRIMMED, view.cut)

    def add(self, frame: Frame) -> None:
        """Take the next frame of the path, root first. What the view does not show is passed over."""
        if not self.view.shows(frame.id):
            return
        if self._newest is not None and (self._hidden or frame.parent != self._newest):
            self._pass_gap()
        began, self._newest = self._newest is not None, frame.id
        if frame.retracted is not None:
            self._add_correction(frame.retracted, frame.id)
        if self.view.hides_turns_of(frame.id):
            self._add_some(frame, began=began)
        else:
            index = 0
            for number, turn in enumerate(frame.turns):
                index += self._add_turn(turn, (frame.id, number), index)
        for hold in frame.holds:
            if self._draft.awaits(hold.ref):
                self._draft.held[hold.ref] = hold.reason

    def _add_some(self, frame: Frame, *, began: bool) -> None:
        """Take the turns of a frame that the view shows. `began`: whether anything was shown before."""
        index = 0
        for number, turn in enumerate(frame.turns):
            if not self.view.shows_turn(frame.id, number):
                self._hidden = began
                index += _calls_in(turn)
                continue
            if self._hidden:
                self._pass_gap()
            began = True
            index += self._add_turn(turn, (frame.id, number), index)

    def _add_turn(self, turn: Turn, place: Place, index: int) -> int:
        """Take a turn, whose first call is number `index` of its frame; return how many calls it makes."""
        self._media.enter(*place)
        if turn.role == "tool":
            self._add_results(turn, place)
            return 0
        self._draft.is_closed = True
        if turn.role == "assistant":
            self._add_assistant(turn, place, index)
            return _calls_in(turn)
        self._add_user(turn, place)
        return 0

    def open_chunk(self) -> Chunk:
        """The chunk that the next frame may still change, as it is sent when the head is here; O(that chunk).

        Its calls without a result show placeholders. The whole view is `[*chunks, open_chunk()]`; before `tail` it may
        end with an assistant entry. It has no entries while nothing was said (`is_empty`).
        """
        return self._draft.chunk(self.target.dialect, self._floating)

    @property
    def is_empty(self) -> bool:
        """Whether no turn that was added says anything: there is nothing to send."""
        return not self._spoke

    def copy(self) -> Fold:
        """A fold of its own that goes on from here; costs a copy of the lists, not of what they hold."""
        other = Fold(self.target, self.view)
        other.chunks, other._floating = list(self.chunks), list(self._floating)
        other._floats_from = self._floats_from
        other._draft, other._ids = self._draft.copy(), self._ids.copy()
        other._calls, other._refused = dict(self._calls), dict(self._refused)
        other._newest, other._spoke, other._hidden = self._newest, self._spoke, self._hidden
        return other

    def _add_correction(self, retraction: Retraction, frame: int) -> None:
        """It stands before what the user's side says next, behind the results of calls that are still open."""
        note = None if retraction.note is None else clean(retraction.note)
        self._drop_floating()
        self._draft.notes.add(words.CORRECTION, frame)
        self._put([Text(texts.correction(clean(retraction.assumption), note))], (frame, 0))

    def _add_user(self, turn: Turn, place: Place) -> None:
        draft, frame = self._draft, place[0]
        self._drop_floating()
        read = user_blocks if turn.role == "user" else system_blocks
        blocks = read(turn.blocks, frame, self.target, draft.notes, self._media)
        draft.paused = False
        if not blocks:
            draft.notes.omit(words.EMPTY, frame)
            return
        if draft.user_place is None:
            draft.user_place = place
        self._put(blocks, place)

    def _add_assistant(self, turn: Turn, place: Place, index: int) -> None:
        notes, frame = Notes(), place[0]
        stale = frame < self.view.stale
        said = said_by(
            turn, frame, index, target=self.target, stale=stale, ids=self._ids, notes=notes, media=self._media
        )
        self._calls.update((piece.call.ref, piece.call) for piece in said.pieces if piece.call is not None)
        self._refused.update(said.refused)
        if not said.is_solid:
            if said.pieces and not self._floating:
                self._floats_from = place
            self._floating += said.pieces
            self._draft.notes.extend(notes)
            if not said.pieces:
                self._draft.notes.omit(words.EMPTY, frame)
            return
        pieces, first = [*self._floating, *said.pieces], self._floats_from if self._floating else place
        self._floating = []
        if not self._draft.may_go_on or self._needs_own_entry(pieces[0]):
            self._begin_chunk(frame, pieces)
        draft = self._draft
        draft.notes.extend(notes)
        draft.touch(first)
        draft.touch(place)
        draft.say(pieces)
        draft.media += self._media.taken()
        draft.may_wait = turn.stop_reason == "tool_use"
        draft.paused = turn.stop_reason == "pause_turn" and self.target.dialect == "anthropic" and not draft.calls
        self._spoke = True

    def _needs_own_entry(self, first: Piece) -> bool:
        """Whether this cannot go on an assistant entry: Anthropic wants reasoning at its beginning, before any text."""
        return self.target.dialect == "anthropic" and first.reasoning and not self._draft.pieces[0].reasoning

    def _begin_chunk(self, frame: int, pieces: Sequence[Piece]) -> None:
        """Finish the open chunk, so that its last entry is no assistant's, and begin the next, with these pieces."""
        draft = self._draft
        if draft.goes_on(pieces):
            self._draft = draft.next_round()
            return
        if draft.may_go_on:
            draft.user.append(Text(texts.CONTINUE))
            draft.notes.add(words.CONTINUE, frame)
        elif not draft.pieces and not draft.user:
            draft.user.append(Text(texts.BRIDGE))
            draft.notes.add(words.BRIDGE, frame)
        answered = draft.waiting() & {piece.closes for piece in pieces if piece.closes is not None}
        self.chunks.append(draft.chunk(self.target.dialect, answered=answered))
        self._draft = Draft()
        self._draft.opened = answered

    def _add_results(self, turn: Turn, place: Place) -> None:
        for result in turn.blocks:
            if type(result) is ToolResult:
                self._add_result(result, place)

    def _add_result(self, result: ToolResult, place: Place) -> None:
        draft, ref, old = self._draft, result.ref, self.view.is_old(*place)
        if ref is None or not draft.awaits(ref):
            self._add_late(result, place)
            return
        call, notes = draft.calls[ref], draft.notes
        draft.results[ref], after = shown_result(result, call, place[0], self.target, notes, self._media, old=old)
        draft.media += self._media.taken()
        if after:
            draft.after[ref] = [*after]
        draft.touch(place)

    def _add_late(self, result: ToolResult, place: Place) -> None:
        """A result whose place is not there any more, or never was: the user's side shows it, here."""
        notes, ref, is_error, frame = self._draft.notes, result.ref, result.is_error, place[0]
        call = None if ref is None else self._calls.get(ref)
        name = "" if call is None else call.name
        word, title = words.LATE, texts.late(name, call.call_id if call else clean(result.call_id), is_error=is_error)
        if ref is not None and ref in self._refused:
            refused = self._refused[ref]
            if refused is None:
                notes.omit(words.RESULT, frame)
                return
            name, word, title = refused, words.REFUSED, texts.refused(refused, is_error=is_error)
        read = read_result(result, name, frame, self.target, notes, self._media, old=self.view.is_old(*place))
        notes.add(word, frame)
        self._put(result_as_user(read, title, frame, notes), place)

    def _pass_gap(self) -> None:
        """Frames are hidden here: what comes next does not belong to what was shown last."""
        draft, self._hidden = self._draft, False
        self._drop_floating()
        draft.is_closed = True
        draft.paused = False
        if draft.pieces:
            draft.user.append(Text(texts.GAP))
            draft.notes.add(words.GAP)

    def _drop_floating(self) -> None:
        for piece in self._floating:
            self._draft.notes.omit(words.THINKING, piece.frame)
        self._floating = []

    def _put(self, blocks: Sequence[UserBlock], place: Place) -> None:
        """Add what the user's side says."""
        self._draft.user += blocks
        self._draft.media += self._media.taken()
        self._draft.touch(place)
        self._spoke = True


def _calls_in(turn: Turn) -> int:
    return sum([type(block) is ToolCall for block in turn.blocks])


def folded(frames: Iterable[Frame], target: Target, view: View = WHOLE) -> Fold:
    """The fold of all these frames, root first."""
    fold = Fold(target, view)
    for frame in frames:
        fold.add(frame)
    return fold


def tail(chunk: Chunk, target: Target, ephemeral: Sequence[Block] = ()) -> Chunk:
    """The last chunk of a request: `chunk` (an open one), and what stands after it only when it is the last.

    After an assistant entry: the user's "Continue.", unless the chunk is `paused`. `ephemeral`: blocks of a user turn,
    put at the end of the user's side (left out when paused: nothing may stand there).
    """
    notes = Notes(chunk.omitted, chunk.added)
    if chunk.paused:
        if ephemeral:
            notes.omit(words.EPHEMERAL, None)
        return _with(chunk, _without_last_space(chunk.entries), notes)
    lent = Media(target.dialect)
    more = user_blocks(ephemeral, None, target, notes, lent)
    if ephemeral:
        chunk = msgspec.structs.replace(chunk, media=(*chunk.media, *lent.taken()))
    if chunk.entries and type(chunk.entries[-1]) is AssistantEntry:
        more.insert(0, Text(texts.CONTINUE))
        notes.add(words.CONTINUE, chunk.last_frame)
    return _with(chunk, _with_user(chunk.entries, more), notes)


def _with(chunk: Chunk, entries: tuple[Entry, ...], notes: Notes) -> Chunk:
    return msgspec.structs.replace(chunk, entries=entries, omitted=tuple(notes.omitted), added=tuple(notes.added))


def _with_user(entries: tuple[Entry, ...], more: Sequence[UserBlock]) -> tuple[Entry, ...]:
    if not more:
        return entries
    last = entries[-1] if entries else None
    if type(last) is UserEntry:
        return (*entries[:-1], UserEntry((*last.blocks, *more)))
    return (*entries, UserEntry(tuple(more)))


def _without_last_space(entries: tuple[Entry, ...]) -> tuple[Entry, ...]:
    """A last assistant entry may not end in white space."""
    last = entries[-1] if entries else None
    if type(last) is not AssistantEntry:
        return entries
    block = last.blocks[-1]
    if type(block) is not Text or block.text == block.text.rstrip():
        return entries
    stripped = Text(block.text.rstrip(), block.signature)
    return (*entries[:-1], AssistantEntry((*last.blocks[:-1], stripped)))
