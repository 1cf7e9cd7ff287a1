"""Which frames a record adds: all that this floor knows of what records say.

The convention: a record of kind `pushed` or `added` adds the frame `data.id`, one of kind `history_copied` adds
`data.frames[].frame.id`. No other kind adds frames, and ids are integers from 1.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from typing import TYPE_CHECKING, Final

import msgspec

if TYPE_CHECKING:
    from collections.abc import Iterable

PUSHED: Final = frozenset({"pushed", "added"})
COPIED: Final = "history_copied"
MAX_FRAME: Final = 2**53 - 1
"""No id of a frame is higher."""
PUSHED_HEAD: Final = re.compile(rb'\{"seq":\d+,"at":"[^"]*","kind":"(?:add|push)ed","data":\{"id":([1-9]\d{0,14})[,}]')
"""How a line of these kinds begins whose data begin with the id, as they always do here."""
_OTHER_HEAD: Final = re.compile(rb'\{"seq":\d+,"at":"[^"]*","kind":"(?!pushed"|added"|history_copied")')


class _Frame(msgspec.Struct):
    id: int


class _Copied(msgspec.Struct):
    frame: _Frame


class _History(msgspec.Struct):
    frames: list[_Copied]


_FRAME: Final = msgspec.json.Decoder(_Frame)
_HISTORY: Final = msgspec.json.Decoder(_History)


class _Record(msgspec.Struct):
    kind: str
    data: msgspec.Raw


_RECORD: Final = msgspec.json.Decoder(_Record)


def frames_of(kind: str, data: bytes | msgspec.Raw) -> list[int]:
    """Ids of the frames that a record adds, in order; none for data that do not name them as the kind says."""
    found: list[int] = []
    try:
        if kind in PUSHED:
            found = [_FRAME.decode(data).id]
        elif kind == COPIED:
            found = sorted(copied.frame.id for copied in _HISTORY.decode(data).frames)
    except (msgspec.DecodeError, RecursionError):
        pass
    return found if all(0 < frame <= MAX_FRAME for frame in found) else []


def frames_in(line: bytes, start: int = 0) -> list[int]:
    """Ids of the frames that the journal line at `start` adds. Looks at its head alone where that tells."""
    head = PUSHED_HEAD.match(line, start)
    if head is not None:
        return [int(head[1])]
    if _OTHER_HEAD.match(line, start) is not None:
        return []
    end = line.find(b"\n", start)
    try:
        record = _RECORD.decode(memoryview(line)[start : end if end >= 0 else len(line)])
    except (msgspec.DecodeError, RecursionError):
        return []
    return frames_of(record.kind, record.data)


class Runs:
    """A set of ids, as runs of first and last."""

    __slots__ = ("_firsts", "_lasts")

    def __init__(self, runs: Iterable[tuple[int, int]]) -> None:
        """`runs`: in any order; they may overlap or touch. ValueError for one that ends before it begins."""
        self._firsts: list[int] = []
        self._lasts: list[int] = []
        for first, last in sorted(runs):
            if last < first:
                raise ValueError(f"a run of frames from {first} to {last} ends before it begins")
            if self._lasts and first <= self._lasts[-1] + 1:
                self._lasts[-1] = max(self._lasts[-1], last)
            else:
                self._firsts.append(first)
                self._lasts.append(last)

    def cover(self, first: int, last: int) -> bool:
        """Whether all ids from `first` to `last` are among them."""
        place = bisect_right(self._firsts, first) - 1
        return place >= 0 and last <= self._lasts[place]

    def __contains__(self, frame: int) -> bool:
        """Whether the id is among them."""
        return self.cover(frame, frame)
