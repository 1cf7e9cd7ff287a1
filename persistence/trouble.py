"""What the store knows of a disk that fails: the last error, since when, and when to try again."""

from __future__ import annotations

import time
from contextvars import Context
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable

    from .events import Events

FIRST_RETRY_S: Final = 0.05
LAST_RETRY_S: Final = 5.0


class Trouble:
    """Degraded or not. One action at a time is tried again, with doubling delays, until something succeeds."""

    __slots__ = (
        "_again", "_closed", "_delay_s", "_handle", "_loop", "_on_change", "_stopped", "_tries",
        "events", "last_error", "last_error_at_us", "lost", "since_us",
    )  # fmt: skip

    def __init__(self, loop: asyncio.AbstractEventLoop, on_change: Callable[[], None], events: Events) -> None:
        """All is well. `on_change`: told when it becomes degraded, and when it is not any more."""
        self.last_error: str | None = None
        """The last error of the disk; it stays when the disk works again."""
        self.last_error_at_us: int | None = None
        """When that was, microseconds since the epoch."""
        self.events = events
        self.since_us: int | None = None
        """Since when the store is degraded, microseconds since the epoch; None: it is not."""
        self._loop = loop
        self._on_change = on_change
        self._delay_s = FIRST_RETRY_S
        self._tries = 0
        self._closed = False
        self._stopped = False
        self.lost: BaseException | None = None
        """Why nothing may be written any more."""
        self._again: Callable[[], None] | None = None
        self._handle: asyncio.TimerHandle | None = None

    @property
    def degraded(self) -> bool:
        """Whether the disk takes no records at present."""
        return self.since_us is not None

    def note(self, error: BaseException, name: str) -> None:
        """Remember an error and tell it as event `name`; by itself it does not stop records from being written."""
        self.last_error = f"{type(error).__name__}: {error}"
        self.last_error_at_us = time.time_ns() // 1000
        self.events.tell(name, error=self.last_error)

    def degrade(self, error: BaseException, name: str) -> None:
        """The disk failed, and something is done about it already."""
        self.note(error, name)
        if self.since_us is None:
            self.since_us = self.last_error_at_us
            self._tries = 0
            self._on_change()
            self.events.tell("degraded", error=self.last_error)

    def fail(self, error: BaseException, again: Callable[[], None], name: str) -> None:
        """The disk failed: be degraded, and call `again` after a delay or at `retry_now`."""
        self.degrade(error, name)
        self._cancel()
        if self._closed:
            return
        self._again = again
        self._handle = self._loop.call_later(self._delay_s, self.retry_now, context=Context())
        self._delay_s = min(self._delay_s * 2, LAST_RETRY_S)

    def lose(self, error: BaseException) -> None:
        """The store is another process's now, or nobody knows what is written: be degraded for good."""
        self.lost = error
        self.close()
        self.degrade(error, "lost")

    def retry_now(self) -> None:
        """Try what failed again at once; no effect when nothing waits to be tried."""
        self._cancel()
        again, self._again = self._again, None
        if again is not None:
            self._tries += 1
            again()

    def clear(self) -> None:
        """Records are written again."""
        if self.lost is not None:
            return
        self._delay_s = FIRST_RETRY_S
        self.forget()
        if self._stopped:
            return
        since_us, self.since_us = self.since_us, None
        if since_us is not None:
            self._on_change()
            degraded_s = max(0.0, time.time_ns() / 1e9 - since_us / 1e6)
            self.events.tell("healthy", {"degraded_s": round(degraded_s, 3), "tries": self._tries})

    def stop(self, error: BaseException) -> None:
        """The log may grow no further, since it cannot be cut: be degraded until `go_on`, whatever is written."""
        if not self._stopped:
            self._stopped = True
            self.degrade(error, "cut_failed")

    def go_on(self) -> None:
        """The log may grow again."""
        if self._stopped:
            self._stopped = False
            if self._again is None:
                self.clear()

    def forget(self) -> None:
        """Do not try again what failed: something else is done about it."""
        self._again = None
        self._cancel()

    def close(self) -> None:
        """Try nothing any more, whatever fails from now on."""
        self._closed = True
        self.forget()

    def _cancel(self) -> None:
        if self._handle is not None:
            self._handle.cancel()
            self._handle = None
