"""Who waits for a position to reach a level: told once, in the order of positions, in short turns of the loop."""

from __future__ import annotations

from bisect import insort_right
from collections import deque
from time import perf_counter
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable

    from session_actor.persistence.store import Reached

SLICE_S: Final = 0.0002
"""The loop is held about so long at a time."""


class Waiters:
    """The waiters of one level."""

    __slots__ = ("_loop", "_notes", "_planned", "_telling", "goal", "position", "queue")

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        """Nobody waits, and nothing is reached."""
        self.position = 0
        """Everybody who waited for this position or an earlier one was told."""
        self.goal = 0
        """What is reached, whether or not who waits was told."""
        self._loop = loop
        self.queue: deque[tuple[int, Reached]] = deque()
        """Who waits, in the order of positions."""
        self._notes: deque[tuple[int, Reached]] | None = None
        self._planned = False
        self._telling = False

    def __len__(self) -> int:
        """How many wait."""
        return len(self.queue)

    def add(self, position: int, callback: Reached) -> None:
        """Tell `callback` when `position` is reached."""
        queue = self.queue
        if not queue or queue[-1][0] <= position:
            queue.append((position, callback))
        else:
            insort_right(queue, (position, callback), key=_position)

    def note(self, position: int, callback: Reached) -> None:
        """Tell `callback` when `position` is reached, for which nobody waits: nothing is done sooner for it."""
        if self._notes is None:
            self._notes = deque()
        self._notes.append((position, callback))

    def reached(self, position: int) -> None:
        """Tell everybody up to `position`: at once, but what takes long is spread over turns of the loop."""
        self.goal = max(position, self.goal)
        while self._notes and self._notes[0][0] <= self.goal:
            tell(self._notes.popleft()[1], None)
        if not self.queue:
            self.position = self.goal
        elif not (self._planned or self._telling):
            self._tell(perf_counter() + SLICE_S)

    def finish(self) -> None:
        """Tell everybody whose position is reached, however long it takes."""
        if not self._telling:
            self._tell(float("inf"))

    def _go_on(self) -> None:
        self._planned = False
        self._tell(perf_counter() + SLICE_S)

    def _tell(self, until_s: float) -> None:
        queue = self.queue
        self._telling = True  # a callback may come back here: it only notes what is reached
        try:
            while queue and queue[0][0] <= self.goal:
                if perf_counter() >= until_s:
                    self._planned = True
                    self._loop.call_soon(self._go_on)
                    return
                self.position, callback = queue.popleft()
                try:  # as `tell`, without its call
                    callback(None)
                except (KeyboardInterrupt, SystemExit):
                    raise
                except BaseException as raised:  # noqa: BLE001  the same
                    _report(raised)
            self.position = self.goal
        except BaseException:
            self._planned = True
            self._loop.call_soon(self._go_on)  # the others are told all the same
            raise
        finally:
            self._telling = False

    def fail(self, error_at: Callable[[int], BaseException], first: int = 0) -> None:
        """Tell who waits for position `first` or later, if it is not reached, an error of their own."""
        self.finish()
        first = max(first, self.goal + 1)
        self._fail([waiter for waiter in self.queue if waiter[0] >= first], error_at)

    def fail_at(self, position: int, error: BaseException) -> None:
        """Tell whoever waits for this very position."""
        self._fail([waiter for waiter in self.queue if waiter[0] == position], lambda _: error)

    def _fail(self, failed: list[tuple[int, Reached]], error_at: Callable[[int], BaseException]) -> None:
        for waiter in failed:
            self.queue.remove(waiter)
        for position, callback in failed:
            tell(callback, error_at(position))


def _position(waiter: tuple[int, Reached]) -> int:
    return waiter[0]


def tell(callback: Reached, error: BaseException | None) -> None:
    """Call back; a callback that raises is logged and harms nobody else."""
    try:
        callback(error)
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as raised:  # noqa: BLE001  one waiter's mistake is not the writer's
        _report(raised)


def _report(raised: BaseException) -> None:
    from session_actor.persistence.safe_log import LOGGER

    LOGGER.error("store.callback_raised", error=type(raised).__name__)
