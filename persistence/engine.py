"""The parts of one open store, put together, taken up and let go of."""

from __future__ import annotations

import asyncio
import contextlib
from functools import partial
from typing import TYPE_CHECKING, Final

from .catalog.catalog import Catalog
from .cutting.cutter import Cutter
from .errors import PersistenceError, StoreClosed, StoreLocked
from .foreign import check_free
from .journals.pruner import Pruner
from .journals.removal import Remover
from .layout import Layout
from .loading.archive import Archivist
from .loading.loader import Loader
from .loading.looking_up import LookUps
from .loading.places import Finder
from .log.log import Log
from .log.session_log import Extent, SessionLog
from .recovery.recovery import LogRecovery
from .recovery.restored import Restored
from .recovery.unsure import unsure_batches
from .snapshots.snapshot import shelves, slots_without_look
from .snapshots.snapshotter import Snapshotter
from .trouble import Trouble
from .writing.batch import Backlog
from .writing.syncer import Syncer
from .writing.writer import Writer

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Iterable, Mapping

    from .events import Events
    from .files.disk_thread import Result
    from .files.storage import Disk
    from .format.header import SegmentRef
    from .recovery.recovered import Recovered

ATTACH_SESSIONS: Final = 100


class Engine:
    """Log, writer, syncer, cutter, catalog and lock of one store, from `open` to `close`."""

    def __init__(
        self,
        disk: Disk,
        root: str,
        *,
        segment_bytes: int,
        journal_bytes: int,
        sync_interval_s: float,
        max_records: int,
        max_bytes: int,
        on_admission: Callable[[], None],
        events: Events,
        on_broken: Callable[[SessionLog], None],
        on_cut: Callable[[Iterable[SessionLog]], None],
        find_log: Callable[[str], SessionLog | None],
    ) -> None:
        """See `FileStore`, `Writer` and `Cutter` for the arguments. Must be made in the loop that will use it.

        `max_records`, `max_bytes`: of the backlog. `on_admission`: told when the store begins or ends to take records.
        """
        loop = asyncio.get_running_loop()
        self.layout = Layout(root)
        self.lock = disk.lock(self.layout.lock)
        self.catalog = Catalog(self.layout.catalog, disk)
        self.backlog = Backlog(max_records, max_bytes, self._note_full)
        self.trouble = Trouble(loop, on_admission, events)
        self.log = Log(disk, self.layout.log, segment_bytes)
        self.closed = False
        """Nothing of it may be used any more."""
        self._disk = disk
        self.events = events
        self._on_admission = on_admission
        self._write_thread = disk.thread("session-actor-write", loop)
        self._sync_thread = disk.thread("session-actor-sync", loop)
        self._cut_thread = disk.thread("session-actor-cut", loop)
        self.read_thread = disk.thread("session-actor-read", loop)
        self.writer = self._new_writer(loop, on_broken)
        self._snapshot_lock = asyncio.Lock()
        self._snapshot_thread = disk.thread("session-actor-snapshot", loop)
        self.cutter = self._new_cutter(journal_bytes, on_cut)
        self.syncer = self._new_syncer(loop, sync_interval_s)
        self.writer.connect(self.syncer)
        self.finder = Finder(self.log, self.backlog, self.writer)
        self.loader = self._new_loader()
        self.look_ups = self._new_look_ups(loop)
        self.snapshotter = self._new_snapshotter(on_cut)
        self.pruner = self._new_pruner()
        self.archivist = self._new_archivist(find_log)

    def _note_full(self) -> None:
        """The backlog became full, or is not any more."""
        self._on_admission()
        waiting = {"records": len(self.backlog.entries), "size_bytes": self.backlog.held_bytes}
        self.events.tell("backlog_full" if self.backlog.full else "backlog_free", waiting)

    def _new_writer(self, loop: asyncio.AbstractEventLoop, on_broken: Callable[[SessionLog], None]) -> Writer:
        return Writer(
            loop,
            log=self.log,
            backlog=self.backlog,
            thread=self._write_thread,
            trouble=self.trouble,
            on_broken=on_broken,
        )

    def _new_loader(self) -> Loader:
        return Loader(
            self._disk,
            journals=self.layout.journals,
            snapshots=self.layout.snapshots,
            catalog=self.catalog,
            finder=self.finder,
            thread=self.read_thread,
        )

    def _new_look_ups(self, loop: asyncio.AbstractEventLoop) -> LookUps:
        return LookUps(
            loop,
            self.read_thread,
            self._disk,
            snapshots=self.layout.snapshots,
            catalog=self.catalog,
            loader=self.loader,
            is_deleted=self._is_unforgotten,
        )

    def _is_unforgotten(self, session: str, birth: str) -> bool:
        return (session, birth) in self.cutter.unforgotten

    def _new_archivist(self, find_log: Callable[[str], SessionLog | None]) -> Archivist:
        return Archivist(
            self._disk,
            self.layout.journals,
            self.catalog,
            self.finder,
            self.read_thread,
            find_log,
            self._is_unforgotten,
            lambda: not self.closed,
        )

    def _new_snapshotter(self, on_saved: Callable[[Iterable[SessionLog]], None]) -> Snapshotter:
        return Snapshotter(
            self._disk,
            folder=self.layout.snapshots,
            finder=self.finder,
            loader=self.loader,
            writer=self.writer,
            syncer=self.syncer,
            thread=self._snapshot_thread,
            trouble=self.trouble,
            lock=self._snapshot_lock,
            on_saved=on_saved,
        )

    def _new_pruner(self) -> Pruner:
        return Pruner(
            self._disk,
            journals=self.layout.journals,
            snapshots=self.layout.snapshots,
            catalog=self.catalog,
            finder=self.finder,
            loader=self.loader,
            thread=self._cut_thread,
            trouble=self.trouble,
            locks=(self.cutter.lock, self._snapshot_lock),
        )

    def _new_cutter(self, file_bytes: int, on_cut: Callable[[Iterable[SessionLog]], None]) -> Cutter:
        return Cutter(
            self._disk,
            log=self.log,
            catalog=self.catalog,
            journals=self.layout.journals,
            file_bytes=file_bytes,
            remover=Remover(self._disk, self.catalog, self.layout.journals, self.layout.snapshots),
            snapshots=self._snapshot_lock,
            thread=self._cut_thread,
            trouble=self.trouble,
            on_cut=on_cut,
        )

    def _new_syncer(self, loop: asyncio.AbstractEventLoop, interval_s: float) -> Syncer:
        return Syncer(
            loop,
            log=self.log,
            backlog=self.backlog,
            thread=self._sync_thread,
            trouble=self.trouble,
            writer=self.writer,
            interval_s=interval_s,
            guard=self._guard,
            on_sealed=self.cutter.wake,
        )

    async def open(self, lock_timeout_s: float | None, *, allow_network_fs: bool) -> Recovered:
        """Take the lock and recover the log. When it raises or is cancelled, call `let_go`."""
        await self.read_thread.run(self._make_root)
        self._disk.check_local(self.layout.root, allow_network_fs=allow_network_fs)
        await self.lock.acquire(lock_timeout_s)
        first_live, noted = await self.read_thread.run(self._open_catalog)
        recovery = LogRecovery(
            self._disk,
            self.log,
            self.layout.aside,
            thread=self.read_thread,
            known=self._has_journal,
            buried=self._is_buried,
            settle=self.catalog.settle,
            missing=Restored(self._disk, self.layout.journals, self.catalog).missing,
        )
        recovered = await recovery.run(first_live, noted)
        for log in recovered.dead:
            try:
                await self.cutter.forget(log)
            except OSError as error:  # it is dead all the same, and tried again by the cut
                self.trouble.note(error, "delete_failed")
        alive = [log for log in recovered.logs.values() if not log.dead]
        for first in range(0, len(alive), ATTACH_SESSIONS):
            group = alive[first : first + ATTACH_SESSIONS]
            await self.read_thread.run(partial(self._attach, group, recovered.first_seqs))
        if recovered.full is not None:
            await self._take_over(recovered.full)
        return recovered

    async def _take_over(self, full: OSError) -> None:
        """Another segment takes over what could not be made durable, at once if there is room, else when there is."""
        tried: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        batches = await self.read_thread.run(partial(unsure_batches, self._disk, self.log))
        if not batches:  # all of it is known to be synced
            return
        self.syncer.inherit(batches, full)
        if batches[-1].last:
            self.syncer.waiters.add(batches[-1].last, lambda _: None if tried.done() else tried.set_result(None))
            await tried

    def _make_root(self) -> None:
        check_free(self._disk, self.layout)
        self._disk.make_root(self.layout.root)

    def _open_catalog(self) -> tuple[int, SegmentRef | None]:
        """Open it; returns what it says of the log: the oldest segment that counts, and where it surely goes to."""
        self.layout.open_catalog(self._disk, self.catalog)
        self.catalog.check()
        return self.catalog.first_live_segment(), self.catalog.log_end()

    @contextlib.asynccontextmanager
    async def alone(self) -> AsyncGenerator[None]:
        """Meanwhile nobody else changes journals, snapshots or the catalog."""
        async with self.cutter.lock, self._snapshot_lock:
            await self.cutter.commits.settle()
            yield

    async def run_cut(self, job: Callable[[], Result]) -> Result:
        """Run a job in the thread of the cuts."""
        return await self._cut_thread.run(job)

    def _has_journal(self, session: str, birth: str) -> bool:
        row = self.catalog.get(session)
        return row is not None and row.birth == birth

    def _is_buried(self, session: str, birth: str) -> bool:
        return birth in self.catalog.dead_births(session)

    def _attach(self, logs: list[SessionLog], first_seqs: Mapping[SessionLog, int]) -> None:
        """Tell sessions in the log what the catalog has of them. Blocks. `first_seqs`: their oldest records there."""
        found = shelves(self._disk, self.layout.snapshots)
        for log in logs:
            log.slots = slots_without_look(log.session, found)
            row = self.catalog.get(log.session)
            if row is not None and row.birth == log.birth:
                log.created_us = row.created_us
                log.extent = Extent(row.journal, row.bytes, row.seq, row.sum, row.crc)
                if first_seqs.get(log, row.seq + 1) <= row.seq:  # a cut that left others' records in the log
                    self._leave_out(log, row.seq)
                if log.appended_seq < row.seq:  # and no newer ones are there, or damage that was one
                    log.appended_seq = log.written_seq = log.synced_seq = row.seq
                    log.tail_sum = row.sum.encode()

    def _leave_out(self, log: SessionLog, seq: int) -> None:
        """Take no notice of a session's records in the log up to `seq`. Blocks."""
        for segment in self.log.sealed:
            if log in segment.spans and not segment.leave_out(log, seq, self._disk):
                break

    @property
    def unsynced(self) -> int:
        """How many records are not on the disk."""
        return self.backlog.appended_position - self.syncer.waiters.position

    async def tidy(self, most_sessions: int) -> None:
        """Write the snapshots that are queued, and cut all of the log when no more sessions than that are in it.

        What fails is noted alone: nothing is lost by it. Cancelled, it leaves a watermark in the log all the same.
        """
        try:
            await self._tidy(most_sessions)
        except asyncio.CancelledError:
            with contextlib.suppress(OSError):
                self.writer.write_watermark()
            raise

    async def _tidy(self, most_sessions: int) -> None:
        try:
            await self.snapshotter.drain(drive=True)
        except (OSError, PersistenceError) as error:
            self.trouble.note(error, "snapshot_failed")
        sessions = {log for segment in self.log.live() for log in segment.spans}
        if not sessions or len(sessions) > most_sessions:
            return
        self.writer.stop()
        self.syncer.stop()
        await self._sync_thread.run(lambda: None)  # a sync that runs has ended, and was noted
        try:
            self.log.seal()
            with contextlib.suppress(OSError):
                await self._sync_thread.run(self.log.give_back)
            await self.cutter.cut_all()
        except (OSError, PersistenceError) as error:
            self.trouble.note(error, "cut_failed")

    async def settle(self) -> None:
        """Write down, at the end of a session of work in which all was synced, that it was."""
        self.writer.write_watermark()
        current = self.log.current
        if current is not None and current.file is not None and current.marked == current.written:
            await self._sync_thread.run(current.file.sync)
            current.synced = current.written  # its crc stays behind: nothing of this segment is cut any more

    async def note_end(self) -> None:
        """See `Cutter.note_end`. What fails is noted alone: nothing is lost by it."""
        try:
            await self.cutter.note_end()
        except (OSError, PersistenceError) as error:
            self.trouble.note(error, "cut_failed")

    def _guard(self) -> None:
        """Make sure that the directory is this process's alone, also if its LOCK was removed underneath. Blocks.

        Raises `StoreLocked` when it is another's now, or was meanwhile; OSError when it is away.
        """
        if not self.lock.renew():
            names = self._disk.list(self.layout.root)
            if "FORMAT" not in names or not self.log.is_whole():
                why = "its LOCK was removed, and it is not as this process left it; close it and open it again"
                raise StoreLocked(self.layout.root, None, why)

    async def free_reserve(self) -> None:
        """Closing may need the room that is held back for a full disk."""
        if self.log.current is not None:
            with contextlib.suppress(OSError):
                await self.read_thread.run(self.log.reserve.close)

    def let_go(self) -> None:
        """Stop all timers and threads, close all files, release the lock. Waits for a system call that runs.

        Whoever still waits for a record gets `NotDurable`.
        """
        self.abandon()
        self.fail_waiters(StoreClosed("the store was closed before that"))
        threads = self._write_thread, self._sync_thread, self._cut_thread, self._snapshot_thread, self.read_thread
        for thread in threads:  # all at once: each takes its time to wake up
            thread.stop()
        for thread in threads:
            thread.end()
        with contextlib.suppress(OSError):
            self.log.close(lost=self.trouble.lost is not None)
        self.catalog.close()
        self.lock.release()

    def fail_waiters(self, error: BaseException) -> None:
        """Tell whoever waits for a record that it will not be there."""
        self.writer.waiters.fail(self.writer.not_durable("written", error))
        self.syncer.waiters.fail(self.writer.not_durable("synced", error))

    def abandon(self) -> None:
        """In a forked child: write nothing, and leave files and lock to the parent."""
        self.closed = True
        self.writer.stop()
        self.syncer.stop()
        self.trouble.close()
