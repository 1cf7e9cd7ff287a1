"""What the readers of transcripts give: pieces of conversations, in the order of the file, in the words of no form."""

from __future__ import annotations

from typing import Final, TypeAlias

import msgspec

from session_actor.blocks import Native
from session_actor.events import Pushed
from session_actor.frames import Tool, Turn
from session_actor.given import content
from session_actor.given.content import checked
from session_actor.state.weight import SURELY_FITS, check_size, weight_of

BEFORE: Final = "\0before"
"""As a parent: whatever stands before it in its lane. No form has such a key."""


class Piece(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """Where something stands in the tree of a transcript."""

    offset: int = 0
    """Where its line begins [bytes]."""
    keys: tuple[str, ...] = ()
    """What later pieces call it by."""
    parent: str | None = BEFORE
    """The key of the piece that it follows; None: none, it begins a stack."""
    lane: str = ""
    """Which chain of the file it belongs to; the main one has no name."""
    at_us: int | None = None
    """When it was said, microseconds since the epoch; None: not known."""


class Said(Piece, frozen=True, gc=False, kw_only=True):
    """Turns that one message brought."""

    turns: tuple[Turn, ...]
    is_attached: bool = False
    """Whether it came with another one, and goes behind what that waits for: in a file that grew it may have moved."""


class Configured(Piece, frozen=True, gc=False, kw_only=True):
    """Instructions from here on. None: as before."""

    system: str | None = None
    tools: tuple[Tool, ...] | None = None
    native_tools: tuple[Native, ...] | None = None
    model: str | None = None


class Passed(Piece, frozen=True, gc=False, kw_only=True):
    """A line that is in the tree and says nothing."""


class Summed(Piece, frozen=True, gc=False, kw_only=True):
    """A summary that stands for what was said before it."""

    summary: str
    first_kept: str | None = None
    """The key of the first piece that is shown beside it; None: it stands for all before."""
    tokens_before: int = 0


class Labelled(msgspec.Struct, frozen=True, gc=False):
    """A name that somebody gave to a piece; the last one counts."""

    target: str
    name: str | None
    """None: the name was taken away."""


class Begun(msgspec.Struct, frozen=True, gc=False):
    """What follows is another conversation."""

    name: str | None
    """What its file calls it; None: nothing."""
    of_many: bool = False
    """Whether the file may hold several, so that each gets a number."""


Planted: TypeAlias = "Said | Configured | Passed | Summed | Labelled"
"""What belongs to a conversation."""

AnyPiece: TypeAlias = "Planted | Begun"
"""Every piece."""


def checked_piece(piece: Planted) -> Planted:
    """A piece as it can be kept. Raises `InvalidArgument`, `ValueNotStorable`, `RecordTooLarge`."""
    if not isinstance(piece, Said):
        return piece
    turns = checked(content.turns, piece.turns, "turns")
    check_weight(Pushed(0, None, turns=turns))
    return msgspec.structs.replace(piece, turns=turns)


def check_weight(event: Pushed) -> None:
    """Raise `RecordTooLarge` for a frame that no record can hold."""
    if weight_of(event) > SURELY_FITS:
        check_size(event)
