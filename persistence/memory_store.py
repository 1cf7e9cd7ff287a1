"""A store that keeps everything in memory: for tests, and for sessions that need not outlive the process."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from .errors import Fenced, LevelUnreachable, SessionTombstoned, SessionUnknown, StoreClosed, StoreLocked
from .names import check_session_id, new_birth
from .record import NO_SUM, Record, decode_record, encode_record
from .store import Lease, LoadedSession, RecoveryReport, SessionInfo, StoreHealth
from .values import encode_record_data

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Mapping

    from .store import Level, Reached

_REACHABLE: Final[tuple[Level, ...]] = ("async",)
_BATCH: Final = 1000


class _Kept:
    """The records of one birth of a session, as they were appended, and the lease on it."""

    __slots__ = ("appended_seq", "birth", "entries", "lease", "synced_seq", "written_seq")

    def __init__(self) -> None:
        self.birth = new_birth()
        self.entries: list[tuple[int, int, str, object]] = []
        self.appended_seq = self.written_seq = self.synced_seq = 0
        self.lease: Lease | None = None

    def end_lease(self) -> None:
        if self.lease is not None:
            self.lease.live = False
            self.lease = None


class MemoryStore:
    """A `Store` in memory. It reaches the level `async` alone, and keeps its sessions from one `open` to the next.

    Written and synced positions stay 0: `admit`, `when` and `flush` raise `LevelUnreachable` for those levels.
    """

    def __init__(self) -> None:
        """Empty, and not yet open."""
        self.admitted: tuple[Level, ...] = ()
        """See `Store.admitted`."""
        self._sessions: dict[str, _Kept] = {}
        self._deleted: set[str] = set()
        self._tokens = 0
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
        if kept is None or not kept.entries:
            if not create:
                raise (SessionTombstoned if session in self._deleted else SessionUnknown)(session)
            if kept is None:
                kept = self._sessions[session] = _Kept()
        kept.end_lease()
        self._tokens += 1
        kept.lease = Lease(session, kept.birth, self._tokens, kept)
        return kept.lease

    async def load(self, lease: Lease) -> LoadedSession:
        """As `Store.load`; gives way to other tasks after every thousand records."""
        records: list[Record] = []
        last_sum = NO_SUM
        for entry in tuple(self._kept(lease).entries):
            seq, at_us, kind, data = entry
            line, last_sum = encode_record(seq, at_us, kind, encode_record_data(data), last_sum)
            records.append(decode_record(line))
            if seq % _BATCH == 0:
                await asyncio.sleep(0)
        report = RecoveryReport(lease.session, lease.birth, len(records), queue_records=len(records))
        return LoadedSession(records, report)

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
        kept.entries.append((seq, at_us, kind, data))
        kept.appended_seq = seq
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
        if isinstance(kept, _Kept) and kept.lease is lease:
            kept.end_lease()
            if not kept.entries:
                del self._sessions[lease.session]

    async def delete(self, lease: Lease) -> None:
        """As `Store.delete`."""
        kept = self._kept(lease)
        kept.end_lease()
        del self._sessions[lease.session]
        if kept.entries:
            self._deleted.add(lease.session)

    async def sessions(self, prefix: str = "") -> AsyncIterator[SessionInfo]:
        """As `Store.sessions`; `size_bytes` is 0."""
        self._require_open()
        for session in sorted(self._sessions):
            kept = self._sessions.get(session)  # it may go while somebody reads the listing
            if kept is not None and kept.entries and session.startswith(prefix):
                yield SessionInfo(session, kept.birth, kept.entries[0][1], len(kept.entries), 0)

    def health(self) -> StoreHealth:
        """As `Store.health`."""
        return StoreHealth(self._position, 0, 0)

    def _require_open(self) -> None:
        if not self.admitted:
            raise StoreClosed("the memory store is not open: open it first")

    def _kept(self, lease: Lease) -> _Kept:
        kept = lease.state
        if not lease.live or not isinstance(kept, _Kept):
            raise Fenced(lease.session, "it was taken over, released or deleted, or the store was closed")
        return kept


def _require_reachable(level: Level) -> None:
    if level not in _REACHABLE:
        raise LevelUnreachable(level, _REACHABLE)
