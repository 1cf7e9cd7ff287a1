"""The part of the store on disk that takes records: admission, appending, and waiting for the disk."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from .errors import BacklogFull, Fenced, LevelUnreachable, StoreClosed, StoreDegraded
from .log.session_log import SessionLog
from .store import LEVELS, Lease, Level, Reached, StoreHealth
from .writing.batch import Backlog
from .writing.waiters import tell

if TYPE_CHECKING:
    from .engine import Engine


class RecordStore:
    """What `FileStore` does with records, once it is open."""

    def __init__(self, root: str) -> None:
        """Not open. `root`: for errors."""
        self._root = root
        self._engine: Engine | None = None
        self._backlog = Backlog(0, 0, self._note_admission)
        self.admitted: tuple[Level, ...] = ()
        """See `Store.admitted`."""
        self.unsynced: int | None = None
        """How many records were not on the disk when it was closed, also by a closing that was cancelled."""
        self._accepting = False

    def _opened(self) -> Engine:
        if self._engine is None:
            raise StoreClosed(f"the store at {self._root} is not open: open it first")
        return self._engine

    @staticmethod
    def _held(lease: Lease) -> SessionLog:
        if not lease.live or not isinstance(lease.state, SessionLog):
            raise Fenced(lease.session)
        return lease.state

    def admit(self, level: Level) -> None:
        """See `Store.admit`."""
        engine = self._engine
        if engine is None or not self._accepting:
            raise StoreClosed(f"the store at {self._root} is not open: open it first")
        if level not in LEVELS:
            raise LevelUnreachable(level, LEVELS)
        if engine.trouble.since_us is not None:
            raise StoreDegraded(engine.trouble.last_error or "unknown error")
        if engine.backlog.full:
            raise BacklogFull(len(engine.backlog.entries), engine.backlog.held_bytes)

    def _note_admission(self) -> None:
        """Something changed that decides what is admitted."""
        engine = self._engine
        refused = engine is None or not self._accepting or engine.trouble.degraded or engine.backlog.full
        self.admitted = () if refused else LEVELS

    def append(  # noqa: PLR0917 - called for every change: keywords cost
        self, lease: Lease, seq: int, at_us: int, kind: str, data: object, weight: int
    ) -> int:
        """See `Store.append`."""
        if not lease.live:
            raise Fenced(lease.session)
        log: SessionLog = lease.state  # type: ignore[assignment]
        if seq != log.appended_seq + 1:
            raise ValueError(f"record {seq} of {lease.session!r} must be number {log.appended_seq + 1}")
        log.appended_seq = seq
        if seq == 1:
            log.created_us = at_us
        backlog = self._backlog
        try:
            backlog.entries.append((log, seq, at_us, kind, data, weight))  # as Backlog.append, which would cost a call
        except MemoryError:
            log.appended_seq = seq - 1
            raise
        backlog.held_bytes = held_bytes = backlog.held_bytes + weight
        backlog.appended_position = position = backlog.appended_position + 1
        if position >= backlog.attend_at or held_bytes >= backlog.max_bytes:
            self._opened().writer.attend()
        return position

    def reach(self, level: Level) -> None:
        """See `Store.reach`."""
        engine = self._engine or self._opened()
        if level == "written":
            engine.writer.reach()
        elif level == "synced":  # everybody who pushes in this turn of the loop comes into one write and one sync
            engine.writer.wake()
            engine.syncer.want()

    @property
    def written_position(self) -> int:
        """See `Store.written_position`."""
        return 0 if self._engine is None else self._engine.writer.waiters.position

    @property
    def synced_position(self) -> int:
        """See `Store.synced_position`."""
        return 0 if self._engine is None else self._engine.syncer.waiters.position

    def when(self, level: Level, position: int, callback: Reached) -> None:
        """See `Store.when`."""
        self._when(self._engine or self._opened(), level, position, callback)

    def _when(self, engine: Engine, level: Level, position: int, callback: Reached) -> None:
        if level == "synced":
            waiters = engine.syncer.waiters
        elif level == "written":
            waiters = engine.writer.waiters
        elif level in LEVELS:
            return tell(callback, None)
        else:
            raise LevelUnreachable(level, LEVELS)
        if waiters.position < position:
            return waiters.add(position, callback)
        return tell(callback, None)

    def note_synced(self, position: int, callback: Reached) -> None:
        """As `when` for `synced`, but nobody waits for it: nothing is synced sooner, and no failure is told."""
        waiters = self._opened().syncer.waiters
        if waiters.position < position:
            waiters.note(position, callback)
        else:
            tell(callback, None)

    async def flush(self, level: Level, position: int | None = None) -> None:
        """See `Store.flush`."""
        engine = self._opened()
        await self._flush(engine, level, engine.backlog.appended_position if position is None else position)

    async def _flush(self, engine: Engine, level: Level, position: int) -> None:
        reached: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        def callback(error: BaseException | None) -> None:
            if reached.done():
                return
            if error is None:
                reached.set_result(None)
            else:
                reached.set_exception(error)

        self._when(engine, level, position, callback)
        if not reached.done():
            self.reach(level)
            engine.trouble.retry_now()
            if engine.trouble.lost is not None:
                engine.fail_waiters(engine.trouble.lost)
        await reached

    def health(self) -> StoreHealth:
        """See `Store.health`."""
        engine = self._engine
        if engine is None:
            return StoreHealth(appended_position=0, written_position=0, synced_position=0)
        return StoreHealth(
            appended_position=engine.backlog.appended_position,
            written_position=engine.writer.waiters.position,
            synced_position=engine.syncer.waiters.position,
            backlog_records=engine.backlog.appended_position - engine.writer.written_position,
            backlog_bytes=engine.backlog.held_bytes - engine.syncer.settled_bytes + engine.writer.made_bytes,
            last_error=engine.trouble.last_error,
            last_error_at_us=engine.trouble.last_error_at_us,
            degraded_since_us=engine.trouble.since_us,
            last_cut_us=engine.cutter.last_cut_us,
            last_snapshot_us=engine.snapshotter.last_us,
            live_segments=len(engine.log.sealed) + (engine.log.current is not None),
            refused_folders=engine.cutter.refused,
        )
