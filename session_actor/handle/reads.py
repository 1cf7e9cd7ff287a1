"""The reading half of a session's handle: straight from the published state, not through the mailbox."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from session_actor import telemetry
from session_actor.errors import InvalidArgument
from session_actor.given.given_numbers import check_seconds
from session_actor.observing import operation
from session_actor.persistence import RecoveryReport
from session_actor.service.deadline import no_longer_than
from session_actor.stack import Stack
from session_actor.state.artifacts import artifacts_in
from session_actor.state.losses import unknown
from session_actor.state.spending import NOTHING_SPENT, UsageTotals, spent_in
from session_actor.state.times import as_datetime
from session_actor.supervisors import SupervisorError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from datetime import datetime

    from session_actor.commands import How
    from session_actor.compaction.branches import Branches
    from session_actor.compaction.retracting import Contamination
    from session_actor.frames import Frame, Instructions, PendingCall
    from session_actor.server.cell import Cell
    from session_actor.state.state import State


class Reads:
    """What reads a session. A read sees memory (level `async`) and every change that was answered before it.

    A session that is not loaded is loaded first, and a crashed one is waited for, at most `timeout_s` seconds
    (None: no limit). All may then raise `SessionNotFound`, `SessionDeleted`, `SessionQuarantined`, `StoreCorrupt`,
    `ServiceClosed`, `ServiceDown`, `CallTimeout`. Cancelling gives up the wait and nothing else.
    A frame that is still on the disk since the session was recovered is read, off the loop (`FrameUnreadable` when the
    disk refuses); in a stack only its newest one is: see `Stack`.
    """

    __slots__ = ()

    _cell: Cell
    _on: str | None

    async def _state(self, timeout_s: float | None) -> State:
        state = self._cell.state
        if state is None:
            try:
                state = await self._cell.ready(timeout_s)
            except SupervisorError as error:
                raise self._cell.explain(error) from None
        return state

    async def _head_read(self, timeout_s: float | None) -> State:
        """The state, with the newest frame of this stack in memory."""
        state = await self._state(timeout_s)
        head = state.head_of(self._on)
        if head is not None and state.table.slot(head) is None:
            await self._read(timeout_s, state.table.load, (head,))
        return state

    async def get(self, frame_id: int, *, timeout_s: float | None = 5.0) -> Frame:
        """The frame of this id: on any branch, and popped ones until they are pruned.

        Raises FrameUnknown, and InvalidArgument for what is no id.
        """
        if telemetry.attached:
            with operation(self._cell.id, "get", branch=self._on, frame=frame_id if type(frame_id) is int else None):
                return await self._get(frame_id, timeout_s)
        table = self._cell.table
        try:
            frame: Any = table.frames[frame_id - table.first]
            if frame.id == frame_id and frame_id is not True:
                return frame  # type: ignore[no-any-return]  # it has its id
        except (AttributeError, IndexError, TypeError):  # the first: there is none
            pass
        return await self._get(frame_id, timeout_s)

    async def _get(self, frame_id: int, timeout_s: float | None) -> Frame:
        if type(frame_id) is not int:
            raise InvalidArgument("frame_id", f"must be an int, got {type(frame_id).__name__}")
        state = await self._state(timeout_s)
        table = state.table
        if table.is_cold(frame_id):
            await self._read(timeout_s, table.load, (frame_id,))
        frame = table.slot(frame_id)
        if frame is None:
            raise unknown(state, frame_id)
        return frame

    async def _read(self, timeout_s: float | None, load: Callable[[Any], Awaitable[object]], what: object) -> None:
        """Read cold frames off the loop."""
        check_seconds("timeout_s", timeout_s, optional=True)
        late = f"the store did not give a frame of session {self._cell.id!r} within {timeout_s} s; try again"
        with no_longer_than(timeout_s, late):
            await load(what)

    async def stack(self, *, timeout_s: float | None = 5.0) -> Stack:
        """The stack as a value that never changes: taking it costs O(1), listing it O(n) once. Raises BranchUnknown."""
        cell, on = self._cell, self._on
        if telemetry.attached:
            with operation(cell.id, "stack", branch=on):
                return (await self._head_read(timeout_s)).stack(on)
        if on is None:
            stack = cell.stack
            if stack is None:
                state = cell.state or await self._state(timeout_s)
                stack = cell.stack = Stack(state.table, state.head, None, state.taken_back)
            return stack
        state = cell.state or await self._state(timeout_s)
        head = state.branches.get(on) if type(on) is str else None
        table = state.table
        if head is not None and head >= table.first and table.frames[head - table.first] is not None:
            return Stack(table, head, None, state.taken_back)
        return (await self._head_read(timeout_s)).stack(on)  # cold, empty, or no branch

    async def branches(self, *, timeout_s: float | None = 5.0) -> Branches:
        """Every branch and the frame id of its head (None: empty), as a dict of your own.

        `Branches.contaminated` tells what of them came after an assumption that was retracted.
        """
        from session_actor.compaction.branches import Branches

        state = await self._state(timeout_s)
        return Branches(state.branches, state.table, state.taken_back)

    async def contaminated(self, *, timeout_s: float | None = 5.0) -> dict[str, Contamination]:
        """What came after assumptions that were retracted: of each branch that has any, the frames, root first.

        `last_clean` is where to go back to. A retraction counts while the head, a branch or a checkpoint holds it: not
        when it was popped, and again when one of them goes back to it. Goes through the whole stacks of all branches,
        O(n) each.
        """
        from session_actor.compaction.retracting import contamination, still_held
        from session_actor.server.prune import hold
        from session_actor.state.history import live_runs

        state = await self._state(timeout_s)
        found: dict[str, Contamination] = {}
        if not state.retractions:
            return found
        await self._read(timeout_s, hold, state)
        retractions = still_held(state.retractions, live_runs(state))
        for branch, head in list(state.branches.items()) if retractions else ():
            await self._read(timeout_s, state.table.load_path, head)
            await asyncio.sleep(0)
            tainted = contamination(Stack(state.table, head), retractions)
            if tainted:
                found[branch] = tainted
        return found

    async def checkpoints(self, *, timeout_s: float | None = 5.0) -> dict[str, int]:
        """Every checkpoint and its frame id, as a dict of your own."""
        return dict((await self._state(timeout_s)).checkpoints)

    async def pending_calls(self, *, timeout_s: float | None = 5.0) -> list[PendingCall]:
        """The tool calls on the path that wait for their result, oldest first, held ones too. Raises BranchUnknown."""
        state = await self._head_read(timeout_s)
        top = state.stack(self._on).top
        if top is not None and top.open_calls:
            await self._read(timeout_s, state.table.load, [call.ref.frame for call in top.open_calls])
        return state.pending_calls(self._on)

    async def instructions(self, *, timeout_s: float | None = 5.0) -> Instructions | None:
        """System prompt, tools and model in force here; None before the first `configure`. Raises BranchUnknown."""
        return (await self._head_read(timeout_s)).instructions(self._on)

    async def usage(self, *, timeout_s: float | None = 5.0) -> UsageTotals:
        """What providers charged so far, in the session and on this stack; O(1). Raises BranchUnknown.

        Where the records were made by a version that did not add it up, all frames are read and counted; what had been
        pruned by then is not in the session's total.
        """
        state = await self._head_read(timeout_s)
        head, table = state.head_of(self._on), state.table
        branch = NOTHING_SPENT if head is None else table.at(head).spent
        if branch is None:
            await self._read(timeout_s, table.load_path, head)
            branch = spent_in(table.path(head))
        session = state.usage
        if session is None:
            await self._read(timeout_s, table.load, range(1, table.next_id))
            session = spent_in(frame for at in range(1, table.next_id) if (frame := table.slot(at)) is not None)
        return UsageTotals(session, branch)

    async def artifacts(self, *, timeout_s: float | None = 5.0) -> dict[str, How]:
        """The files and other things that were noted on this stack as read or modified, the last noted at the end.

        "modified" wins over "read". Goes through the whole stack, O(n). Raises BranchUnknown.
        """
        state = await self._state(timeout_s)
        head = state.head_of(self._on)
        await self._read(timeout_s, state.table.load_path, head)
        return artifacts_in(reversed(state.table.path(head)))

    async def head(self, *, timeout_s: float | None = 5.0) -> int | None:
        """The id of the newest frame of this stack, None when it is empty. Raises BranchUnknown."""
        return (await self._state(timeout_s)).head_of(self._on)

    async def branch(self, *, timeout_s: float | None = 5.0) -> str | None:
        """The branch that moves with the head; None: the head is detached. Raises BranchUnknown."""
        state = await self._state(timeout_s)
        if self._on is None:
            return state.attached
        state.head_of(self._on)
        return self._on

    async def metadata(self, *, timeout_s: float | None = 5.0) -> Any:
        """What the session was created with, a value of your own; None: nothing."""
        return (await self._state(timeout_s)).metadata

    async def created_at(self, *, timeout_s: float | None = 5.0) -> datetime:
        """When the session was made (aware, UTC, to the microsecond)."""
        at_us = (await self._state(timeout_s)).created_at_us
        return as_datetime(at_us or 0)

    async def ended(self, *, timeout_s: float | None = 5.0) -> str | None:
        """Why the session was ended; None: it goes on."""
        return (await self._state(timeout_s)).ended

    @property
    def recovery(self) -> RecoveryReport | None:
        """What was found when the session was last loaded; None: not loaded yet."""
        cell = self._cell
        if cell.recovery is None and cell.lease is not None:  # made, not recovered; most sessions of a busy service
            return RecoveryReport(cell.id, cell.lease.birth, 0)
        return cell.recovery
