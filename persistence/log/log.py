"""The shared append-only log: its segments on the disk, how one is begun, taken over from, and removed.

A segment is begun in a spare file that was preallocated beforehand and is renamed into its place with its header in it,
so beginning one costs two quick calls. Where there is little room, a piece is preallocated, and more when that is full.
Bytes that were preallocated and never written are NUL: a line never starts so.
"""

from __future__ import annotations

import errno
import re
from collections import deque
from typing import TYPE_CHECKING, Final
from zlib import crc32

from session_actor.persistence.errors import LogCorrupt
from session_actor.persistence.format.header import SegmentHeader, SegmentRef, encode_segment_header
from session_actor.persistence.reserve import Reserve, is_full, piece_of, room_of_commit, take_room
from session_actor.persistence.writing.batch import Batch, rebuild

from .names import Names
from .segment import Segment

if TYPE_CHECKING:
    from session_actor.persistence.files.storage import Disk, DiskFile

_SEGMENT_NAME: Final = re.compile(r"[0-9]{8,11}\.ndjson")
SPARE_NAME: Final = "spare"
RESERVE_NAME: Final = "reserve"
TAKEOVER_NAME: Final = "takeover"
COMMIT_NAME: Final = "commit"
SCRATCH_NAMES: Final = frozenset({SPARE_NAME, RESERVE_NAME, TAKEOVER_NAME, COMMIT_NAME})
"""Of files that hold nothing: the next to open the store removes them."""


def segment_name(number: int) -> str:
    """Name of a segment's file."""
    return f"{number:08d}.ndjson"


def number_of(path: str) -> int:
    """Number of the segment at `path`; 0 for what is none: only the name that this library gives it is a segment's."""
    name = path.rpartition("/")[2]
    number = int(name.partition(".")[0]) if _SEGMENT_NAME.fullmatch(name) else 0
    return number if name == segment_name(number) else 0


def _is_removed(segment: Segment) -> bool:
    file = segment.file
    return file is not None and not file.linked()


