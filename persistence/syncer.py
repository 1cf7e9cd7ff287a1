"""Group commit: one sync makes everything durable that was written before it began.

A sync begins when somebody waits for level `synced`, when enough bytes are unsynced, and an interval after the first
unsynced write. It runs in a thread of its own and stops nobody from writing. Batches stay in memory until they are
synced, because an error of the sync leaves the file in a state that nobody knows (PostgreSQL's fsync lesson of 2018: a
retried fsync says OK over lost pages). So after an error the file is never synced again: a new segment takes over at
the last synced byte, from memory.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Final

from .batch import Batch
from .waiters import Waiters

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable

    from .batch import Backlog
    from .disk_thread import DiskThread
    from .log import Log
    from .segment import Segment
    from .storage import Disk
    from .trouble import Trouble
    from .writer import Writer

UNSYNCED_BYTES: Final = 8 * 1024 * 1024
SETTLE_RECORDS: Final = 128
MERGED_BYTES: Final = 32 * 1024
"""Small batches are kept as one up to this size."""
IDLE_S: Final = 1.0


class Syncer:
    """Makes written batches durable. All methods are called on the loop, none blocks."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        *,
        disk: Disk,
        log: Log,
        backlog: Backlog,
        thread: DiskThread,
        trouble: Trouble,
        writer: Writer,
        interval_s: float,
        on_sealed: Callable[[], None],
    ) -> None:
        """`interval_s`: the longest that a record stays unsynced. `on_sealed`: told when segments can be cut."""
        self.synced_position = 0
        self.waiters = Waiters()
        """Of level `synced`."""
        self._loop = loop
        self._disk = disk
        self._log = log
        self._backlog = backlog
        self._thread = thread
        self._trouble = trouble
        self._writer = writer
        self._interval_s = interval_s
        self._on_sealed = on_sealed
        self._unsynced: deque[Batch] = deque()
        self.unsynced_bytes = 0
        """Bytes that are written and not yet synced; they are kept in memory until then."""
        self._in_sync: list[Batch] = []
        """Covered by the sync that runs now, or by the take-over that is to come."""
        self._settling: deque[Batch] = deque()
        """Synced; whoever waits for them is not yet told."""
        self._running = False
        self._taking_over = False
        self._goal = 0
        """A sync is wanted once everything up to this position is written; 0: no sync is wanted."""
        self._planned = False
        self._interval: asyncio.TimerHandle | None = None
        self._idle: asyncio.TimerHandle | None = None

    def batches(self) -> list[Batch]:
        """Everything that is written and not known to be synced, oldest first."""
        return [*self._in_sync, *self._unsynced]

    # --- when to sync -------------------------------------------------------------------------------------------------

    def growing(self, segment: Segment, position: int) -> Batch:
        """Where lines for `segment` that are written at once belong: the newest batch, or a new one from `position`."""
        last = self._unsynced[-1] if self._unsynced else None
        if last is not None and last.segment is segment and last.size < MERGED_BYTES:
            return last
        return Batch(segment, position)

    def note(self, batch: Batch, size: int) -> None:
        """`size` bytes more of `batch` are written."""
        if not self._unsynced or self._unsynced[-1] is not batch:
            self._unsynced.append(batch)
        self.unsynced_bytes += size
        if self._goal:
            self._plan()
        elif self.unsynced_bytes >= UNSYNCED_BYTES:
            self.want()
        elif self._interval is None and self._writer.active:
            self._interval = self._loop.call_later(self._interval_s, self._interval_over)

    def want(self) -> None:
        """Somebody waits for level `synced`: sync at the end of this turn of the loop, or after the sync that runs.

        Not at once, so that everybody who was woken by the last sync and pushes again comes into the same one.
        """
        if not self._goal:
            self._goal = -1
        self._plan()

    def _plan(self) -> None:
        if not self._planned and not self._running and not self._taking_over:
            self._planned = True
            self._loop.call_soon(self._begin)

    def _begin(self) -> None:
        self._planned = False
        if self._running or self._taking_over:
            return
        if self._goal == -1:
            self._goal = self._backlog.appended_position
        if not self._unsynced:
            self._goal = 0 if self._writer.written_position >= self._backlog.appended_position else self._goal
        elif self._writer.written_position >= self._goal or self.unsynced_bytes >= UNSYNCED_BYTES:
            self._goal = 0
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
        self._taking_over = True
        self.stop_timers()

    # --- one sync -----------------------------------------------------------------------------------------------------

    def _sync(self) -> None:
        self._running = True
        self._in_sync = list(self._unsynced)
        self._unsynced.clear()
        segments = list(dict.fromkeys(batch.segment for batch in self._in_sync))
        marks = [(segment, segment.written, segment.crc) for segment in segments]
        names = self._log.folder if self._log.names_to_sync else None
        self._log.names_to_sync = False

        def job() -> None:
            for segment in segments:
                if segment.file is not None:
                    segment.file.sync()
            if names is not None:
                self._disk.sync_dir(names)

        self._thread.submit(job, lambda _, error: self._on_synced(marks, error))

    def _on_synced(self, marks: list[tuple[Segment, int, int]], error: BaseException | None) -> None:
        self._running = False
        if error is not None:
            self._poisoned(error)
            return
        for segment, written, crc in marks:
            segment.synced, segment.synced_crc = written, crc
        self.unsynced_bytes -= sum(batch.size for batch in self._in_sync)
        self._settling.extend(self._in_sync)
        self._in_sync = []
        self._settle()
        if self._log.sealed:
            self._on_sealed()
        if self._goal or self.waiters:
            self.want()
        elif self._unsynced and self._interval is None and self._writer.active:
            self._interval = self._loop.call_later(self._interval_s, self._interval_over)
        self._plan_watermark()

    def _settle(self) -> None:
        """Tell who waits, a bounded number a turn of the loop."""
        budget = SETTLE_RECORDS
        while self._settling and budget > 0:
            batch = self._settling.popleft()
            budget -= len(batch.seqs) + 1
            batch.note_synced()
            self.synced_position = max(self.synced_position, batch.last)
            if self.waiters:
                self.waiters.reached(self.synced_position)
        if self._settling:
            self._loop.call_soon(self._settle)

    # --- after an error -----------------------------------------------------------------------------------------------

    def _poisoned(self, error: BaseException) -> None:
        """Acknowledge nothing, and let a new segment take over at the last synced byte."""
        self._taking_over = True
        self._log.names_to_sync = True
        while self._settling:
            self._settle()
        self.waiters.fail(self._writer.not_durable("synced", error))
        self._trouble.note(error)
        self._writer.pause(lambda: self._take_over(error))

    def _take_over(self, error: BaseException) -> None:
        batches = [*self._in_sync, *self._unsynced, *self._writer.unwritten()]
        oldest = batches[0].segment
        self._trouble.degrade(error)

        def done(result: tuple[Segment, list[Batch]] | None, failure: BaseException | None) -> None:
            if result is None:
                self._trouble.fail(failure or error, lambda: self._take_over(error))
                self.waiters.fail(self._writer.not_durable("synced", failure or error))
            else:
                self._taken_over(oldest, *result)

        self._thread.submit(lambda: self._log.take_over(oldest, batches), done)

    def _taken_over(self, oldest: Segment, segment: Segment, batches: list[Batch]) -> None:
        void = self._log.adopt(segment, oldest)
        self._thread.submit(lambda: self._log.remove(void), self._on_removed)
        for batch in batches:
            batch.note_written(batch.lines)
        segment.synced, segment.synced_crc = segment.written, segment.crc
        self._in_sync, self.unsynced_bytes = [], 0
        self._unsynced.clear()
        self._settling.extend(batches)
        self._taking_over = False
        self._trouble.clear()
        self._writer.resume(batches[-1].last)
        self._settle()
        self._on_sealed()

    def _on_removed(self, _: None, error: BaseException | None) -> None:
        if error is not None:
            self._trouble.note(error)

    # --- idle watermark -----------------------------------------------------------------------------------------------

    def _plan_watermark(self) -> None:
        if self._idle is None and self._writer.active:
            self._idle = self._loop.call_later(IDLE_S, self._idle_over, self._writer.written_position)

    def _idle_over(self, position: int) -> None:
        self._idle = None
        if self._writer.written_position == position:
            self._writer.write_watermark()
        else:
            self._plan_watermark()
