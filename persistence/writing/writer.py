"""The one writer: takes the store's queue, makes lines of it, and gives them to the operating system in order.

Lines are made on the loop, a bounded number a turn, because another thread would hold the interpreter for 5 ms at a
time. Short queues are written at once on the loop, which is quicker than any hand-over; long ones by a thread, while
the next lines are made. A batch that could not be written stays first and is written again, at the same place.
"""

from __future__ import annotations

from functools import partial
from time import perf_counter
from typing import TYPE_CHECKING, Final

from session_actor.persistence.format.record import SUFFIX_BYTES, encode_logged
from session_actor.persistence.format.values import encode_record_data

from .batch import Batch
from .batch_writer import BatchWriter

if TYPE_CHECKING:
    from session_actor.persistence.log.session_log import SessionLog

INLINE_RECORDS: Final = 32
INLINE_BYTES: Final = 64 * 1024
STEP_RECORDS: Final = 16
"""Between two looks at the clock."""
STEP_BYTES: Final = 64 * 1024
LINES_S: Final = 0.0005
"""Making lines holds the loop about so long at a time."""
BATCH_BYTES: Final = 512 * 1024
BURST_DELAY_S: Final = 0.001


class Writer(BatchWriter):
    """Moves entries from the backlog to the log. All methods are called on the loop, none blocks for long."""

    _burst_planned = False
    _asking: SessionLog | None = None
    """Who asked last; see `_asked`."""

    # --- when to write ------------------------------------------------------------------------------------------------

    async def run(self) -> None:
        """Write in the background until cancelled. Another run goes on at the first unwritten byte.

        Raises what went wrong in a turn of the writer (a mistake in the code; errors of the disk are not raised here).
        """
        self._crashed = self._loop.create_future()
        self.active = True
        self._backlog.attend_at = 0
        self._syncer.start_timers()
        self._turn_planned = False  # one that was interrupted does not come any more
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

    def reach(self) -> None:
        """Somebody waits: write now if the queue is short and no write is in flight, else wake up.

        One record alone behind others that were written so is the case that counts: a reply waits for it. It is written
        out here, without helpers, since the calls would take longer than the write. Whatever is unusual takes steps.
        Where many sessions ask in one turn of the loop, those that come late share a write at its end.
        """
        if self._asked > INLINE_RECORDS:
            self.wake()
            return
        backlog, syncer, waiters = self._backlog, self._syncer, self.waiters
        batch, entries, position = syncer.growing, backlog.entries, backlog.appended_position
        if entries and entries[-1][0] is not self._asking:
            self._asking, self._asked = entries[-1][0], self._asked + 1
        if self._asked > INLINE_RECORDS or batch is None or len(entries) != 1 or batch.segment.end >= syncer.grows_to:
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
        try:
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
        except BaseException as error:
            self._give_up(error)
            raise
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
        if self._in_flight is not None and not self._busy:  # it failed
            self._submit()
        backlog = self._backlog
        idle = self._in_flight is None and self._open is None
        weight = backlog.held_bytes - self._syncer.unsynced_bytes
        if idle and len(backlog.entries) <= INLINE_RECORDS and weight <= INLINE_BYTES:
            self._write_inline()
            return
        more = self._make_lines()
        if self._in_flight is None and self._open is not None:
            self._in_flight, self._open = self._open, None
            self._submit()
            more = bool(backlog.entries)
        if more:
            self.wake()

    def _write_inline(self) -> None:
        """Write a short queue here and now."""
        backlog = self._backlog
        segment = self._segments.next() if backlog.entries else None
        if segment is None:
            return
        full = segment.room_bytes
        batch = Batch(segment, backlog.next_position)
        self._write(batch, partial(batch.take, backlog, INLINE_RECORDS, min(full, segment.end + STEP_BYTES)))
        if backlog.entries:
            self.wake()

    def renew(self) -> None:
        """Go on in another segment with the next line, or now when none is under way and a spare is there.

        An empty segment is not left: nothing syncs it, and what continues it would not be found after a loss of power.
        """
        current = self._log.current
        if current is not None and current.is_empty:
            return
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
            self._syncer.growing = None
            self._write(batch, batch.add_watermark)
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
            if batch.size >= BATCH_BYTES or batch.segment.end >= batch.segment.room_bytes:
                return False
            full, refused = min(batch.segment.room_bytes, batch.segment.end + STEP_BYTES), None
            try:
                refused = batch.take(backlog, STEP_RECORDS, full)
                self._refuse(refused)
            except BaseException as error:  # noqa: BLE001  raised again, unless it is tried again
                self._stumble(error, sound=not (batch.midway or refused))
                return False
        return bool(backlog.entries)
