"""Tool calls: which are open on a stack, and which one a result is for.

A call is open from its assistant turn until its result, or until the next turn that is not a tool's: then the model has
gone on without it, and it is interrupted. A held call stays open over later turns. A call that its reply broke off in
is never open. An interrupted call, and one like that, still takes its result. All of it follows from the path, so that
pop, goto and fork bring back what was open there.
"""

from __future__ import annotations

from bisect import bisect_left
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


class CallsOf:
    """The calls of one frame, by their places and by the ids that their provider gave them."""

    __slots__ = ("_by_id", "_calls", "frame")

    def __init__(self, frame_id: int, turns: Iterable[Turn]) -> None:
        """Those of a frame that has these turns."""
        self.frame = frame_id
        self._calls = [call for _, call in calls_in(frame_id, turns)]
        self._by_id: dict[str, list[int]] = {}
        for index, call in enumerate(self._calls):
            self._by_id.setdefault(call.id, []).append(index)

    def __len__(self) -> int:
        """How many there are."""
        return len(self._calls)

    def at(self, ref: CallRef) -> ToolCall | None:
        """The call that `ref` names, None when this frame has none such."""
        there = ref.frame == self.frame and 0 <= ref.index < len(self._calls)
        return self._calls[ref.index] if there else None

    def named(self, wanted: str | CallRef) -> list[CallRef]:
        """Those that `wanted` may mean, oldest first."""
        if isinstance(wanted, CallRef):
            return [wanted]
        return [CallRef(self.frame, index) for index in self._by_id.get(wanted, ())]


def results_in(turns: Iterable[Turn]) -> Iterator[ToolResult]:
    """The results of a frame."""
    return (block for turn in turns for block in turn.blocks if type(block) is ToolResult)


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
        place = _place_from(open_calls, hold.ref)
        after = place + 1 if _is_at(open_calls, place, hold.ref) else place
        open_calls = (*open_calls[:place], OpenCall(hold.ref, hold.reason), *open_calls[after:])
    return open_calls


def _unanswered(open_calls: tuple[OpenCall, ...], turn: Turn) -> tuple[OpenCall, ...]:
    results = [block.ref for block in turn.blocks if type(block) is ToolResult]
    if len(results) != 1:
        answered = set(results)
        return tuple([call for call in open_calls if call.ref not in answered])
    place = None if results[0] is None else _place_of(open_calls, results[0])
    return open_calls if place is None else open_calls[:place] + open_calls[place + 1 :]


def _place_of(open_calls: tuple[OpenCall, ...], ref: CallRef) -> int | None:
    """Where a call is among open ones; None: it is not open."""
    place = _place_from(open_calls, ref)
    return place if _is_at(open_calls, place, ref) else None


def _place_from(open_calls: tuple[OpenCall, ...], ref: CallRef, low: int = 0) -> int:
    """Where a call is among open ones, which are in the order of their age, or would be."""
    return bisect_left(open_calls, (ref.frame, ref.index), low, key=_age)


def _is_at(open_calls: tuple[OpenCall, ...], place: int, ref: CallRef) -> bool:
    return place < len(open_calls) and open_calls[place].ref == ref


def _age(call: OpenCall) -> tuple[int, int]:
    return call.ref.frame, call.ref.index


def pending(table: Table, head: int | None) -> list[PendingCall]:
    """The open calls on the stack of `head`, oldest first."""
    frame = None if head is None else table.get(head)
    found: list[PendingCall] = []
    calls: CallsOf | None = None
    for open_call in () if frame is None else frame.open_calls:
        if calls is None or calls.frame != open_call.ref.frame:
            calls = table.calls_of(open_call.ref.frame)
        call = calls.at(open_call.ref)
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
    open_calls = () if top is None else top.open_calls
    found: list[FoundCall] = []
    for frame_id in [wanted.frame] if isinstance(wanted, CallRef) else _frames_of(open_calls):
        calls = table.calls_of(frame_id)
        for ref in calls.named(wanted):
            call = calls.at(ref)
            if call is not None and _place_of(open_calls, ref) is not None:
                found.append(FoundCall(ref, call))
    if len(found) > 1:
        raise CallAmbiguous(show(wanted), len(found))
    return found[0] if found else None


def _frames_of(open_calls: tuple[OpenCall, ...]) -> Iterator[int]:
    """The frames that hold them, each once."""
    place = 0
    while place < len(open_calls):
        frame_id = open_calls[place].ref.frame
        yield frame_id
        place = _place_from(open_calls, CallRef(frame_id + 1, 0), place)


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
