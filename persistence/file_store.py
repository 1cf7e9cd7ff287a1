"""The store on a local disk: a shared log for what is new, a journal per session for what is old, a catalog between."""

from __future__ import annotations

import asyncio
import contextlib
import os
import weakref
from functools import partial
from typing import TYPE_CHECKING, Final

from .cutting.ahead import cut_ahead
from .engine import Engine
from .errors import (
    NotDurable,
    PersistenceError,
    SessionTombstoned,
    SessionUnknown,
    StoreClosed,
    StoreCorrupt,
    StoreLocked,
)
from .events import Events, OnEvent
from .files.names import check_session_id, new_birth
from .files.storage import OsDisk
from .format.frame_index import Runs
from .loading.archive import FileArchive
from .loading.listing import list_sessions
from .loading.newest import newest_records
from .loading_store import LoadingStore
from .log.session_log import SessionLog
from .snapshots.snapshot import Slots, check_snapshot
from .store import Lease, Pruned, SessionInfo

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence

    from .files.storage import Disk
    from .format.record import Record
    from .store import Archive, Recovery

SEGMENT_BYTES: Final = 8 * 1024 * 1024
JOURNAL_BYTES: Final = 1024 * 1024
CUT_AT_CLOSE: Final = 64
BACKLOG_RECORDS: Final = 100_000
BACKLOG_BYTES: Final = 64 * 1024 * 1024
SYNC_INTERVAL_S: Final = 1.0


