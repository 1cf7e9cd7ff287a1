"""Images and documents as a target takes them; a text stands in place of one that it does not take."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from session_actor.blocks import Image, Text
from session_actor.requests.media import as_text, carries, is_text, is_too_large, unpacked

from . import notes as words
from .texts import not_seen
from .wire import is_clean

if TYPE_CHECKING:
    from session_actor.blocks import Document, Native

    from .entries import Target
    from .held import Media
    from .notes import Notes


_FULL: Final = "a request to this API takes no more of them beside the newer ones"


def shown_media(
    block: Image | Document, target: Target, frame: int | None, notes: Notes, media: Media
) -> Text | Image | Document:
    """What the target is shown of it. Plain text is shown as such, a data: URL as the data that it holds."""
    media.pass_by()
    block = unpacked(block)
    if is_text(block):
        return Text(as_text(block))
    is_image = isinstance(block, Image)
    if not (target.sees_images if is_image else target.sees_documents):
        return _left_out(block, frame, notes, f"this model takes no {'images' if is_image else 'documents'}")
    if not carries(target.dialect, block) or not is_clean(block.url, block.file_id, block.media_type):
        return _left_out(block, frame, notes, "this API does not take it in this form")
    if is_too_large(target.dialect, block):
        return _left_out(block, frame, notes, "this API does not take one of this size")
    if media.shows(block):
        return block
    return no_room("An image" if is_image else "A document", frame, notes)


def shown_native(block: Native, frame: int | None, notes: Notes, media: Media) -> Native | Text:
    """A provider's own block, which may be an image or another file."""
    media.pass_by()
    if media.shows(block):
        return block
    return no_room("A file", frame, notes)


def said_media(block: Image | Document, frame: int | None, notes: Notes) -> Text:
    """The same in an assistant's turn: no API takes images or documents back there."""
    block = unpacked(block)
    if is_text(block):
        return Text(as_text(block))
    return _left_out(block, frame, notes, "it was in a message of the assistant")


def no_room(what: str, frame: int | None, notes: Notes) -> Text:
    """What stands in the place of one that has no room beside newer ones."""
    notes.omit(words.NO_ROOM, frame)
    return Text(not_seen(what, _FULL))


def _left_out(block: Image | Document, frame: int | None, notes: Notes, why: str) -> Text:
    is_image = isinstance(block, Image)
    notes.omit(words.IMAGE if is_image else words.DOCUMENT, frame)
    return Text(not_seen("An image" if is_image else "A document", why))
