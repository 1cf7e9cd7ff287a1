"""The calls of what was planted: which one a result is for, without the frames themselves."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from session_actor.blocks import CallRef, Reference, Text, ToolCall, ToolResult
from session_actor.frames import OpenCall, Turn
from session_actor.state.calls import open_after, results_in

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from session_actor.blocks import Block

    from .ancestry import Ancestry

STRAY: Final = "a tool result whose call is not in the transcript, or has a result already"
"""The source of what such a result becomes: text of the user's that is not trusted."""


class CallsPlanted:
    """The calls and results of every frame, by its id."""

    def __init__(self, ancestry: Ancestry) -> None:
        """`ancestry`: of every frame that was planted; it grows."""
        self._ancestry = ancestry
        self._calls: dict[int, dict[str, list[int]]] = {}
        """Of frames that call: the places of their calls, by their ids."""
        self._calling: dict[int, int] = {}
        """The newest frame that calls on the path of each, maybe its own."""
        self._answers: dict[CallRef, list[int]] = {}
        """The frames that hold a result of a call; several on different branches."""
        self._open: dict[int, tuple[OpenCall, ...]] = {}
        self._known: set[str] = set()
        self._without: dict[str, int] = {}
        """By ids of calls: a frame on whose path none of that id waits."""

    def waiting_at(self, frame_id: int) -> bool:
        """Whether a call waits for its result at a frame."""
        return frame_id in self._open

    def note(self, frame_id: int, parent: int | None, turns: tuple[Turn, ...]) -> None:
        """Remember a frame that was planted."""
        before = () if parent is None else self._open.get(parent, ())
        waiting = open_after(before, frame_id, turns, ())
        if waiting:
            self._open[frame_id] = waiting
        calls = dict[str, list[int]]()
        _count_in(calls, turns)
        below = None if parent is None else self._calling.get(parent)
        if calls:
            self._calls[frame_id] = calls
            self._known.update(calls)
            below = frame_id
        if below is not None:
            self._calling[frame_id] = below
        for result in results_in(turns):
            if result.ref is not None:
                self._answers.setdefault(result.ref, []).append(frame_id)

    def waits(self, head: int | None, call_id: str) -> bool:
        """Whether a call of this id on the path of `head` has no result."""
        return next(self._unanswered(head, call_id), None) is not None

    def _unanswered(self, head: int | None, call_id: str) -> Iterator[CallRef]:
        """The calls of this id on the path of `head` that have no result; those of the newest frame first."""
        if head is None or call_id not in self._known:
            return
        at, without, none = self._calling.get(head), self._without.get(call_id, 0), True
        if without > head or not self._ancestry.is_below(without or None, head):
            without = 0
        while at is not None and at > without:
            for index in self._calls[at].get(call_id, ()):
                if not self._is_answered(ref := CallRef(at, index), head):
                    none = False
                    yield ref
            parent = self._ancestry.parents[at]
            at = None if parent is None else self._calling.get(parent)
        if none:
            self._without[call_id] = head

    def _is_answered(self, ref: CallRef, head: int) -> bool:
        return any(self._ancestry.is_below(frame, head) for frame in self._answers.get(ref, ()))

    def bind(self, turns: Iterable[Turn], parent: int | None, frame_id: int) -> tuple[Turn, ...]:
        """The turns of a frame, each result with the name of its call; one without a call is the user's to tell."""
        bound: list[Turn] = []
        own = dict[str, list[int]]()
        """Its own calls that have no result yet, by their ids."""
        count = 0
        below: dict[str, Iterator[CallRef]] = {}
        for turn in turns:
            if turn.role != "tool":
                bound.append(turn)
                count = _count_in(own, (turn,), count)
                continue
            kept: list[Block] = []
            stray: list[Block] = []
            for block in turn.blocks:
                if not isinstance(block, ToolResult):
                    continue
                call_id, ref = block.call_id, None
                if waiting := own.get(call_id):
                    ref = CallRef(frame_id, waiting.pop())
                else:
                    ref = next(below.setdefault(call_id, self._unanswered(parent, call_id)), None)
                if ref is None:
                    stray += _told(block)
                else:
                    kept.append(msgspec.structs.replace(block, ref=ref))
            if kept:
                bound.append(msgspec.structs.replace(turn, blocks=tuple(kept)))
            if stray:
                bound.append(Turn("user", tuple(stray)))
        return tuple(bound)


def _count_in(calls: dict[str, list[int]], turns: Iterable[Turn], count: int = 0) -> int:
    """Add the places of calls to `calls`, by their ids; return how many there are, with the `count` before."""
    for turn in turns:
        for block in turn.blocks:
            if isinstance(block, ToolCall):
                calls.setdefault(block.id, []).append(count)
                count += 1
    return count


def _told(result: ToolResult) -> list[Block]:
    """What the user can tell of a result: text as text that is not trusted, everything else as it is."""
    told: list[Block] = [block for block in result.blocks if not isinstance(block, Text)]
    said = "\n".join(block.text for block in result.blocks if isinstance(block, Text))
    return [Reference(said or "(no text)", STRAY), *told] if said or not told else told
