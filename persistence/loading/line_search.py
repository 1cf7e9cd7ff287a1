"""Finding records by the frames that they add, where no index says where they lie.

Ids of frames rise from record to record, so a few probes find the place. Where to look is either bytes of a journal
file or a list of records of a log segment; both are searched through `Source`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

from session_actor.persistence.errors import JournalCorrupt, LineDamaged, LogCorrupt
from session_actor.persistence.format.frame_index import frames_in
from session_actor.persistence.format.record import decode_record

if TYPE_CHECKING:
    from collections.abc import Iterator

    from session_actor.persistence.files.lines import Readable

    from .places import InSegment

CHUNK_BYTES: Final = 16 * 1024
NEAR_LINES: Final = 64
"""So many lines that were not asked for are read on the way to the next one, before it is looked for anew."""


class Line(NamedTuple):
    """One line: where it begins, where the next one does, and its bytes with the LF."""

    start: int
    next: int
    data: bytes


class Source(Protocol):
    """Lines in order, addressed by numbers from `start` to `end`."""

    start: int
    end: int
    near: int
    """Within so many addresses, going on line by line is as quick as another probe."""

    def lines(self, address: int) -> Iterator[Line]:
        """The lines from the first that begins at `address` or behind it. Blocks."""
        ...

    def check(self, line: Line) -> None:
        """Raise `StoreCorrupt` for a line that is not as it was written."""
        ...


class InFile:
    """The lines of a journal file from offset `start`, where one begins, to `end`."""

    def __init__(self, file: Readable, path: str, start: int, end: int) -> None:
        """`path`: for errors."""
        self.start = start
        self.end = end
        self.near = CHUNK_BYTES
        self._file = file
        self._path = path

    def lines(self, address: int) -> Iterator[Line]:
        """See `Source`."""
        begin = at = max(address - 1, self.start)
        kept = b""
        skipping = address > self.start  # what stands before the next LF belongs to a line that began before
        while at < self.end:
            data = self._file.read(at, min(max(CHUNK_BYTES, len(kept)), self.end - at))
            if not data:
                return
            kept, at, position = kept + data, at + len(data), 0
            while (stop := kept.find(b"\n", position) + 1) > 0:
                if not skipping:
                    yield Line(begin + position, begin + stop, kept[position:stop])
                skipping, position = False, stop
            kept, begin = kept[position:], begin + position

    def check(self, line: Line) -> None:
        """See `Source`."""
        try:
            decode_record(line.data)
        except LineDamaged as error:
            raise JournalCorrupt(self._path, line.start, 0, f"a line fails its check: {error}") from error


class InLog:
    """The records of a session in one segment of the log."""

    def __init__(self, file: Readable, place: InSegment) -> None:
        """`file`: the segment, or its bytes in memory."""
        self.start = 0
        self.end = len(place.spans) // 2
        self.near = 8
        self._file = file
        self._place = place

    def lines(self, address: int) -> Iterator[Line]:
        """See `Source`."""
        spans = self._place.spans
        for index in range(address, self.end):
            begin, end = spans[2 * index], spans[2 * index + 1]
            yield Line(index, index + 1, self._file.read(begin, end - begin) + b"\n")

    def check(self, line: Line) -> None:
        """See `Source`."""
        try:
            decode_record(line.data)
        except LineDamaged as error:
            place, why = self._place, f"a record fails its check: {error}"
            raise LogCorrupt(place.segment.path, place.spans[2 * line.start], why) from error


class Bytes:
    """Bytes in memory, read as a file."""

    def __init__(self, data: bytes) -> None:
        """All of it."""
        self._data = data

    def read(self, offset: int, length: int) -> bytes:
        """See `DiskFile`."""
        return self._data[offset : offset + length]


def find(source: Source, wanted: list[int]) -> list[bytes]:
    """The lines that add frames of `wanted`, which is sorted, each once and checked. Blocks."""
    found: list[bytes] = []
    left = wanted[::-1]
    address = source.start
    while left:
        address = _place(source, address, left[-1])
        idle = 0
        for line in source.lines(address):
            address = line.next
            frames = frames_in(line.data)
            if not frames:
                continue
            if not left or left[0] < frames[0]:
                return found
            if not set(frames).isdisjoint(left):
                source.check(line)
                found.append(line.data)
                idle = 0
            while left and left[-1] <= frames[-1]:
                left.pop()
            idle += 1
            if idle > NEAR_LINES and left and left[-1] > frames[-1] + NEAR_LINES:
                break
        else:
            return found
    return found


def _place(source: Source, low: int, frame: int) -> int:
    """An address not far before the first line that adds `frame` or a later one; `low`: no later address is asked."""
    high = source.end
    while high - low > source.near:
        middle = (low + high) // 2
        newest, after = _next_frames(source, middle, high)
        if newest is None or newest >= frame:
            high = middle
        else:
            low = after
    return low


def _next_frames(source: Source, address: int, end: int) -> tuple[int | None, int]:
    """The last frame of the first line behind `address` that adds any, and where that line ends."""
    for line in source.lines(address):
        if line.start >= end:
            break
        frames = frames_in(line.data)
        if frames:
            return frames[-1], line.next
    return None, end
