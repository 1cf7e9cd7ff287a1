"""The handle of a session: what an embedder holds."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .changes import Changes
from .commands import Fork
from .exchange import Exchange
from .reads import Reads
from .session import Flush

if TYPE_CHECKING:
    from session_actor.persistence import Level
    from session_actor.supervisors import ServerRef

    from .cell import Cell
    from .commands import Target


class Session(Changes, Reads):
    """One session, by its id and not by an incarnation: it stays valid over crashes, passivation and restarts.

    Handles are small; take as many as you like, from any coroutine of the service's loop. A handle made by `on` belongs
    to one branch of the session.
    """

    __slots__ = ()

    def __init__(self, cell: Cell, on: str | None = None) -> None:
        """Made by `SessionService.session`, and by `on`."""
        self._cell = cell
        self._on = on

    @property
    def id(self) -> str:
        """The session's id."""
        return self._cell.id

    @property
    def ref(self) -> ServerRef:
        """The session's server, for typed messages: `await session.ref.call(Push(…))`, `session.ref.cast(Push(…))`.

        Take it anew for each use: a session that was passivated is started by this, and has another server then.
        """
        return self._cell.server_ref()

    def on(self, branch: str) -> Session:
        """A handle on one branch: its changes move that branch's head only, whatever the session is on.

        The branch may also be made later; until then its calls raise BranchUnknown.
        """
        return Session(self._cell, branch)

    async def branch_off(
        self, branch: str, at: Target | None = None, *, durability: Level | None = None, timeout_s: float | None = 5.0
    ) -> Session:
        """Make `branch` at a frame (None: this handle's head) without going there, and return a handle on it.

        Raises NameTaken, FrameUnknown, EmptyStack, and what every change raises.
        """
        await self.send(Fork(at, branch, attach=False, on=self._on, durability=durability), timeout_s)
        return Session(self._cell, branch)

    def exchange(self, wait_s: float | None = None) -> Exchange:
        """`async with session.exchange():` one exchange at a time, on all handles of this session in this process.

        `wait_s`: how long to wait for a running one [seconds]; None: not at all. Entering raises SessionBusy.
        """
        return Exchange(self._cell, wait_s)

    async def flush(self, level: Level = "synced", *, timeout_s: float | None = 5.0) -> int:
        """Wait until everything before this call has reached `level`; return the newest seq that it covers.

        Raises NotDurable when the disk refuses, LevelUnreachable, CallTimeout. Cancelling gives up the wait only.
        """
        return await self.send(Flush(level), timeout_s)

    @property
    def durable_seq(self) -> dict[str, int]:
        """The newest seq that each level has reached: {"async": …, "written": …, "synced": …}; zeros before loading."""
        lease = self._cell.lease
        if lease is None:
            return {"async": 0, "written": 0, "synced": 0}
        return {"async": lease.appended_seq, "written": lease.written_seq, "synced": lease.synced_seq}

    def __repr__(self) -> str:
        """Id and branch, nothing of the conversation."""
        return f"Session({self._cell.id!r})" if self._on is None else f"Session({self._cell.id!r}, on={self._on!r})"
