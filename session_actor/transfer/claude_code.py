"""Transcripts of Claude Code: JSON Lines of a tree by `uuid` and `parentUuid`, several lines for one reply.

A reply is written block by block, each a line with the same `message.id`, and the results of its calls, attachments and
lines of other kinds may stand between them; parallel results hang on different lines of it. Here a reply is one turn,
its results follow it, and what was attached follows these. After a compaction a line `compact_boundary` begins anew,
says in `logicalParentUuid` where, and is followed by the summary. Lines of side chains (`isSidechain`) are chains of
their own. Lines that say nothing are passed through, so that what stands on them has its place.
"""

from __future__ import annotations

from collections import Counter
from contextlib import aclosing
from typing import TYPE_CHECKING, Any, Final

import msgspec

from .anthropic_parts import assistant_turn, user_turns
from .claude_kinds import BOOKKEEPING, COLLAPSED, SPOKEN, attached
from .fields import UNREADABLE, UnknownName, fields, is_fields, parsed, parts_of, reason_of, text, time_of, word
from .pieces import BEFORE, Begun, Passed, Said, Summed
from .reading import said_in

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Iterator

    from session_actor.frames import Turn

    from .lines import Line
    from .notes import Notes
    from .pieces import AnyPiece

_UNSAID: Final = ("isVisibleInTranscriptOnly", "isVirtual")
"""What marks a message that no model was shown."""

_REPLIES: Final = 64
"""How many replies of different chains may be unfinished at once."""


async def read_claude_code(lines: AsyncIterator[Line], notes: Notes) -> AsyncGenerator[AnyPiece]:
    """The pieces of a transcript."""
    reader = _Reader(notes)
    async with aclosing(said_in(lines, notes, reader.line)) as pieces:
        async for piece in pieces:
            yield piece
    for piece in reader.finish():
        yield piece


class _Reply:
    """A reply whose lines are still coming."""

    def __init__(self, name: str, place: dict[str, Any]) -> None:
        self.name = name
        self.place = place
        self.keys: list[str] = []
        self.message: dict[str, Any] = {}
        self.said: list[dict[str, Any]] = []
        self.calls: set[str] = set()
        self.held: list[Said | Passed] = []
        """Its results, and lines without a word between them."""
        self.attached: list[Said] = []
        """What was attached meanwhile: it must not stand between a call and its result."""
        self._known: set[str] = set()

    def add(self, message: dict[str, Any], keys: tuple[str, ...]) -> None:
        """One more line of it."""
        said = parts_of(message["content"])
        calls = [text(part["id"]) for part in said if part["type"] == "tool_use"]
        assistant_turn({**message, "content": said}, Counter())  # one that cannot be read leaves the others whole
        self.calls.update(calls)
        self.said += said
        self.message = message
        self.keys += keys
        self._known.update(keys)

    def hold(self, piece: Said | Passed) -> bool:
        """Hold what belongs to this reply: results of its calls, and what hangs on it but is not said next."""
        if isinstance(piece, Said) and not piece.is_attached:
            blocks = [block for turn in piece.turns for block in turn.blocks]
            belongs = bool(blocks) and all(getattr(block, "call_id", None) in self.calls for block in blocks)
        else:
            belongs = piece.parent in self._known
        if belongs:
            held = msgspec.structs.replace(piece, parent=BEFORE)
            if isinstance(held, Said) and held.is_attached:
                self.attached.append(held)
            else:
                self.held.append(held)
            self._known.update(piece.keys)
        return belongs

    def pieces(self, left_out: Counter[str]) -> Iterator[AnyPiece]:
        """The turn, and behind it what it holds; whatever stands on one of them stands on the last."""
        if self.said:
            turn = assistant_turn({**self.message, "content": self.said}, left_out)
            place: dict[str, Any] = {**self.place, "keys": tuple(self.keys)}
            yield Said(turns=(turn,), **place)
        held = (*self.held, *self.attached)
        yield from held
        keys = tuple(key for piece in held for key in piece.keys)
        if keys:
            yield Passed(keys=keys, lane=self.place["lane"], offset=self.place["offset"])


