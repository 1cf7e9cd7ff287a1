"""Tool calls: which are open on a stack, and which one a result is for.

A call is open from its assistant turn until its result, or until the next turn that is not a tool's: then the model has
gone on without it, and it is interrupted. A held call stays open over later turns. A call that its reply broke off in
is never open. An interrupted call, and one like that, still takes its result. All of it follows from the path, so that
pop, goto and fork bring back what was open there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from session_actor.blocks import CallRef, ToolCall, ToolResult
from session_actor.errors import CallAmbiguous, CallUnknown
from session_actor.frames import OpenCall, PendingCall
from session_actor.given.plain import shown
from session_actor.replies.broken import is_cut, may_be_cut

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Iterator

    from session_actor.frames import Hold, Turn

    from .table import Table


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
    open_calls: tuple[OpenCall, ...], frame_id: int, turns: Iterable[Turn], holds: tuple[Hold, ...]
) -> tuple[OpenCall, ...]:
    """The calls that are open after a frame, from those open before it."""
    index = 0
    for turn in turns:
        if turn.role == "tool":
            open_calls = _unanswered(open_calls, turn)
            continue
        open_calls = still_held(open_calls)
        if turn.role == "assistant":
            made = [block for block in turn.blocks if type(block) is ToolCall]
            if made:
                whole: Iterable[int] = range(len(made))
                if may_be_cut(turn.stop_reason):
                    whole = [place for place in whole if not is_cut(made[place], turn.stop_reason)]
                open_calls += tuple([OpenCall(CallRef(frame_id, index + place)) for place in whole])
                index += len(made)
    for hold in holds:
        others = tuple(call for call in open_calls if call.ref != hold.ref)
        open_calls = tuple(sorted((*others, OpenCall(hold.ref, hold.reason)), key=_age))
    return open_calls


def _unanswered(open_calls: tuple[OpenCall, ...], turn: Turn) -> tuple[OpenCall, ...]:
    results = [block.ref for block in turn.blocks if type(block) is ToolResult]
    answered = results if len(results) == 1 else set(results)  # one is compared sooner than hashed
    return tuple([call for call in open_calls if call.ref not in answered])


def _age(call: OpenCall) -> tuple[int, int]:
    return call.ref.frame, call.ref.index


def pending(table: Table, head: int | None) -> list[PendingCall]:
    """The open calls on the stack of `head`, oldest first."""
    frame = None if head is None else table.get(head)
    found: list[PendingCall] = []
    for open_call in () if frame is None else frame.open_calls:
        call = call_at(table, open_call.ref)
        if call is not None:
            found.append(PendingCall(open_call.ref, call.id, call.name, call.arguments, open_call.held))
    return found


def find_call(table: Table, known_ids: Container[str], head: int | None, wanted: str | CallRef) -> FoundCall:
    """The call on the stack of `head` that `wanted` means: by ref exactly; by id an open one first, else the newest.

    Walks the stack only for a call that is not open, down to it, and not for an id that is not in `known_ids` (those of
    the session's newest calls). Raises `CallUnknown`, `CallAmbiguous`.
    """
    found = _find_open(table, head, wanted)
    if found is None and (isinstance(wanted, CallRef) or wanted in known_ids):
        found = _find_below(table, head, wanted)
    if found is None:
        raise CallUnknown(show(wanted))
    return found


def show(wanted: str | CallRef) -> str:
    """A call in the words of an error."""
    return shown(wanted) if isinstance(wanted, str) else f"at frame {wanted.frame}, index {wanted.index}"


def _find_open(table: Table, head: int | None, wanted: str | CallRef) -> FoundCall | None:
    top = None if head is None else table.get(head)
    found: list[FoundCall] = []
    for open_call in () if top is None else top.open_calls:
        ref = open_call.ref
        call = call_at(table, ref)
        if call is not None and wanted in (ref, call.id):
            found.append(FoundCall(ref, call))
    if len(found) > 1:
        raise CallAmbiguous(show(wanted), len(found))
    return found[0] if found else None


def _find_below(table: Table, head: int | None, wanted: str | CallRef) -> FoundCall | None:
    """The newest such call from `head` downwards, and the result that was met on the way."""
    oldest = wanted.frame if isinstance(wanted, CallRef) else 1
    answers: dict[CallRef | None, int] = {}
    at = head
    while at is not None and at >= oldest:
        frame = table.at(at)
        if frame.given_turns:
            answers.update((result.ref, at) for result in results_in(frame.given_turns))
            for ref, call in reversed(list(calls_in(at, frame.given_turns))):
                if wanted in (ref, call.id):
                    return FoundCall(ref, call, answers.get(ref))
        at = frame.parent
    return None
