"""Reading one segment of the log after a crash: which lines count, which bytes are a torn end, and which are damage.

The rule: at the first bad line, starting at X, a later sound line of the same segment that was written when more than X
bytes were synced shows that X had been synced: that is damage. Without one, X is the torn end: what follows was never
promised to survive. What a later segment shows (`proven`) counts as well.
"""

from __future__ import annotations

import re
from array import array
from bisect import bisect_left
from typing import TYPE_CHECKING, Final, NamedTuple
from zlib import crc32

import msgspec

from session_actor.persistence.errors import LineDamaged, ValueUnreadable
from session_actor.persistence.format.header import SegmentHeader, decode_segment_header
from session_actor.persistence.format.record import MAX_LINE_BYTES, SUFFIX_BYTES, decode_record, verify
from session_actor.persistence.format.values import decode_text

if TYPE_CHECKING:
    from collections.abc import Iterator

TOMBSTONE: Final = "store.deleted"
"""Kind of the record that ends a session for ever."""
CHUNK_BYTES: Final = 128 * 1024
"""So much is read between two turns of the loop."""
_MARK: Final = b'"kind":"store.deleted"'
_MARK_WITHIN: Final = 96
"""`seq` and `at`, which come before it, are shorter."""
_RECORD: Final = b',"r":{"seq":'
_SWALLOWED_HEAD: Final = b'{"w":'
_SUM_END: Final = b'"}'
_SUM_BYTES: Final = SUFFIX_BYTES - 1
_OWNED_LINE: Final = re.compile(
    rb'\{"w":[0-9]+,"p":"([0-9a-f]{8})",("s":[^\x00]+,"birth":"[0-9a-f]{16}"),"r":\{[^\x00]*,"sum":"([0-9a-f]{8})"\}\n'
)


class Run(NamedTuple):
    """Sound lines, one behind the other."""

    start: int
    """Offset of the first line."""
    end: int
    """Where the last line ends, its newline included."""
    lines: int
    last_start: int
    """Offset of the last line."""
    ends_in_watermark: bool
    """Whether the last line is one without a record."""
    synced_bytes: int
    """What the last line says of how far the segment was synced."""
    last_sum: bytes
    """Sum of the last line."""


class Marked(NamedTuple):
    """A record that may be a tombstone."""

    owner: bytes
    begin: int
    end: int


