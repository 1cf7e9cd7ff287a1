"""Images and other media as they count against what a provider takes in one request, and where they stand."""

from __future__ import annotations

import binascii
from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec

from session_actor.blocks import Image, Native
from session_actor.media import image_size, pdf_pages
from session_actor.requests.limits import limits_of

from .view import MediaPlace

if TYPE_CHECKING:
    from collections.abc import Iterable

    from session_actor.blocks import Document
    from session_actor.dialects import Dialect

    from .entries import AssistantEntry

_HEAVY: Final = 1 << 16
"""A block of one provider's own that is no image counts from so many bytes on."""
_OWN_HEAVY: Final = 1 << 18
"""One that the model said itself, from so many on: what a search found is shorter, and is not to go for images."""
_HEAD: Final = 1 << 18
"""So much of the base64 of such an image is looked into for its size."""
_IMAGES: Final = frozenset({"image", "image_url", "input_image"})


class _Source(msgspec.Struct, gc=False, rename={"camel": "mimeType"}):
    """What holds or names a file in a provider's own block, as far as it tells what it is."""

    data: str | None = None
    mime_type: str = ""
    camel: str = ""

    @property
    def kind(self) -> str:
        return self.mime_type or self.camel


class _Peek(msgspec.Struct, gc=False, rename={"inline_camel": "inlineData", "file_camel": "fileData"}):
    """A provider's own block, as far as it tells whether it is an image."""

    type: str = ""
    source: _Source | None = None
    inline_data: _Source | None = None
    inline_camel: _Source | None = None
    file_data: _Source | None = None
    file_camel: _Source | None = None

    @property
    def is_image(self) -> bool:
        blob = self.inline_data or self.inline_camel or self.file_data or self.file_camel
        return self.type in _IMAGES or (blob is not None and blob.kind.startswith("image/"))


class Held(msgspec.Struct, frozen=True, gc=False):
    """An image, a document or another block of media that is shown."""

    place: MediaPlace | None
    """None: it is lent to one request."""
    size_bytes: int
    """What it adds to a request, in base64."""
    is_image: bool
    is_large: bool = False
    """Whether it is an image that the provider takes only beside a few others."""
    pages: int = 0
    """How many pages of a PDF it has, where the provider counts them and its bytes tell."""
    is_own: bool = False
    """Whether the model said it itself, such as an image that it made."""


class Load(NamedTuple):
    """What media come to."""

    images: int = 0
    large: int = 0
    size_bytes: int = 0
    pages: int = 0

    def plus(self, held: Held) -> Load:
        """With one more."""
        return self.and_all(Load(held.is_image, held.is_large, held.size_bytes, held.pages))

    def minus(self, held: Held) -> Load:
        """With one less."""
        return self.and_all(Load(-held.is_image, -held.is_large, -held.size_bytes, -held.pages))

    def and_all(self, other: Load) -> Load:
        """The two together."""
        return Load(*(one + more for one, more in zip(self, other, strict=True)))


NO_LOAD: Final = Load()


class Media:
    """Numbers the media of each turn in their order, and tells which of them are shown."""

    __slots__ = ("_border", "_dialect", "_held", "_place")

    def __init__(self, dialect: Dialect, border: MediaPlace = (0, 0, 0)) -> None:
        """`border`: what stands before this place is not shown."""
        self._dialect: Dialect = dialect
        self._border = border
        self._place: MediaPlace | None = None
        self._held: list[Held] = []

    def enter(self, frame: int, turn: int) -> None:
        """What comes next stands in this turn of this frame."""
        self._place = (frame, turn, -1)

    def pass_by(self) -> None:
        """Number a block of media, whether the target takes it or not."""
        if self._place is not None:
            frame, turn, number = self._place
            self._place = (frame, turn, number + 1)

    def shows(self, block: Image | Document | Native, *, is_own: bool = False) -> bool:
        """Count the block that was numbered last, which the target takes; `is_own`: as in `Held`.

        False: it stands before the border, and a text takes its place.
        """
        held = _counted(block, self._place, self._dialect)
        if held is not None and is_own:
            held = msgspec.structs.replace(held, is_own=True) if held.size_bytes >= _OWN_HEAVY else None
        if held is None:
            return True
        if held.place is not None and held.place < self._border:
            return False
        self._held.append(held)
        return True

    def taken(self) -> list[Held]:
        """What was shown since this was last asked."""
        if not self._held:
            return []
        held, self._held = self._held, []
        return held


def load_of(media: Iterable[Held], said: AssistantEntry | None = None) -> Load:
    """What these come to, with what the model's other blocks in `said` add."""
    load, counted = NO_LOAD, 0  # the same one, where there is nothing
    for held in media:
        load = load.plus(held)
        counted += held.size_bytes if held.is_own else 0
    if said is not None:
        more = sum([_raw_size(block) for block in said.blocks if type(block) is Native]) - counted
        if more > 0:
            load = load._replace(size_bytes=load.size_bytes + more)
    return load


def _counted(block: Image | Document | Native, place: MediaPlace | None, dialect: Dialect) -> Held | None:
    """A block as it counts; None: it is none that does."""
    limits = limits_of(dialect)
    side = limits.longest_side
    if not isinstance(block, Native):
        data, is_image = block.data or b"", isinstance(block, Image)
        is_large = side is not None and is_image and _longest(data) > side
        pages = 0 if limits.pages is None or is_image else pdf_pages(data) or 0
        return Held(place, (len(data) + 2) // 3 * 4, is_image, is_large, pages)
    size = _raw_size(block)
    peek = _peek(block)
    pages = 0 if limits.pages is None or peek.type != "document" else pdf_pages(_bytes_of(peek.source)) or 0
    if size < _HEAVY and not peek.is_image and not pages:
        return None
    is_large = side is not None and peek.is_image and _longest(_bytes_of(peek.source, _HEAD)) > side
    return Held(place, size, peek.is_image, is_large, pages)


def _longest(data: bytes) -> int:
    """The longer side as its bytes tell; 0: nobody knows."""
    return max(image_size(data) or (0,)) if data else 0


def _bytes_of(source: _Source | None, characters: int | None = None) -> bytes:
    """What a source holds in base64; `characters`: only so much of it."""
    try:
        return b"" if source is None else binascii.a2b_base64((source.data or "")[:characters])
    except ValueError:
        return b""


def _peek(block: Native) -> _Peek:
    try:
        return msgspec.json.decode(_raw(block), type=_Peek)
    except msgspec.MsgspecError:
        return _Peek()


def _raw(block: Native) -> bytes:
    return bytes(block.raw) if isinstance(block.raw, msgspec.Raw) else b""


def _raw_size(block: Native) -> int:
    return len(_raw(block))
