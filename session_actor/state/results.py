"""Results inside pushed turns: finds the call of each, in the same frame or on the stack below."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from session_actor.blocks import CallRef, ToolCall, ToolResult
from session_actor.errors import CallAlreadyAnswered, CallAmbiguous

from .calls import FoundCall, find_call, show

if TYPE_CHECKING:
    from session_actor.blocks import Block
    from session_actor.frames import Turn

    from .state import State


def bind_results(state: State, head: int | None, turns: tuple[Turn, ...]) -> tuple[Turn, ...]:
    """The turns of a new frame on `head`, each result with the ref and the id of its call.

    Raises `CallUnknown`, `CallAmbiguous`, and `CallAlreadyAnswered`, also for a second result of one call.
    """
    if not any(turn.role == "tool" for turn in turns):
        return turns
    own = _OwnCalls(state.next_id)
    bound: list[Turn] = []
    for turn in turns:
        own.add(turn)
        blocks = tuple(_bound(state, head, own, block) for block in turn.blocks)
        bound.append(msgspec.structs.replace(turn, blocks=blocks))
    return tuple(bound)


class _OwnCalls:
    """The calls of the new frame so far: which are still open, and which calls it answers."""

    def __init__(self, frame_id: int) -> None:
        self.frame_id = frame_id
        self.calls: dict[CallRef, ToolCall] = {}
        self.by_id: dict[str, list[CallRef]] = {}
        self.answered: set[CallRef] = set()
        self.open: set[CallRef] = set()

    def add(self, turn: Turn) -> None:
        if turn.role != "tool":
            self.open.clear()
        for block in turn.blocks:
            if isinstance(block, ToolCall):
                ref = CallRef(self.frame_id, len(self.calls))
                self.calls[ref] = block
                self.by_id.setdefault(block.id, []).append(ref)
                self.open.add(ref)

    def answer(self, ref: CallRef) -> None:
        self.answered.add(ref)
        self.open.discard(ref)

    def find(self, wanted: str | CallRef) -> FoundCall | None:
        if isinstance(wanted, CallRef):
            call = self.calls.get(wanted)
            return None if call is None else FoundCall(wanted, call)
        refs = self.by_id.get(wanted, [])
        waiting = [ref for ref in refs if ref in self.open]
        if len(waiting) > 1:
            raise CallAmbiguous(show(wanted), len(waiting))
        newest = (waiting or refs)[-1:]
        return FoundCall(newest[0], self.calls[newest[0]]) if newest else None


def _bound(state: State, head: int | None, own: _OwnCalls, block: Block) -> Block:
    if not isinstance(block, ToolResult):
        return block
    wanted = block.call_id if block.ref is None else block.ref
    found = own.find(wanted) or find_call(state.table, state.call_ids, head, wanted)
    if found.answered_in is not None or found.ref in own.answered:
        raise CallAlreadyAnswered(show(wanted), found.answered_in or own.frame_id)
    own.answer(found.ref)
    return msgspec.structs.replace(block, ref=found.ref, call_id=found.call.id)