class Gap(NamedTuple):
    """Bytes that are no sound line following the one before."""

    start: int
    end: int
    owners: tuple[tuple[str, str], ...] | None
    """As in `Damage`."""
    shown: int = 0
    """What a line that is sound, but does not follow, says of how far the segment was synced."""


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
        self.size = used_bytes(data)
        """Bytes up to the last one that is not NUL."""
        self.spans: dict[bytes, array[int]] = {}
        """Where the records of each owner begin and end; keys are for `read_owner`."""
        self.marked: list[Marked] = []
        self.runs: list[Run] = []
        self.gaps: list[Gap] = []
        self.header, self._start = _read_header(path, data)
        self._strange_bytes = 0
        if self.header is not None and self.header.number != number:  # another segment's file: none of its lines counts
            self.header, self._start, self._strange_bytes = None, self.size, self.size
        if self.header is None and self.size:
            self.gaps.append(Gap(0, self._start, None))

    @property
    def synced_bytes(self) -> int:
        """The most that any sound line says of how far the segment was synced; it only grows from line to line."""
        shown = *(run.synced_bytes for run in self.runs), *(gap.shown for gap in self.gaps)
        return max(self._strange_bytes, *shown, 0)

    @property
    def is_settled(self) -> bool:
        """Whether the last line is a watermark that covers all lines before it, as after a clean close."""
        last = self.runs[-1] if self.runs else None
        return last is not None and last.ends_in_watermark and last.synced_bytes >= last.last_start

    @property
    def end(self) -> int:
        """Where the sound lines end, gaps between them included."""
        ends = *(run.end for run in self.runs[-1:]), *(gap.end for gap in self.gaps if gap.shown)
        return max(ends, default=0 if self.header is None else self._start)

    def steps(self, limit: int) -> Iterator[None]:
        """Read up to offset `limit`, a piece at a time."""
        position, size = self._start, min(self.size, limit)
        self.gaps = [gap for gap in self.gaps if gap.start < limit]  # a lost header, if the next took over at 0
        previous = None if self.header is None else self.data[self._start - 11 : self._start - 3]
        while position < size:
            run = self._read_run(position, size, previous)
            if run.lines:
                self.runs.append(run)
                position, previous = run.end, run.last_sum
            else:
                gap, previous = self._read_gap(position, size, previous)
                self.gaps.append(gap)
                position = gap.end
            yield

    def _read_gap(self, position: int, size: int, previous: bytes | None) -> tuple[Gap, bytes | None]:
        """What does not follow the line before, and the sum that the line behind it names; None: any will do."""
        line = self._line(position, size)
        if self._is_sound(line):
            return Gap(position, position + len(line), None, _synced_bytes(_head(line))), None
        after = self._next_sound(position, size)
        head = len(_head(self._line(after, size))) if after < size else 0
        following = self.data[after + head : after + head + 8] if head else None
        return Gap(position, after, _owners(self.data[position:after], previous, following)), following

    def _line(self, position: int, size: int) -> bytes:
        end = self.data.find(b"\n", position, min(size, position + MAX_LINE_BYTES))
        return self.data[position : end + 1] if end >= 0 else b""

    def _read_run(self, position: int, size: int, previous: bytes | None) -> Run:  # noqa: C901 - a call costs
        """Sound lines from `position` on, about `CHUNK_BYTES` of them.

        Written out, without helpers: after a crash every line of the log goes through this loop.
        """
        chunk = self.data[position : min(size, position + CHUNK_BYTES)]
        whole = chunk.rfind(b"\n") + 1
        chunk = chunk[:whole] if whole else self._line(position, size)
        spans, has_marks = self.spans, _MARK in chunk
        at, last_start, lines = position, position, 0
        head, expected, owner_at = b"", previous or b"", 0
        named, owner, lead, places = b"", b"", 0, array("Q")  # as the line before has it; a watermark names nobody
        for line in chunk.split(b"\n")[:-1]:
            if line[-_SUM_BYTES:] != b',"sum":"%08x"}' % crc32(line[:-_SUM_BYTES]):
                break
            if not head or not line.startswith(head + expected):  # it changes only when a sync was made in between
                start = _head(line)
                if not start or not line.startswith(expected, len(start)):
                    break
                head, owner_at, named = start, len(start) + 10, b""
            if not named or not line.startswith(named, owner_at):
                in_record = line.find(_RECORD, owner_at)
                if in_record >= 0:
                    owner, named, lead = line[owner_at:in_record], line[owner_at : in_record + 11], in_record + 5
                    if owner not in spans:
                        spans[owner] = array("Q")
                    places = spans[owner]
                elif line[owner_at - 1 : owner_at + 7] == b',"sum":"':
                    named = b""
                else:
                    break
            if named:
                places.append(at + lead)
                places.append(at + len(line) - _SUM_BYTES)
                if has_marks and line.find(_MARK, lead, lead + _MARK_WITHIN) >= 0:
                    self.marked.append(Marked(owner, at + lead, at + len(line) - _SUM_BYTES))
            expected = line[-10:-2]
            lines += 1
            last_start = at
            at += len(line) + 1
        last = self.data[last_start:at]
        head = _head(last)
        is_watermark = _owner(last, len(head) + 10) == b"" and bool(lines)
        return Run(position, at, lines, last_start, is_watermark, _synced_bytes(head) if lines else 0, expected)

    def _next_sound(self, position: int, size: int) -> int:
        """Where the next line starts that is sound by itself; `size` when there is none.

        A line whose LF is damaged has swallowed the one behind it, which then starts where a head follows a sum.
        """
        swallowed = self._swallowed(position, size)
        while swallowed is None and position < size:
            end = self.data.find(b"\n", position, size)
            if end < 0:
                return size
            position = end + 1
            if self._is_sound(self._line(position, size)):
                return position
            swallowed = self._swallowed(position, size)
        return size if swallowed is None else swallowed

    def _swallowed(self, position: int, size: int) -> int | None:
        """Where the last line starts among those that are one with the line at `position`, if it is sound by itself."""
        line = self._line(position, size)
        start = line.rfind(_SWALLOWED_HEAD)
        if start < len(_SUM_END) + 1 or line[start - len(_SUM_END) - 1 : start - 1] != _SUM_END:
            return None
        return position + start if self._is_sound(line[start:]) else None

    @staticmethod
    def _is_sound(line: bytes) -> bool:
        head = _head(line)
        return bool(head) and _owner(line, len(head) + 10) is not None and verify(line)

    def judge(self, *, proven: bool, synced: int = 0) -> list[Damage]:
        """Drop what belongs to a torn end, and return the damage before it.

        `proven`: later segments show that all of this one was synced. `synced`: it is known to be up to this offset.
        """
        synced = max(synced, self.synced_bytes)
        damage: list[Damage] = []
        for gap in self.gaps:
            if not proven and synced <= gap.start and not (damage and gap.shown):  # what shows damage is no torn end
                self._drop_from(gap.start)
                break
            damage.append(Damage(self.path, gap.start, gap.owners))
        return damage

    def _drop_from(self, offset: int) -> None:
        """Forget what lies behind `offset`, where a gap begins."""
        self.runs = [run for run in self.runs if run.start < offset]
        self.gaps = [gap for gap in self.gaps if gap.start < offset]
        self.marked = [marked for marked in self.marked if marked.begin < offset]
        for owner, places in list(self.spans.items()):
            del places[bisect_left(places, offset) :]
            if not places:
                del self.spans[owner]


