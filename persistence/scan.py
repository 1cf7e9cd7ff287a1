"""Reading one segment of the log after a crash: which lines count, which bytes are a torn end, and which are damage.

The rule: at the first bad line, starting at X, a later sound line of the same segment that was written when more than X
bytes were synced shows that X had been synced: that is damage. Without one, X is the torn end: what follows was never
promised to survive. What a later segment shows (`proven`) counts as well.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple
from zlib import crc32

import msgspec

from .errors import LineDamaged, ValueUnreadable
from .header import SegmentHeader, decode_segment_header
from .record import MAX_LINE_BYTES, SUFFIX_BYTES, LogLine, decode_log_line, decode_log_lines
from .values import decode_text

if TYPE_CHECKING:
    from collections.abc import Iterator

CHUNK_BYTES: Final = 64 * 1024
_SUM_BYTES: Final = SUFFIX_BYTES - 1
_OWNED_LINE: Final = re.compile(
    rb'\{"w":[0-9]+,"p":"([0-9a-f]{8})","s":("(?:[^"\\\x00-\x1f]|\\.)*+"|\{"\$esc":"(?:[^"\\\x00-\x1f]|\\.)*+"\}),'
    rb'"birth":"([0-9a-f]{16})","r":\{[^\x00]*,"sum":"([0-9a-f]{8})"\}\n'
)


class Run(NamedTuple):
    """Sound lines, one behind the other."""

    start: int
    """Offset of the first line."""
    ends: list[int]
    """Where each line ends, its newline included."""
    lines: list[LogLine]


class Gap(NamedTuple):
    """Bytes that are no sound line following the one before."""

    start: int
    end: int
    owners: tuple[tuple[str, str], ...] | None
    """As in `Damage`."""


class Damage(NamedTuple):
    """Bytes that were synced and cannot be read."""

    path: str
    offset: int
    owners: tuple[tuple[str, str], ...] | None
    """Sessions and births whose records stood there; None when that cannot be told."""


class SegmentScan:
    """One segment's bytes, read. Use: `for _ in scan.steps(): …` reads a piece at a time, then the rest is filled."""

    def __init__(self, path: str, number: int, data: bytes) -> None:
        """`data`: the file; NUL at its end is preallocated room. `number`: as the file's name says.

        Raises `StoreVersionTooNew`.
        """
        self.path = path
        self.data = data
        self.size = len(data.rstrip(b"\0"))
        """Bytes up to the last one that is not NUL."""
        self.runs: list[Run] = []
        self.gaps: list[Gap] = []
        self.header, self._start = _read_header(path, number, data)
        if self.header is None and self.size:
            self.gaps.append(Gap(0, self._start, None))

    @property
    def synced_bytes(self) -> int:
        """The most that any sound line says of how far the segment was synced."""
        return max((line.w for run in self.runs for line in run.lines), default=0)

    @property
    def end(self) -> int:
        """Where the sound lines end, gaps between them included."""
        return self.runs[-1].ends[-1] if self.runs else (0 if self.header is None else self._start)

    def steps(self, limit: int) -> Iterator[None]:
        """Read up to offset `limit`, a piece at a time."""
        position, size = self._start, min(self.size, limit)
        previous = None if self.header is None else self.data[self._start - 11 : self._start - 3].decode()
        while position < size:
            run = self._read_run(position, size, previous)
            if run.lines:
                self.runs.append(run)
                position, previous = run.ends[-1], run.lines[-1].sum
            else:
                after = self._next_sound(position, size)
                following = decode_log_line(self._line(after, size)).p if after < size else None
                self.gaps.append(Gap(position, after, _owners(self.data[position:after], previous, following)))
                position, previous = after, following
            yield

    def _line(self, position: int, size: int) -> bytes:
        end = self.data.find(b"\n", position, min(size, position + MAX_LINE_BYTES))
        return self.data[position : end + 1] if end >= 0 else b""

    def _read_run(self, position: int, size: int, previous: str | None) -> Run:
        """Sound lines from `position` on, about `CHUNK_BYTES` of them."""
        chunk = self.data[position : min(size, position + CHUNK_BYTES)]
        whole = chunk.rfind(b"\n") + 1
        chunk = chunk[:whole] if whole else self._line(position, size)
        ends: list[int] = []
        at = position
        for line in chunk.split(b"\n")[:-1]:
            if line[-_SUM_BYTES:] != b',"sum":"%08x"}' % crc32(line[:-_SUM_BYTES]):
                break
            at += len(line) + 1
            ends.append(at)
        lines = self._decode(chunk[: at - position])
        count = 0
        for found in lines:
            if found.p != previous is not None:
                break
            previous = found.sum
            count += 1
        return Run(position, ends[:count], lines[:count])

    def _decode(self, chunk: bytes) -> list[LogLine]:
        try:
            return decode_log_lines(chunk)
        except LineDamaged:
            lines: list[LogLine] = []
            for text in chunk.splitlines(keepends=True):
                try:
                    lines.append(decode_log_line(text))
                except LineDamaged:
                    break
            return lines

    def _next_sound(self, position: int, size: int) -> int:
        """Where the next line starts that is sound by itself; `size` when there is none."""
        while position < size:
            end = self.data.find(b"\n", position, size)
            if end < 0:
                return size
            position = end + 1
            try:
                decode_log_line(self._line(position, size))
            except LineDamaged:
                continue
            return position
        return size

    def judge(self, *, proven: bool) -> list[Damage]:
        """Drop what belongs to a torn end, and return the damage before it.

        `proven`: later segments show that all of this one was synced.
        """
        synced = self.synced_bytes
        damage: list[Damage] = []
        for gap in self.gaps:
            if not proven and synced <= gap.start:
                self.runs = [run for run in self.runs if run.start < gap.start]
                break
            damage.append(Damage(self.path, gap.start, gap.owners))
        return damage


def _read_header(path: str, number: int, data: bytes) -> tuple[SegmentHeader | None, int]:
    """The header and where it ends; None for one that is missing, damaged, or another segment's."""
    end = data.find(b"\n", 0, CHUNK_BYTES) + 1
    try:
        header = decode_segment_header(data[:end], path)
    except LineDamaged:
        return None, end
    return (header if header.number == number else None), end


def _owners(damaged: bytes, previous: str | None, following: str | None) -> tuple[tuple[str, str], ...] | None:
    """Whose records stood in damaged bytes, if that is sure: only what lies inside the records is damaged.

    Every line names its owner, and their sums make an unbroken chain from the line before, whose sum is `previous`, to
    the line behind, which names `following`: so no line is missing among them.
    """
    owners: list[tuple[str, str]] = []
    for line in damaged.splitlines(keepends=True):
        match = _OWNED_LINE.fullmatch(line)
        if match is None or match[1].decode() != previous:
            return None
        try:
            owners.append((decode_text(msgspec.json.decode(match[2])), match[3].decode()))
        except (msgspec.DecodeError, ValueUnreadable):
            return None
        previous = match[4].decode()
    return tuple(owners) if previous == following else None
