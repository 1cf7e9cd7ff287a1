"""What an import tells of besides what it added: of each kind the first thousand with their places, and how many."""

from __future__ import annotations

from collections import Counter
from typing import Final, Literal, TypeAlias

import msgspec

NAMED_AT_MOST: Final = 1_000
"""How many of a kind are kept with their places; the others are counted."""

Lack: TypeAlias = Literal["head", "frames", "order", "changed", "tail"]
"""What an export of our own lacks: its first line, frames, the order of its lines, what was written, its last line."""

_LACKS: Final[dict[Lack, str]] = {
    "head": "the first line of an export is missing, and with it the id of its session",
    "order": "a line of an export stands twice, or not in its place",
    "changed": "the frames of an export are not those that it was written with",
    "tail": "the last line is missing, and with it the names of branches",
}


class NotWhole(msgspec.Struct, frozen=True):
    """One thing by which an export of our own is not what was written."""

    offset: int
    """The byte of the file where that shows: where the line begins before which something is missing."""
    lack: Lack
    frames: int = 0
    """How many frames are missing."""

    @property
    def what(self) -> str:
        """The same in words."""
        if self.lack == "frames":
            return f"{self.frames} {'frame is' if self.frames == 1 else 'frames are'} missing before this line"
        return _LACKS[self.lack]


class Notes:
    """They grow while a file is read, and never beyond a bound."""

    def __init__(self) -> None:
        """Nothing yet."""
        self.unread: list[tuple[int, str]] = []
        self.unread_count = 0
        self.not_whole: list[NotWhole] = []
        self.not_whole_count = 0
        self.passed = 0
        """Lines that say nothing of a conversation."""
        self.left_out: Counter[str] = Counter()
        """What messages have beside their words and no turn has a place for. Its names are ours, and few."""

    def add(self, offset: int, why: str) -> None:
        """Note a line that cannot be read, by the byte where it begins, and why; never its text."""
        self.unread_count += 1
        if len(self.unread) < NAMED_AT_MOST:
            self.unread.append((offset, why))

    def lacks(self, offset: int, lack: Lack, frames: int = 0) -> None:
        """Note that an export is not whole."""
        self.not_whole_count += 1
        if len(self.not_whole) < NAMED_AT_MOST:
            self.not_whole.append(NotWhole(offset, lack, frames))
