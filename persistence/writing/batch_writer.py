"""Handing batches of lines to the operating system, and knowing which comes next, whatever is raised meanwhile.

A batch that could not be written stays first and is written again, at the same place; so does one of which it is not
known whether it was written. What is raised while a batch changes hands, when some know of it and others do not, ends
all writing: nothing may stand in the log behind a record that is missing.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import partial
from typing import TYPE_CHECKING, Final

from session_actor.persistence.errors import NotDurable, PersistenceError
from session_actor.persistence.log.segments import Segments
from session_actor.persistence.reserve import is_full

from .batch import seq_at
from .waiters import Waiters

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable

    from session_actor.persistence.files.disk_thread import DiskThread
    from session_actor.persistence.log.log import Log
    from session_actor.persistence.log.session_log import SessionLog
    from session_actor.persistence.trouble import Trouble

    from .batch import Backlog, Batch, Refused
    from .syncer import Syncer

REFUSALS: Final = 3
"""So often in a row a segment may refuse lines before another takes over: the place on the disk may be bad."""


class BatchWriter(ABC):
    """What is in the hands of the writer: lines that are made and not known to be written."""

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
        self._segments = Segments(log, thread, trouble, on_ready=self._turn, on_failure=self._no_segment)
        self._turn_planned = False
        self._asked = 0
        """How often since the last turn another session asked than the one before."""
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

    @abstractmethod
    def step(self) -> None:
        """Write what is queued, as far as it goes without holding the loop for long."""

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
        except BaseException:
            self.wake()
            raise

    def _refuse(self, refused: list[Refused]) -> None:
        """Records cannot be stored: their session ends before the first of them, all others go on."""
        try:
            for item in refused:
                self._refuse_one(item)
        except BaseException as error:  # a session that goes on would have a gap
            self._give_up(error)
            raise

    def _refuse_one(self, refused: Refused) -> None:
        (log, seq, *_), position, error = refused
        why = "a record before it cannot be encoded"
        if error is not None:
            log.appended_seq = seq - 1
            self._on_broken(log)
            why = f"it cannot be encoded: {type(error).__name__}"
        self.waiters.fail_at(position, NotDurable(seq, "written", why))
        self._syncer.waiters.fail_at(position, NotDurable(seq, "synced", why))

    # --- system calls -------------------------------------------------------------------------------------------------

    def _write(self, batch: Batch, fill: Callable[[], list[Refused]]) -> None:
        """Write on the loop. `fill()` makes the lines, and returns what was to be among them."""
        refused: list[Refused] = []
        try:
            refused = fill()
            batch.segment.writable.write(batch.data, batch.start)
            self._book(batch, here=True)
        except BaseException as error:  # noqa: BLE001  raised again, unless it is tried again
            sound = not batch.midway
            if sound and (batch.size or batch.last >= batch.first):
                self._in_flight = batch
                self._refuse(refused)
            self._stumble(error, sound=sound)
        else:
            self._tell(batch, refused)

    def _submit(self) -> None:
        """Write in the thread."""
        batch = self._in_flight
        if batch is None:
            return
        file, start, self._busy = batch.segment.writable, batch.start, True
        try:
            self._thread.submit(lambda: file.write(batch.data, start), partial(self._on_written, batch))
        except BaseException as error:  # noqa: BLE001  raised again, unless it is tried again
            self._busy = False
            self._stumble(error, sound=True)

    def _on_written(self, batch: Batch, _: None, error: BaseException | None) -> None:
        if batch is not self._in_flight:  # it was written twice
            return
        self._busy = False
        if self._when_quiet is not None:
            quiet, self._when_quiet = self._when_quiet, None
            quiet()
        elif error is not None:
            self._fail(error)
        else:
            try:
                self._book(batch, here=False)
            except BaseException as raised:  # noqa: BLE001  raised again, unless it is tried again
                self._stumble(raised, sound=not batch.midway)
            else:
                self._tell(batch, [])
                self._turn()

    def _book(self, batch: Batch, *, here: bool) -> None:
        """A batch is written: everybody counts it now. `here`: on the loop, so that more may be added to it."""
        batch.midway = True
        self._in_flight = None
        self._refusals = 0
        batch.note_written()
        self._syncer.note(batch, may_grow=here)
        self.waiters.goal = max(batch.last, self.waiters.goal)
        batch.midway = False

    def _tell(self, batch: Batch, refused: list[Refused]) -> None:
        """Whoever wants to know that a batch is written is told; what interrupts that keeps nobody from it."""
        try:
            self._refuse(refused)
            self._tell_written(batch)
        except BaseException:
            self._loop.call_soon(self._tell_written, batch)
            raise

    def _tell_written(self, batch: Batch) -> None:
        if not self._stopped:  # the thread may have ended by now
            self._segments.look_ahead(batch.segment)
            if self._trouble.since_us is not None:
                self._trouble.clear()
        self._syncer.noted()
        self.waiters.reached(batch.last)

    # --- trouble ------------------------------------------------------------------------------------------------------

    def _fail(self, error: BaseException, name: str = "write_failed") -> None:
        """The disk took nothing: whoever waits is told, the records stay, and it is tried again."""
        if self._paused:  # what is done about the sync that failed takes care of this, too
            self._trouble.note(error, name)
            return
        self._stopped = True
        self._syncer.growing = None
        self._refusals += name == "write_failed" and isinstance(error, OSError) and not is_full(error)
        if self._refusals >= REFUSALS and self._syncer.replace_segment(error):
            self._refusals = 0
            return
        self._trouble.fail(error, self._try_again, name)
        first = self.written_position + 1
        self.waiters.fail(self.not_durable("written", error), first)
        self._syncer.waiters.fail(self.not_durable("synced", error), first)
        if self._syncer.goal:
            self._syncer.plan()

    def _no_segment(self, error: BaseException) -> None:
        """No segment can take lines. While there are none, nothing would try it again: the next line does."""
        if self._backlog.entries or self._in_flight or self._open:
            self._fail(error, "segment_failed")
            if self._log.lost_name:
                self._syncer.want()
        else:
            self._trouble.note(error, "segment_failed")

    def _stumble(self, error: BaseException, *, sound: bool) -> None:
        """Something was raised. `sound`: what is to be written next is known, and is tried again; else nothing is.

        Raises it, if it is neither the disk's fault nor that of a memory that is full.
        """
        if sound:
            self._fail(error)
        else:
            self._give_up(error)
        if not (sound and isinstance(error, OSError | MemoryError)):
            raise error

    def _give_up(self, error: BaseException) -> None:
        """Lines may be missing between what is written and what is to come: that must not be written behind it."""
        self._stopped = True
        self._syncer.growing = None
        why = f"{type(error).__name__} struck while records were written: close the store and open it again"
        self._syncer.lose(PersistenceError(why))

    def _try_again(self) -> None:
        """What was being written comes first, whatever else failed meanwhile."""
        self._stopped = False
        self.step()

    def not_durable(self, level: str, error: BaseException) -> Callable[[int], NotDurable]:
        """Makes the error for whoever waits for a position."""
        why = f"{type(error).__name__}: {error}"
        batches = *self._syncer.batches(), *self.unwritten()
        return lambda position: NotDurable(seq_at(position, batches, self._backlog), level, why)

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
