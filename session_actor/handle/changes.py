"""The changing half of a session's handle: each method is one typed message to the session's server.

The frequent ones do not make it when nothing more is said than their own arguments: they borrow the server when it is
idle (see `ServerRef.borrow`), which is the same in every other way.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeVar, cast

from session_actor.commands import (
    AddAssistant,
    AddToolResult,
    AddUser,
    Configure,
    Goto,
    HoldCall,
    Pop,
    Push,
)
from session_actor.given.given_numbers import check_seconds
from session_actor.state import moves, pushes
from session_actor.supervisors import BUSY, PendingReply, SupervisorError

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Sequence
    from typing import Any

    from session_actor.blocks import CallRef, Native, ToolCall
    from session_actor.commands import Content, Target, Unit
    from session_actor.frames import Frame, Tool, Turn, Usage
    from session_actor.persistence import Level
    from session_actor.server.cell import Cell
    from session_actor.supervisors import Call

Reply = TypeVar("Reply")

_TIMEOUT_S: Final = 5.0


class Changes:
    """What changes a session; the last four arguments are the same everywhere.

    `durability`: reply when this level is reached; None: the service's default.
    `timeout_s`: how long to wait for the reply, the wait in the mailbox included [seconds]; None: no limit. When it
    runs out (`CallTimeout`) the outcome is unknown: the change may still come; retry with the same `key`.
    `key`: a retry with the same key and arguments gets the first reply and changes nothing (`KeyConflict` for other
    arguments), even when the frame of that reply has been popped since; the last 1,024 keys of a session are known.
    `expect_head`: `HeadMoved`, and nothing changed, unless the head is this frame id (0: the empty stack); None: the
    head is not checked.

    Awaiting any of them puts its message into the mailbox, or runs it, before anything can suspend or cancel;
    cancelling the wait afterwards gives up the reply, never the record. All may raise, with nothing changed:
    `SessionEnded`, `SessionDeleted`, `SessionQuarantined`, `BacklogFull`, `StoreDegraded`, `LevelUnreachable`,
    `MailboxFull`, `ServiceClosed`, `ServiceDown`; and `NotDurable` when the change is applied and queued, but the disk
    refused the level; `SessionCrashed` when the session crashed over this message.
    """

    __slots__ = ("_cell", "_on")

    _cell: Cell
    _on: str | None

    async def send(self, command: Call[Reply], timeout_s: float | None = 5.0) -> Reply:
        """Send a typed message (`Push(…)`, `Pop(…)`) as all the methods below do, and return the reply.

        A session that is not loaded is started by it. Raises what the command's method raises.
        """
        cell = self._cell
        if timeout_s is not _TIMEOUT_S:
            check_seconds("timeout_s", timeout_s, optional=True)
        try:
            reply: Any = cell.ref.dispatch(command, timeout_s)
            if type(reply) is PendingReply:
                pending = cast("PendingReply[Reply]", reply)
                try:
                    if pending.slot.floor.active:
                        return await pending.wait_keeping()
                    return await pending.future  # type: ignore[no-any-return]  # as there, without one more coroutine
                finally:
                    del pending, reply  # what is raised would hold itself by them, and the command
        except SupervisorError as error:
            raise cell.explain(error) from None
        return reply  # type: ignore[no-any-return]  # the command's type says what it is

    async def _slowly(  # noqa: PLR0917 - each of seven methods ends so, as short as can be
        self,
        reply: Any,
        kind: Callable[..., Call[Reply]],
        fields: tuple[Any, ...],
        durability: Level | None,
        timeout_s: float | None,
        key: str | None,
        expect_head: int | None,
    ) -> Reply:
        """Send the message that a change is, unless it was begun without: then wait for its reply, or its crash."""
        if reply is BUSY:
            command = kind(*fields, on=self._on, durability=durability, key=key, expect_head=expect_head)
            return await self.send(command, timeout_s)
        try:
            return await cast("PendingReply[Reply]", reply).wait_keeping()
        except SupervisorError as error:
            raise self._cell.explain(error) from None

    async def push(
        self,
        user_input: str = "",
        assistant_output: str = "",
        *,
        assumptions: Sequence[str] = (),
        decisions: Sequence[str] = (),
        turns: Sequence[Turn] | None = None,
        pinned: bool = False,
        durability: Level | None = None,
        timeout_s: float | None = 5.0,
        key: str | None = None,
        expect_head: int | None = None,
    ) -> Frame:
        """Put one frame onto the stack, and return it.

        Without `turns` the two texts become a user and an assistant turn; with `turns` (also none: `()`) they are
        summaries beside them. A push on a detached head makes the branch `b<frame id>` and attaches it.
        Raises InvalidArgument or ValueNotStorable for what cannot be kept, RecordTooLarge over 64 MB.
        """
        fields = (user_input, assistant_output, assumptions, decisions, turns, pinned)
        reply: PendingReply[Frame] | Frame = BUSY
        if key is None and expect_head is None and timeout_s is _TIMEOUT_S:
            reply = self._cell.ref.borrow((pushes.push, fields, self._on, durability))
            if type(reply) is not PendingReply:
                return reply
        return await self._slowly(reply, Push, fields, durability, timeout_s, key, expect_head)

    async def add_user(
        self,
        content: Content,
        *,
        durability: Level | None = None,
        timeout_s: float | None = 5.0,
        key: str | None = None,
        expect_head: int | None = None,
    ) -> Frame:
        """Add a user turn (a text, or blocks) as one frame, and return it. Raises as `push` does.

        An empty text or list makes a turn without blocks, which says nothing: refuse it before, if it must not be.
        """
        fields = (content,)
        reply: PendingReply[Frame] | Frame = BUSY
        if key is None and expect_head is None and timeout_s is _TIMEOUT_S:
            reply = self._cell.ref.borrow((pushes.add_user, fields, self._on, durability))
            if type(reply) is not PendingReply:
                return reply
        return await self._slowly(reply, AddUser, fields, durability, timeout_s, key, expect_head)

    async def add_assistant(
        self,
        content: Content = "",
        *,
        tool_calls: Sequence[ToolCall] = (),
        usage: Usage | None = None,
        model: str | None = None,
        dialect: str | None = None,
        stop_reason: str | None = None,
        assumptions: Sequence[str] = (),
        decisions: Sequence[str] = (),
        durability: Level | None = None,
        timeout_s: float | None = 5.0,
        key: str | None = None,
        expect_head: int | None = None,
    ) -> Frame:
        """Add an assistant turn as one frame, and return it; `tool_calls` follow the content.

        `usage`: what the provider charged; None: unknown. Raises as `push` does.
        """
        fields = (content, tool_calls, usage, model, dialect, stop_reason, assumptions, decisions)
        reply: PendingReply[Frame] | Frame = BUSY
        if key is None and expect_head is None and timeout_s is _TIMEOUT_S:
            reply = self._cell.ref.borrow((pushes.add_assistant, fields, self._on, durability))
            if type(reply) is not PendingReply:
                return reply
        return await self._slowly(reply, AddAssistant, fields, durability, timeout_s, key, expect_head)

    def add_tool_result(
        self,
        call: str | CallRef,
        content: Content,
        *,
        is_error: bool = False,
        durability: Level | None = None,
        timeout_s: float | None = 5.0,
        key: str | None = None,
        expect_head: int | None = None,
    ) -> Coroutine[Any, Any, Frame]:
        """Answer an open tool call, named by its ref or by the provider's call id, and return the result's frame.

        The same result again returns the first one's frame, and a `key` given then is not remembered: it did nothing.
        Raises CallUnknown for a call that is not on the path, CallAlreadyAnswered for another result, CallAmbiguous
        when a call id names several open calls; else as `push`.
        """
        command = AddToolResult(
            call, content, is_error, on=self._on, durability=durability, key=key, expect_head=expect_head
        )
        return self.send(command, timeout_s)

    def hold_call(
        self,
        call: str | CallRef,
        reason: str = "approval",
        *,
        durability: Level | None = None,
        timeout_s: float | None = 5.0,
        key: str | None = None,
        expect_head: int | None = None,
    ) -> Coroutine[Any, Any, Frame]:
        """Mark an open call as held (for a human's approval, say) and return the frame that says so.

        Held again, the call has the new reason: that is how an approval is noted. A result ends the hold, and so does
        going back to before it. Raises CallUnknown, CallAlreadyAnswered, CallAmbiguous.
        """
        command = HoldCall(call, reason, on=self._on, durability=durability, key=key, expect_head=expect_head)
        return self.send(command, timeout_s)

    def configure(
        self,
        *,
        system: str | None = None,
        tools: Sequence[Tool | Native] | None = None,
        model: str | None = None,
        durability: Level | None = None,
        timeout_s: float | None = 5.0,
        key: str | None = None,
        expect_head: int | None = None,
    ) -> Coroutine[Any, Any, Frame]:
        """Set the instructions from here on, as a frame of the stack: goto and fork restore those of their time.

        What is None stays as it was; `""` and `()` mean none. A tool that a provider runs itself is a `Native` among
        the tools, as its API writes it: `Native("gemini", None, {"google_search": {}})`; only requests of that dialect
        (and of that model, when one is named) offer it. The names of the others must be such as the dialect takes that
        is asked, which `build_request` checks. Raises as `push` does.
        """
        command = Configure(system, tools, model, on=self._on, durability=durability, key=key, expect_head=expect_head)
        return self.send(command, timeout_s)

    async def pop(
        self,
        n: int = 1,
        *,
        unit: Unit = "frame",
        durability: Level | None = None,
        timeout_s: float | None = 5.0,
        key: str | None = None,
        expect_head: int | None = None,
    ) -> list[Frame]:
        """Take at most `n` frames, steps or exchanges off the stack, and return their frames, newest first.

        `[]` on an empty stack. Moves this branch only; popped frames stay readable by id. Frames without turns (holds,
        instructions) count as frames, too. A step or exchange goes with everything above its first frame. Frames that
        are still on the disk since the session was recovered are read, which blocks: `(await stack()).load()` before
        taking thousands.
        Raises InvalidArgument (n < 1).
        """
        fields = (n, unit)
        reply: PendingReply[list[Frame]] | list[Frame] = BUSY
        if key is None and expect_head is None and timeout_s is _TIMEOUT_S:
            reply = self._cell.ref.borrow((moves.pop, fields, self._on, durability))
            if type(reply) is not PendingReply:
                return reply
        return await self._slowly(reply, Pop, fields, durability, timeout_s, key, expect_head)

    async def goto(
        self,
        target: Target,
        *,
        durability: Level | None = None,
        timeout_s: float | None = 5.0,
        key: str | None = None,
        expect_head: int | None = None,
    ) -> Frame | None:
        """Move the head to a branch (attaching it), or to a checkpoint or frame (detached); return the frame there.

        The head is the session's: it moves for all handles that `on` did not make.
        0 is the empty stack below the first frame, where nothing is attached. None: an empty branch, or 0. Raises
        FrameUnknown, NameUnknown; InvalidArgument on the handle of one branch, and for None.
        """
        fields = (target,)
        reply: PendingReply[Frame | None] | Frame | None = BUSY
        if key is None and expect_head is None and timeout_s is _TIMEOUT_S:
            reply = self._cell.ref.borrow((moves.goto, fields, self._on, durability))
            if type(reply) is not PendingReply:
                return reply
        return await self._slowly(reply, Goto, fields, durability, timeout_s, key, expect_head)
