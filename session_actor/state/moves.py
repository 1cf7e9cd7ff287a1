"""Decisions that add no frame: pop, goto, checkpoint, names, end. Each builds one event and changes nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from msgspec import UNSET, UnsetType

from session_actor.errors import (
    BranchAttached,
    BranchUnknown,
    CheckpointUnknown,
    EmptyStack,
    FrameUnknown,
    InvalidArgument,
    NameTaken,
    NameUnknown,
)
from session_actor.events import Checkpointed, Ended, Moved, NameDeleted, Popped, Renamed
from session_actor.frames import Frame
from session_actor.given.plain import is_a, plain_str, shown

from .losses import unknown
from .names import NAME_LIMIT, check_name
from .weight import SMALL

if TYPE_CHECKING:
    from session_actor.commands import (
        DeleteBranch,
        DeleteCheckpoint,
        End,
        RenameBranch,
        RenameCheckpoint,
        Target,
        Unit,
    )

    from .decide import Decision, Made
    from .state import State

_FRAME: Final = "frame"
_UNITS: Final[tuple[Unit, ...]] = (_FRAME, "step", "exchange")
_NO_TARGET: Final = "is None, and so is the first frame's parent: pass frame.parent or 0, which is the empty stack"


def pop(state: State, fields: tuple[int, Unit], head: int | None, on: str | None) -> Made:
    """The head goes down by frames, steps or exchanges; walks only what it pops."""
    n, unit = fields
    if type(n) is not int:
        raise InvalidArgument("n", f"must be an int, got {type(n).__name__}")
    if n < 1:
        raise InvalidArgument("n", f"must be at least 1, got {shown(n)}")
    if unit is not _FRAME and (unit := _checked_unit(unit)) != _FRAME:
        return _pop_groups(state, n, unit, head, on)
    if head is None:
        return Popped(None, None, 0, on), SMALL, []
    table, to = state.table, head - n
    first = table.first
    top = table.frames[head - first] if head >= first else None
    if top is None or to < top.run_from or to < table.cold_below:
        return _pop_path(state, n, head, on)
    if n == 1:
        return Popped(head, to, 1, on), SMALL, [top]
    found: list[Any] = table.frames[to + 1 - first : head + 1 - first]  # one after the other, and all in memory
    found.reverse()
    return Popped(head, to, n, on), SMALL, found


def _pop_groups(state: State, n: int, unit: Unit, head: int | None, on: str | None) -> Made:
    """The pop of steps or exchanges."""
    to = head
    for _ in range(n):
        start = _start(state, to, unit)
        if start is None:
            break
        to = start.parent
    popped = _depth(state, head) - _depth(state, to)
    return _pop_path(state, popped, head, on) if popped else (Popped(head, to, 0, on), SMALL, [])


def _pop_path(state: State, n: int, head: int | None, on: str | None) -> Made:
    """The pop of `n` frames, wherever they are; cold ones are read, and so is the one below, the new head."""
    popped = state.table.path(head, n)
    to = popped[-1].parent
    if to is not None:
        state.table.get(to)
    return Popped(head, to, len(popped), on), SMALL, popped


def _checked_unit(unit: object) -> Unit:
    plain = plain_str(unit) if is_a(unit, str) else ""
    if plain not in _UNITS:
        raise InvalidArgument("unit", 'must be "frame", "step" or "exchange"')
    return plain


def _start(state: State, head: int | None, unit: str) -> Frame | None:
    """The frame with which the newest step or exchange of a stack begins."""
    top = None if head is None else state.table.get(head)
    if top is None:
        return None
    start = top.step if unit == "step" else top.exchange
    return None if start is None else state.table.get(start)


def _depth(state: State, head: int | None) -> int:
    frame = None if head is None else state.table.get(head)
    return 0 if frame is None else frame.depth


def goto(state: State, fields: tuple[Target], _head: int | None, on: str | None) -> Made:
    """The session's head goes to a branch (and is attached) or to a frame or checkpoint (and is not)."""
    if on is not None:
        raise InvalidArgument("goto", "is for the session; a handle of one branch stays on it (fork makes another)")
    (target,) = fields
    if type(target) is int:
        return Moved(target or None), SMALL, frame_of(state, target)
    if type(target) is not str and is_a(target, str):
        target = plain_str(target)
    if type(target) is str and target in state.branches:
        head = state.branches[target]
        return Moved(head, target), SMALL, _at(state, head)
    frame = frame_of(state, target)
    return Moved(None if frame is None else frame.id), SMALL, frame