class _Reader:
    """Makes pieces of lines; of every lane the newest reply is held back until the next thing is said."""

    def __init__(self, notes: Notes) -> None:
        self._notes = notes
        self._begun = False
        self._replies: dict[str, _Reply] = {}
        self._lanes: dict[str, str] = {}
        """Of lines of side chains without a name: the lane of each."""
        self._boundaries: dict[str, dict[str, Any]] = {}
        """What is known of the summary that comes next, by its lane."""

    def line(self, data: bytes, offset: int) -> Iterator[AnyPiece]:
        """The pieces that are complete with this line."""
        line = fields(parsed(data))
        if not self._begun and word(line.get("sessionId")) is not None:
            self._begun = True
            agent = word(line.get("agentId")) if line.get("isSidechain") is True else None
            yield Begun(f"agent-{agent}" if agent else word(line["sessionId"]))
        pieces = list(self._read(text(line["type"]), line, offset))
        if pieces and not self._begun:
            self._begun = True
            yield Begun(None)
        yield from pieces

    def finish(self) -> Iterator[AnyPiece]:
        """What was held back."""
        for lane in list(self._replies):
            yield from self._flush(lane)

    def _read(self, kind: str, line: dict[str, Any], offset: int) -> Iterator[AnyPiece]:
        place = self._place(line, offset)
        piece: Said | Passed | Summed
        try:
            if kind == "assistant" and line.get("isVirtual") is not True:
                yield from self._reply(_as_sent(fields(line["message"]), line), place)
                return
            piece = self._other(kind, line, place)
            self._notes.passed += isinstance(piece, Passed)
        except UNREADABLE as error:
            self._notes.add(offset, reason_of(error))
            piece = Passed(**place)  # what stands on it has its place
        if isinstance(piece, Passed) and not piece.keys:
            return
        reply = self._replies.get(place["lane"])
        if not isinstance(piece, Summed) and reply is not None and reply.hold(piece):
            return
        yield from self._flush(place["lane"])
        yield piece

    def _flush(self, lane: str) -> Iterator[AnyPiece]:
        reply = self._replies.pop(lane, None)
        if reply is not None:
            yield from reply.pieces(self._notes.left_out)

    def _reply(self, message: dict[str, Any], place: dict[str, Any]) -> Iterator[AnyPiece]:
        lane = place["lane"]
        name = word(message.get("id")) or f"at {place['offset']}"
        reply = self._replies.get(lane)
        if reply is not None and reply.name == name:
            reply.add(message, place["keys"])
            return
        fresh = _Reply(name, place)
        fresh.add(message, place["keys"])
        yield from self._flush(lane)
        if len(self._replies) >= _REPLIES:
            yield from self._flush(next(iter(self._replies)))
        self._replies[lane] = fresh

    def _other(self, kind: str, line: dict[str, Any], place: dict[str, Any]) -> Said | Passed | Summed:
        """What any line says but those of replies."""
        if kind not in SPOKEN and kind not in BOOKKEEPING:
            raise UnknownName("an unknown type of line")
        if kind == COLLAPSED:
            self._notes.left_out["collapsed"] += 1
        turns: tuple[Turn, ...] | None = None
        is_summary = line.get("isCompactSummary") is True
        if kind == "user" and (is_summary or not any(line.get(flag) is True for flag in _UNSAID)):
            turns = user_turns(fields(line["message"])["content"], self._notes.left_out)
            if is_summary:
                boundary = self._boundaries.pop(place["lane"], {})
                return Summed(summary="\n".join(turn.text for turn in turns), **boundary, **place)
        elif kind == "attachment":
            turns = attached(fields(line["attachment"]), self._notes.left_out)
        elif kind == "system" and line.get("subtype") == "local_command":
            turns = user_turns(line["content"], self._notes.left_out)
        elif kind == "system" and line.get("subtype") == "compact_boundary":
            place["parent"] = word(line.get("logicalParentUuid")) or BEFORE
            self._boundaries[place["lane"]] = _boundary_of(line.get("compactMetadata"))
        return Passed(**place) if turns is None else Said(turns=turns, is_attached=kind == "attachment", **place)

    def _place(self, line: dict[str, Any], offset: int) -> dict[str, Any]:
        key, parent = word(line.get("uuid")), line.get("parentUuid", BEFORE)
        parent = None if parent is None else text(parent)
        lane = self._lane(line, key, parent)
        return {
            "offset": offset,
            "keys": () if key is None else (key,),
            "parent": parent,
            "lane": lane,
            "at_us": time_of(line.get("timestamp")),
        }

    def _lane(self, line: dict[str, Any], key: str | None, parent: str | None) -> str:
        if line.get("isSidechain") is not True:
            return ""
        lane = word(line.get("agentId"))
        if lane is None:  # older ones have no name: the chain is that of its parent
            lane = (self._lanes.get(parent) if parent else None) or (key or "")[:8] or "1"
        if key is not None:
            self._lanes[key] = lane
        return lane


def _as_sent(message: dict[str, Any], line: dict[str, Any]) -> dict[str, Any]:
    """A message that is no model's says that it is an error."""
    if line.get("isApiErrorMessage") is True:
        return {**message, "stop_reason": "error"}
    return message


def _boundary_of(metadata: object) -> dict[str, Any]:
    """How long the conversation was before a compaction, and the first line that is shown beside its summary."""
    known = fields(metadata) if is_fields(metadata) else {}
    tokens, segment = known.get("preTokens"), known.get("preservedSegment")
    return {
        "tokens_before": tokens if type(tokens) is int and tokens > 0 else 0,
        "first_kept": word(fields(segment).get("headUuid")) if is_fields(segment) else None,
    }
