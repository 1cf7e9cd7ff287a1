r"""The index of a sealed journal file: which frames the records in it add, and where in the file those lie.

It is the file's last line, told from a record and from a header by its first bytes:

    index := {"index":1,"birth":"5e0f…","number":3,"frames":[run …],"copied":[many …],"sum":…}
        run     [offset, id, [length …]]: from `offset` on, line after line adds `id`, `id` + 1 …; `length` in bytes, LF
                included; a negative one stands for that many bytes of lines that add no frame
        many    [offset, length, [[first, last] …]]: one line that adds several frames, by runs of ids

A frame costs the digits of its line's length and a comma.
"""

from __future__ import annotations

from bisect import bisect_right
from itertools import accumulate
from typing import TYPE_CHECKING, Final
from zlib import crc32

import msgspec

from session_actor.persistence.errors import JournalCorrupt, LineDamaged, StoreVersionTooNew
from session_actor.persistence.format.frame_index import PUSHED_HEAD, frames_in
from session_actor.persistence.format.record import MAX_LINE_BYTES, close_line, verify

if TYPE_CHECKING:
    from collections.abc import Callable

    from session_actor.persistence.catalog.catalog_files import FileRow
    from session_actor.persistence.files.storage import DiskFile

VERSION: Final = 1
"""The version of an index that is written, and the newest that is read."""
_PIECE_BYTES: Final = 64 * 1024
INDEX_START: Final = b'{"index":'

_Run = tuple[int, int, list[int]]
_Many = tuple[int, int, list[tuple[int, int]]]
Place = tuple[int, int]
"""Offset and length of a line."""


class _Index(msgspec.Struct):
    index: int
    birth: str
    number: int
    frames: list[_Run] = []
    copied: list[_Many] = []


_INDEX: Final = msgspec.json.Decoder(_Index)


class IndexBuilder:
    """Collects where frames lie, line by line in the order of the file."""

    def __init__(self) -> None:
        """No line was added yet."""
        self.first_frame = 0
        """The lowest id of a frame; 0: there is none yet."""
        self.last_frame = 0
        self._runs: list[_Run] = []
        self._copied: list[_Many] = []
        self._lengths: list[int] | None = None
        """Of the run that may go on."""
        self._next: int = 0
        self._between: int = 0

    def add_lines(self, offset: int, lines: list[bytes]) -> int:
        """The next lines, which are without LF, begin at `offset`; returns where they end.

        Most add the next id, right behind the line before: that is written out here.
        """
        for line in lines:
            length = len(line) + 1
            head = PUSHED_HEAD.match(line)
            if head is not None and self._lengths is not None and not self._between and int(head[1]) == self._next:
                self._lengths.append(length)
                self._next += 1
                self.last_frame = max(self.last_frame, self._next - 1)
            else:
                self.add(offset, length, frames_in(line))
            offset += length
        return offset

    def add(self, offset: int, length: int, frames: list[int]) -> None:
        """The next line adds `frames`."""
        if not frames:
            self._between += length
            return
        if len(frames) > 1:
            self._copied.append((offset, length, _runs(frames)))
            self._lengths = None
        elif self._lengths is not None and frames[0] == self._next:
            self._lengths += [-self._between, length] if self._between else [length]
        else:
            self._lengths = [length]
            self._runs.append((offset, frames[0], self._lengths))
        self._between, self._next = 0, frames[-1] + 1
        self.first_frame = min(self.first_frame or frames[0], *frames)
        self.last_frame = max(self.last_frame, *frames)

    def index(self) -> FrameIndex:
        """The index, for use without a file."""
        return FrameIndex(self._runs, self._copied)

    def line(self, birth: str, number: int) -> bytes:
        """The index, as it is written."""
        frames, copied = msgspec.json.encode(self._runs), msgspec.json.encode(self._copied)
        body = b'%b%d,"birth":"%b","number":%d,"frames":%b,"copied":%b'
        return close_line(body % (INDEX_START, VERSION, birth.encode(), number, frames, copied))[0]


