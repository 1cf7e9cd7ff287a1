"""The one writer: takes the store's queue, makes lines of it, and gives them to the operating system in order.

Lines are made on the loop, a bounded number a turn, because another thread would hold the interpreter for 5 ms at a
time. Short queues are written at once on the loop, which is quicker than any hand-over; long ones by a thread, while
the next lines are made. A batch that could not be written stays first and is written again, at the same place.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from .batch import Batch
from .errors import NotDurable

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable

    from .batch import Backlog, Entry
    from .disk_thread import DiskThread
    from .log import Log
    from .segment import Segment
    from .session_log import SessionLog
    from .syncer import Syncer
    from .trouble import Trouble
    from .waiters import Waiters

INLINE_RECORDS: Final = 32
INLINE_BYTES: Final = 64 * 1024
TURN_RECORDS: Final = 64
TURN_BYTES: Final = 64 * 1024
BATCH_RECORDS: Final = 256
BATCH_BYTES: Final = 256 * 1024
BURST_DELAY_S: Final = 0.001


class Writer:
    """Moves entries from the backlog to the log. All methods are called on the loop, none blocks for long."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        *,
        log: Log,
        backlog: Backlog,
        thread: DiskThread,
        trouble: Trouble,
        waiters: Waiters,
        on_broken: Callable[[SessionLog], None],
    ) -> None:
        """`waiters`: of level `written`. `on_broken(session)`: told when a record of it cannot be encoded."""
        self.written_position = 0
        self.armed = False
        """A background turn is planned for what was appended last."""
        self.active = False
        """Somebody runs `run`."""
        self._loop = loop
        self._log = log
        self._backlog = backlog
        self._thread = thread
        self._trouble = trouble
        self._waiters = waiters
        self._on_broken = on_broken
        self._syncer: Syncer
        self._open: Batch | None = None
        """Lines that are made and not handed over."""
        self._in_flight: Batch | None = None
        """Lines that were handed over and are not known to be written."""
        self._busy = False
        """The thread writes `_in_flight` now."""
        self._stopped = False
        """Nothing is written until something was tried again."""
        self._when_quiet: Callable[[], None] | None = None
        self._spare_asked = False
        self._spare_refused = False
        """There was no room for it: it is asked for again when it cannot be done without."""
        self._turn_planned = False
        self._crashed: asyncio.Future[None] | None = None

    def connect(self, syncer: Syncer) -> None:
        """Tell `syncer` what is written from now on."""
        self._syncer = syncer

    # --- when to write ------------------------------------------------------------------------------------------------

    async def run(self) -> None:
        """Write in the background until cancelled. Another run goes on at the first unwritten byte.

        Raises what went wrong in a turn of the writer (a mistake in the code; errors of the disk are not raised here).
        """
        self._crashed = self._loop.create_future()
        self.active = True
        self._syncer.start_timers()
        self.wake()
        try:
            await self._crashed
        finally:
            self.active = False
            self._syncer.stop_timers()

    def stop(self) -> None:
        """Write nothing any more, whatever happens."""
        self.active = False
        self._stopped = True

    def arm(self) -> None:
        """Something was appended that nobody waits for: write it within a millisecond or two, with what follows."""
        if self.active:
            self.armed = True
            self._loop.call_later(BURST_DELAY_S, self._burst)

    def _burst(self) -> None:
        self.armed = False
        self._turn()

    def wake(self) -> None:
        """Write at the end of this turn of the loop."""
        if not self._turn_planned:
            self._turn_planned = True
            self._loop.call_soon(self._turn)

    def _turn(self) -> None:
        self._turn_planned = False
        try:
            self.step()
        except Exception as error:
            if self._crashed is None or self._crashed.done():
                raise
            self._crashed.set_exception(error)

    def reach(self) -> None:
        """Somebody waits: write now if the queue is short and no write is in flight, else wake up."""
        if self._in_flight is None and len(self._backlog.entries) <= INLINE_RECORDS:
            self.step()
        else:
            self.wake()

    # --- one step -----------------------------------------------------------------------------------------------------

    def step(self) -> None:
        """Write what is queued, as far as it goes without holding the loop for long."""
        if self._stopped:
            return
        backlog = self._backlog
        idle = self._in_flight is None and self._open is None
        if idle and len(backlog.entries) <= INLINE_RECORDS and backlog.weight_bytes <= INLINE_BYTES:
            self._write_inline()
            return
        more = self._make_lines()
        if self._in_flight is None and self._open is not None:
            self._submit(self._open)
            self._open = None
            more = bool(backlog.entries)
        if more:
            self.wake()

    def _write_inline(self) -> None:
        if not self._backlog.entries:
            return
        segment = self._segment()
        if segment is None:
            return
        batch = self._syncer.growing(segment, self._backlog.next_position)
        first = self._backlog.next_position
        self._fill(batch, INLINE_RECORDS)
        self._write(batch, first)
        if self._backlog.entries:
            self.wake()

    def write_watermark(self) -> None:
        """Write down how far the segment is synced, if that is not in it yet and nothing else is to be written."""
        segment = self._log.current
        quiet = not (self._stopped or self._backlog.entries or self._in_flight or self._open)
        if quiet and segment is not None and segment.synced == segment.written != segment.marked:
            first = self._backlog.next_position
            batch = Batch(segment, first)
            batch.add_watermark()
            segment.marked = segment.end
            self._write(batch, first)

    def _make_lines(self) -> bool:
        """Add lines to the open batch; returns whether there are more to make at once."""
        entries = self._backlog.entries
        if not entries:
            return False
        if self._open is None:
            segment = self._segment()
            if segment is None:
                return False
            self._open = Batch(segment, self._backlog.next_position)
        if not self._is_full(self._open):
            self._fill(self._open, TURN_RECORDS)
        return bool(entries) and not self._is_full(self._open)

    def _is_full(self, batch: Batch) -> bool:
        too_long = batch.size >= BATCH_BYTES or batch.last - batch.first + 1 >= BATCH_RECORDS
        return too_long or batch.segment.end >= self._log.segment_bytes

    def _fill(self, batch: Batch, limit: int) -> None:
        """Make lines of up to `limit` entries and about `TURN_BYTES`."""
        entries, segment = self._backlog.entries, batch.segment
        full = min(self._log.segment_bytes, segment.end + TURN_BYTES)
        while entries and limit and segment.end < full:
            entry = entries.popleft()
            self._backlog.weight_bytes -= entry[5]
            limit -= 1
            try:
                batch.add_entry(entry)
            except Exception as error:  # noqa: BLE001  whatever it is concerns this session alone
                self._refuse(entry, batch.last, error)

    def _refuse(self, entry: Entry, position: int, error: Exception) -> None:
        """A record cannot be stored: its session ends before it, all others go on."""
        log, seq = entry[0], entry[1]
        if position > log.broken_until:
            log.broken_until = self._backlog.appended_position
            log.appended_seq = seq - 1
            self._on_broken(log)
        why = f"it cannot be encoded: {type(error).__name__}"
        self._waiters.fail_at(position, NotDurable(seq, "written", why))
        self._syncer.waiters.fail_at(position, NotDurable(seq, "synced", why))

    # --- segments -----------------------------------------------------------------------------------------------------

    def _segment(self) -> Segment | None:
        """The segment for the next lines; None when it must be waited for."""
        log, current = self._log, self._log.current
        if current is not None and current.end < log.segment_bytes:
            if current.end * 2 > log.segment_bytes and not (log.has_spare or self._spare_refused):
                self._ask_for_spare()
            return current
        if not log.has_spare:
            self._ask_for_spare()
            return None
        self._spare_refused = False
        try:
            return log.begin()
        except OSError as error:
            self._fail(error, self.step)
            return None

    def _ask_for_spare(self) -> None:
        if not self._spare_asked:
            self._spare_asked = True
            self._thread.submit(self._log.prepare_spare, self._on_spare)

    def _on_spare(self, _: None, error: BaseException | None) -> None:
        self._spare_asked = False
        current = self._log.current
        if error is None:
            self._turn()
        elif current is not None and current.end < self._log.segment_bytes:
            self._spare_refused = True
            self._trouble.note(error)
        else:
            self._fail(error, self.step)

    # --- system calls -------------------------------------------------------------------------------------------------

    def _write(self, batch: Batch, first: int) -> None:
        """Write on the loop what was added to `batch` from position `first` on."""
        lines = batch.unwritten_lines
        try:
            batch.file.write(lines, batch.start + batch.written_size)
        except OSError as error:
            self._in_flight = batch.split(first)
            self._fail(error, self._write_again)
        else:
            self._note(batch, lines)

    def _submit(self, batch: Batch) -> None:
        """Write in the thread."""
        self._in_flight = batch
        self._busy = True
        file, lines, start = batch.file, batch.lines, batch.start
        self._thread.submit(lambda: file.write(lines, start), partial(self._on_written, lines))

    def _on_written(self, lines: bytes, _: None, error: BaseException | None) -> None:
        self._busy = False
        batch = self._in_flight
        if self._when_quiet is not None:
            quiet, self._when_quiet = self._when_quiet, None
            quiet()
        elif error is not None:
            self._fail(error, self._write_again)
        elif batch is not None:
            self._in_flight = None
            self._note(batch, lines)
            self._turn()

    def _write_again(self) -> None:
        if self._in_flight is not None:
            self._submit(self._in_flight)

    def _note(self, batch: Batch, lines: bytes) -> None:
        batch.note_written(lines)
        self.written_position = batch.last
        if self._trouble.since_us is not None:
            self._trouble.clear()
        self._syncer.note(batch, len(lines))
        if self._waiters:
            self._waiters.reached(batch.last)

    # --- trouble ------------------------------------------------------------------------------------------------------

    def _fail(self, error: BaseException, again: Callable[[], None]) -> None:
        """The disk took nothing: whoever waits is told, the records stay, and it is tried again."""
        self._stopped = True

        def go_on() -> None:
            self._stopped = False
            again()

        self._trouble.fail(error, go_on)
        first = self.written_position + 1
        self._waiters.fail(self.not_durable("written", error), first)
        self._syncer.waiters.fail(self.not_durable("synced", error), first)

    def not_durable(self, level: str, error: BaseException) -> Callable[[int], NotDurable]:
        """Makes the error for whoever waits for a position."""
        why = f"{type(error).__name__}: {error}"
        return lambda position: NotDurable(self._seq_at(position), level, why)

    def _seq_at(self, position: int) -> int:
        for batch in (*self._syncer.batches(), *self.unwritten()):
            if batch.first <= position <= batch.last:
                return batch.seq_at(position)
        index = position - self._backlog.next_position
        return self._backlog.entries[index][1] if 0 <= index < len(self._backlog.entries) else 0

    def unwritten(self) -> list[Batch]:
        """Batches of lines that are made and not known to be written, oldest first."""
        return [batch for batch in (self._in_flight, self._open) if batch is not None]

    def pause(self, when_quiet: Callable[[], None]) -> None:
        """Write nothing until `resume`; calls `when_quiet` as soon as no write runs in the thread."""
        self._stopped = True
        self._trouble.forget()
        if self._busy:
            self._when_quiet = when_quiet
        else:
            when_quiet()

    def resume(self, written_position: int) -> None:
        """Go on after `written_position`: another segment holds all up to there, what `unwritten` gave included."""
        self._in_flight = self._open = None
        self._stopped = False
        self.written_position = written_position
        self._waiters.reached(written_position)
        self.wake()