def checkpoint(state: State, fields: tuple[str, Target | UnsetType], head: int | None, _on: str | None) -> Made:
    """A frame gets a name."""
    name, target = fields
    frame = frame_or_head(state, target, head)
    name = check_new_name(state, name, "name")
    if frame is None:
        raise EmptyStack("checkpoint")
    return Checkpointed(name, frame.id), SMALL, frame


def rename_branch(state: State, command: RenameBranch, _head: int | None) -> Decision:
    """A branch gets another name."""
    return Renamed(_branch(state, command.name), check_new_name(state, command.new, "new")), SMALL, None


def rename_checkpoint(state: State, command: RenameCheckpoint, _head: int | None) -> Decision:
    """A checkpoint gets another name."""
    return Renamed(_checkpoint(state, command.name), check_new_name(state, command.new, "new")), SMALL, None


def delete_branch(state: State, command: DeleteBranch, _head: int | None) -> Decision:
    """A branch is forgotten, unless the session is on it."""
    name = _branch(state, command.name)
    if name == state.attached:
        raise BranchAttached(name)
    return NameDeleted(name), SMALL, None


def delete_checkpoint(state: State, command: DeleteCheckpoint, _head: int | None) -> Decision:
    """A checkpoint is forgotten."""
    return NameDeleted(_checkpoint(state, command.name)), SMALL, None


def end(_state: State, command: End, _head: int | None) -> Decision:
    """The session ends."""
    return Ended(check_name(command.reason, "reason")), SMALL, None


def frame_or_head(state: State, target: Target | UnsetType, head: int | None) -> Frame | None:
    """The frame that `target` means, as `frame_of`; left out, that of the head."""
    if target is UNSET:
        return _at(state, head)
    if target is None:  # pyright: ignore[reportUnnecessaryComparison] - callers hold the parent of a first frame
        raise InvalidArgument("frame", f"{_NO_TARGET}; leave it out for the head")
    return frame_of(state, target)


def frame_of(state: State, target: object) -> Frame | None:
    """The frame that `target` means, read if it is cold; None for 0, the empty stack, and for an empty branch.

    Raises `FrameUnknown`, `NameUnknown`, `InvalidArgument`.
    """
    if type(target) is int:
        table = state.table
        try:
            frame = table.frames[target - table.first]  # as `get` does, which costs a call
        except IndexError:
            frame = None
        if frame is None or frame.id != target:
            frame = table.get(target)
        if frame is None and target:
            raise unknown(state, target)
        return frame
    if is_a(target, str):
        name = plain_str(target)
        if name in state.branches:
            return _at(state, state.branches[name])
        if name in state.checkpoints:
            return _at(state, state.checkpoints[name])
        raise NameUnknown(name)
    if type(target) is Frame:
        frame = state.table.get(target.id) if type(target.id) is int else None
        if frame is None or not _same(frame, target):
            raise FrameUnknown(target.id, "the frame given is not one of this session")
        return frame
    why = _NO_TARGET if target is None else f"must be a frame, its id, or a name, got {type(target).__name__}"
    raise InvalidArgument("frame", why)


def _at(state: State, head: int | None) -> Frame | None:
    """The frame of a head, read if it is cold; None for that of the empty stack."""
    if head is None:
        return None
    table = state.table
    return (table.frames[head - table.first] if head >= table.first else None) or table.get(head)


def _same(ours: Frame, given: Frame) -> bool:
    """Whether a caller's frame is ours; it may hold anything."""
    if given is ours:
        return True
    try:
        return given == ours
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException:  # noqa: BLE001 - what compares may be a class of the caller's
        return False


def check_new_name(state: State, name: object, what: str) -> str:
    """`name` itself when it may become the name of a branch or checkpoint. Raises `NameTaken`, `InvalidArgument`."""
    if type(name) is not str or not 0 < len(name) <= NAME_LIMIT:
        name = check_name(name, what)
    if name in state.branches:
        raise NameTaken(name, "branch")
    if name in state.checkpoints:
        raise NameTaken(name, "checkpoint")
    return name


def _branch(state: State, name: object) -> str:
    checked = check_name(name, "name")
    if checked not in state.branches:
        raise BranchUnknown(checked)
    return checked


def _checkpoint(state: State, name: object) -> str:
    checked = check_name(name, "name")
    if checked not in state.checkpoints:
        raise CheckpointUnknown(checked)
    return checked
