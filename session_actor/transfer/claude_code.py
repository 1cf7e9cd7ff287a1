"""Transcripts of Claude Code: JSON Lines of a tree by `uuid` and `parentUuid`, several lines for one reply.

A reply is written block by block, each a line with the same `message.id`, and the results of its calls may stand
between them; parallel results hang on different lines of it. Here a reply is one turn, and its results follow it. After
a compaction a line `compact_boundary` begins anew, says in `logicalParentUuid` where, and is followed by the summary.
Lines of side chains (`isSidechain`) are chains of their own. Every other line in the tree is passed through.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import msgspec

from .anthropic_parts import assistant_turn, user_turns
from .fields import UNREADABLE, fields, is_fields, listed, parsed, reason_of, text, time_of, word
from .lines import too_long
from .pieces import BEFORE, Begun, Passed, Said, Summed

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Iterator

    from .lines import Line
    from .pieces import AnyPiece, Unread

_REPLIES: Final = 64
"""How many replies of different chains may be unfinished at once."""


async def read_claude_code(lines: AsyncIterator[Line], unread: Unread) -> AsyncGenerator[AnyPiece]:
    """The pieces of a transcript."""
    reader = _Reader(unread)
    begun = False
    async for offset, _, data in lines:
        if data is None:
            unread.add(offset, too_long())
            continue
        if not data.strip():
            continue
        try:
            line = fields(parsed(data))
            kind = text(line["type"])
        except UNREADABLE as error:
            unread.add(offset, reason_of(error))
            continue
        if not begun and word(line.get("sessionId")) is not None:
            begun = True
            agent = word(line.get("agentId")) if line.get("isSidechain") is True else None
            yield Begun(f"agent-{agent}" if agent else word(line["sessionId"]))
        for piece in reader.read(kind, line, offset):
            if not begun:
                begun = True
                yield Begun(None)
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
        self.said: list[Any] = []
        self.calls: set[str] = set()
        self.held: list[Said | Passed] = []
        """Its results, and lines without a word between them."""
        self._known: set[str] = set()

    def add(self, message: dict[str, Any], key: str | None) -> None:
        """One more line of it."""
        said = message["content"]
        blocks = [{"type": "text", "text": said}] if isinstance(said, str) else listed(said)
        calls = [text(part["id"]) for part in map(fields, blocks) if part["type"] == "tool_use"]
        assistant_turn({**message, "content": blocks})  # one that cannot be read leaves the others whole
        self.calls.update(calls)
        self.said += blocks
        self.message = message
        if key is not None:
            self.keys.append(key)
            self._known.add(key)

    def hold(self, piece: Said | Passed) -> bool:
        """Hold what belongs to this reply: results of its calls, and lines without a word that hang on it."""
        if isinstance(piece, Said):
            blocks = [block for turn in piece.turns for block in turn.blocks]
            belongs = bool(blocks) and all(getattr(block, "call_id", None) in self.calls for block in blocks)
        else:
            belongs = piece.parent in self._known
        if belongs:
            self.held.append(msgspec.structs.replace(piece, parent=BEFORE))
            self._known.update(piece.keys)
        return belongs

    def pieces(self) -> Iterator[AnyPiece]:
        """The turn, and behind it its results; whatever stands on one of them stands on the last."""
        turn = assistant_turn({**self.message, "content": self.said})
        place: dict[str, Any] = {**self.place, "keys": tuple(self.keys)}
        yield Said(turns=(turn,), **place)
        yield from self.held
        keys = tuple(key for piece in self.held for key in piece.keys)
        if keys:
            yield Passed(keys=keys, lane=self.place["lane"], offset=self.place["offset"])


class _Reader:
    """Makes pieces of lines; of every lane the newest reply is held back until the next thing is said."""

    def __init__(self, unread: Unread) -> None:
        self._unread = unread
        self._replies: dict[str, _Reply] = {}
        self._lanes: dict[str, str] = {}
        """Of lines of side chains without a name: the lane of each."""
        self._boundaries: dict[str, dict[str, Any]] = {}

    def read(self, kind: str, line: dict[str, Any], offset: int) -> Iterator[AnyPiece]:
        """The pieces that are complete with this line."""
        try:
            place = self._place(line, offset)
            if kind == "assistant":
                yield from self._reply(fields(line["message"]), line, place)
                return
            piece = self._other(kind, line, place)
        except UNREADABLE as error:
            self._unread.add(offset, reason_of(error))
            return
        if isinstance(piece, Passed):
            self._unread.passed += 1
            if not piece.keys:
                return
        reply = self._replies.get(place["lane"])
        if not isinstance(piece, Summed) and reply is not None and reply.hold(piece):
            return
        yield from self._flush(place["lane"])
        yield piece

    def finish(self) -> Iterator[AnyPiece]:
        """What was held back."""
        for lane in list(self._replies):
            yield from self._flush(lane)

    def _flush(self, lane: str) -> Iterator[AnyPiece]:
        reply = self._replies.pop(lane, None)
        if reply is not None and reply.said:
            yield from reply.pieces()

    def _reply(self, message: dict[str, Any], line: dict[str, Any], place: dict[str, Any]) -> Iterator[AnyPiece]:
        lane = place["lane"]
        name = word(message.get("id")) or f"at {place['offset']}"
        reply = self._replies.get(lane)
        if reply is None or reply.name != name:
            fresh = _Reply(name, place)
            fresh.add(self._as_sent(message, line), None if not place["keys"] else place["keys"][0])
            yield from self._flush(lane)
            if len(self._replies) >= _REPLIES:
                yield from self._flush(next(iter(self._replies)))
            self._replies[lane] = fresh
            return
        reply.add(self._as_sent(message, line), None if not place["keys"] else place["keys"][0])

    def _as_sent(self, message: dict[str, Any], line: dict[str, Any]) -> dict[str, Any]:
        """A message that is no model's says that it is an error."""
        if line.get("isApiErrorMessage") is True:
            return {**message, "stop_reason": "error"}
        return message

    def _other(self, kind: str, line: dict[str, Any], place: dict[str, Any]) -> Said | Passed | Summed:
        if kind == "user":
            said = fields(line["message"])["content"]
            boundary = self._boundaries.pop(place["parent"], None) if place["parent"] else None
            if line.get("isCompactSummary") is True:
                turns = user_turns(said)
                summary = "\n".join(turn.text for turn in turns)
                tokens = (boundary or {}).get("tokens", 0)
                return Summed(summary=summary, tokens_before=tokens, **place)
            if line.get("isVisibleInTranscriptOnly") is True:
                return Passed(**place)
            return Said(turns=user_turns(said), **place)
        if kind == "system" and line.get("subtype") == "compact_boundary":
            logical = word(line.get("logicalParentUuid"))
            place["parent"] = BEFORE
            if logical is not None:
                place["parent"] = logical
            metadata = line.get("compactMetadata")
            tokens = fields(metadata).get("preTokens") if is_fields(metadata) else 0
            for key in place["keys"]:
                self._boundaries[key] = {"tokens": tokens if type(tokens) is int and tokens > 0 else 0}
        return Passed(**place)

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
