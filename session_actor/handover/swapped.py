"""A single session that is paused, to go on with other code: `Session.swap`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from session_actor.given.given_numbers import check_seconds
from session_actor.supervisors import Refusal, SupervisorError, SystemCallFailed, swap

from .errors import HandoverFailed

if TYPE_CHECKING:
    from session_actor.server.cell import Cell
    from session_actor.supervisors import Swapped

    from .values import Value

PAUSE_S: Final = 5.0


class SwappedSession:
    """A session that is paused between two messages, and its state as a plain, versioned value.

    Messages wait, with their callers; reads go on. Unless something is done it goes on by itself after `pause_s`.
    """

    def __init__(self, cell: Cell, swapped: Swapped) -> None:
        """Made by `Session.swap`."""
        self._cell = cell
        self._swapped = swapped

    @property
    def version(self) -> int:
        """The version of the value."""
        return self._swapped.version

    @property
    def value(self) -> Value:
        """The state: strings, numbers, None, and a dict of them; JSON-able."""
        value: Value = self._swapped.value
        return value

    @property
    def paused(self) -> bool:
        """Whether it waits."""
        return self._swapped.paused

    def resume(self) -> None:
        """Go on with the old code, as if nothing had been; again, or afterwards: no effect."""
        self._swapped.resume()

    async def take(self, *, timeout_s: float | None = 5.0) -> None:
        """Go on with the server that the service makes now: its `code_change` takes the value, then messages run.

        `timeout_s`: how long that may take [seconds]; None: no limit.

        Raises HandoverFailed: a step raised, or the pause was over; the old server has gone on, and no message is lost.
        """
        try:
            await self._swapped.take(self._cell, timeout_s)
        except (SystemCallFailed, Refusal) as error:
            raise HandoverFailed(f"session {self._cell.id!r}", str(error)) from error
        except SupervisorError as error:
            raise self._cell.explain(error) from None


async def swap_session(cell: Cell, timeout_s: float | None, pause_s: float | None) -> SwappedSession:
    """What `Session.swap` does."""
    check_seconds("pause_s", pause_s, optional=True)
    try:
        await cell.ready(timeout_s)
        return SwappedSession(cell, await swap(cell.server_ref(), timeout_s, pause_s))
    except SupervisorError as error:
        raise cell.explain(error) from None