class FileStore(LoadingStore):
    """A `Store` in a directory of a local disk, for one process at a time.

    Levels `written` and `synced` are driven by whoever asks for them. Records at level `async` alone are written in the
    background, as long as somebody runs `workers()`.
    """

    def __init__(
        self,
        root: str | os.PathLike[str],
        *,
        lock_timeout_s: float | None = 0,
        backlog_records: int = BACKLOG_RECORDS,
        backlog_bytes: int = BACKLOG_BYTES,
        segment_bytes: int = SEGMENT_BYTES,
        journal_bytes: int = JOURNAL_BYTES,
        cut_at_close: int = CUT_AT_CLOSE,
        sync_interval_s: float = SYNC_INTERVAL_S,
        allow_network_fs: bool = False,
        recovery: Recovery = "strict",
        disk: Disk | None = None,
        on_event: OnEvent | None = None,
    ) -> None:
        """Nothing is touched before `open`.

        `root`: the directory; made, 0700, when it is missing. `lock_timeout_s`: how long `open` waits for another
        process to let go (0: not at all; None: without limit). `backlog_records`, `backlog_bytes`: how much may wait
        for the disk before changes are refused. `segment_bytes`: size at which the log goes on in another file, which
        is preallocated. `journal_bytes`: size at which a session's journal goes on in another file. `cut_at_close`:
        when at most so many sessions have records in the log, closing moves these into journals, so that the next
        `open` reads none.
        `sync_interval_s`: the longest that a written record stays unsynced while the workers run. `allow_network_fs`:
        open a store on a network file system, too. `recovery`: what is done with a damaged session, when it is loaded
        or, if the log is damaged, when the store is opened (see `store.Recovery`). `disk`: the system calls; None: the
        real ones. `on_event`: told, on the loop, what an operator would want to know; one that raises is detached.
        """
        super().__init__(os.fspath(root), OsDisk() if disk is None else disk, recovery)
        self._lock_timeout_s = lock_timeout_s
        self._backlog_records = backlog_records
        self._backlog_bytes = backlog_bytes
        self._segment_bytes = segment_bytes
        self._journal_bytes = journal_bytes
        self._cut_at_close = cut_at_close
        self._sync_interval_s = sync_interval_s
        self._allow_network_fs = allow_network_fs
        self._events = Events(self._root, on_event)
        self._changing = False
        self._leaves_log = False
        self._token = 0

    @property
    def root(self) -> str:
        """Its directory."""
        return self._root

    @property
    def on_event(self) -> OnEvent | None:
        """Who is told events; None: nobody."""
        return self._events.on_event

    @on_event.setter
    def on_event(self, on_event: OnEvent | None) -> None:
        self._events.on_event = on_event

    # --- open and close -----------------------------------------------------------------------------------------------

    async def open(self) -> None:
        """See `Store.open`."""
        if self._engine is not None or self._changing:
            raise StoreLocked(self._root, os.getpid(), here=True)
        self._changing = True
        engine = Engine(
            self._disk,
            self._root,
            segment_bytes=self._segment_bytes,
            journal_bytes=self._journal_bytes,
            sync_interval_s=self._sync_interval_s,
            max_records=self._backlog_records,
            max_bytes=self._backlog_bytes,
            on_admission=self._note_admission,
            events=self._events,
            on_broken=self._on_broken,
            on_cut=self._forget_idle,
            find_log=lambda session: self._logs.get(session),  # noqa: PLW0108  another dict after every opening
        )
        try:
            self._recovered = await engine.open(self._lock_timeout_s, allow_network_fs=self._allow_network_fs)
            self._logs, self._salvaged = self._recovered.logs, {}
            if self._recovery != "strict" and self._recovered.damage:
                await self._salvager(engine, self._recovery).whole_log(self._recovered)
        except BaseException:
            engine.let_go()
            raise
        finally:
            self._changing = False
        self._leaves_log = False
        self._engine = engine
        self._backlog = engine.backlog
        self._accepting = True
        self._note_admission()
        _open_stores.add(self)
        for torn in self._recovered.torn:
            self._events.tell(
                "torn", {"size_bytes": torn.size_bytes}, path=torn.path, offset=torn.offset, kept_at=torn.kept_at
            )

    async def close(self) -> None:
        """See `Store.close`."""
        engine, self._accepting = self._engine, False
        self._note_admission()
        if engine is None or self._changing:
            return
        self._changing = True
        try:
            await engine.free_reserve()
            for task in list(self._tasks):
                with contextlib.suppress(PersistenceError, OSError):
                    await asyncio.shield(task)
            await self._flush_at_last(engine)
            await engine.tidy(0 if self._leaves_log else self._cut_at_close)
            with contextlib.suppress(OSError):
                await engine.settle()
            await engine.note_end()
        finally:
            self.unsynced = engine.unsynced
            self._engine = None
            self._changing = False
            for log in self._logs.values():
                log.end_lease()
            self._logs = {}
            engine.let_go()

    async def _flush_at_last(self, engine: Engine) -> None:
        """What is not synced now is lost: a failure may be that of a try before, so one that begins now decides."""
        position = engine.backlog.appended_position
        try:
            await self._flush(engine, "synced", position)
        except NotDurable:
            await self._flush(engine, "synced", position)

    async def cut_ahead(self) -> None:
        """Move a long log into journals, so that the next `open` need not read it. See `ahead`; raises as `flush`."""
        await self.flush("written")
        await cut_ahead(self._opened())

    def leave_log(self) -> None:
        """Be quick at the next `close`: leave it to the next `open` to read the log."""
        self._leaves_log = True

    def workers(self) -> Mapping[str, Callable[[], Awaitable[None]]]:
        """See `Store.workers`: `writer`, `cutter` and `snapshots`."""
        engine = self._opened()
        return {"writer": engine.writer.run, "cutter": engine.cutter.run, "snapshots": engine.snapshotter.run}

    # --- sessions -----------------------------------------------------------------------------------------------------

    async def acquire(self, session: str, *, create: bool) -> Lease:
        """See `Store.acquire`."""
        engine, session, found, deleted = self._opened(), check_session_id(session), None, False
        known = self._logs.get(session)
        if known is None or not known.appended_seq:
            found, deleted = await engine.look_ups.find(session)
            if engine.closed:
                raise StoreClosed(f"the store at {self._root} was closed meanwhile: open it again")
        if engine.cutter.commits.may_replace(session):
            await self._settled(engine)
            return await self.acquire(session, create=create)
        log = self._logs.get(session) or found
        if log is not None:
            self._check_damage(log)
        if log is None or not log.exists:
            if not create:
                gone = deleted or (log is not None and (log.dead or log.dying))
                if not gone and self._recovered.unowned_damage is not None:
                    raise self._recovered.unowned_damage  # all of it may be lost
                raise SessionTombstoned(session) if gone else SessionUnknown(session)
            log = self._new_log(session) if log is None or log.appended_seq else log
            if self._recovered.unowned_damage is not None:
                self._recovered.proven_whole.add(log)
        return self._lend(log)

    @staticmethod
    def _new_log(session: str) -> SessionLog:
        log = SessionLog(session, new_birth())
        log.slots = Slots([], [])  # nobody else can have made any for this birth
        return log

    def _lend(self, log: SessionLog) -> Lease:
        """Make the lease that is valid from now on."""
        log.end_lease()
        self._logs[log.session] = log
        self._token += 1
        log.lease = Lease(log.session, log.birth, self._token, log)
        return log.lease

    def _check_damage(self, log: SessionLog) -> None:
        """Raises the damage of the log that concerns, or may concern, a session."""
        whole = log in self._recovered.proven_whole
        damage = log.damage or (None if whole else self._recovered.unowned_damage)
        if damage is not None:
            raise damage

    async def newest(self, session: str, count: int = 1) -> list[Record]:
        """The newest records of a session, at most `count`; it is not loaded for it, nor taken from its owner.

        None at all: there is no such session, or only loading it can tell. Raises `StoreClosed`, `UnusableId`.
        """
        engine, log = self._opened(), self._logs.get(check_session_id(session))
        gone = log is not None and not log.exists
        return [] if gone else await newest_records(self._disk, engine, session, log, count)

    def save(self, lease: Lease, seq: int, data: bytes) -> None:
        """See `Store.save`."""
        engine, log = self._opened(), self._held(lease)
        check_snapshot(lease, seq, data)
        engine.snapshotter.save(log, seq, data, engine.backlog.appended_position)

    async def saved(self, lease: Lease, seq: int) -> None:
        """See `Store.saved`."""
        engine, log = self._opened(), self._held(lease)
        try:
            await engine.snapshotter.saved(log, seq)
        except (OSError, StoreCorrupt) as error:
            raise NotDurable(seq, "synced", f"{type(error).__name__}: {error}") from error

    def archive(self, lease: Lease) -> Archive:
        """See `Store.archive`."""
        engine, log = self._opened(), self._held(lease)
        return FileArchive(engine.archivist, log.session, log.birth)

    async def prune(self, lease: Lease, dropped: Sequence[tuple[int, int]]) -> Pruned:
        """See `Store.prune`."""
        engine, log = self._opened(), self._held(lease)
        return await asyncio.shield(self._keep(engine.pruner.prune(log, Runs(dropped))))

    def release(self, lease: Lease) -> None:
        """See `Store.release`."""
        if lease.live and isinstance(lease.state, SessionLog):
            lease.state.end_lease()
            self._forget_idle([lease.state])

    async def delete(self, lease: Lease) -> None:
        """See `Store.delete`."""
        engine, log = self._opened(), self._held(lease)
        if log in self._in_salvage:
            return await asyncio.shield(self._keep(self._after_salvage(engine, partial(self.delete, lease))))
        log.end_lease()
        if log.appended_seq:
            return await self._bury(engine, log)
        return self._forget_idle([log])

    async def sessions(self, prefix: str = "") -> AsyncIterator[SessionInfo]:
        """See `Store.sessions`."""
        engine = self._opened()
        async for info in list_sessions(engine, self._logs, prefix):
            yield info

    # --- what the engine tells ----------------------------------------------------------------------------------------

    def _on_broken(self, log: SessionLog) -> None:
        """A record of the session could not be encoded: its owner must load it again."""
        self._opened().snapshotter.discard(log)
        log.end_lease()

    def abandon(self) -> None:
        """In a forked child: the store stays the parent's, and this copy of it is closed without touching anything."""
        engine, self._engine, self._accepting = self._engine, None, False
        self._note_admission()
        for log in self._logs.values():
            log.end_lease()
        if engine is not None:
            engine.abandon()


_open_stores: Final[weakref.WeakSet[FileStore]] = weakref.WeakSet()


def _abandon_all() -> None:
    for store in list(_open_stores):
        store.abandon()


os.register_at_fork(after_in_child=_abandon_all)
