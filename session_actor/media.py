"""What the bytes of an image or a PDF tell of its size, read without a library for it.

The bytes are a stranger's: whatever they are, nothing is raised, and the work is bounded.
"""

from __future__ import annotations

import re
import zlib
from itertools import islice
from struct import Struct, error
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

Size = tuple[int, int]

_JPEG_STEPS: Final = 10_000
"""How many segments and fill bytes of a JPEG are passed over on the way to its size."""

_FRAMES: Final = frozenset({*range(0xC0, 0xD0)} - {0xC4, 0xC8, 0xCC})
"""The markers of JPEG segments that hold the size (SOF0 to SOF15; ITU-T T.81, table B.1)."""

_ALONE: Final = frozenset({0x01, *range(0xD0, 0xD9)})
"""Markers without a segment."""

_LAST: Final = frozenset({0xD9, 0xDA})
"""Behind these comes no size: the end, and the picture itself."""

_PAGE: Final = re.compile(rb"/Type\s{0,8}/Page(?![A-Za-z])")
_MOST_PAGES: Final = 100_000

_PACKED_STREAMS: Final = 256
_PACKED_BYTES: Final = 8 << 20
"""How many of a PDF's streams of packed objects are unpacked, and up to which size all together."""

_STREAM_BYTES: Final = 1 << 20
"""How long one of them may be."""


def image_size(data: bytes) -> Size | None:
    """Width and height [pixels] of a PNG, JPEG, GIF, WebP or BMP, from its header; None when they cannot be read.

    The beginning of a file is enough, where its header is whole. A turn that a camera noted is not taken into account.
    """
    for starts, size_of in _FORMATS:
        if data.startswith(starts):
            try:
                width, height = size_of(data) or (0, 0)
            except (error, IndexError):  # it is cut off
                return None
            return (width, height) if width > 0 and height > 0 else None
    return None


def image_type(data: bytes) -> str | None:
    """The media type that the first bytes of an image tell; None when they tell none that is known."""
    if data.startswith(b"RIFF"):
        return "image/webp" if data[8:12] == b"WEBP" else None
    if data[4:8] == b"ftyp":  # ISO/IEC 23008-12, 10: the brand of the file
        return _BRANDS.get(data[8:12])
    return next((kind for starts, kind in _TYPES if data.startswith(starts)), None)


def _png(data: bytes) -> Size | None:
    """PNG specification, 11.2.2: IHDR comes first."""
    return _BIG_LONGS.unpack_from(data, 16) if data[12:16] == b"IHDR" else None


def _gif(data: bytes) -> Size | None:
    """GIF89a specification, 18: the logical screen."""
    return _LITTLE_SHORTS.unpack_from(data, 6) if data[3:6] in {b"87a", b"89a"} else None


def _bmp(data: bytes) -> Size | None:
    """The bitmap header: the old one has short numbers; a negative height means that the rows go downwards."""
    if _LITTLE_LONGS.unpack_from(data, 14)[0] == 12:  # noqa: PLR2004 - the length of BITMAPCOREHEADER
        return _LITTLE_SHORTS.unpack_from(data, 18)
    width, height = _LITTLE_LONGS.unpack_from(data, 18)
    return width, abs(height)


def _webp(data: bytes) -> Size | None:
    """The three forms of a WebP: lossy (RFC 6386, 9.1), lossless and extended (RFC 9649, 3.4 and 2.7)."""
    form = data[8:16]
    if form == b"WEBPVP8 " and data[23:26] == b"\x9d\x01\x2a":
        width, height = _LITTLE_SHORTS.unpack_from(data, 26)
        return width & 0x3FFF, height & 0x3FFF
    if form == b"WEBPVP8L" and data[20] == 0x2F:  # noqa: PLR2004 - its signature
        bits: int = _LITTLE_LONG.unpack_from(data, 21)[0]
        return (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
    if form == b"WEBPVP8X":
        low_width, high_width, low_height, high_height = _LITTLE_24_BITS.unpack_from(data, 24)
        return low_width + (high_width << 16) + 1, low_height + (high_height << 16) + 1
    return None


def _jpeg(data: bytes) -> Size | None:
    """Goes from segment to segment up to the first that tells the size (ITU-T T.81, B.1.1 and B.2.2)."""
    at = 2
    for _ in range(_JPEG_STEPS):
        if data[at] != 0xFF:  # noqa: PLR2004 - every marker begins so
            return None
        marker = data[at + 1]
        if marker in _LAST:
            return None
        if marker in _FRAMES:
            height, width = _BIG_SHORTS.unpack_from(data, at + 5)
            return width, height
        if marker == 0xFF:  # noqa: PLR2004 - it fills up
            at += 1
        elif marker in _ALONE:
            at += 2
        else:
            at += 2 + max(2, int.from_bytes(data[at + 2 : at + 4], "big"))
    return None


_BIG_LONGS: Final = Struct(">II")
_BIG_SHORTS: Final = Struct(">HH")
_LITTLE_24_BITS: Final = Struct("<HBHB")
_LITTLE_LONG: Final = Struct("<I")
_LITTLE_LONGS: Final = Struct("<ii")
_LITTLE_SHORTS: Final = Struct("<HH")

_FORMATS: Final[tuple[tuple[bytes, Callable[[bytes], Size | None]], ...]] = (
    (b"\x89PNG\r\n\x1a\n", _png),
    (b"\xff\xd8", _jpeg),
    (b"GIF", _gif),
    (b"RIFF", _webp),
    (b"BM", _bmp),
)

_TYPES: Final = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
)
_BRANDS: Final = {b"heic": "image/heic", b"heix": "image/heic", b"mif1": "image/heif", b"avif": "image/avif"}


def pdf_pages(data: bytes) -> int | None:
    """About how many pages a PDF has; None for what is no PDF, and where they cannot be counted.

    Counts the page objects that it shows, and those in packed objects (as far as 8 MB of these tell). A page that was
    changed later counts once more.
    """
    if b"%PDF-" not in data[:1_024]:
        return None
    parts = (data, *_unpacked(data))
    return sum(1 for _ in islice((page for part in parts for page in _PAGE.finditer(part)), _MOST_PAGES)) or None


def _unpacked(data: bytes) -> Iterator[bytes]:
    """The packed objects of a PDF (ISO 32000-1, 7.5.7), as far as they are deflated and not encrypted."""
    left = _PACKED_BYTES
    at = 0
    for _ in range(_PACKED_STREAMS):
        at = data.find(b"/ObjStm", at + 1)
        start = data.find(b"stream", at, at + 512) + len(b"stream")
        if at < 0 or left <= 0:
            return
        end = data.find(b"endstream", start, start + _STREAM_BYTES)
        if start > at and end > start:
            part = _inflated(data[start:end].lstrip(b"\r\n"), left)
            left -= len(part)
            yield part


def _inflated(data: bytes, most: int) -> bytes:
    try:
        return zlib.decompressobj().decompress(data, most)
    except zlib.error:
        return b""