def build_index(file: DiskFile, size: int, crc: int) -> IndexBuilder | None:
    """Index the first `size` bytes of a journal file, piece by piece; None unless their CRC-32 is `crc`. Blocks."""
    builder, total, at, offset, kept = IndexBuilder(), 0, 0, 0, b""
    while at < size and (data := file.read(at, min(max(_PIECE_BYTES, len(kept)), size - at))):
        total = crc32(data, total)
        at += len(data)
        *lines, kept = (kept + data).split(b"\n")
        offset = builder.add_lines(offset, lines)
    return builder if (at, total) == (size, crc) else None


class FrameIndex:
    """Where the frames of a sealed file lie."""

    __slots__ = ("_copied", "_expanded", "_firsts", "_runs")

    def __init__(self, runs: list[_Run], copied: list[_Many]) -> None:
        """As they stand in the file."""
        self._runs = sorted(runs, key=_first)
        self._firsts = [_first(run) for run in self._runs]
        self._copied = copied
        self._expanded: dict[int, list[Place]] = {}

    def place(self, frame: int) -> Place | None:
        """Where the record that adds `frame` lies; None when it is not in this file."""
        index = bisect_right(self._firsts, frame) - 1
        if index >= 0:
            places = self._expanded.get(index) or self._expand(index)
            if frame - self._firsts[index] < len(places):
                return places[frame - self._firsts[index]]
        for offset, length, runs in self._copied:
            if any(first <= frame <= last for first, last in runs):
                return offset, length
        return None

    def frames(self) -> list[tuple[int, int]]:
        """All frames of the file, as runs of first and last id."""
        found = [run for _, _, runs in self._copied for run in runs]
        for _, first, lengths in self._runs:
            found.append((first, first + sum(length > 0 for length in lengths) - 1))
        return found

    def _expand(self, index: int) -> list[Place]:
        offset, _, lengths = self._runs[index]
        offsets = accumulate(map(abs, lengths), initial=offset)
        places = [(start, length) for start, length in zip(offsets, lengths, strict=False) if length > 0]
        self._expanded[index] = places
        return places


def read_index(read: Callable[[int, int], bytes], path: str, row: FileRow) -> FrameIndex:
    """The index of the sealed file of `row`, of which `read` reads. Blocks.

    Raises `JournalCorrupt` when it is not the index of that file, `StoreVersionTooNew`.
    """
    if row.bytes - row.index_offset > MAX_LINE_BYTES:
        raise JournalCorrupt(path, row.index_offset, row.last_seq + 1, "its index is longer than any line")
    line = read(row.index_offset, row.bytes - row.index_offset)
    try:
        found = decode_index(line, path)
    except LineDamaged as error:
        raise JournalCorrupt(path, row.index_offset, row.last_seq + 1, f"its index: {error}") from error
    if (found.birth, found.number) != (row.birth, row.number):
        raise JournalCorrupt(path, row.index_offset, row.last_seq + 1, "its index is another file's")
    return FrameIndex(found.frames, found.copied)


def decode_index(line: bytes, path: str) -> _Index:
    """Check and read an index line, LF included. Raises `LineDamaged`, `StoreVersionTooNew`."""
    if not verify(line):
        raise LineDamaged("its sum does not fit its bytes")
    try:
        found = _INDEX.decode(line)
    except (msgspec.DecodeError, RecursionError):
        raise LineDamaged("its sum fits, but it is no index of this format") from None
    if found.index != VERSION:
        raise StoreVersionTooNew(path, f"index version {found.index}", f"version {VERSION}")
    return found


def _first(run: _Run) -> int:
    return run[1]


def _runs(frames: list[int]) -> list[tuple[int, int]]:
    runs: list[tuple[int, int]] = []
    for frame in frames:
        if runs and frame == runs[-1][1] + 1:
            runs[-1] = (runs[-1][0], frame)
        else:
            runs.append((frame, frame))
    return runs
