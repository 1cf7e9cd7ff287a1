"""Files read piece by piece, off the loop: lines with their offsets, however large the file; or a whole document."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple

from .errors import TranscriptUnreadable

if TYPE_CHECKING:
    import os
    from collections.abc import AsyncGenerator

MAX_LINE_BYTES: Final = 64 << 20
"""No line, and no document that is one JSON value, may be longer: it is held in memory as a whole."""

_CHUNK_BYTES: Final = 1 << 16
"""Between two of them others have their turn."""

_BLANK: Final = b" \t\r\n"
_MARK: Final = b"\xef\xbb\xbf"
_WIDE: Final = re.compile(rb"\xff\xfe|\xfe\xff|\0\0\xfe\xff|[\[{]\0|\0[\[{]\0")
"""How files begin whose characters take two or four bytes: their own mark, or a bracket beside zero bytes."""


class Line(NamedTuple):
    """One line of a file, without its end."""

    offset: int
    """Where it begins [bytes]."""
    number: int
    """From 1."""
    data: bytes | None
    """None: it is longer than `MAX_LINE_BYTES` and was passed over."""


async def lines_of(path: str | os.PathLike[str], max_bytes: int = MAX_LINE_BYTES) -> AsyncGenerator[Line]:
    """Every line of a file in order, the last one also without a line end. Holds one line and one chunk in memory.

    Raises OSError when the file cannot be opened or read. Cancelling closes it.
    """
    import aiofiles

    cutter = _Cutter(max_bytes)
    async with aiofiles.open(path, "rb") as file:
        while chunk := await file.read(_CHUNK_BYTES):
            for line in cutter.feed(chunk):
                yield line
    for line in cutter.end():
        yield line


class _Cutter:
    """Cuts chunks of bytes into lines."""

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._parts: list[bytes] = []
        self._size = 0
        self._offset = 0
        self._number = 0

    def feed(self, chunk: bytes) -> list[Line]:
        """The lines that end in this chunk."""
        *ended, rest = chunk.split(b"\n")
        found: list[Line] = []
        for part in ended:
            self._add(part)
            found.append(self._cut(1))
        self._add(rest)
        return found

    def end(self) -> list[Line]:
        """The last line, if it has no end."""
        return [self._cut(0)] if self._size else []

    def _add(self, part: bytes) -> None:
        self._size += len(part)
        if self._size > self._max_bytes:
            self._parts = []
        elif part:
            self._parts.append(part)

    def _cut(self, end_bytes: int) -> Line:
        data = None if self._size > self._max_bytes else b"".join(self._parts)
        self._number += 1
        line = Line(self._offset, self._number, data)
        self._offset += self._size + end_bytes
        self._parts, self._size = [], 0
        return line


def bare_line(data: bytes) -> bytes:
    """A line without what says nothing: blanks, a byte order mark, and zero bytes that a crash left before it."""
    said = data.lstrip(b"\0").removeprefix(_MARK).strip(_BLANK)
    return said or data.strip(_BLANK).removeprefix(_MARK)


def too_long(max_bytes: int = MAX_LINE_BYTES) -> str:
    """Why such a line was passed over."""
    return f"longer than {max_bytes >> 20} MB"


async def document_of(path: str | os.PathLike[str], max_bytes: int = MAX_LINE_BYTES) -> bytes:
    """All of a file. Raises `TranscriptUnreadable` when it is longer than `max_bytes`; OSError."""
    import aiofiles

    async with aiofiles.open(path, "rb") as file:
        data = await file.read(max_bytes + 1)
    if len(data) > max_bytes:
        why = f"one JSON value {too_long(max_bytes)}: write it as JSON Lines, one conversation or one message a line"
        raise TranscriptUnreadable(str(path), 0, why)
    return data


async def must_be_utf8(path: str | os.PathLike[str]) -> None:
    """Raise `TranscriptUnreadable` for a file of wider characters, as some shells write; OSError."""
    import aiofiles

    async with aiofiles.open(path, "rb") as file:
        if _WIDE.match(await file.read(4)):
            why = "it is written in UTF-16 or UTF-32: convert it (iconv -f utf-16 -t utf-8)"
            raise TranscriptUnreadable(str(path), 0, why)


async def size_of(path: str | os.PathLike[str]) -> int:
    """How many bytes a file has. Raises OSError."""
    import aiofiles.os

    return (await aiofiles.os.stat(path)).st_size
