"""What of a user's or a system's turn is shown: texts, framed references, and media that the target takes."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from session_actor.blocks import Document, Image, Native, Reference, Text
from session_actor.requests.texts import clean

from . import notes as words
from . import texts
from .media import shown_media, shown_native
from .natives import known_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from session_actor.blocks import Block

    from .entries import Target
    from .held import Media
    from .notes import Notes

UserBlock: TypeAlias = Text | Image | Document | Native
"""What a user entry holds."""


def user_blocks(
    blocks: Iterable[Block], frame: int | None, target: Target, notes: Notes, media: Media
) -> list[UserBlock]:
    """What of the blocks of a user turn in `frame` is shown to the target; blank texts are not."""
    shown = [_shown(block, frame, target, notes, media) for block in blocks]
    return [block for block in shown if block is not None]


def system_blocks(
    blocks: Iterable[Block], frame: int | None, target: Target, notes: Notes, media: Media
) -> list[UserBlock]:
    """The same of a system turn: as the user's, behind a mark, because no two APIs agree on a place for it."""
    shown = user_blocks(blocks, frame, target, notes, media)
    if shown:
        notes.add(words.SYSTEM, frame)
        shown.insert(0, Text(texts.SYSTEM))
    return shown


def _shown(block: Block, frame: int | None, target: Target, notes: Notes, media: Media) -> UserBlock | None:
    if type(block) is Text:
        return _text(block.text, frame, notes)
    if type(block) is Reference:
        return _reference(block, frame, notes)
    if type(block) is Native:
        return _native(block, frame, target, notes, media)
    if isinstance(block, Image | Document):
        return shown_media(block, target, frame, notes, media)
    return None


def _text(given: str, frame: int | None, notes: Notes) -> Text | None:
    text = _clean(given, frame, notes)
    return Text(text) if text.strip() else None


def _reference(block: Reference, frame: int | None, notes: Notes) -> Text | None:
    if not block.text.strip():
        return None
    notes.add(words.REFERENCE, frame)
    return Text(texts.reference(_clean(block.text, frame, notes), clean(block.source or "")))


def _native(block: Native, frame: int | None, target: Target, notes: Notes, media: Media) -> UserBlock | None:
    known = known_of(block, "user")
    if block.dialect == target.dialect and known.sendable and not known.reasoning:
        return shown_native(block, frame, notes, media)
    if known.text is not None:
        return _text(known.text, frame, notes)
    notes.omit(words.NATIVE, frame)
    return None


def _clean(given: str, frame: int | None, notes: Notes) -> str:
    text = clean(given)
    if text is not given:
        notes.omit(words.SURROGATES, frame)
    return text
