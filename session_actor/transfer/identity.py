"""Which frame of a session is which piece of a transcript: the same content on the same path.

The mark of a frame is a hash over the mark of its parent and its own content, without ids, refs and times; a repeat,
which is the same content on the same parent once more, gets the next one. So an import knows what it has added before,
whatever became of the session meanwhile, and needs no record of it.
"""

from __future__ import annotations

from hashlib import blake2b
from typing import TYPE_CHECKING, Final

import msgspec

from session_actor.blocks import ToolResult
from session_actor.events import Pushed
from session_actor.persistence.format import values

if TYPE_CHECKING:
    from session_actor.frames import Frame, Turn

ROOT: Final = b""
"""The mark of what is below the first frame of a stack."""


class Marks:
    """The marks that were given so far."""

    def __init__(self) -> None:
        """None yet."""
        self._frames: dict[bytes, int] = {}
        self._repeats: dict[bytes, bytes] = {}
        """By the mark of what is repeated, that of its newest repeat."""

    def add(self, below: bytes, content: bytes, frame_id: int) -> bytes:
        """Mark a frame; `below`: the mark of its parent."""
        first = _hash(below, content)
        mark = self._after(first)
        if mark != first:
            self._repeats[first] = mark
        self._frames[mark] = frame_id
        return mark

    def next(self, below: bytes, content: bytes) -> bytes:
        """The mark that a frame would get now."""
        return self._after(_hash(below, content))

    def _after(self, first: bytes) -> bytes:
        return _hash(self._repeats.get(first, first), b"again") if first in self._frames else first

    def find(self, mark: bytes) -> int | None:
        """The frame that has a mark; None: none has."""
        return self._frames.get(mark)


def _hash(below: bytes, content: bytes) -> bytes:
    digest = blake2b(below, digest_size=16)
    digest.update(b"\0")
    digest.update(content)
    return digest.digest()


def hash_of(content: bytes) -> bytes:
    """What stands for a content wherever it is."""
    return _hash(ROOT, content)


def content_of(frame: Frame) -> bytes:
    """What a frame of a session says."""
    return content_of_event(
        Pushed(
            0,
            None,
            frame.user_input,
            frame.assistant_output,
            frame.assumptions,
            frame.decisions,
            frame.given_turns,
            frame.pinned,
            instructions=frame.instructions,
            artifacts=frame.artifacts,
            retracted=frame.retracted,
        )
    )


def content_of_event(event: Pushed) -> bytes:
    """The same of a frame that is not there yet."""
    turns = None if event.turns is None else tuple(map(_unbound, event.turns))
    return values.encode_record_data(msgspec.structs.replace(event, id=0, parent=None, turns=turns))


def _unbound(turn: Turn) -> Turn:
    """A turn without the names of calls."""
    if turn.role != "tool":
        return turn
    blocks = tuple(
        msgspec.structs.replace(block, ref=None) if isinstance(block, ToolResult) else block for block in turn.blocks
    )
    return msgspec.structs.replace(turn, blocks=blocks)
