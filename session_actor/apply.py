"""The only code that changes a state: one record at a time, in a live session and in recovery alike.

Each applier checks that the record fits before it changes anything: a raising `apply` leaves the state as it was.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from .blocks import ToolCall
from .errors import ReplayError
from .events import (
    AnyEvent,
    Branched,
    Checkpointed,
    Created,
    Ended,
    Event,
    HistoryCopied,
    HistorySealed,
    Moved,
    NameDeleted,
    Popped,
    Pushed,
    Renamed,
)
from .grow import frame_on
from .keys import KeyEntry, answer_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from .frames import Frame, Turn
    from .state import State
    from .table import Table


class _Misfit(Exception):
    """Why a record does not fit."""


def apply(state: State, event: AnyEvent, seq: int, at_us: int) -> Any:
    """Change `state` by `event`, which is record `seq` made at `at_us` (microseconds since the epoch, UTC).

    Returns the reply of the command that decided it. Raises `ReplayError` when the record does not fit the state; then
    nothing was changed.
    """
    try:
        reply = _APPLIERS[type(event)](state, event, at_us)
    except _Misfit as error:
        raise ReplayError(event.kind, seq, str(error)) from None
    if event.key is not None and event.args is not None:
        state.keys.remember(event.key, KeyEntry(seq, event.args, answer_of(event)))
    state.seq = seq
    return reply


def _created(state: State, event: Created, at_us: int) -> None:
    if state.created_at_us is not None:
        raise _Misfit("the session was already created")
    state.session = event.session
    state.created_at_us = at_us
    state.raw_metadata = event.metadata
    state.source = event.source
    state.importing = event.source is not None


def _pushed(state: State, event: Pushed, at_us: int) -> Frame:
    frame_id, branch, new_branch = event.id, event.branch, event.new_branch
    if new_branch is not None:
        _check_free(state, new_branch)
    elif branch is not None:
        _check_branch(state, branch)
    if frame_id < state.next_id:
        raise _Misfit(f"the id {frame_id} of its frame is not new")
    table, parent = state.table, None
    if event.parent is not None and (parent := table.get(event.parent)) is None:
        raise _Misfit(f"there is no frame {event.parent}")
    frame = frame_on(parent, event, at_us)
    _add(state, table, frame)
    if new_branch is not None:
        _make_branch(state, new_branch, frame_id, attach=event.attach)
    elif branch is not None:
        _move(state, branch, frame_id)
    else:
        state.head = frame_id
        if state.attached is not None:
            state.branches[state.attached] = frame_id
    return frame


def _add(state: State, table: Table, frame: Frame) -> None:
    frames = table.frames
    if frame.id == len(frames):
        frames.append(frame)
    else:
        table.add(frame)
    state.next_id = frame.id + 1
    for turn in frame.given_turns or ():
        if turn.role == "assistant":
            _note_calls(state, turn)


def _note_calls(state: State, turn: Turn) -> None:
    ids = {block.id: None for block in turn.blocks if type(block) is ToolCall}
    if not state.call_ids:
        state.call_ids = ids
    else:
        state.call_ids.update(ids)


def _popped(state: State, event: Popped, _at_us: int) -> list[Frame]:
    head = state.head
    if event.branch is not None:
        _check_branch(state, event.branch)
        head = state.branches[event.branch]
    if head != event.head:
        raise _Misfit(f"the head is {head}, not {event.head}")
    try:
        frames = state.table.path(head, event.n)
    except LookupError as error:
        raise _Misfit(f"there is no frame {error}") from None
    if len(frames) != event.n or (frames and frames[-1].parent != event.to):
        raise _Misfit(f"frame {event.to} is not {event.n} below frame {head}")
    _move(state, event.branch, event.to)
    return frames


def _moved(state: State, event: Moved, _at_us: int) -> Frame | None:
    to, branch = event.to, event.branch
    if branch is not None and state.branches.get(branch, -1) != to:
        raise _Misfit(f"branch {branch!r} is not at frame {to}, or is not")
    frame = None if to is None else _existing(state, to)
    state.attached = branch
    state.head = to
    return frame


def _branched(state: State, event: Branched, _at_us: int) -> Frame:
    _check_free(state, event.name)
    frame = _existing(state, event.at)
    _make_branch(state, event.name, event.at, attach=event.attach)
    return frame


def _checkpointed(state: State, event: Checkpointed, _at_us: int) -> Frame:
    _check_free(state, event.name)
    frame = _existing(state, event.frame)
    if not state.checkpoints:
        state.checkpoints = {event.name: event.frame}
    else:
        state.checkpoints[event.name] = event.frame
    return frame


def _renamed(state: State, event: Renamed, _at_us: int) -> None:
    _check_free(state, event.new)
    if event.name in state.branches:
        state.branches[event.new] = state.branches.pop(event.name)
        if state.attached == event.name:
            state.attached = event.new
    elif event.name in state.checkpoints:
        state.checkpoints[event.new] = state.checkpoints.pop(event.name)
    else:
        raise _Misfit(f"there is no name {event.name!r}")


def _name_deleted(state: State, event: NameDeleted, _at_us: int) -> None:
    if event.name == state.attached:
        raise _Misfit(f"branch {event.name!r} is attached")
    if event.name in state.branches:
        del state.branches[event.name]
    elif event.name in state.checkpoints:
        del state.checkpoints[event.name]
    else:
        raise _Misfit(f"there is no name {event.name!r}")


def _ended(state: State, event: Ended, _at_us: int) -> None:
    state.ended = event.reason


def _history_copied(state: State, event: HistoryCopied, _at_us: int) -> None:
    next_id, seen = state.next_id, set[int]()
    for copied in event.frames:
        frame_id, parent = copied.frame.id, copied.frame.parent
        if frame_id < next_id:
            raise _Misfit(f"the id {frame_id} of a frame is not new")
        if parent is not None and parent not in seen:
            _existing(state, parent)
        seen.add(frame_id)
        next_id = frame_id + 1
    for copied in event.frames:
        parent = copied.frame.parent
        _add(
            state,
            state.table,
            frame_on(None if parent is None else _existing(state, parent), copied.frame, copied.at_us),
        )


def _history_sealed(state: State, event: HistorySealed, _at_us: int) -> None:
    branches, checkpoints = dict(event.branches), dict(event.checkpoints)
    for frame_id in (event.head, *branches.values(), *checkpoints.values()):
        if frame_id is not None:
            _existing(state, frame_id)
    if event.next_id < state.next_id or (event.attached is not None and event.attached not in branches):
        raise _Misfit("its numbers and names are not those of the copied frames")
    state.branches, state.checkpoints = branches, checkpoints
    state.head, state.attached, state.next_id = event.head, event.attached, event.next_id
    state.importing = False


def _move(state: State, branch: str | None, head: int | None) -> None:
    """Move the head of a branch; None: the session's own, and the attached branch with it."""
    if branch is None:
        branch = state.attached
        state.head = head
    elif branch == state.attached:
        state.head = head
    if branch is not None:
        state.branches[branch] = head


def _make_branch(state: State, name: str, head: int, *, attach: bool) -> None:
    state.branches[name] = head
    if attach:
        state.attached = name
        state.head = head


def _check_free(state: State, name: str) -> None:
    if name in state.branches or name in state.checkpoints:
        raise _Misfit(f"the name {name!r} is taken")


def _check_branch(state: State, name: str) -> None:
    if name not in state.branches:
        raise _Misfit(f"there is no branch {name!r}")


def _existing(state: State, frame_id: int) -> Frame:
    frame = state.table.get(frame_id)
    if frame is None:
        raise _Misfit(f"there is no frame {frame_id}")
    return frame


_APPLIERS: Final[Mapping[type[Event], Callable[[State, Any, int], object]]] = {
    Created: _created,
    Pushed: _pushed,
    Popped: _popped,
    Moved: _moved,
    Branched: _branched,
    Checkpointed: _checkpointed,
    Renamed: _renamed,
    NameDeleted: _name_deleted,
    Ended: _ended,
    HistoryCopied: _history_copied,
    HistorySealed: _history_sealed,
}
