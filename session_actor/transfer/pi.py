"""Transcripts of the Pi coding agent: lines in a row (version 1), or a tree of entries with `id` and `parentId`.

A compaction names the first entry that was kept: by its `id`, or in version 1 by its number, the header being 0.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from session_actor.frames import Turn

from .fields import UNREADABLE, UnknownName, fields, parsed, reason_of, text, time_of, word
from .pi_turns import pi_blocks, pi_turn, summary_turn
from .pieces import BEFORE, Begun, Configured, Labelled, Passed, Said, Summed
from .reading import said_in

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator

    from .lines import Line
    from .notes import Notes
    from .pieces import AnyPiece


def read_pi(lines: AsyncIterator[Line], notes: Notes) -> AsyncGenerator[AnyPiece]:
    """The pieces of a transcript. A file without its header begins a conversation, too."""
    return said_in(lines, notes, _Reader(notes).read)


class _Reader:
    """Reads lines; it knows whether the conversation has begun, and how many lines there were."""

    def __init__(self, notes: Notes) -> None:
        self._notes = notes
        self._begun = False
        self._read = 0

    def read(self, data: bytes, offset: int) -> Iterator[AnyPiece]:
        """The pieces of a line."""
        line = fields(parsed(data))
        if not self._begun:
            self._begun = True
            yield Begun(word(line.get("id")) if line.get("type") == "session" else None)
        place = _place(line, offset, self._read)
        self._read += 1
        try:
            piece = self._piece(line, place)
            self._notes.passed += isinstance(piece, Passed)
        except UNREADABLE as error:
            self._notes.add(offset, reason_of(error))
            piece = Passed(**place)  # what stands on it has its place
        yield piece

    def _piece(self, line: dict[str, Any], place: dict[str, Any]) -> AnyPiece:
        if line["type"] == "message":
            turn = pi_turn(fields(line["message"]), self._notes.left_out)
            return Passed(**place) if turn is None else Said(turns=(turn,), **place)
        reader = _READERS.get(line["type"])
        if reader is None:
            raise UnknownName("an unknown type of line")
        return reader(line, place)


def _model(line: dict[str, Any], place: dict[str, Any]) -> AnyPiece:
    model = word(line.get("modelId"))
    return Passed(**place) if model is None else Configured(model=model, **place)


def _branch_summary(line: dict[str, Any], place: dict[str, Any]) -> AnyPiece:
    return Said(turns=(summary_turn(line["summary"]),), **place)


def _custom_message(line: dict[str, Any], place: dict[str, Any]) -> AnyPiece:
    return Said(turns=(Turn("user", pi_blocks(line["content"])),), **place)


def _label(line: dict[str, Any], _place: dict[str, Any]) -> AnyPiece:
    return Labelled(text(line["targetId"]), word(line.get("label")))


def _setting(_line: dict[str, Any], place: dict[str, Any]) -> AnyPiece:
    return Passed(**place)


def _place(line: dict[str, Any], offset: int, number: int) -> dict[str, Any]:
    """Where an entry stands: what has no id is called by its number, and follows the line before it."""
    at_us = time_of(line.get("timestamp"))
    if line["type"] == "session":
        return {"offset": offset, "at_us": at_us}
    key = word(line.get("id"))
    parent: str | None = BEFORE
    if key is not None and "parentId" in line:
        parent = None if line["parentId"] is None else text(line["parentId"])
    if parent is None and line["type"] != "message":
        parent = BEFORE  # settings before the first message stand below it
    return {"offset": offset, "keys": (_numbered(number) if key is None else key,), "parent": parent, "at_us": at_us}


def _numbered(number: int) -> str:
    """How a line without an id is called: as no id is."""
    return f"\0{number}"


def _compaction(line: dict[str, Any], place: dict[str, Any]) -> Summed:
    tokens, number = line.get("tokensBefore"), line.get("firstKeptEntryIndex")
    return Summed(
        summary=text(line["summary"]),
        first_kept=word(line.get("firstKeptEntryId")) or (_numbered(number) if type(number) is int else None),
        tokens_before=tokens if type(tokens) is int and tokens > 0 else 0,
        **place,
    )


_READERS: Final[dict[str, Callable[[dict[str, Any], dict[str, Any]], AnyPiece]]] = {
    "session": _model,
    "model_change": _model,
    "compaction": _compaction,
    "branch_summary": _branch_summary,
    "custom_message": _custom_message,
    "label": _label,
    "thinking_level_change": _setting,
    "custom": _setting,
    "session_info": _setting,
    "context_transform": _setting,
    "ephemeral": _setting,
}
