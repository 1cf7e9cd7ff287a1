"""A session some of whose records are lost: what it makes of those that are left.

Behind a gap a record may not fit: it speaks of a frame or a name that came with a lost one. As much of it is kept as
can be, by fixed rules, so that every replay of the same records gives the same state:

- a frame is always kept; if its parent is lost, it is the first of its stack
- what such a frame left behind, where it moved a branch or the head, is named by a checkpoint, so that it stays held
- a frame that moved a branch which is not known makes that branch
- a pop goes down to where it went; to nothing that is known: it is passed over
- of a copied history the names are kept whose frames are there
- what was pruned is not held, whatever holds it now: a branch goes down to where it was not, a checkpoint goes
- any other record that does not fit is passed over
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from session_actor.errors import FrameUnknown, ReplayError
from session_actor.events import CopiedFrame, Gap, HistoryCopied, HistorySealed, Popped, Pruned, Pushed

from .apply import apply
from .names import MAIN, free_name
from .runs import contains, merged

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from session_actor.events import AnyEvent

    from .state import State


class Losses(msgspec.Struct):
    """What is known of records that are lost."""

    gaps: list[tuple[int, int]] = msgspec.field(default_factory=list[tuple[int, int]])
    """First and last number of the records of each gap."""
    misfits: int = 0
    """Records behind a gap that did not fit; what could be kept of them was kept."""
    roots: list[int] = msgspec.field(default_factory=list[int])
    """Frames whose parents are lost: each is the first of its stack."""
    left: dict[str, int] = msgspec.field(default_factory=dict[str, int])
    """The checkpoints that were made for what such frames left behind, with their frames."""


def unknown(state: State, frame_id: int) -> FrameUnknown:
    """The error for a frame that is not there: it may have come with a record that is lost."""
    if state.losses is None or not 0 < frame_id < state.next_id:
        return FrameUnknown(frame_id)
    lost = ", ".join(str(first) if first == last else f"{first} to {last}" for first, last in state.losses.gaps)
    why = f"it never was, was pruned, or came with a record that is lost (lost: {lost}; see session.recovery)"
    return FrameUnknown(frame_id, why)


def replay(state: State, event: AnyEvent, seq: int, at_us: int) -> None:
    """Apply a stored record. Raises `ReplayError` for one that does not fit, unless a gap came before it."""
    if type(event) is Gap:
        _note_gap(state, event, seq, at_us)
        return
    losses = state.losses
    if losses is not None and isinstance(event, Pushed | HistoryCopied | HistorySealed):
        state.next_id = state.table.next_id  # it says itself which ids were taken: perhaps fewer than feared
    try:
        apply(state, event, seq, at_us)
    except ReplayError:
        if losses is None:
            raise
        _make_do(state, losses, event, seq, at_us)


def _note_gap(state: State, gap: Gap, seq: int, at_us: int) -> None:
    """What is lost may have taken ids: as many as it has records are left out, and none is used again."""
    if not state.seq < gap.first <= seq:
        raise ReplayError(gap.kind, seq, f"it says that record {gap.first} is the first one lost")
    if state.losses is None:
        state.losses = Losses()
    state.losses.gaps.append((gap.first, seq))
    if state.created_at_us is None:
        state.created_at_us = at_us
    state.importing = False  # whether a copied history is complete cannot be known any more
    state.next_id += seq - gap.first + 1
    state.seq = seq


def _make_do(state: State, losses: Losses, event: AnyEvent, seq: int, at_us: int) -> None:
    """Keep what can be kept of a record that does not fit."""
    losses.misfits += 1
    for changed in _fitting(state, losses, event):
        left = _left_behind(state, changed)
        try:
            apply(state, changed, seq, at_us)
        except ReplayError:
            continue
        if left is not None:
            _name(state, losses, left)
    state.seq = seq


def _left_behind(state: State, event: AnyEvent) -> int | None:
    """The tip that a frame which does not stand on it moves a branch or the head away from; None: there is none."""
    if not isinstance(event, Pushed):
        return None
    if event.new_branch is not None:
        tip = state.head if event.attach and state.attached is None else None
    else:
        branch = event.branch or state.attached
        tip = state.head if branch is None else state.branches.get(branch)
    return None if tip == event.parent else tip


def _name(state: State, losses: Losses, tip: int) -> None:
    """Hold what was left behind by a checkpoint: no branch may hold it any more."""
    if tip in losses.left.values():
        return
    name = free_name(f"gap-{tip}", state.branches, state.checkpoints)
    state.checkpoints = {**state.checkpoints, name: tip}
    losses.left[name] = tip


def _fitting(state: State, losses: Losses, event: AnyEvent) -> Iterable[AnyEvent]:
    """What to apply in place of a record that does not fit."""
    if isinstance(event, Pushed):
        return _kept_frame(state, losses, event)
    if type(event) is Popped:
        return _kept_pop(state, event)
    if type(event) is HistoryCopied:
        return _kept_copies(state, losses, event)
    if type(event) is HistorySealed:
        return [_kept_seal(state, event)]
    if type(event) is Pruned:
        return [_kept_pruning(state, losses, event)]
    return []


def _kept_frame(state: State, losses: Losses, event: Pushed) -> list[AnyEvent]:
    if event.id < state.next_id:
        return []
    event = _rooted(state, losses, event, set())
    if event.new_branch is not None and event.new_branch in state.branches:
        return [msgspec.structs.replace(event, new_branch=None, branch=event.new_branch)]
    if event.new_branch is not None and event.new_branch in state.checkpoints:
        return [msgspec.structs.replace(event, new_branch=None)]
    if event.branch is not None and event.branch not in state.branches:
        return [msgspec.structs.replace(event, branch=None, new_branch=event.branch, attach=False)]
    return [event]


def _rooted(state: State, losses: Losses, event: Pushed, copied: set[int]) -> Pushed:
    """The event, as the first of its stack if its parent is lost. `copied`: ids that come with it."""
    parent = event.parent
    if parent is None or parent in copied or state.table.get(parent) is not None:
        return event
    losses.roots.append(event.id)
    fields: dict[str, Any] = {name: getattr(event, name) for name in Pushed.__struct_fields__}
    fields.update(parent=None, forked_from=None, place=None)
    return Pushed(**fields)


def _kept_pop(state: State, event: Popped) -> list[AnyEvent]:
    """The pop from where the head is to where it went, if that lies below: what was popped does not come back."""
    start = at = state.head if event.branch is None else state.branches.get(event.branch)
    count = 0
    while at is not None and at != event.to:
        frame = state.table.get(at)
        if frame is None:
            return []
        at, count = frame.parent, count + 1
    return [msgspec.structs.replace(event, head=start, n=count)] if at == event.to and count else []


def _kept_pruning(state: State, losses: Losses, event: Pruned) -> Pruned:
    """Let go of what was pruned: the record by which it was popped, or its name deleted, is lost."""
    last = state.next_id - 1
    dropped = merged((low, min(high, last)) for low, high in event.dropped if low <= last)

    def kept(tip: int | None) -> int | None:
        while tip is not None and contains(dropped, tip):
            frame = state.table.get(tip)
            tip = None if frame is None else frame.parent
        return tip

    state.head = kept(state.head)
    state.branches = {name: kept(tip) for name, tip in state.branches.items()}
    state.checkpoints = {name: tip for name, tip in state.checkpoints.items() if not contains(dropped, tip)}
    losses.left = {name: tip for name, tip in losses.left.items() if name in state.checkpoints}
    return msgspec.structs.replace(event, dropped=tuple(dropped))


def _kept_copies(state: State, losses: Losses, event: HistoryCopied) -> Iterator[AnyEvent]:
    """The frames first: what names are kept depends on them."""
    ids: set[int] = set()
    kept: list[CopiedFrame] = []
    for copied in event.frames:
        if copied.frame.id >= state.next_id and copied.frame.id not in ids:
            kept.append(CopiedFrame(copied.at_us, _rooted(state, losses, copied.frame, ids)))
            ids.add(copied.frame.id)
    yield msgspec.structs.replace(event, frames=tuple(kept), sealed=None)
    if event.sealed is not None:
        yield _kept_seal(state, event.sealed)


def _kept_seal(state: State, event: HistorySealed) -> HistorySealed:
    def there(frame: int | None) -> bool:
        return frame is None or state.table.get(frame) is not None

    branches = tuple((name, head if there(head) else None) for name, head in event.branches)
    names = {name for name, _ in branches}
    return msgspec.structs.replace(
        event,
        branches=branches or ((MAIN, None),),
        checkpoints=tuple((name, frame) for name, frame in event.checkpoints if there(frame)),
        head=event.head if there(event.head) else None,
        attached=event.attached if event.attached in names else None,
        next_id=max(event.next_id, state.next_id),
    )
