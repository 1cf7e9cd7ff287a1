"""The handle of a session: what an embedder holds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar, overload

from msgspec import UNSET, UnsetType

from session_actor.commands import Fork
from session_actor.compaction.handle import Compacts
from session_actor.observing import operation
from session_actor.server.prune import prune_session
from session_actor.server.session import Flush
from session_actor.supervisors import ServerRef, SupervisorError

from .exchange import Exchange
from .feed import LIMIT, ChangeFeed

if TYPE_CHECKING:
    from session_actor.commands import Target
    from session_actor.handover.swapped import SwappedSession
    from session_actor.persistence import Level
    from session_actor.server.cell import Cell
    from session_actor.server.prune import PruneReport
    from session_actor.supervisors import Call
    from session_actor.supervisors.slot import Slot

Reply = TypeVar("Reply")


class SessionRef(ServerRef):
    """A session's server as the supervisors know it, which answers with the errors of this package.

    It goes to the session and not to an incarnation, as a handle does: `call` and `cast` start a session that is not
    loaded. The functions of `session_actor.supervisors` (`statistics`, `trace`, `monitor` …) take it, too.
    """

    __slots__ = ("_session",)

    def __init__(self, session: Session, slot: Slot) -> None:
        """Made by `Session.ref`."""
        super().__init__(slot)
        self._session = session

    @overload
    async def call(self, message: Call[Reply], timeout_s: float | None = 5.0) -> Reply: ...
    @overload
    async def call(self, message: object, timeout_s: float | None = 5.0) -> Any: ...

    async def call(self, message: Any, timeout_s: float | None = 5.0) -> Any:
        """Send a typed message and return its reply: `Session.send`."""
        return await self._session.send(message, timeout_s)

    def cast(self, message: object) -> None:
        """Send a typed message without an answer; it is in the mailbox when this returns. A refusal is dropped.

        Raises MailboxFull, SessionDeleted, SessionQuarantined, ServiceClosed, ServiceDown, WrongLoop.
        """
        self._session.cast(message)


class Session(Compacts):
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
    def ref(self) -> SessionRef:
        """The session's server, for typed messages: `await session.ref.call(Push(…))`, `session.ref.cast(Push(…))`.

        A session that is not loaded is started by this. Raises SessionDeleted, ServiceClosed, ServiceDown.
        """
        return SessionRef(self, self._cell.server_ref().slot)

    def cast(self, message: object) -> None:
        """What `ref.cast` does; it raises the same."""
        try:
            self._cell.server_ref().cast(message)
        except SupervisorError as error:
            raise self._cell.explain(error) from None

    def on(self, branch: str) -> Session:
        """A handle on one branch: its changes move that branch's head only, whatever the session is on.

        The branch may also be made later; until then its calls raise BranchUnknown.
        """
        return Session(self._cell, branch)

    async def branch_off(
        self,
        branch: str,
        at: Target | UnsetType = UNSET,
        *,
        durability: Level | None = None,
        timeout_s: float | None = 5.0,
        key: str | None = None,
        expect_head: int | None = None,
    ) -> Session:
        """Make `branch` at a frame (left out: at this handle's head) without going there, and return a handle on it.

        0 is the empty stack, so `branch_off(name, frame.parent or 0)` begins before any frame, also before the first.
        The handle shares `exchange()` with all others of the session.

        Raises NameTaken, FrameUnknown, NameUnknown; EmptyStack for a head, or a branch, without a frame;
        InvalidArgument for None as a frame; and what every change raises. Cancelling gives up the wait for the handle,
        never the branch.
        """
        command = Fork(at, branch, attach=False, on=self._on, durability=durability, key=key, expect_head=expect_head)
        await self.send(command, timeout_s)
        return Session(self._cell, branch)

    def exchange(self, wait_s: float | None = None) -> Exchange:
        """`async with session.exchange():` one exchange at a time, on all handles of this session in this process.

        It excludes other exchanges only: a change that is made without one is not held back. The handles of different
        branches share it.
        `wait_s`: how long to wait for a running one [seconds]; None: not at all. Entering raises SessionBusy, also
        when this task is in one already; SessionEnded, SessionDeleted, SessionQuarantined, ServiceClosed, and what
        loading raises, also to who waits, and at once; WrongLoop.
        """
        return Exchange(self._cell, wait_s)

    async def flush(self, level: Level = "synced", *, timeout_s: float | None = 5.0) -> int:
        """Wait until everything before this call has reached `level`; return the newest seq that it covers.

        Raises NotDurable when the disk refuses, LevelUnreachable, CallTimeout. Cancelling gives up the wait only.
        """
        with operation(self._cell.id, "flush", level=level):
            return await self.send(Flush(level), timeout_s)

    def changes(self, after_seq: int | None = None, *, limit: int = LIMIT) -> ChangeFeed:
        """The changes of the session as they come, on all branches: an async iterator of `Change`.

            async for change in session.changes(after_seq=last_seen):

        Those after record `after_seq` come first, from the store; then those that are made, without a gap and none
        twice, each when its reply leaves. It goes on over crashes and unloading, which it does not hold up, and ends
        when the session ends or is deleted, or the service is closed. Several may read at a time, each its own.

        Args:
            after_seq: the `seq` of the last change that is known; 0: all are wanted; None: only those made from now on.
            limit: so many changes may wait for the reader.

        Iterating raises Lagged: `changes(after_seq=error.last_seq)` goes on. Either more than `limit` waited, and what
        was passed over comes again then; or, with `lost`, what came after `after_seq` is not there any more (it was
        pruned, or the session is another one by now): read the session anew. It also raises what every read raises.
        Cancelling gives up the wait for the next one; `aclose()`, or leaving `async with`, ends it.

        Raises InvalidArgument; WrongLoop, as all that it has do, on another event loop, or in another thread, than the
        service's own.
        """
        return ChangeFeed(self._cell, after_seq, limit)

    async def prune(self, *, timeout_s: float | None = 5.0) -> PruneReport:
        """Give up every frame that no head, branch, checkpoint or remembered key holds, for good; on all branches.

        Popped frames are unknown from then on (`FrameUnknown`). Files of the store that hold nothing else are removed:
        no line is rewritten, so a file goes when all its frames are given up. Stacks that were taken before keep their
        frames. The session goes on meanwhile. While the newest keys hold what was popped, pruning may free nothing: the
        report tells how many frames that are (`held_by_keys`).
        `timeout_s`: how long loading the session may take [seconds]; None: no limit.

        Raises RecordsLost for a session that was salvaged with gaps, and changes nothing; NotDurable, StoreDegraded or
        another StoreError when the disk refuses: frames may be given up then, and the files be there still; prune
        again. Cancelling gives up the wait; what was not yet done is left to the next time.
        """
        return await prune_session(self._cell, timeout_s)

    async def swap(self, *, timeout_s: float | None = 5.0, pause_s: float | None = 5.0) -> SwappedSession:
        """Pause the session after its running message; its state comes out as a plain, versioned value.

        What is sent meanwhile waits, until `take` lets other code go on, or `resume` the old one (OTP: code_change).
        `timeout_s`: how long the running message may take [seconds]. `pause_s`: the session goes on by itself after so
        long [seconds]. None: no limit. A whole service is handed over by `SessionService.handover`.

        Raises CallTimeout, SessionDeleted, ServiceClosed, ServiceDown; InsideHook from inside a hook of the session,
        which may not hold it up either. Cancelling before it is paused changes nothing.
        """
        from session_actor.handover.swapped import swap_session
        from session_actor.hooks.inside import refuse_inside

        lease = self._cell.lease
        if lease is not None:
            refuse_inside(self.id, lease.birth)
        return await swap_session(self._cell, timeout_s, pause_s)

    @property
    def durable_seq(self) -> dict[Level, int]:
        """The newest seq that each level has reached: {"async": …, "written": …, "synced": …}; zeros before loading."""
        lease = self._cell.lease
        if lease is None:
            return {"async": 0, "written": 0, "synced": 0}
        return {"async": lease.appended_seq, "written": lease.written_seq, "synced": lease.synced_seq}

    def __repr__(self) -> str:
        """Id and branch, nothing of the conversation."""
        return f"Session({self._cell.id!r})" if self._on is None else f"Session({self._cell.id!r}, on={self._on!r})"
