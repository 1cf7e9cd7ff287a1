"""Tool calls: which are open on a stack, and which one a result is for.

A call is open from its assistant turn until its result, or until the next turn that is not a tool's: then the model has
gone on without it, and it is interrupted. A held call stays open over later turns. An interrupted call still takes its
result. All of it follows from the path, so that pop, goto and fork bring back what was open there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from .blocks import CallRef, ToolCall, ToolResult
from .errors import CallAmbiguous, CallUnknown
from .frames import OpenCall, PendingCall

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from .frames import Frame, Hold, Turn
    from .table import Table


class CallIndex:
    """Where calls and results are, over all branches. It only tells where to look: the path decides."""

    __slots__ = ("by_id", "results")

    def __init__(self) -> None:
        """Make an empty index."""
        self.by_id: dict[str, list[CallRef]] = {}
        """Per call id: the calls with it, oldest first."""
        self.results: dict[CallRef, list[int]] = {}
        """Per call: the frames with a result for it, oldest first."""

    def add(self, frame_id: int, turns: Iterable[Turn]) -> None:
        """Note the calls and results of a new frame."""
        index = 0
        for turn in turns:
            if turn.role == "user":
                continue
            for block in turn.blocks:
                if type(block) is ToolCall:
                    self.by_id.setdefault(block.id, []).append(CallRef(frame_id, index))
                    index += 1
                elif type(block) is ToolResult and block.ref is not None:
                    self.results.setdefault(block.ref, []).append(frame_id)


class FoundCall(msgspec.Struct, frozen=True, gc=False):
    """A call on a stack, and the frame there that answers it (None: none yet)."""

    ref: CallRef
    call: ToolCall
    answered_in: int | None = None


def calls_in(frame_id: int, turns: Iterable[Turn]) -> Iterator[tuple[CallRef, ToolCall]]:
    """The calls of a frame with their refs."""
    index = 0
    for turn in turns:
        for block in turn.blocks:
            if type(block) is ToolCall:
                yield CallRef(frame_id, index), block
                index += 1


def results_in(turns: Iterable[Turn]) -> Iterator[ToolResult]:
    """The results of a frame."""
    return (block for turn in turns for block in turn.blocks if type(block) is ToolResult)


def call_at(table: Table, ref: CallRef) -> ToolCall | None:
    """The call that `ref` names, None when there is none."""
    frame = table.get(ref.frame)
    if frame is None:
        return None
    return next((call for at, call in calls_in(ref.frame, frame.turns) if at.index == ref.index), None)


def still_held(open_calls: tuple[OpenCall, ...]) -> tuple[OpenCall, ...]:
    """Those that stay open when the conversation goes on without them."""
    if not open_calls:
        return open_calls
    return tuple(call for call in open_calls if call.held is not None)


def open_after(
    open_calls: tuple[OpenCall, ...], frame_id: int, turns: Iterable[Turn], holds: Iterable[Hold]
) -> tuple[OpenCall, ...]:
    """The calls that are open after a frame, from those open before it."""
    index = 0
    for turn in turns:
        if turn.role == "tool":
            answered = {block.ref for block in turn.blocks if type(block) is ToolResult}
            open_calls = tuple(call for call in open_calls if call.ref not in answered)
            continue
        open_calls = still_held(open_calls)
        if turn.role == "assistant":
            made = [block for block in turn.blocks if type(block) is ToolCall]
            open_calls += tuple(OpenCall(CallRef(frame_id, place)) for place in range(index, index + len(made)))
            index += len(made)
    for hold in holds:
        others = tuple(call for call in open_calls if call.ref != hold.ref)
        open_calls = tuple(sorted((*others, OpenCall(hold.ref, hold.reason)), key=_age))
    return open_calls


def _age(call: OpenCall) -> tuple[int, int]:
    return call.ref.frame, call.ref.index


def pending(table: Table, head: int | None) -> list[PendingCall]:
    """The open calls on the stack of `head`, oldest first."""
    frame = None if head is None else table.frames[head]
    found: list[PendingCall] = []
    for open_call in () if frame is None else frame.open_calls:
        call = call_at(table, open_call.ref)
        if call is not None:
            found.append(PendingCall(open_call.ref, call.id, call.name, call.arguments, open_call.held))
    return found


def find_call(table: Table, index: CallIndex, head: int | None, wanted: str | CallRef) -> FoundCall:
    """The call on the stack of `head` that `wanted` means: by ref exactly; by id an open one first, else the newest.

    Walks the stack only for a call that is not open. Raises `CallUnknown`, `CallAmbiguous`.
    """
    top = None if head is None else table.frames[head]
    if top is not None:
        found = _find_open(table, top, wanted)
        if found is not None:
            return found
        candidates = [wanted] if isinstance(wanted, CallRef) else reversed(index.by_id.get(wanted, ()))
        for ref in _on_path(table, head, candidates):
            call = call_at(table, ref)
            if call is not None:
                results = (CallRef(frame, 0) for frame in reversed(index.results.get(ref, ())))
                answer = next(_on_path(table, head, results), None)
                return FoundCall(ref, call, None if answer is None else answer.frame)
    raise CallUnknown(show(wanted))


def show(wanted: str | CallRef) -> str:
    """A call in the words of an error."""
    return repr(wanted) if isinstance(wanted, str) else f"at frame {wanted.frame}, index {wanted.index}"


def _find_open(table: Table, top: Frame, wanted: str | CallRef) -> FoundCall | None:
    found: list[FoundCall] = []
    for open_call in top.open_calls:
        ref = open_call.ref
        if isinstance(wanted, CallRef) and ref != wanted:
            continue
        call = call_at(table, ref)
        if call is not None and wanted in {ref, call.id}:
            found.append(FoundCall(ref, call))
    if len(found) > 1:
        raise CallAmbiguous(show(wanted), len(found))
    return found[0] if found else None


def _on_path(table: Table, head: int | None, candidates: Iterable[CallRef]) -> Iterator[CallRef]:
    """Those of the candidates, which come newest frame first, that are on the stack of `head`: one walk down."""
    at = head
    for ref in candidates:
        while at is not None and at > ref.frame:
            frame = table.frames[at]
            at = None if frame is None else frame.parent
        if at is None:
            return
        if at == ref.frame:
            yield ref
