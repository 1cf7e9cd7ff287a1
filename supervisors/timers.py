"""Messages that a server sends to itself later."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .checks import check_timeout

if TYPE_CHECKING:
    from .slot import Slot


class Timer:
    """A message to come. It dies with the incarnation that set it."""

    __slots__ = ("_handle", "_message", "_slot")

    def __init__(self, slot: Slot, delay_s: float, message: object) -> None:
        """Send `message` to `slot` in `delay_s` seconds."""
        self._slot = slot
        self._message = message
        delay_s = max(0.0, delay_s)
        check_timeout("delay_s", delay_s)
        self._handle = slot.floor.clock.call_later(delay_s, self._fire)
        slot.own(self.cancel)

    def cancel(self) -> None:
        """Do not send it; harmless when it was sent."""
        self._handle.cancel()
        self._slot.disown(self.cancel)

    def _fire(self) -> None:
        self._slot.disown(self.cancel)
        self._slot.enqueue_system(self._message)
