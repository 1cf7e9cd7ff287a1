"""What a command would do: checks it against the state and builds its one record. Nothing here changes anything."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, TypeAlias

import msgspec

from session_actor.commands import (
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
from session_actor.compaction import overlaying, retracting
from session_actor.errors import BranchUnknown, ForkUnfinished, HeadMoved, InvalidArgument, SessionEnded
from session_actor.given.fingerprint import fingerprint
from session_actor.window import requesting

from . import moves, pushes
from .keys import Repeat, reply_of
from .names import check_name

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from session_actor.events import AnyEvent
    from session_actor.persistence import Level

    from .apply import Found
    from .keys import KeyEntry
    from .state import State

__all__ = ["COMMANDS", "Decision", "Repeat", "decide"]

Made: TypeAlias = "tuple[AnyEvent, int, Found]"
"""The record, its rough size in bytes, and what was found on the way (see `apply`)."""

Decision: TypeAlias = "Made | Repeat"
"""The same; or that there is nothing to do."""

Decider: TypeAlias = "Callable[[State, Any, int | None, str | None], Made]"
"""Decides by the state, the fields of a command, the head, and the branch that it is for."""


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
    on, head = begin(state, command.on, command.expect_head)
    kind = type(command)
    if kind in _BY_FIELDS:
        return _BY_FIELDS[kind](state, fields_of(command), head, on)
    if on is not command.on:
        command = msgspec.structs.replace(command, on=on)
    try:
        decider = _BY_COMMAND[kind]
    except KeyError:
        raise TypeError(f"{kind.__name__} is not a command of a session") from None
    return decider(state, command, head)


def begin(state: State, on: str | None, expect_head: int | None = None) -> tuple[str | None, int | None]:
    """See that a change can be made at all: the session goes on, the branch is there, and its head is the expected one.

    Returns the branch (None: the session's own head) and its head. Raises as `decide` does.
    """
    if state.ended is not None or state.importing:
        raise SessionEnded(state.session) if state.ended is not None else ForkUnfinished(state.session)
    head = state.head
    if on is not None:
        on = check_name(on, "on")
        head = _head_on(state, on)
    if expect_head is not None:
        _check_head(expect_head, head)
    return on, head


def fields_of(command: Command) -> tuple[Any, ...]:
    """The fields of a command's own, in their order; those that all commands have come behind them."""
    return msgspec.structs.astuple(command)[: -len(Command.__struct_fields__)]


def _head_on(state: State, branch: str) -> int | None:
    try:
        head = state.branches[branch]
    except KeyError:
        raise BranchUnknown(branch) from None
    if head is not None:
        state.table.get(head)  # a cold one is read now: what follows finds it in memory
    return head


def command_of(decider: Decider, fields: tuple[Any, ...], on: str | None, durability: Level | None) -> Command:
    """The command that is decided so."""
    kind = next(kind for kind, known in _BY_FIELDS.items() if known is decider)
    return kind(*fields, on=on, durability=durability)


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


_BY_FIELDS: Final[Mapping[type[Command], Decider]] = {
    Push: pushes.push,
    AddUser: pushes.add_user,
    AddAssistant: pushes.add_assistant,
    Fork: pushes.fork,
    Pop: moves.pop,
    Goto: moves.goto,
    Checkpoint: moves.checkpoint,
}
"""Those that are often sent: a handle that has nothing more to say than their fields need not make them."""

_BY_COMMAND: Final[Mapping[type[Command], Callable[[State, Any, int | None], Decision]]] = {
    AddResponse: pushes.add_response,
    AddReference: pushes.add_reference,
    NoteArtifact: pushes.note_artifact,
    AddToolResult: pushes.add_tool_result,
    HoldCall: pushes.hold_call,
    Configure: pushes.configure,
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

COMMANDS: Final[tuple[type[Command], ...]] = (*_BY_FIELDS, *_BY_COMMAND)
"""Every command that a session takes."""
