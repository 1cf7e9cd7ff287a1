"""Group commit: one sync makes everything durable that was written before it began.

A sync begins when somebody waits for level `synced`, when enough bytes are unsynced, and an interval after the first
unsynced write. It runs in a thread of its own and stops nobody from writing. Batches stay in memory until they are
synced, because an error of the sync leaves the file in a state that nobody knows (PostgreSQL's fsync lesson of 2018: a
retried fsync says OK over lost pages). So after an error the file is never synced again: a new segment takes over at
the last synced byte, from memory.
"""

from __future__ import annotations

import contextlib
from collections import deque
from contextvars import Context
from itertools import groupby
from time import perf_counter
from typing import TYPE_CHECKING, Final, NamedTuple
from zlib import crc32

from session_actor.persistence.errors import PersistenceError, StoreLocked

from .waiters import SLICE_S, Waiters

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable, Generator

    from session_actor.persistence.files.disk_thread import DiskThread
    from session_actor.persistence.log.log import Log
    from session_actor.persistence.log.segment import Segment
    from session_actor.persistence.trouble import Trouble

    from .batch import Backlog, Batch
    from .writer import Writer

UNSYNCED_BYTES: Final = 8 * 1024 * 1024
MERGED_BYTES: Final = 32 * 1024
"""Batches that were written one by one on the loop are kept as one up to this size."""
SUMMED_BYTES: Final = 1024 * 1024
IDLE_S: Final = 1.0


class Synced(NamedTuple):
    """How much of a segment is synced now, and the CRC-32 of that."""

    segment: Segment
    size_bytes: int
    crc: int