def used_bytes(data: bytes) -> int:
    """How many bytes there are before the NULs at the end; without copying the whole."""
    end = len(data)
    while end > 0:
        start = max(0, end - CHUNK_BYTES)
        piece = data[start:end].rstrip(b"\0")
        if piece:
            return start + len(piece)
        end = start
    return 0


def _head(line: bytes) -> bytes:
    """A sound line up to the sum of the line before it, `{"w":4096,"p":"`; empty when it is no log line.

    The layout is shown in `record`.
    """
    comma = line.find(b',"p":"', 6, 32)
    return line[: comma + 6] if comma > 0 and line.startswith(b'{"w":') and line[5:comma].isdigit() else b""


def _synced_bytes(head: bytes) -> int:
    return int(head[5:-6])


def _owner(line: bytes, start: int) -> bytes | None:
    """The part of a line, from `start` on, that names its session; empty for a watermark, None for something else.

    JSON text inside the session's id has its quotes escaped, so the first `,"r":{"seq":` is the line's own.
    """
    begin = line.find(_RECORD, start)
    if begin >= 0:
        return line[start:begin]
    return b"" if line[start - 1 : start + 7] == b',"sum":"' else None


def read_owner(owner: bytes) -> tuple[str, str] | None:
    """Session and birth of `Run.owners`; None when they cannot be read."""
    try:
        found = _OWNER.decode(b"{%b}" % owner)
        return decode_text(found.s), found.birth
    except (msgspec.DecodeError, ValueUnreadable):
        return None


def is_tombstone(line: bytes) -> bool:
    """Whether a journal line, LF included, is a sound tombstone."""
    try:
        return decode_record(line).kind == TOMBSTONE
    except LineDamaged:
        return False


class _Owner(msgspec.Struct):
    s: str | dict[str, str]
    birth: str


_OWNER: Final = msgspec.json.Decoder(_Owner)


def _read_header(path: str, data: bytes) -> tuple[SegmentHeader | None, int]:
    """The header and where it ends; None for one that is missing or damaged."""
    end = data.find(b"\n", 0, CHUNK_BYTES) + 1
    try:
        header = decode_segment_header(data[:end], path)
    except LineDamaged:
        return None, end
    return header, end


def _owners(damaged: bytes, previous: bytes | None, following: bytes | None) -> tuple[tuple[str, str], ...] | None:
    """Whose records stood in damaged bytes, if that is sure: only what lies inside the records is damaged.

    Every line names its owner, and their sums make an unbroken chain from the line before, whose sum is `previous`, to
    the line behind, which names `following`: so no line is missing among them.
    """
    owners: list[tuple[str, str]] = []
    for line in damaged.splitlines(keepends=True):
        match = _OWNED_LINE.fullmatch(line)
        owner = None if match is None else read_owner(match[2])
        if match is None or match[1] != previous or owner is None:
            return None
        owners.append(owner)
        previous = match[3]
    return tuple(owners) if previous == following else None
