"""The part of a session's handle that makes branches and checkpoints, and changes their names."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, TypeAlias

from msgspec import UNSET, UnsetType

from session_actor.commands import (
    Checkpoint,
    DeleteBranch,
    DeleteCheckpoint,
    Fork,
    RenameBranch,
    RenameCheckpoint,
)
from session_actor.state import moves, pushes
from session_actor.supervisors import BUSY, PendingReply

from .changes import Changes

if TYPE_CHECKING:
    from collections.abc import Coroutine, Sequence

    from session_actor.commands import Target
    from session_actor.frames import Frame, Turn
    from session_actor.persistence import Level

_TIMEOUT_S: Final = 5.0

OrNone: TypeAlias = Any
"""None in one case, which the method tells; whoever does not ask for that case need not look."""


class Branching(Changes):
    """Branches and checkpoints.

    The last four arguments, what cancelling does and what all of them may raise are as in `Changes`.
    """

    __slots__ = ()

    async def fork(
        self,
        frame: Target | UnsetType = UNSET,
        *,
        branch: str | None = None,
        user_input: str = "",
        assistant_output: str = "",
        assumptions: Sequence[str] = (),
        decisions: Sequence[str] = (),
        turns: Sequence[Turn] | None = None,
        pinned: bool = False,
        durability: Level | None = None,
        timeout_s: float | None = 5.0,
        key: str | None = None,
        expect_head: int | None = None,
    ) -> Frame | OrNone:
        """Start a branch at `frame` (left out: at the head) and attach it; the old branch stays where it was.

        The head is the session's: it moves for all handles that `on` did not make. `branch_off` moves nothing.
        With any of the push fields the new branch starts with one frame of them, whose parent and `forked_from` are
        `frame`; it is returned. Without, only the branch is made, and `frame` is returned. `branch` None: a name is
        made, `b<frame id>`.

        0 is the empty stack: the frame is then the first of its own, without parent and `forked_from`; without push
        fields an empty branch is made, and None returned. So `fork(frame.parent or 0, …)` goes on from before any
        frame, also before the first, whose parent is None.

        Raises FrameUnknown, NameUnknown, NameTaken; EmptyStack for a head, or a branch, without a frame;
        InvalidArgument for None as a frame; else as `push`.
        """
        fields = (frame, branch, user_input, assistant_output, assumptions, decisions, turns, pinned, True)
        reply: PendingReply[Frame | None] | Frame | None = BUSY
        if key is None and expect_head is None and timeout_s is _TIMEOUT_S:
            reply = self._cell.ref.borrow((pushes.fork, fields, self._on, durability))
            if type(reply) is not PendingReply:
                return reply
        return await self._slowly(reply, Fork, fields, durability, timeout_s, key, expect_head)

    async def checkpoint(
        self,
        name: str,
        frame: Target | UnsetType = UNSET,
        *,
        durability: Level | None = None,
        timeout_s: float | None = 5.0,
        key: str | None = None,
        expect_head: int | None = None,
    ) -> Frame:
        """Name `frame` (left out: the head) for good, and return it.

        Raises NameTaken, FrameUnknown, NameUnknown; EmptyStack where there is none, also at 0; InvalidArgument for None
        as a frame.
        """
        fields = (name, frame)
        reply: PendingReply[Frame] | Frame = BUSY
        if key is None and expect_head is None and timeout_s is _TIMEOUT_S:
            reply = self._cell.ref.borrow((moves.checkpoint, fields, self._on, durability))
            if type(reply) is not PendingReply:
                return reply
        return await self._slowly(reply, Checkpoint, fields, durability, timeout_s, key, expect_head)

    def rename_branch(
        self,
        name: str,
        new: str,
        *,
        durability: Level | None = None,
        timeout_s: float | None = 5.0,
        key: str | None = None,
        expect_head: int | None = None,
    ) -> Coroutine[Any, Any, None]:
        """Give a branch another name. Raises BranchUnknown, NameTaken."""
        return self.send(RenameBranch(name, new, durability=durability, key=key, expect_head=expect_head), timeout_s)

    def delete_branch(
        self,
        name: str,
        *,
        durability: Level | None = None,
        timeout_s: float | None = 5.0,
        key: str | None = None,
        expect_head: int | None = None,
    ) -> Coroutine[Any, Any, None]:
        """Forget a branch; its frames stay readable by id. Raises BranchUnknown, BranchAttached."""
        return self.send(DeleteBranch(name, durability=durability, key=key, expect_head=expect_head), timeout_s)

    def rename_checkpoint(
        self,
        name: str,
        new: str,
        *,
        durability: Level | None = None,
        timeout_s: float | None = 5.0,
        key: str | None = None,
        expect_head: int | None = None,
    ) -> Coroutine[Any, Any, None]:
        """Give a checkpoint another name. Raises CheckpointUnknown, NameTaken."""
        return self.send(
            RenameCheckpoint(name, new, durability=durability, key=key, expect_head=expect_head), timeout_s
        )

    def delete_checkpoint(
        self,
        name: str,
        *,
        durability: Level | None = None,
        timeout_s: float | None = 5.0,
        key: str | None = None,
        expect_head: int | None = None,
    ) -> Coroutine[Any, Any, None]:
        """Forget a checkpoint; its frame stays. Raises CheckpointUnknown."""
        return self.send(DeleteCheckpoint(name, durability=durability, key=key, expect_head=expect_head), timeout_s)
