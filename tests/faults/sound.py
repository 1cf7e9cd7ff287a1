"""What the reader of a segment finds in one that is damaged, held to what was in it.

That takes a tenth of the time of opening a store on it: so it is asked of every case, and a whole store of some.
"""

from __future__ import annotations

from session_actor.persistence import StoreVersionTooNew
from session_actor.persistence.log.scan import SegmentScan

from .specimen import lines_of

NO_LIMIT = 1 << 40
Place = tuple[int, int, bytes]
"""Where a record begins and ends, and whose it is."""


class Sound:
    """A segment, and where each of its records lies."""

    def __init__(self, path: str, data: bytes) -> None:
        self.path = path
        self.number = int(path.rpartition("/")[2].partition(".")[0])
        self.data = data
        self.header = data.index(b"\n") + 1
        self.lines = lines_of(data)
        self.places, damage = self.read(data)
        assert not damage

    def read(self, content: bytes) -> tuple[set[Place], bool]:
        """The places of the records that count, and whether there is damage."""
        scan = SegmentScan(self.path, self.number, content)
        for _ in scan.steps(NO_LIMIT):
            pass
        damage = scan.judge(proven=False)
        spans = ((key, places) for key, places in scan.spans.items())
        return {(run[i], run[i + 1], key) for key, run in spans for i in range(0, len(run), 2)}, bool(damage)

    def check(self, content: bytes, case: object) -> None:
        """No record but those that were, where they were; none is missing that a sound line shows to be synced."""
        try:
            found, damage = self.read(content)
        except StoreVersionTooNew:
            return
        assert found <= self.places, case
        assert all(content[begin:end] == self.data[begin:end] for begin, end, _ in found), case
        if damage:
            return
        sound = (line for line in self.lines if content[line.start : line.end] == self.data[line.start : line.end])
        synced = max((line.synced_bytes for line in sound), default=0)
        assert {place for place in self.places if place[1] < synced} <= found, case

    def check_end(self, content: bytes, end: int, case: object) -> None:
        """There are the records whose lines end up to `end`, and no other, and there is no damage."""
        whole = max((line.end for line in self.lines if line.end <= end), default=0)
        assert self.read(content) == ({place for place in self.places if place[1] < whole}, False), case
