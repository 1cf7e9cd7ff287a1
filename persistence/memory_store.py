"""A store that keeps everything in memory: for tests, and for sessions that need not outlive the process."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from .errors import Fenced, LevelUnreachable, NotDurable, SessionTombstoned, SessionUnknown, StoreClosed, StoreLocked
from .files.names import check_session_id
from .memory_records import MemoryArchive, MemoryRecords
from .snapshots.snapshot import check_snapshot
from .store import Lease, LoadedSession, Pruned, RecoveryReport, SessionInfo, StoreHealth

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence

    from .format.record import Record
    from .store import Archive, Level, Reached

_REACHABLE: Final[tuple[Level, ...]] = ("async",)
_BATCH: Final = 1000


class MemoryStore:
    """A `Store` in memory. It reaches the level `async` alone, and keeps its sessions from one `open` to the next.

    Written and synced positions stay 0: `admit`, `when` and `flush` raise `LevelUnreachable` for those levels.
    """

    def __init__(self) -> None:
        """Empty, and not yet open."""
        self.admitted: tuple[Level, ...] = ()
        """See `Store.admitted`."""
        self._sessions: dict[str, MemoryRecords] = {}
        self._deleted: set[str] = set()
        self._tokens = 0
        self._openings = 0
        self._position = 0

    @property
    def written_position(self) -> int:
        """Nothing is ever written."""
        return 0

    @property
    def synced_position(self) -> int:
        """Nothing is ever synced."""
        return 0

    async def open(self) -> None:
        """Make it usable. Raises `StoreLocked` when it is open."""
        if self.admitted:
            raise StoreLocked("memory", None, "this store is open already")
        self.admitted = _REACHABLE
        self._openings += 1

    async def close(self) -> None:
        """End all leases; again: no effect."""
        self.admitted = ()
        for kept in self._sessions.values():
            kept.end_lease()

    def workers(self) -> Mapping[str, Callable[[], Awaitable[None]]]:
        """None are needed."""
        return {}

    async def acquire(self, session: str, *, create: bool) -> Lease:
        """As `Store.acquire`."""
        self._require_open()
        session = check_session_id(session)
        kept = self._sessions.get(session)
        if kept is None or not kept.appended_seq:
            if not create:
                raise (SessionTombstoned if session in self._deleted else SessionUnknown)(session)
            if kept is None:
                kept = self._sessions[session] = MemoryRecords()
        kept.end_lease()
        self._tokens += 1
        kept.lease = Lease(session, kept.birth, self._tokens, kept)
        return kept.lease

    async def load(self, lease: Lease, *, before: int | None = None, snapshots: bool = True) -> LoadedSession:
        """As `Store.load`; gives way to other tasks after every thousand records."""
        kept = self._kept(lease)
        seq = kept.appended_seq
        while kept.made_seq < seq:
            kept.make(_BATCH)
            await asyncio.sleep(0)
        snapshot = kept.snapshot(before) if snapshots else None
        records = kept.tail(snapshot, seq, whole=snapshots)
        report = RecoveryReport(
            session=lease.session,
            birth=lease.birth,
            seq=seq,
            queue_records=len(records),
            snapshot_seq=0 if snapshot is None else snapshot.seq,
        )
        return LoadedSession(records, report, snapshot)

    async def newest(self, session: str, count: int = 1) -> list[Record]:
        """As `FileStore.newest`."""
        self._require_open()
        kept = self._sessions.get(check_session_id(session))
        if kept is None or not kept.appended_seq:
            return []
        kept.make()
        return kept.tail(None, kept.appended_seq, whole=False)[-count:]

    def save(self, lease: Lease, seq: int, data: bytes) -> None:
        """As `Store.save`: it is kept at once."""
        kept = self._kept(lease)
        check_snapshot(lease, seq, data)
        kept.save(seq, data)

    async def saved(self, lease: Lease, seq: int) -> None:
        """As `Store.saved`: never waits."""
        if self._kept(lease).saved_seq < seq:
            raise NotDurable(seq, "synced", "no snapshot after this record was saved")

    def archive(self, lease: Lease) -> Archive:
        """As `Store.archive`."""
        kept, opening = self._kept(lease), self._openings

        def check() -> None:
            if not self.admitted or self._openings != opening:
                raise StoreClosed("the memory store was closed: open it, and load the session again")
            if kept.deleted:
                raise SessionTombstoned(lease.session)

        return MemoryArchive(kept, check)

    async def prune(self, lease: Lease, dropped: Sequence[tuple[int, int]]) -> Pruned:
        """As `Store.prune`: record by record, for want of files."""
        return Pruned(size_bytes=self._kept(lease).prune(dropped))

    def admit(self, level: Level) -> None:
        """As `Store.admit`: there is always room."""
        self._require_open()
        _require_reachable(level)

    def append(  # noqa: PLR0917 - called for every change: keywords cost
        self,
        lease: Lease,
        seq: int,
        at_us: int,
        kind: str,
        data: object,
        weight: int,  # noqa: ARG002 - the protocol's
    ) -> int:
        """As `Store.append`; `weight` does not matter here."""
        kept = self._kept(lease)
        if seq != kept.appended_seq + 1:
            raise ValueError(f"record {seq} cannot follow record {kept.appended_seq}")
        kept.append(seq, at_us, kind, data)
        self._position += 1
        return self._position

    def reach(self, level: Level) -> None:
        """No effect: `admit` lets no other level than `async` through."""

    def when(self, level: Level, position: int, callback: Reached) -> None:  # noqa: ARG002 - the protocol's
        """As `Store.when`: at once."""
        _require_reachable(level)
        callback(None)

    async def flush(self, level: Level, position: int | None = None) -> None:  # noqa: ARG002 - the protocol's
        """As `Store.flush`: `async` is always reached."""
        _require_reachable(level)

    def release(self, lease: Lease) -> None:
        """As `Store.release`."""
        kept = lease.state
        if isinstance(kept, MemoryRecords) and kept.lease is lease:
            kept.end_lease()
            if not kept.appended_seq:
                del self._sessions[lease.session]

    async def delete(self, lease: Lease) -> None:
        """As `Store.delete`."""
        kept = self._kept(lease)
        kept.end_lease()
        del self._sessions[lease.session]
        kept.deleted = True
        if kept.appended_seq:
            self._deleted.add(lease.session)

    async def sessions(self, prefix: str = "") -> AsyncIterator[SessionInfo]:
        """As `Store.sessions`; `size_bytes` is 0."""
        self._require_open()
        for session in sorted(self._sessions):
            kept = self._sessions.get(session)  # it may go while somebody reads the listing
            if kept is not None and kept.appended_seq and session.startswith(prefix):
                yield SessionInfo(session, kept.birth, kept.created_us, kept.appended_seq, 0)

    def health(self) -> StoreHealth:
        """As `Store.health`."""
        return StoreHealth(self._position, 0, 0)

    def _require_open(self) -> None:
        if not self.admitted:
            raise StoreClosed("the memory store is not open: open it first")

    def _kept(self, lease: Lease) -> MemoryRecords:
        kept = lease.state
        if not lease.live or not isinstance(kept, MemoryRecords):
            raise Fenced(lease.session, "it was taken over, released or deleted, or the store was closed")
        return kept


def _require_reachable(level: Level) -> None:
    if level not in _REACHABLE:
        raise LevelUnreachable(level, _REACHABLE)