class Syncer:
    """Makes written batches durable. All methods are called on the loop, none blocks."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        *,
        log: Log,
        backlog: Backlog,
        thread: DiskThread,
        trouble: Trouble,
        writer: Writer,
        interval_s: float,
        guard: Callable[[], None],
        on_sealed: Callable[[], None],
    ) -> None:
        """`interval_s`: the longest that a record stays unsynced. `on_sealed`: told when segments can be cut.

        `guard`: called in the thread after every sync; raises `StoreLocked` when the store is another process's now.
        """
        self.waiters = Waiters(loop)
        """Of level `synced`."""
        self.growing: Batch | None = None
        """The newest batch, while a record may be written behind it at once; None while anything else goes on."""
        self.grows_to = 0
        """Offset in its segment at which nothing may be added to it any more."""
        self._loop = loop
        self._log = log
        self._backlog = backlog
        self._thread = thread
        self._trouble = trouble
        self._writer = writer
        self._interval_s = interval_s
        self._guard = guard
        self._on_sealed = on_sealed
        self._unsynced: deque[Batch] = deque()
        self.unsynced_bytes = 0
        """Bytes that are written and not yet synced; they are kept in memory until then."""
        self._in_sync: list[Batch] = []
        """Covered by the sync that runs now, or by the take-over that is to come."""
        self._settling: deque[Batch] = deque()
        """Synced; whoever waits for them is not yet told."""
        self._running = False
        self._taking_over = self._stopped = False
        self.goal = 0
        """A sync is wanted once everything up to this position is written; 0: no sync is wanted."""
        self._planned = False
        self._interval: asyncio.TimerHandle | None = None
        self._idle: asyncio.TimerHandle | None = None

    def batches(self) -> list[Batch]:
        """Everything that is written and not known to be synced, oldest first."""
        return [*self._in_sync, *self._unsynced]

    @property
    def settled_bytes(self) -> int:
        """Of the bytes that are kept in memory, those that need not be written again."""
        return 0 if self._taking_over else self.unsynced_bytes

    # --- when to sync -------------------------------------------------------------------------------------------------

    def note(self, batch: Batch, *, may_grow: bool) -> None:
        """A batch is written: `noted` is to be called. `may_grow`: small ones are kept as one."""
        growing, backlog = self.growing, self._backlog
        self.unsynced_bytes += batch.size
        backlog.held_bytes += batch.size
        if growing is not None and growing.segment is batch.segment and batch.start < self.grows_to:
            growing.absorb(batch)
        else:
            self._unsynced.append(batch)
            growing = batch
        self.growing = growing if may_grow else None
        full = batch.segment.room_bytes
        half = full // 2  # the writer wants a spare segment then
        self.grows_to = min(growing.start + MERGED_BYTES, half if batch.segment.end < half else full)

    def noted(self) -> None:
        """Plan what follows from `note`."""
        backlog = self._backlog
        if backlog.full or backlog.held_bytes >= backlog.max_bytes:
            backlog.check()
        if self.goal:
            self.plan()
        elif self.unsynced_bytes >= UNSYNCED_BYTES:
            self.want()
        elif self._interval is None and self._writer.active:
            self._interval = self._loop.call_later(self._interval_s, self._interval_over, context=Context())

    def want(self) -> None:
        """Somebody waits for level `synced`: sync at the end of this turn of the loop, or after the sync that runs.

        Not at once, so that everybody who was woken by the last sync and pushes again comes into the same one.
        """
        if not self.goal:
            self.goal = -1
        if not self._planned:
            self.plan()

    def plan(self) -> None:
        """Look at the end of this turn of the loop whether to sync."""
        if not self._planned and not self._running and not self._taking_over:
            self._planned = True
            self._loop.call_soon(self._begin)

    def _begin(self) -> None:
        self._planned = False
        if self._running or self._taking_over:
            return
        if self.goal == -1:
            self.goal = self._backlog.appended_position
        if not self._unsynced:
            self.goal = 0 if self._writer.written_position >= self._backlog.appended_position else self.goal
        elif (
            self._writer.written_position >= self.goal
            or self.unsynced_bytes >= UNSYNCED_BYTES
            or self._trouble.degraded  # what is written need not wait for what cannot be
        ):
            self.goal = 0
            with self._or_lost():
                self._sync()

    def _interval_over(self) -> None:
        self._interval = None
        if self._unsynced:
            self.want()

    def start_timers(self) -> None:
        """Sync and write watermarks by the clock from now on."""
        if self._unsynced:
            self._interval_over()
        self._plan_watermark()

    def stop_timers(self) -> None:
        """Do nothing by the clock any more."""
        for handle in (self._interval, self._idle):
            if handle is not None:
                handle.cancel()
        self._interval = self._idle = None

    def stop(self) -> None:
        """Sync nothing any more, whatever happens."""
        self._taking_over = self._stopped = True
        self.stop_timers()

    # --- one sync -----------------------------------------------------------------------------------------------------

    def _sync(self) -> None:
        self._running, self.growing = True, None
        self._in_sync, self._unsynced = list(self._unsynced), deque()
        batches, names = self._in_sync, self._log.names
        unnamed = {batch.segment.made_at for batch in batches if not batch.segment.synced}

        def job() -> list[Synced]:
            found = [_sync_segment(list(group)) for _, group in groupby(batches, lambda batch: batch.segment)]
            if unnamed:
                names.sync(min(unnamed))
            self._log.check_names()
            self._guard()
            return found

        self._thread.submit(job, self._on_synced)

    def _on_synced(self, found: list[Synced] | None, error: BaseException | None) -> None:
        with self._or_lost():
            self._running = False
            if self._stopped:
                return
            if found is None:
                self._poisoned(error or RuntimeError("a sync ended without a result"))
                return
            for segment, size, crc in found:
                segment.note_synced(size, crc)
            self._release_bytes(self._in_sync)
            self._settling.extend(self._in_sync)
            self._in_sync = []
        try:
            self._go_on()
        except BaseException:
            self._loop.call_soon(self._go_on)
            raise

    def _go_on(self) -> None:
        """A sync has ended well: tell whom it concerns, and plan the next one."""
        if self._stopped:
            return
        if self._backlog.full:
            self._backlog.check()
        self._settle()
        if self._log.sealed:
            self._on_sealed()
        if self.goal or self.waiters:
            self.want()
        elif self._unsynced and self._interval is None and self._writer.active:
            self._interval = self._loop.call_later(self._interval_s, self._interval_over, context=Context())
        self._plan_watermark()

    def _release_bytes(self, batches: list[Batch]) -> None:
        """Batches are synced: they need not be kept in memory."""
        size = sum(batch.size for batch in batches)
        self.unsynced_bytes -= size
        self._backlog.held_bytes -= size

    def _settle(self, slice_s: float = SLICE_S) -> None:
        """Tell the sessions and who waits what is synced, for a short time a turn of the loop."""
        self._writer.waiters.finish()
        until_s = perf_counter() + slice_s
        while self._settling and perf_counter() < until_s:
            batch = self._settling[0]  # it stays there, in case that its turn is interrupted
            batch.note_synced()
            self.waiters.reached(batch.last)
            if self._settling and self._settling[0] is batch:
                self._settling.popleft()
        if self._settling:
            self._loop.call_soon(self._settle)

    # --- after an error -----------------------------------------------------------------------------------------------

    def replace_segment(self, error: BaseException) -> bool:
        """The segment refuses lines: let another take over, unless a sync runs now; returns whether that was begun."""
        if self._running or self._taking_over or self._stopped:
            return False
        self._writer.waiters.fail(self._writer.not_durable("written", error))
        self._poisoned(error, "write_failed")
        return True

    def _poisoned(self, error: BaseException, name: str = "sync_failed") -> None:
        """Acknowledge nothing, and let a new segment take over at the last synced byte."""
        if isinstance(error, StoreLocked):
            self.lose(error)
            return
        self._taking_over = True
        self._settle(float("inf"))
        self.growing = None
        self.waiters.fail(self._writer.not_durable("synced", error))
        self._trouble.degrade(error, name)
        self._writer.pause(lambda: self._take_over(error))

    def _take_over(self, error: BaseException) -> None:
        batches = [*self._in_sync, *self._unsynced, *self._writer.unwritten()]
        oldest = batches[0].segment

        def done(result: tuple[Segment, list[Batch]] | None, failure: BaseException | None) -> None:
            if isinstance(failure, StoreLocked):
                self.lose(failure)
            elif result is None:
                self._trouble.fail(failure or error, lambda: self._take_over(error), "takeover_failed")
                self._writer.waiters.fail(self._writer.not_durable("written", failure or error))
                self.waiters.fail(self._writer.not_durable("synced", failure or error))
            elif not self._stopped:
                self._taken_over(oldest, *result)

        def job() -> tuple[Segment, list[Batch]]:
            self._guard()
            return self._log.take_over(oldest, batches)

        self._thread.submit(job, done)

    def inherit(self, batches: list[Batch], error: OSError) -> None:
        """Take over what an earlier process had written, and could not be made durable for `error`: see `unsure`."""
        size = sum(batch.size for batch in batches)
        self._in_sync = batches
        self.unsynced_bytes += size
        self._backlog.held_bytes += size
        self._backlog.appended_position = batches[-1].last
        self._writer.waiters.reached(batches[-1].last)
        self._poisoned(error, "takeover_failed")

    @contextlib.contextmanager
    def _or_lost(self) -> Generator[None]:
        """What is raised meanwhile leaves nobody who knows what is synced: that is said of nothing any more."""
        try:
            yield
        except BaseException as error:
            self.lose(PersistenceError(f"{type(error).__name__} struck a sync: close the store and open it again"))
            raise

    def lose(self, error: PersistenceError) -> None:
        """The store is another process's now, or it is not known what is written: write and acknowledge nothing."""
        self.stop()
        self._writer.stop()
        self._trouble.lose(error)
        self._settle(float("inf"))
        self._writer.waiters.fail(self._writer.not_durable("written", error))
        self.waiters.fail(self._writer.not_durable("synced", error))

    def _taken_over(self, oldest: Segment, segment: Segment, batches: list[Batch]) -> None:
        with self._or_lost():
            self._adopt(oldest, segment, batches)
        self._settle()
        self._on_sealed()

    def _adopt(self, oldest: Segment, segment: Segment, batches: list[Batch]) -> None:
        void = self._log.adopt(segment, oldest)
        self._thread.submit(lambda: self._log.remove(void), self._on_removed)
        for batch in batches:
            batch.note_written()
        self._backlog.held_bytes -= self.unsynced_bytes
        self._in_sync, self.unsynced_bytes = [], 0
        self._unsynced.clear()
        self._settling.extend(batches)
        self._taking_over = False
        self._trouble.events.tell(
            "taken_over", {"records": sum(len(batch.seqs) for batch in batches)}, path=segment.path
        )
        self._trouble.clear()
        self._writer.resume(batches[-1].last)

    def _on_removed(self, _: None, error: BaseException | None) -> None:
        if error is not None:
            self._trouble.note(error, "remove_failed")

    # --- idle watermark -----------------------------------------------------------------------------------------------

    def _plan_watermark(self) -> None:
        if self._idle is None and self._writer.active:
            position = self._writer.written_position
            self._idle = self._loop.call_later(IDLE_S, self._idle_over, position, context=Context())

    def _idle_over(self, position: int) -> None:
        self._idle = None
        if self._writer.written_position == position:
            self._writer.write_watermark()
        else:
            self._plan_watermark()


def _sync_segment(batches: list[Batch]) -> Synced:
    """Sync the file of `batches`, which follow what is synced of it. Blocks.

    The sum is made in few steps: each long one leaves the interpreter to others, and must wait for it afterwards.
    """
    segment, last = batches[0].segment, batches[-1]
    segment.writable.sync()
    crc = segment.crc
    for _, group in groupby(batches, lambda batch: batch.start // SUMMED_BYTES):
        crc = crc32(b"".join([line for batch in group for line in batch.lines]), crc)
    return Synced(segment, last.start + last.size, crc)
