"""The snapshot worker: writes queued snapshots in the background, once the records that they cover are synced.

Of each session the oldest that waits is kept beside the newest: its records are synced sooner, so that a session that
is changed faster than the log is synced has a snapshot all the same.

Order: wait until the records are on the disk; write each snapshot into a temporary file and sync that; rename each into
a slot; sync the folders. Dying anywhere leaves each slot as it was or with the new snapshot, whole.
"""

from __future__ import annotations

import asyncio
import time
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Final, NamedTuple

from session_actor.persistence.errors import NotDurable, PersistenceError
from session_actor.persistence.files.names import snapshot_path
from session_actor.persistence.format.header import RecordRef

from .snapshot import (
    TEMPORARY,
    Slot,
    Slots,
    check_readable,
    encode_snapshot,
    look,
    other_slot,
    usable,
    write_again,
    write_beside,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from session_actor.persistence.files.disk_thread import DiskThread
    from session_actor.persistence.files.storage import Disk
    from session_actor.persistence.loading.loader import Loader
    from session_actor.persistence.loading.places import Finder, Places
    from session_actor.persistence.log.session_log import SessionLog
    from session_actor.persistence.trouble import Trouble
    from session_actor.persistence.writing.syncer import Syncer
    from session_actor.persistence.writing.writer import Writer

BATCH: Final = 64
"""So many snapshots are made durable together."""
RETRY_S: Final = 5.0


class Queued(NamedTuple):
    """A snapshot that is not yet written."""

    seq: int
    data: bytes
    position: int
    """Everything up to this position of the store must be synced before."""
    sum: str | None
    """Sum of record `seq`; None: it is not known yet."""


class _Job(NamedTuple):
    log: SessionLog
    queued: Queued
    slots: Slots | None
    places: Places


class _Written(NamedTuple):
    job: _Job
    slots: Slots | None
    """What the slots hold now; None: the snapshot could not be written, for `error`."""
    error: Exception | None


class Snapshotter:
    """Queues snapshots and writes them. `last_us`: when one was last made durable, microseconds since the epoch."""

    def __init__(
        self,
        disk: Disk,
        *,
        folder: str,
        finder: Finder,
        loader: Loader,
        writer: Writer,
        syncer: Syncer,
        thread: DiskThread,
        trouble: Trouble,
        lock: asyncio.Lock,
        on_saved: Callable[[list[SessionLog]], None],
    ) -> None:
        """`folder`: of all snapshots. `thread`: where they are written. `lock`: held while their files change.

        `on_saved(sessions)`: told which have a new snapshot.
        """
        self.last_us: int | None = None
        self._disk = disk
        self._folder = folder
        self._finder = finder
        self._loader = loader
        self._writer = writer
        self._syncer = syncer
        self._thread = thread
        self._trouble = trouble
        self._lock = lock
        self._on_saved = on_saved
        self._queue: dict[SessionLog, tuple[Queued, ...]] = {}
        """Of each session one, or two in order."""
        self._wake = asyncio.Event()

    # --- queue --------------------------------------------------------------------------------------------------------

    def save(self, log: SessionLog, seq: int, data: bytes, position: int) -> None:
        """Queue a snapshot of the state after record `seq`, which is at `position` of the store or before."""
        waiting = self._queue.get(log, ())
        if seq > max([log.saved_seq, *(queued.seq for queued in waiting)]):
            known = log.written_seq == log.appended_seq == seq
            newest = Queued(seq, data, position, log.tail_sum.decode() if known else None)
            self._queue[log] = (*waiting[:1], newest)
            self._wake.set()

    def waits(self, log: SessionLog) -> bool:
        """Whether a snapshot of a session is queued."""
        return log in self._queue

    def discard(self, log: SessionLog) -> None:
        """A session lost records, or is deleted: a snapshot that covers what is lost must not be written."""
        last = 0 if log.dead or log.dying else log.appended_seq
        self._keep(log, [queued for queued in self._queue.get(log, ()) if queued.seq <= last])

    def forget(self, log: SessionLog) -> None:
        """Write none of a session that may have another birth by now: it would take the place of that one's."""
        self._queue.pop(log, None)

    def _keep(self, log: SessionLog, waiting: list[Queued]) -> None:
        """These are all that wait of a session."""
        if waiting:
            self._queue[log] = tuple(waiting)
        else:
            self._queue.pop(log, None)

    async def run(self) -> None:
        """Write in the background until cancelled. Trouble with the disk is noted, and writing is tried again."""
        self._wake.set()
        while True:
            await self._wake.wait()
            self._wake.clear()
            try:
                await self.drain(drive=False)
            except (OSError, PersistenceError) as error:
                self._trouble.note(error, "snapshot_failed")
                await asyncio.sleep(RETRY_S)
                self._wake.set()

    async def drain(self, *, drive: bool) -> None:
        """Write all that is queued. `drive`: sync the log for that now, not when that comes by itself.

        Raises OSError and `PersistenceError` for the first snapshot that could not be written; it stays queued.
        """
        while self._queue:
            batch = list(islice(self._queue, BATCH))
            await self._synced(max(self._queue[log][0].position for log in batch), drive=drive)
            if not await self._write(batch):
                return

    async def saved(self, log: SessionLog, seq: int) -> None:
        """Wait until a snapshot after record `seq` is durable. Raises `NotDurable`, OSError."""
        if log.saved_seq < seq and log not in self._queue:
            await self.settle(log)
        while log.saved_seq < seq:
            queued = next((one for one in self._queue.get(log, ()) if one.seq >= seq), None)
            if queued is None:
                raise NotDurable(seq, "synced", "no snapshot after this record was queued")
            await self._synced(queued.position, drive=True)
            await self._write([log])

    async def settle(self, log: SessionLog) -> Slots:
        """What the slots of a session hold, all of which is durable when this returns. Raises OSError."""

        def job() -> Slots:
            slots = look(self._disk, self._folder, log.session, log.birth)
            check_readable(slots)
            if slots.good and slots.good[0].seq > log.saved_seq:
                write_again(self._disk, slots.good[0])
            return slots

        async with self._lock:
            slots = usable(await self._thread.run(job), log.unusable)
            log.slots, log.saved_seq = slots, max([log.saved_seq, *(slot.seq for slot in slots.good[:1])])
        return slots

    async def _synced(self, position: int, *, drive: bool) -> None:
        """Wait until all records up to `position` are synced. Raises `NotDurable`."""
        waiters = self._syncer.waiters
        if waiters.position >= position:
            return
        reached: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        def callback(error: BaseException | None) -> None:
            if not reached.done():
                reached.set_result(None) if error is None else reached.set_exception(error)

        waiters.add(position, callback)
        if drive:
            self._writer.wake()
            self._syncer.want()
            self._trouble.retry_now()
        await reached

    # --- writing ------------------------------------------------------------------------------------------------------

    async def _write(self, logs: list[SessionLog]) -> int:
        """Write the newest snapshot of each session whose records are synced; returns how many.

        What was begun completes, whoever waits.
        """
        await self._lock.acquire()
        future: asyncio.Future[list[_Written]] = asyncio.get_running_loop().create_future()

        def done(written: list[_Written] | None, error: BaseException | None) -> None:
            self._lock.release()
            try:
                self._note(written or [])
            finally:
                if not future.done():
                    future.set_result(written or []) if error is None else future.set_exception(error)

        try:
            for log in logs:
                self.discard(log)
            jobs = [
                _Job(log, queued, log.slots, self._finder.places(log, memory=False))
                for log in logs
                for queued in [one for one in self._queue.get(log, ()) if one.seq <= log.synced_seq][-1:]
            ]
            self._thread.submit(partial(self._write_all, jobs), done)
        except BaseException:
            self._lock.release()
            raise
        written = await future
        for one in written:
            if one.error is not None and not self._finder.moved(one.job.log, one.job.places):  # else it is tried again
                raise one.error
        return len(written)

    def _note(self, written: list[_Written]) -> None:
        for (log, queued, _, _), slots, _ in written:
            waiting = self._queue.pop(log, ())  # what is kept of it is behind all others
            self._keep(log, [one for one in waiting if slots is None or one.seq > queued.seq])
            if slots is not None:
                log.slots, log.saved_seq = slots, max(log.saved_seq, queued.seq)
                log.unusable = frozenset(slot for slot in log.unusable if slot.path != slots.good[0].path)
                self.last_us = time.time_ns() // 1000
                size = {"size_bytes": len(queued.data)}
                self._trouble.events.report("snapshot", size, session=log.session, seq=queued.seq)
        self._on_saved([one.job.log for one in written if one.slots is not None])

    def _write_all(self, jobs: list[_Job]) -> list[_Written]:
        """Write each snapshot beside its slot, then rename them, then sync the folders. Blocks."""
        ready: list[tuple[_Job, Slots, str]] = []
        failed: list[_Written] = []
        folders: set[str] = set()
        for job in jobs:
            try:
                slots = job.slots or usable(
                    look(self._disk, self._folder, job.log.session, job.log.birth), job.log.unusable
                )
                slot = other_slot(slots)
                self._write_one(job, slot, folders)
                ready.append((job, slots, slot))
            except (OSError, PersistenceError) as error:
                failed.append(_Written(job, None, error))
        done: list[_Written] = []
        for job, slots, name in ready:
            path = self._path(job.log, name)
            try:
                self._disk.rename(path + TEMPORARY, path)
                done.append(_Written(job, _with(slots, Slot(name, path, job.queued.seq)), None))
            except OSError as error:
                failed.append(_Written(job, None, error))
        try:
            for folder in sorted(folders):
                self._disk.sync_dir(folder)
        except OSError as error:
            return [*failed, *(_Written(one.job, None, error) for one in done)]
        return [*failed, *done]

    def _write_one(self, job: _Job, slot: str, folders: set[str]) -> None:
        log, queued = job.log, job.queued
        total = queued.sum or self._loader.sum_of(log, job.places, queued.seq)
        content = encode_snapshot(log.session, log.birth, RecordRef(queued.seq, total), queued.data)
        path = self._path(log, slot)
        folder = path.rpartition("/")[0]
        if folder not in folders:
            self._disk.make_dir(self._folder)
            self._disk.make_dir(folder)
            # Those that are there may have been made by a process that died before it synced their names.
            folders.update((folder, self._folder, self._folder.rpartition("/")[0]))
        write_beside(self._disk, path, content)

    def _path(self, log: SessionLog, slot: str) -> str:
        return f"{self._folder}/{snapshot_path(log.session, slot)}"


def _with(slots: Slots, new: Slot) -> Slots:
    """The slots when one was overwritten."""
    kept = [slot for slot in slots.good if slot.name != new.name]
    damaged = [path for path in slots.damaged if path != new.path]
    return Slots([new, *kept], damaged)
