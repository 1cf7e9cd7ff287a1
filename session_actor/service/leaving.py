"""The sessions of a service that goes: new messages are refused, those that wait are answered."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

from session_actor.errors import SessionActorError
from session_actor.handle.feed import end_feeds
from session_actor.persistence import PersistenceError
from session_actor.server.cell import Dormant
from session_actor.server.prune import Save
from session_actor.server.session import Flush
from session_actor.supervisors import PendingReply, ServerRef, SupervisorError

if TYPE_CHECKING:
    from collections.abc import Callable

    from session_actor.persistence import Lease
    from session_actor.server.cell import Cell

    from .population import Population


class Leaving:
    """A population on its way out; until `go` it can still `stay`."""

    def __init__(self, people: Population) -> None:
        """Nothing has changed yet."""
        self._people = people
        self._cells: list[Cell] = []
        self._refs: dict[Cell, ServerRef] = {}

    async def refuse(self, timeout_s: float, why: Callable[[], SessionActorError]) -> None:
        """Refuse new messages with `why`, and answer those that wait, the held ones too, in `timeout_s` seconds."""
        people = self._people
        people.closed = why
        self._cells, resting = people.cells()
        for cell in (*self._cells, *resting):
            cell.turn_away(why)
        waits: list[PendingReply[Any]] = []
        for cell in self._cells:
            ref, cell.ref = cell.ref, Dormant(cell)
            if isinstance(ref, ServerRef):
                self._refs[cell] = ref
            with suppress(SupervisorError, SessionActorError):
                reply: Any = ref.dispatch(Flush(people.close_level), timeout_s)
                if isinstance(reply, PendingReply):
                    waits.append(reply)  # pyright: ignore[reportUnknownArgumentType]
        # One after the other: where a second Ctrl-C strikes in the counting of a `gather`, that never ends any more.
        for reply in waits:
            with suppress(Exception):  # what became of a session is told to who uses it
                await reply.wait_keeping()

    def stay(self) -> None:
        """Take messages again, as if nothing had been; what is being unloaded comes back with the next message."""
        people = self._people
        people.closed = None
        for cell, ref in self._refs.items():
            stays = ref.slot.ending is None and ref.phase != "ended"
            if stays and people.has(cell) and isinstance(cell.ref, Dormant):
                people.enter(cell, ref)

    def go(self) -> None:
        """Tell readers of changes, and hooks, that the sessions are unloaded."""
        end_feeds((*self._cells, *self._people.cells()[1]))
        self._people.hooks.closed(self._cells)


async def save_all(people: Population) -> None:
    """Save a snapshot of every loaded session that has much behind its last one, and wait until all are durable."""
    saved: list[tuple[Lease, int]] = []
    for cell in people.cells()[0]:
        with suppress(SupervisorError, SessionActorError):
            seq = await cell.server_ref().call(Save(resting=True))
            saved.append((cell.held_lease(), seq))
    for lease, seq in saved:
        if seq:
            with suppress(PersistenceError):
                await people.store.saved(lease, seq)
