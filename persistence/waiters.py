"""Who waits for a position to reach a level: told once, in the order of positions."""

from __future__ import annotations

import heapq
from itertools import count
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from .store import Reached


class Waiters:
    """The waiters of one level."""

    __slots__ = ("_heap", "_order")

    def __init__(self) -> None:
        """Nobody waits."""
        self._heap: list[tuple[int, int, Reached]] = []
        self._order = count()

    def __len__(self) -> int:
        """How many wait."""
        return len(self._heap)

    def add(self, position: int, callback: Reached) -> None:
        """Tell `callback` when `position` is reached."""
        heapq.heappush(self._heap, (position, next(self._order), callback))

    def reached(self, position: int) -> None:
        """Tell everybody up to `position`."""
        heap = self._heap
        while heap and heap[0][0] <= position:
            tell(heapq.heappop(heap)[2], None)

    def fail(self, error_at: Callable[[int], BaseException], first: int = 0) -> None:
        """Tell everybody who waits now for position `first` or later an error of their own, `error_at(position)`."""
        failed = sorted(waiter for waiter in self._heap if waiter[0] >= first)
        self._keep(failed)
        for position, _, callback in failed:
            tell(callback, error_at(position))

    def fail_at(self, position: int, error: BaseException) -> None:
        """Tell whoever waits for this very position."""
        failed = [waiter for waiter in self._heap if waiter[0] == position]
        self._keep(failed)
        for _, _, callback in failed:
            tell(callback, error)

    def _keep(self, failed: list[tuple[int, int, Reached]]) -> None:
        gone = {order for _, order, _ in failed}
        self._heap = [waiter for waiter in self._heap if waiter[1] not in gone]
        heapq.heapify(self._heap)


def tell(callback: Reached, error: BaseException | None) -> None:
    """Call back; a callback that raises is logged and harms nobody else."""
    try:
        callback(error)
    except Exception as raised:  # noqa: BLE001  one waiter's mistake is not the writer's
        import structlog

        structlog.get_logger("session_actor.persistence").error("store.callback_raised", error=type(raised).__name__)
