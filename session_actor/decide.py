"""What a command would do: checks it against the state and builds its one record. Nothing here changes anything."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, TypeAlias

import msgspec

from . import moves, pushes
from .commands import (
    AddAssistant,
    AddReference,
    AddResponse,
    AddToolResult,
    AddUser,
    BuildRequest,
    Checkpoint,
    Command,
    CommitCompaction,
    Configure,
    DeleteBranch,
    DeleteCheckpoint,
    End,
    Fork,
    Goto,
    HoldCall,
    NoteArtifact,
    Pin,
    Pop,
    Push,
    RenameBranch,
    RenameCheckpoint,
    RequestFailed,
    Retract,
    Uncompact,
)
from .compaction import overlaying, retracting
from .errors import BranchUnknown, ForkUnfinished, HeadMoved, InvalidArgument, SessionEnded
from .fingerprint import fingerprint
from .keys import Repeat, reply_of
from .names import check_name
from .window import requesting

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from .apply import Found
    from .events import AnyEvent
    from .keys import KeyEntry
    from .state import State

__all__ = ["COMMANDS", "Decision", "Repeat", "decide"]

Decision: TypeAlias = "tuple[AnyEvent, int, Found] | Repeat"
"""The record, its rough size in bytes, and what was found on the way (see `apply`); or that there is nothing to do."""


def decide(state: State, command: Command) -> Decision:
    """What `command` does to `state`.

    Returns the event to apply and append, its weight (rough bytes), and what `apply` need not look up again; or a
    `Repeat` when the command was carried out before: its key is known, or the same tool result is there.

    Raises a `Refused`: `KeyConflict`, `SessionEnded`, `HeadMoved`, `BranchUnknown`, `InvalidArgument`,
    `ValueNotStorable`, `RecordTooLarge`, and what the command's own description names. A command that is none of
    `session_actor.commands` is a `TypeError`.
    """
    if command.key is not None:
        return _decide_once(state, command, command.key)
    if state.ended is not None or state.importing:
        raise SessionEnded(state.session) if state.ended is not None else ForkUnfinished(state.session)
    on = command.on
    if on is None:
        head = state.head
    elif type(on) is str:
        head = _head_on(state, on)
    else:
        return decide(state, msgspec.structs.replace(command, on=check_name(on, "on")))
    if command.expect_head is not None:
        _check_head(command.expect_head, head)
    try:
        decider = _DECIDERS[type(command)]
    except KeyError:
        raise TypeError(f"{type(command).__name__} is not a command of a session") from None
    return decider(state, command, head)


def _head_on(state: State, branch: str) -> int | None:
    try:
        head = state.branches[branch]
    except KeyError:
        raise BranchUnknown(branch) from None
    if head is not None:
        state.table.get(head)  # a cold one is read now: what follows finds it in memory
    return head


def _decide_once(state: State, command: Command, key: str) -> Decision:
    """The same under a key: it is looked up first, and the event tells `apply` to remember it."""
    key = check_name(key, "key")
    args = fingerprint(command)
    entry = state.keys.find(key, args)
    if entry is not None:
        return Repeat(_reply_again(state, command, key, entry), entry.seq)
    decision = decide(state, msgspec.structs.replace(command, key=None))
    if isinstance(decision, Repeat):
        return decision
    event, weight, found = decision
    return msgspec.structs.replace(event, key=key, args=args), weight, found


def _reply_again(state: State, command: Command, key: str, entry: KeyEntry) -> object:
    if isinstance(command, BuildRequest):
        return requesting.request_again(state, command, key, entry.seq)
    if isinstance(command, RequestFailed):
        return command.too_long and entry.answer.popped != 0
    if isinstance(command, CommitCompaction):
        return overlaying.compaction_again(state, command, entry.seq)
    return reply_of(state.table, entry.answer)


def _check_head(expected: object, head: int | None) -> None:
    if type(expected) is not int:
        raise InvalidArgument("expect_head", f"must be the id of a frame or 0, got {type(expected).__name__}")
    if expected != (head or 0):
        raise HeadMoved(expected, head)


_DECIDERS: Final[Mapping[type[Command], Callable[[State, Any, int | None], Decision]]] = {
    Push: pushes.push,
    AddUser: pushes.add_user,
    AddAssistant: pushes.add_assistant,
    AddResponse: pushes.add_response,
    AddReference: pushes.add_reference,
    NoteArtifact: pushes.note_artifact,
    AddToolResult: pushes.add_tool_result,
    HoldCall: pushes.hold_call,
    Configure: pushes.configure,
    Fork: pushes.fork,
    Pop: moves.pop,
    Goto: moves.goto,
    Checkpoint: moves.checkpoint,
    RenameBranch: moves.rename_branch,
    RenameCheckpoint: moves.rename_checkpoint,
    DeleteBranch: moves.delete_branch,
    DeleteCheckpoint: moves.delete_checkpoint,
    End: moves.end,
    BuildRequest: requesting.build_request,
    RequestFailed: requesting.request_failed,
    CommitCompaction: overlaying.commit_compaction,
    Uncompact: overlaying.uncompact,
    Pin: overlaying.pin,
    Retract: retracting.retract,
}

COMMANDS: Final[tuple[type[Command], ...]] = tuple(_DECIDERS)
"""Every command that a session takes."""
