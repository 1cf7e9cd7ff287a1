"""The only code that changes a state: one record at a time, in a live session and in recovery alike.

Each applier checks that the record fits before it changes anything: a raising `apply` leaves the state as it was.
None reads a cold frame: in a live session `decide` has read what the reply shows, and in recovery nobody waits for one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, TypeAlias

from session_actor.blocks import ToolCall
from session_actor.compaction.remembered import note_compaction, note_pin, note_undone, without_pruned
from session_actor.errors import ReplayError
from session_actor.events import (
    Added,
    AnyEvent,
    Branched,
    Checkpointed,
    Compacted,
    Created,
    Ended,
    Event,
    HistoryCopied,
    HistorySealed,
    Moved,
    NameDeleted,
    Pinned,
    Popped,
    Pruned,
    Pushed,
    Renamed,
    Requested,
    RequestRefused,
    Uncompacted,
)
from session_actor.window.requests_made import note_answer, note_refusal, note_request

from .grow import frame_of_texts, frame_on, standing_in
from .heads import Misfit, check_branch, check_branches, check_free, make_branch, move
from .keys import KeyEntry, answer_of
from .runs import contains, merged
from .spending import plus

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Mapping

    from session_actor.compaction.overlays import Compaction
    from session_actor.frames import Frame, Turn
    from session_actor.requests.request import Request

    from .state import State
    from .table import Table

Found: TypeAlias = "Frame | list[Frame] | Request | None"
"""What `decide` looked up for the reply and `apply` need not look up again."""

CALLS_KEPT: Final = 1_024
"""How many ids of tool calls a session remembers: the newest."""


def apply(state: State, event: AnyEvent, seq: int, at_us: int, found: Found = None) -> Any:
    """Change `state` by `event`, which is record `seq` made at `at_us` (microseconds since the epoch, UTC).

    `found`: the frames that `event` leads to, when `decide` has just found them in this very state, and has seen that
    its names are free; None: look.
    Returns the reply of the command that decided it. Raises `ReplayError` when the record does not fit the state; then
    nothing was changed.
    """
    try:
        reply = APPLIERS[type(event)](state, event, at_us, found)
    except Misfit as error:
        raise ReplayError(event.kind, seq, str(error)) from None
    if event.key is not None and event.args is not None:
        state.keys.remember(event.key, KeyEntry(seq, event.args, answer_of(event)))
    state.seq = seq
    return reply


def _created(state: State, event: Created, at_us: int, _found: Found) -> None:
    if state.created_at_us is not None:
        raise Misfit("the session was already created")
    state.session = event.session
    state.created_at_us = at_us
    state.raw_metadata = event.metadata
    state.source = event.source
    state.importing = event.source is not None


def _pushed(state: State, event: Pushed, at_us: int, parent: Frame | None) -> Frame:
    frame_id, branch, new_branch = event.id, event.branch, event.new_branch
    if frame_id < state.next_id:
        raise Misfit(f"the id {frame_id} of its frame is not new")
    table = state.table
    frames, place = table.frames, frame_id - table.first
    if parent is None:
        if new_branch is not None or branch is not None:
            check_branches(state, branch, new_branch)
        if event.parent is not None:
            parent = table.slot(event.parent) or _cold_parent(table, event)
    frame = frame_on(parent, event, at_us)
    if event.turns is not None or place != len(frames):
        _add(state, table, frame, event)
    else:
        frames.append(frame)
        state.next_id = frame_id + 1
    if new_branch is not None:
        make_branch(state, new_branch, frame_id, event.attach)
    elif branch is None:
        state.head = frame_id
        if state.attached is not None:
            state.branches[state.attached] = frame_id
    else:
        move(state, branch, frame_id)
    return frame


def _added(state: State, event: Added, at_us: int, below: Frame | None) -> Frame:
    """As `_pushed`. Most records are two texts on top of the newest frame, and move the head: they go a short way."""
    if below is None or event.new_branch is not None:
        newest = state.table.frames[-1]
        if (
            newest is None
            or newest.id != event.id - 1
            or event.turns is not None
            or event.instructions is not None
            or event.branch is not None
            or event.new_branch is not None
        ):
            return _pushed(state, event, at_us, below)
        below = newest
    frame_id, frame = event.id, frame_of_texts(below, event, at_us)
    state.table.frames.append(frame)
    state.next_id = frame_id + 1
    state.head = frame_id
    if state.attached is not None:
        state.branches[state.attached] = frame_id
    return frame


def _cold_parent(table: Table, event: Pushed) -> Frame:
    """What a keyframe on a cold frame knows of it: as much as it inherits."""
    place = event.place
    if place is None or event.parent is None or not table.is_cold(event.parent):
        raise Misfit(f"there is no frame {event.parent}")
    configured = place.configured
    instructions = None if configured is None else table.instructions_of(configured)
    if instructions is None and configured is not None:
        raise Misfit(f"the instructions of frame {configured} are not there")
    return standing_in(event.parent, place, instructions)


def _add(state: State, table: Table, frame: Frame, event: Pushed) -> None:
    frames = table.frames
    if frame.id - table.first == len(frames):
        frames.append(frame)
    else:
        table.add(frame)
    state.next_id = frame.id + 1
    for turn in frame.given_turns or ():
        if turn.role == "assistant":
            _note_calls(state, turn)
        if turn.usage is not None and state.usage is not None:
            state.usage = plus(state.usage, turn.usage)
    if event.retracted is not None:
        state.retractions = {**state.retractions, frame.id: event.retracted}
    if event.answers is not None:
        note_answer(state, event.answers, event.turns, event.astray)


def _note_calls(state: State, turn: Turn) -> None:
    ids = [block.id for block in turn.blocks if type(block) is ToolCall]
    if not state.call_ids:
        state.call_ids = {}
    known = state.call_ids
    for call_id in ids:
        known.pop(call_id, None)
        known[call_id] = None
    while len(known) > CALLS_KEPT:
        del known[next(iter(known))]


def _popped(state: State, event: Popped, _at_us: int, found: list[Frame] | None) -> list[Frame]:
    if found is None:
        found = _from_head(state, event)
    branch, to = event.branch, event.to
    if branch is None:
        state.head = to
        if state.attached is not None:
            state.branches[state.attached] = to
    else:
        move(state, branch, to)
    return found


def _from_head(state: State, event: Popped) -> list[Frame]:
    """The frames that are popped, newest first, down to the first cold one."""
    head = state.head
    if event.branch is not None:
        check_branch(state, event.branch)
        head = state.branches[event.branch]
    if head != event.head:
        raise Misfit(f"the head is {head}, not {event.head}")
    table, at = state.table, head
    found: list[Frame] = []
    for _ in range(event.n):
        frame = None if at is None else table.slot(at)
        if frame is None:
            if at is not None and table.is_cold(at):
                return found
            break
        found.append(frame)
        at = frame.parent
    if len(found) != event.n or at != event.to:
        raise Misfit(f"frame {event.to} is not {event.n} below frame {head}")
    return found


def _moved(state: State, event: Moved, _at_us: int, found: Frame | None) -> Frame | None:
    to, branch = event.to, event.branch
    if branch is not None and state.branches.get(branch, -1) != to:
        raise Misfit(f"branch {branch!r} is not at frame {to}, or is not")
    if found is None and to is not None:
        found = _existing(state, to)
    state.attached = branch
    state.head = to
    return found


def _branched(state: State, event: Branched, _at_us: int, found: Frame | None) -> Frame | None:
    if found is None:
        check_free(state, event.name)
        found = None if event.at is None else _existing(state, event.at)
    make_branch(state, event.name, event.at, event.attach)
    return found


def _checkpointed(state: State, event: Checkpointed, _at_us: int, found: Frame | None) -> Frame | None:
    if found is None:
        check_free(state, event.name)
        found = _existing(state, event.frame)
    if not state.checkpoints:
        state.checkpoints = {event.name: event.frame}
    else:
        state.checkpoints[event.name] = event.frame
    return found


def _renamed(state: State, event: Renamed, _at_us: int, _found: Found) -> None:
    check_free(state, event.new)
    if event.name in state.branches:
        state.branches[event.new] = state.branches.pop(event.name)
        if state.attached == event.name:
            state.attached = event.new
    elif event.name in state.checkpoints:
        state.checkpoints[event.new] = state.checkpoints.pop(event.name)
    else:
        raise Misfit(f"there is no name {event.name!r}")


def _name_deleted(state: State, event: NameDeleted, _at_us: int, _found: Found) -> None:
    if event.name == state.attached:
        raise Misfit(f"branch {event.name!r} is attached")
    if event.name in state.branches:
        del state.branches[event.name]
    elif event.name in state.checkpoints:
        del state.checkpoints[event.name]
    else:
        raise Misfit(f"there is no name {event.name!r}")


def _ended(state: State, event: Ended, _at_us: int, _found: Found) -> None:
    state.ended = event.reason


def _history_copied(state: State, event: HistoryCopied, at_us: int, _found: Found) -> None:
    next_id, seen = state.next_id, set[int]()
    for copied in event.frames:
        frame_id, parent = copied.frame.id, copied.frame.parent
        if frame_id < next_id:
            raise Misfit(f"the id {frame_id} of a frame is not new")
        if parent is not None and parent not in seen and _existing(state, parent) is None:
            _cold_parent(state.table, copied.frame)
        seen.add(frame_id)
        next_id = frame_id + 1
    if event.sealed is not None:
        _check_seal(state, event.sealed, seen, next_id)
    table = state.table
    for copied in event.frames:
        parent = copied.frame.parent
        below = None if parent is None else table.slot(parent) or _cold_parent(table, copied.frame)
        _add(state, table, frame_on(below, copied.frame, copied.at_us), copied.frame)
    if event.sealed is not None:
        _history_sealed(state, event.sealed, at_us, None)


def _check_seal(state: State, event: HistorySealed, seen: Container[int], next_id: int) -> None:
    """`seen`: the frames that come with it. `next_id`: the first id after them."""
    branches = dict(event.branches)
    for frame_id in (event.head, *branches.values(), *dict(event.checkpoints).values()):
        if frame_id is not None and frame_id not in seen:
            _existing(state, frame_id)
    if event.next_id < next_id or (event.attached is not None and event.attached not in branches):
        raise Misfit("its numbers and names are not those of the copied frames")


def _history_sealed(state: State, event: HistorySealed, _at_us: int, _found: Found) -> None:
    _check_seal(state, event, (), state.next_id)
    branches, checkpoints = dict(event.branches), dict(event.checkpoints)
    state.table.pass_over(event.next_id)
    state.branches, state.checkpoints = branches, checkpoints
    state.head, state.attached, state.next_id = event.head, event.attached, event.next_id
    state.marks, state.learned = event.marks, event.learned
    state.overlays, state.generation = event.overlays, event.generation
    if event.pins:
        state.pins = dict(event.pins)
    if event.retractions:  # of frames that are not here: below 0
        state.retractions = {**state.retractions, **{-frame: one for frame, one in event.retractions}}
    state.importing = False


def _pruned(state: State, event: Pruned, _at_us: int, _found: Found) -> None:
    dropped = merged(event.dropped)
    if dropped and not 0 < dropped[0][0] <= dropped[-1][1] < state.next_id:
        raise Misfit("it drops what is no frame of this session")
    for tip in (state.head, *state.branches.values(), *state.checkpoints.values()):
        if tip is not None and contains(dropped, tip):
            raise Misfit(f"it drops frame {tip}, which is held")
    state.table = state.table.without(dropped)
    without_pruned(state, dropped)


def _requested(state: State, event: Requested, _at_us: int, found: Request | None) -> Request | None:
    _existing(state, event.quote.head)
    note_request(state, event, state.seq + 1)
    return found


def _request_refused(state: State, event: RequestRefused, _at_us: int, _found: Found) -> bool:
    note_refusal(state, event)
    return event.too_long and event.shorter


def _compacted(state: State, event: Compacted, _at_us: int, _found: Found) -> Compaction:
    _existing(state, event.covered_frame)
    if event.generation <= state.generation:
        raise Misfit(f"its number {event.generation} is not new")
    return note_compaction(state, event, state.seq + 1)


def _uncompacted(state: State, event: Uncompacted, _at_us: int, _found: Found) -> None:
    note_undone(state, event.generation, state.seq + 1)


def _pinned(state: State, event: Pinned, _at_us: int, found: Frame | None) -> Frame | None:
    if found is None:
        found = _existing(state, event.frame)
    note_pin(state, event, state.seq + 1)
    return found


def _existing(state: State, frame_id: int) -> Frame | None:
    """A frame that must be there; None for a cold one."""
    frame = state.table.slot(frame_id)
    if frame is None and not state.table.is_cold(frame_id):
        raise Misfit(f"there is no frame {frame_id}")
    return frame


APPLIERS: Final[Mapping[type[Event], Callable[[State, Any, int, Any], object]]] = {
    Created: _created,
    Pushed: _pushed,
    Added: _added,
    Popped: _popped,
    Moved: _moved,
    Branched: _branched,
    Checkpointed: _checkpointed,
    Renamed: _renamed,
    NameDeleted: _name_deleted,
    Ended: _ended,
    HistoryCopied: _history_copied,
    HistorySealed: _history_sealed,
    Pruned: _pruned,
    Requested: _requested,
    RequestRefused: _request_refused,
    Compacted: _compacted,
    Uncompacted: _uncompacted,
    Pinned: _pinned,
}
