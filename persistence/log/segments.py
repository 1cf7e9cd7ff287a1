"""Which segment takes the next lines: the current one, or the spare that was prepared before that one is full."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from session_actor.persistence.files.disk_thread import DiskThread
    from session_actor.persistence.trouble import Trouble

    from .log import Log
    from .segment import Segment


class Segments:
    """Has a spare prepared by the thread in good time, so that no line waits for it. Used on the loop alone."""

    def __init__(
        self,
        log: Log,
        thread: DiskThread,
        trouble: Trouble,
        *,
        on_ready: Callable[[], None],
        on_failure: Callable[[BaseException], None],
    ) -> None:
        """`on_ready()`: `next` has a segment now. `on_failure(error)`: no segment can take lines, and this is why."""
        self._log = log
        self._thread = thread
        self._trouble = trouble
        self._on_ready = on_ready
        self._on_failure = on_failure
        self.renewing = False
        """The current segment is to be left, though it is not full."""
        self._asked = False
        """The thread prepares a spare, or takes more room for the current segment, now."""
        self._refused = False
        """There was no room for more: it is asked for again when it cannot be done without."""

    def next(self) -> Segment | None:
        """The segment for the next lines; None when it must be waited for: `on_ready` or `on_failure` is called."""
        log = self._log
        if log.has_room and not self.renewing:
            return log.current
        if not log.has_spare:
            self._ask()
            return None
        self._refused, self.renewing = False, False
        try:
            return log.begin()
        except (OSError, MemoryError) as error:
            if log.has_room:
                return log.current
            self._on_failure(error)
            return None

    def look_ahead(self, segment: Segment) -> None:
        """Have a spare prepared, or more room taken, when what this one has is half full."""
        log = self._log
        if segment.end * 2 > segment.room_bytes and not (log.has_spare or self._refused):
            self._ask()

    def _ask(self) -> None:
        if not self._asked:
            self._asked = True
            log = self._log
            grows = log.may_grow and not self.renewing
            self._thread.submit(log.grow if grows else log.prepare_spare, self._on_prepared)

    def _on_prepared(self, _: None, error: BaseException | None) -> None:
        self._asked = False
        if error is None:
            self._refused = False
            self._on_ready()
        elif self._log.has_room:
            self._refused, self.renewing = True, False
            self._trouble.note(error, "segment_failed")
            self._on_ready()  # what waits for a spare goes into the current one
        else:
            self._on_failure(error)
