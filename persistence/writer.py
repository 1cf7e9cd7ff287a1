"""The one writer: takes the store's queue, makes lines of it, and gives them to the operating system in order.

Lines are made on the loop, a bounded number a turn, because another thread would hold the interpreter for 5 ms at a
time. Short queues are written at once on the loop, which is quicker than any hand-over; long ones by a thread, while
the next lines are made. A batch that could not be written stays first and is written again, at the same place.
"""

from __future__ import annotations

from time import perf_counter
from typing import TYPE_CHECKING, Final

from .batch import Batch
from .errors import NotDurable
from .record import SUFFIX_BYTES, encode_logged
from .reserve import is_full
from .segments import Segments
from .values import encode_record_data
from .waiters import Waiters

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable

    from .batch import Backlog, Refused
    from .disk_thread import DiskThread
    from .log import Log
    from .session_log import SessionLog
    from .syncer import Syncer
    from .trouble import Trouble

INLINE_RECORDS: Final = 32
INLINE_BYTES: Final = 64 * 1024
STEP_RECORDS: Final = 16
"""Between two looks at the clock."""
STEP_BYTES: Final = 64 * 1024
LINES_S: Final = 0.0005
"""Making lines holds the loop about so long at a time."""
BATCH_BYTES: Final = 512 * 1024
BURST_DELAY_S: Final = 0.001
REFUSALS: Final = 3
"""So often in a row a segment may refuse lines before another takes over: the place on the disk may be bad."""


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
        on_broken: Callable[[SessionLog], None],
    ) -> None:
        """`on_broken(session)`: told when a record of it cannot be encoded."""
        self.waiters = Waiters(loop)
        """Of level `written`."""
        self.active = False
        """Somebody runs `run`."""
        self._loop = loop
        self._log = log
        self._backlog = backlog
        self._thread = thread
        self._trouble = trouble
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
        self._paused = False
        """Nothing is written until `resume`."""
        self._refusals = 0
        """How often in a row lines were refused, though there was room."""
        self._when_quiet: Callable[[], None] | None = None
        self._segments = Segments(
            log, thread, trouble, on_ready=self._turn, on_failure=lambda error: self._fail(error, "segment_failed")
        )
        self._turn_planned = self._burst_planned = False
        self._asking: SessionLog | None = None
        self._asked = 0
        """How often since the last turn another session asked than the one before, `_asking`."""
        self._crashed: asyncio.Future[None] | None = None

    @property
    def written_position(self) -> int:
        """The operating system has everything up to this position, whether or not who waits was told."""
        return self.waiters.goal

    @property
    def made_bytes(self) -> int:
        """Length of the lines that are made and not known to be written."""
        return sum(batch.size for batch in self.unwritten())

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
        self._backlog.attend_at = 0
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
        self._when_quiet = None
        self._syncer.growing = None

    def attend(self) -> None:
        """Something was appended that nobody waits for: write it within a millisecond or two, with what follows."""
        if self.active and not self._burst_planned:
            self._burst_planned = True
            self._loop.call_later(BURST_DELAY_S, self._burst)
        self._backlog.attend()

    def _burst(self) -> None:
        self._burst_planned = False
        self._backlog.attend_at = 0
        self._turn()

    def wake(self) -> None:
        """Write at the end of this turn of the loop."""
        if not self._turn_planned:
            self._turn_planned = True
            self._loop.call_soon(self._turn)

    def _turn(self) -> None:
        self._turn_planned, self._asked = False, 0
        try:
            self.step()
        except Exception as error:
            if self._crashed is None or self._crashed.done():
                raise
            self._crashed.set_exception(error)

    def reach(self) -> None:
        """Somebody waits: write now if the queue is short and no write is in flight, else wake up.

        One record alone behind others that were written so is the case that counts: a reply waits for it. It is written
        out here, without helpers, since the calls would take longer than the write. Whatever is unusual takes steps.
        Where many sessions ask in one turn of the loop, those that come late share a write at its end.
        """
        backlog, syncer, waiters = self._backlog, self._syncer, self.waiters
        batch, entries, position = syncer.growing, backlog.entries, backlog.appended_position
        if entries and entries[-1][0] is not self._asking:
            self._asking, self._asked = entries[-1][0], self._asked + 1
        late = self._asked > INLINE_RECORDS
        if late or batch is None or len(entries) != 1 or batch.segment.end >= syncer.grows_to:
            self._reach_by_steps()
            return
        log, seq, at_us, kind, data, weight = entries[0]
        segment = batch.segment
        file, start, spans = segment.file, segment.end, segment.spans.get(log)
        if weight > INLINE_BYTES or position <= log.broken_until or file is None or spans is None:
            self._reach_by_steps()
            return
        try:
            line, line_sum, length, record_sum = encode_logged(
                segment.head, segment.last_sum, log.owner, seq, at_us, kind, encode_record_data(data), log.tail_sum
            )
            file.write(line, start)
        except Exception:  # noqa: BLE001  the next step meets it again, and says what it is
            self._reach_by_steps()
            return
        entries.popleft()
        size = len(line)
        segment.last_sum, log.tail_sum, log.written_seq = line_sum, record_sum, seq
        segment.end = segment.written = start + size
        spans.append(start + size - SUFFIX_BYTES - length)
        spans.append(start + size - SUFFIX_BYTES)
        batch.lines.append(line)
        batch.logs.append(log)
        batch.seqs.append(seq)
        batch.size += size
        batch.last = waiters.goal = position
        syncer.unsynced_bytes += size
        backlog.held_bytes += size - weight
        if syncer.goal:
            syncer.plan()
        if backlog.full:
            backlog.check()
        if waiters.queue:
            waiters.reached(position)
        else:
            waiters.position = position

    def _reach_by_steps(self) -> None:
        short = len(self._backlog.entries) <= INLINE_RECORDS and self._asked <= INLINE_RECORDS
        if short and self._in_flight is None:
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
        weight = backlog.held_bytes - self._syncer.unsynced_bytes
        if idle and len(backlog.entries) <= INLINE_RECORDS and weight <= INLINE_BYTES:
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
        """Write a short queue here and now."""
        backlog = self._backlog
        segment = self._segments.next() if backlog.entries else None
        if segment is None:
            return
        batch = Batch(segment, backlog.next_position)
        refused = batch.take(backlog, INLINE_RECORDS, min(self._log.segment_bytes, segment.end + STEP_BYTES))
        self._write(batch, refused)
        if backlog.entries:
            self.wake()

    def renew(self) -> None:
        """Go on in another segment with the next line, or now when none is under way and a spare is there."""
        self._segments.renewing = True
        self._syncer.growing = None
        if not (self._stopped or self._backlog.entries or self._in_flight or self._open):
            self._segments.next()

    def write_watermark(self) -> None:
        """Write down how far the segment is synced, if that is not in it yet and nothing else is to be written."""
        segment = self._log.current
        quiet = not (self._stopped or self._backlog.entries or self._in_flight or self._open)
        if quiet and segment is not None and segment.synced == segment.written != segment.marked:
            batch = Batch(segment, self._backlog.next_position)
            batch.add_watermark()
            segment.marked = segment.end
            self._syncer.growing = None
            self._write(batch, [])
            self._syncer.growing = None

    def _make_lines(self) -> bool:
        """Add lines to the open batch, as many as a turn of the loop may take; returns whether there are more."""
        backlog, until_s = self._backlog, perf_counter() + LINES_S
        while backlog.entries and perf_counter() < until_s:
            if self._open is None:
                segment = self._segments.next()
                if segment is None:
                    return False
                self._open = Batch(segment, backlog.next_position)
                self._syncer.growing = None
            batch = self._open
            if batch.size >= BATCH_BYTES or batch.segment.end >= self._log.segment_bytes:
                return False
            refused = batch.take(backlog, STEP_RECORDS, min(self._log.segment_bytes, batch.segment.end + STEP_BYTES))
            self._refuse(refused)
        return bool(backlog.entries)

    def _refuse(self, refused: list[Refused]) -> None:
        """Records cannot be stored: their session ends before the first of them, all others go on."""
        for (log, seq, *_), position, error in refused:
            why = "a record before it cannot be encoded"
            if error is not None:
                log.appended_seq = seq - 1
                self._on_broken(log)
                why = f"it cannot be encoded: {type(error).__name__}"
            self.waiters.fail_at(position, NotDurable(seq, "written", why))
            self._syncer.waiters.fail_at(position, NotDurable(seq, "synced", why))

    # --- system calls -------------------------------------------------------------------------------------------------

    def _write(self, batch: Batch, refused: list[Refused]) -> None:
        """Write on the loop. `refused`: what was to be among the lines."""
        try:
            batch.segment.writable.write(batch.data, batch.start)
        except OSError as error:
            self._in_flight = batch
            self._refuse(refused)
            self._fail(error)
        else:
            self._note(batch, refused, here=True)

    def _submit(self, batch: Batch) -> None:
        """Write in the thread."""
        self._in_flight = batch
        self._busy = True
        file, start = batch.segment.writable, batch.start
        self._thread.submit(lambda: file.write(batch.data, start), self._on_written)

    def _on_written(self, _: None, error: BaseException | None) -> None:
        self._busy = False
        batch = self._in_flight
        if self._when_quiet is not None:
            quiet, self._when_quiet = self._when_quiet, None
            quiet()
        elif error is not None:
            self._fail(error)
        elif batch is not None:
            self._in_flight = None
            self._note(batch, [], here=False)
            self._turn()

    def _note(self, batch: Batch, refused: list[Refused], *, here: bool) -> None:
        """A batch is written; `here`: on the loop, so that more may be added to it."""
        batch.note_written()
        self._refusals = 0
        if self._trouble.since_us is not None and not self._stopped:
            self._trouble.clear()
        self._syncer.note(batch, may_grow=here)
        if not self._stopped:  # the thread may have ended by now
            self._segments.look_ahead(batch.segment)
        self._refuse(refused)
        self.waiters.reached(batch.last)

    # --- trouble ------------------------------------------------------------------------------------------------------

    def _fail(self, error: BaseException, name: str = "write_failed") -> None:
        """The disk took nothing: whoever waits is told, the records stay, and it is tried again."""
        if self._paused:  # what is done about the sync that failed takes care of this, too
            self._trouble.note(error, name)
            return
        self._stopped = True
        self._syncer.growing = None
        self._refusals += name == "write_failed" and not is_full(error)
        if self._refusals >= REFUSALS and self._syncer.replace_segment(error):
            self._refusals = 0
            return
        self._trouble.fail(error, self._try_again, name)
        first = self.written_position + 1
        self.waiters.fail(self.not_durable("written", error), first)
        self._syncer.waiters.fail(self.not_durable("synced", error), first)
        if self._syncer.goal:
            self._syncer.plan()

    def _try_again(self) -> None:
        """What was being written comes first, whatever else failed meanwhile."""
        self._stopped = False
        if self._in_flight is None or self._busy:
            self.step()
        else:
            self._submit(self._in_flight)

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
        self._stopped = self._paused = True
        self._syncer.growing = None
        self._trouble.forget()
        if self._busy:
            self._when_quiet = when_quiet
        else:
            when_quiet()

    def resume(self, written_position: int) -> None:
        """Go on after `written_position`: another segment holds all up to there, what `unwritten` gave included."""
        self._in_flight = self._open = None
        self._stopped = self._paused = False
        self.waiters.reached(written_position)
        self.wake()