class Log:
    """The segments that are not yet cut. Methods that block say so; the others are quick enough for the loop."""

    __slots__ = (
        "_disk",
        "_in_doubt",
        "_piece_bytes",
        "_spare",
        "_spare_bytes",
        "_successor",
        "commit_room",
        "current",
        "damaged",
        "folder",
        "leftovers",
        "names",
        "next_number",
        "reserve",
        "sealed",
        "segment_bytes",
        "tail",
    )

    def __init__(self, disk: Disk, folder: str, segment_bytes: int) -> None:
        """`folder`: absolute path. `segment_bytes`: size at which the next segment is begun."""
        self.folder = folder
        self.segment_bytes = segment_bytes
        self.sealed: deque[Segment] = deque()
        """Oldest first; nothing is appended to them any more."""
        self.current: Segment | None = None
        self.tail: SegmentRef | None = None
        """What the next segment continues while there is no current one."""
        self.damaged: int | None = None
        """The oldest segment that is damaged or missing: nothing from it on is cut, or the loss would be forgotten."""
        self.leftovers: list[str] = []
        """Paths of segments that were cut, and are there still."""
        self.next_number = 1
        self.names = Names(disk, folder)
        self.reserve = Reserve(disk, self.path(RESERVE_NAME), segment_bytes)
        """Room for a cut on a full disk; it is held before there is anything to cut."""
        self.commit_room = Reserve(disk, self.path(COMMIT_NAME), room_of_commit(segment_bytes))
        """Room for the catalog, while a cut fills the disk."""
        self._piece_bytes = piece_of(segment_bytes)
        self._disk = disk
        self._in_doubt = False
        """A segment may be begun without being the current one: lines behind its beginning would not be found."""
        self._spare: DiskFile | None = None
        self._spare_bytes = 0
        self._successor: DiskFile | None = None
        """The file of a segment that took over and is not adopted yet."""

    def path(self, name: int | str) -> str:
        """Where a segment, or another file of the log, lies."""
        return f"{self.folder}/{segment_name(name) if isinstance(name, int) else name}"

    @property
    def has_spare(self) -> bool:
        """Whether `begin` may be called."""
        return self._spare is not None

    @property
    def has_room(self) -> bool:
        """Whether the current segment may take more lines."""
        current = self.current
        return current is not None and current.end < current.room_bytes and not self._in_doubt

    @property
    def may_grow(self) -> bool:
        """Whether the current segment has less room than a segment may have."""
        current = self.current
        if current is None or self._in_doubt:
            return False
        return max(current.end, current.room_bytes) < self.segment_bytes

    def grow(self) -> None:
        """Take a piece of room more for the current segment. Blocks."""
        current = self.current
        if current is not None and self.may_grow:
            self.reserve.check_free()
            size = min(max(current.end, current.room_bytes) + self._piece_bytes, self.segment_bytes)
            current.writable.preallocate(size)
            current.room_bytes = size

    def prepare_spare(self) -> None:
        """Make the preallocated file that `begin` needs, and hold the reserve before there is more to cut. Blocks.

        While that cannot be held, the file has no more room than must be.

        Afterwards the name of the current segment is on the disk: so a loss of power takes the newest name at most, and
        a segment that is missing in between was lost otherwise.
        """
        self._make_folder()
        size = self.segment_bytes
        if self.current is not None:
            self.reserve.check_free()
            size = size if self.reserve.hold(needed=bool(self.sealed)) else self._piece_bytes
            self.names.sync(self._unnamed_since)
        path = self.path(SPARE_NAME)
        self._disk.unlink(path)
        file = self._disk.open(path, create=True)
        try:
            self._spare_bytes = take_room(file, size, self._piece_bytes)
            file.sync()
        except BaseException:
            file.close()
            self._disk.unlink(path)
            raise
        self._spare = file

    @property
    def _unnamed_since(self) -> int | None:
        """How many syncs of the folder were refused when the current segment got its name; None: it surely has it."""
        current = self.current
        return None if current is None or current.synced else current.made_at

    @property
    def lost_name(self) -> bool:
        """Whether the name of the current segment may be lost: syncing it says so, and another takes over."""
        return self._unnamed_since not in {None, self.names.refusals}

    def begin(self) -> Segment:
        """Make the spare the current segment, which continues the one before; that one is sealed.

        When it raises, the spare is gone and another must be prepared. A rename may have happened and failed: then the
        current segment has no room any more, and what is begun next takes the place of what may be there.
        """
        if self._spare is None:
            raise RuntimeError("no spare segment")
        before = self.current
        continues = self.tail if before is None else SegmentRef(before.number, before.end)
        number = self.next_number
        header = encode_segment_header(SegmentHeader(number, continues))
        file, self._spare = self._spare, None
        made_at = self.names.refusals
        try:
            file.write(header[0], 0)
            self._in_doubt = True
            self._disk.rename(self.path(SPARE_NAME), self.path(number))
        except BaseException:
            file.close()  # it may have been removed: another is made
            raise
        segment = Segment(number, self.path(number), file, continues, header)
        segment.room_bytes, segment.made_at = self._spare_bytes, made_at
        self._become_current(segment)
        return segment

    def seal(self) -> None:
        """Append nothing to the current segment any more, all records of which are synced; an empty one stays."""
        current = self.current
        if current is None or current.is_empty:
            return
        self.current = None
        current.cut_to_synced()
        self.tail = SegmentRef(current.number, current.end)
        self.sealed.append(current)

    def _become_current(self, segment: Segment) -> None:
        sealed = self.sealed if self.current is None else deque([*self.sealed, self.current])
        # In one go: whatever is raised, it is the current one or it is not.
        self.sealed, self.current, self.next_number = sealed, segment, segment.number + 1
        self._in_doubt = False

    def take_over(self, oldest: Segment, batches: list[Batch]) -> tuple[Segment, list[Batch]]:
        """Write `batches` into a new segment, which continues at the last synced byte of `oldest`. Blocks.

        Returns the segment, complete and synced, and the batches as they now are. Nothing of the log is changed yet:
        see `adopt`. On a full disk the reserve is given up for it.
        """
        try:
            return self._take_over(oldest, batches)
        except OSError as error:
            if not (is_full(error) and self.reserve.give_up()):
                raise
            return self._take_over(oldest, batches)

    def _take_over(self, oldest: Segment, batches: list[Batch]) -> tuple[Segment, list[Batch]]:
        self._make_folder()
        made_at = self.names.refusals
        for segment in self._removed():
            if segment.number <= oldest.number and segment.synced:
                self._write_anew(segment)
        continues = SegmentRef(oldest.number, oldest.synced) if oldest.synced else oldest.continues
        number = self.next_number
        header = encode_segment_header(SegmentHeader(number, continues))
        path = self.path(TAKEOVER_NAME)
        self._disk.unlink(path)
        file = self._successor = self._disk.open(path, create=True)
        try:
            segment = Segment(number, self.path(number), file, continues, header)
            rebuilt = rebuild(segment, batches)
            want = max(self.segment_bytes, segment.end)
            segment.room_bytes = take_room(file, want, min(segment.end + self._piece_bytes, want))
            data = b"".join([header[0], *(batch.data for batch in rebuilt)])
            file.write(data, 0)
            file.sync()
            segment.note_synced(len(data), crc32(data))
            self._disk.rename(path, segment.path)
            self.names.sync(made_at)
        except BaseException:
            file.close()
            raise
        return segment, rebuilt

    def hold_commit_room(self) -> None:
        """Hold what the commit of a cut needs, before journals take it. Blocks. Raises OSError if it is full."""
        try:
            self.commit_room.take()
        except OSError as error:
            if is_full(error):
                raise

    def _make_folder(self) -> None:
        """The folder may have been removed."""
        if self._disk.make_dir(self.folder):
            self._disk.sync_dir(self.folder.rpartition("/")[0])

    def _write_anew(self, segment: Segment) -> None:
        """Give the synced part of a segment a name again: it was removed, but is there as long as it is open."""
        old = segment.writable
        data = old.read(0, segment.synced)
        if crc32(data) != segment.crc:
            raise LogCorrupt(segment.path, 0, "its bytes are not those that were written")
        path = self.path(TAKEOVER_NAME)
        self._disk.unlink(path)
        file = self._disk.open(path, create=True)
        try:
            file.write(data, 0)
            file.sync()
            self._disk.rename(path, segment.path)
        except BaseException:
            file.close()
            raise
        segment.file = file
        old.close()

    def is_whole(self) -> bool:
        """Whether the folder holds the segments of this process and no later ones. Blocks."""
        newest = max(map(number_of, self._disk.list(self.folder)), default=0)
        return newest < self.next_number and not self._removed()

    def check_names(self) -> None:
        """Raises OSError when a segment that is open was removed underneath: its records would go with this process."""
        for segment in self._removed():
            raise FileNotFoundError(errno.ENOENT, "it was removed underneath", segment.path)

    def _removed(self) -> list[Segment]:
        """The live segments whose files were removed by somebody else. Asked in a thread."""
        removed = [segment for segment in self.live() if _is_removed(segment)]
        live = self.live() if removed else []  # those that were cut meanwhile are not
        return [segment for segment in removed if segment in live]

    def live(self) -> list[Segment]:
        """The segments that are not yet cut, oldest first."""
        return [*self.sealed, *([self.current] if self.current else [])]

    def durable_end(self) -> SegmentRef | None:
        """Up to where the live segments are surely on the disk, their names included; None: there is nothing yet."""
        end: SegmentRef | None = None
        for segment in self.live():
            if segment.synced:
                end = SegmentRef(segment.number, segment.synced)
            if segment.synced < segment.end:
                break
        return end

    def adopt(self, segment: Segment, oldest: Segment) -> list[Segment]:
        """Go on in a segment that took over; returns those that are void now, for `remove`."""
        void = [old for old in self.live() if old.number > oldest.number]
        kept = [old for old in self.sealed if old.number < oldest.number]
        if oldest.synced:
            oldest.cut_to_synced()
            kept.append(oldest)
        else:
            void.append(oldest)
        self.sealed = deque(kept)
        self.current = self._successor = None
        self._become_current(segment)
        return void

    def remove(self, segments: list[Segment]) -> None:
        """Remove the files of segments that are cut or void. Blocks."""
        for segment in segments:
            segment.close()
        for segment in segments:
            self._disk.unlink(segment.path)
        self.names.sync()
        self.reserve.take_back()

    def remove_leftovers(self) -> None:
        """Remove what was cut before the store was opened: the catalog must be settled. Blocks. Raises OSError."""
        while self.leftovers:
            self._disk.unlink(self.leftovers[-1])
            self.leftovers.pop()

    def give_back(self) -> None:
        """Give back what was preallocated and not used: nothing is written any more. Blocks. Raises OSError."""
        spare, self._spare = self._spare, None
        if spare is not None:
            spare.close()
            self._disk.unlink(self.path(SPARE_NAME))
        for segment in self.live():
            if segment.file is not None and segment.file.size() > segment.written:
                segment.file.truncate(segment.written)

    def close(self, *, lost: bool) -> None:
        """Close all files, and give back what was preallocated and not used. Blocks. Raises OSError afterwards.

        `lost`: the files are another process's now, and are left as they are.
        """
        current, spare = (None if lost else self.current), self._spare
        self._spare = None
        try:
            if not lost:
                self.reserve.close()
                self.commit_room.close()
            if spare is not None and not lost:
                self._disk.unlink(self.path(SPARE_NAME))
            if current is not None and current.file is not None:
                current.file.truncate(current.written)
        finally:
            for file in (spare, self._successor):
                if file is not None:
                    file.close()
            for segment in self.live():
                segment.close()
