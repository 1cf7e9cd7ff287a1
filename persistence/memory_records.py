"""What a store in memory keeps of one birth of a session: its records, its snapshots, and the lease on it."""

from __future__ import annotations

from bisect import bisect_right
from operator import attrgetter
from typing import TYPE_CHECKING, Final

import msgspec

from .errors import StoreCorrupt
from .files.names import new_birth
from .format.frame_index import Runs, frames_of
from .format.header import RecordRef
from .format.record import Record, decode_record, encode_record
from .format.values import encode_record_data
from .store import Snapshot

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from .store import Lease

_KEPT_SNAPSHOTS: Final = 2
_SEQ: Final = attrgetter("seq")
_START: Final = RecordRef()
_NO_RECORDS: Final[list[Record]] = []
_NO_FRAMES: Final[dict[int, Record]] = {}
_NO_SNAPSHOTS: Final[list[tuple[int, bytes]]] = []
"""Shared by the many sessions that have none, or of which nothing was read yet; never changed."""


class MemoryRecords:
    """Records are made into lines only when somebody reads them; they are then kept so.

    `base`: the record up to which some were pruned. `saved_seq`: the record of the newest snapshot.
    """

    __slots__ = (
        "_adding",
        "_queue",
        "_records",
        "_refused",
        "_snapshots",
        "appended_seq",
        "base",
        "birth",
        "created_us",
        "deleted",
        "lease",
        "synced_seq",
        "written_seq",
    )

    def __init__(self) -> None:
        """Without any record."""
        self.birth = new_birth()
        self.appended_seq = self.written_seq = self.synced_seq = 0
        self.created_us = 0
        self.deleted = False
        self.lease: Lease | None = None
        self.base = _START
        self._records = _NO_RECORDS
        self._adding = _NO_FRAMES
        """By the id of each frame, the record that adds it; of the records that were made into lines."""
        self._queue: list[tuple[int, int, str, object]] = []
        self._snapshots = _NO_SNAPSHOTS
        self._refused: frozenset[int] = frozenset()
        """Records of snapshots that the session's owner cannot use: they do not count among those that are kept."""

    def end_lease(self) -> None:
        """Whoever has the lease has it no more."""
        if self.lease is not None:
            self.lease.live = False
            self.lease = None

    # --- records ------------------------------------------------------------------------------------------------------

    def append(self, seq: int, at_us: int, kind: str, data: object) -> None:
        """Keep a record."""
        if seq == 1:
            self.created_us = at_us
        self._queue.append((seq, at_us, kind, data))
        self.appended_seq = seq

    @property
    def made_seq(self) -> int:
        """The newest record that was made into a line."""
        return self.appended_seq - len(self._queue)

    def make(self, limit: int | None = None) -> None:
        """Make lines of the oldest records that were not yet read, at most `limit`."""
        last_sum = self._sum_of(self.made_seq)
        for seq, at_us, kind, data in self._queue[:limit]:
            line, last_sum = encode_record(seq, at_us, kind, encode_record_data(data), last_sum)
            self._note(decode_record(line))
        del self._queue[:limit]

    def tail(self, snapshot: Snapshot | None, seq: int, *, whole: bool) -> list[Record]:
        """The records behind a snapshot, or all, up to `seq`, which must be made. `whole`: none may be missing.

        Raises `StoreCorrupt`.
        """
        after = self.base.seq if snapshot is None else snapshot.seq
        if whole and snapshot is None and after:
            raise StoreCorrupt("memory", "the session was pruned, and no snapshot of it can be used")
        first = bisect_right(self._records, after, key=_SEQ)
        return self._records[first : bisect_right(self._records, seq, key=_SEQ)]

    def find(self, ids: Iterable[int]) -> list[Record]:
        """See `Archive.read`."""
        self.make()
        found = {record.seq: record for frame in ids if (record := self._adding.get(frame)) is not None}
        return [found[seq] for seq in sorted(found)]

    def _note(self, record: Record) -> None:
        if self._records is _NO_RECORDS:
            self._records, self._adding = [], {}
        self._records.append(record)
        self._adding.update(dict.fromkeys(frames_of(record.kind, record.data), record))

    def _sum_of(self, seq: int) -> str:
        if seq == self.base.seq:
            return self.base.sum
        return self._records[bisect_right(self._records, seq, key=_SEQ) - 1].sum

    # --- snapshots ----------------------------------------------------------------------------------------------------

    @property
    def saved_seq(self) -> int:
        """The record of the newest snapshot; 0: there is none."""
        return max((seq for seq, _ in self._usable()), default=0)

    def save(self, seq: int, data: bytes) -> None:
        """Keep a snapshot, unless there is a newer one, and the one before it."""
        if seq > self.saved_seq:
            self._snapshots = [*self._usable(), (seq, data)][-_KEPT_SNAPSHOTS:]
            self._refused -= {seq}

    def _usable(self) -> list[tuple[int, bytes]]:
        return [snapshot for snapshot in self._snapshots if snapshot[0] not in self._refused]

    def snapshot(self, before: int | None) -> Snapshot | None:
        """The newest snapshot, of a record older than `before`; all records must be made."""
        if before is not None:
            self._refused |= {seq for seq, _ in self._snapshots if seq >= before}
        for seq, data in reversed(self._snapshots):
            if before is None or seq < before:
                return Snapshot(seq, self._sum_of(seq), msgspec.Raw(data))
        return None

    def prune(self, dropped: Iterable[tuple[int, int]]) -> int:
        """See `Store.prune`; returns the bytes of what was dropped."""
        runs = Runs(dropped)
        usable = self._usable()
        oldest = usable[0][0] if usable else 0
        self.make()
        records, self._records, self._adding = self._records, [], {}
        size = 0
        for record in records:
            if record.seq <= oldest and all(frame in runs for frame in frames_of(record.kind, record.data)):
                size += len(bytes(record.data))
                self.base = RecordRef(max(self.base.seq, record.seq), record.sum)
            else:
                self._note(record)
        return size


class MemoryArchive:
    """See `Archive`."""

    __slots__ = ("_check", "_kept")

    def __init__(self, kept: MemoryRecords, check: Callable[[], None]) -> None:
        """`check`: raises when nothing may be read any more."""
        self._kept = kept
        self._check = check

    def read(self, ids: Iterable[int]) -> list[Record]:
        """See `Archive.read`."""
        self._check()
        return self._kept.find(ids)

    async def fetch(self, ids: Iterable[int]) -> list[Record]:
        """See `Archive.fetch`."""
        return self.read(ids)
