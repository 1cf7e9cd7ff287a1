"""The calls of what was planted: which one a result is for, without the frames themselves."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from session_actor.blocks import CallRef, Reference, Text, ToolCall, ToolResult
from session_actor.frames import OpenCall, Turn
from session_actor.state.calls import open_after

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from session_actor.blocks import Block

STRAY: Final = "a tool result whose call is not in the transcript, or has a result already"
"""The source of what such a result becomes: text of the user's that is not trusted."""


class CallsPlanted:
    """The calls and results of every frame, by its id."""

    def __init__(self, parents: Mapping[int, int | None]) -> None:
        """`parents`: of every frame that was planted; it grows."""
        self._parents = parents
        self._calls: dict[int, tuple[str, ...]] = {}
        self._answers: dict[int, tuple[CallRef, ...]] = {}
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
        blocks = [block for turn in turns for block in turn.blocks]
        calls = tuple(block.id for block in blocks if isinstance(block, ToolCall))
        if calls:
            self._calls[frame_id] = calls
            self._known.update(calls)
        answers = tuple(block.ref for block in blocks if isinstance(block, ToolResult) and block.ref is not None)
        if answers:
            self._answers[frame_id] = answers

    def find(self, head: int | None, call_id: str, taken: Iterable[CallRef] = ()) -> CallRef | None:
        """The newest call of this id on the path of `head` that has no result; None: there is none."""
        if call_id not in self._known:
            return None
        answered = set(taken)
        at, without = head, self._without.get(call_id)
        while at is not None and at != without:
            answered.update(self._answers.get(at, ()))
            for index, known in enumerate(self._calls.get(at, ())):
                if known == call_id and (ref := CallRef(at, index)) not in answered:
                    return ref
            at = self._parents[at]
        if head is not None and not taken:
            self._without[call_id] = head
        return None

    def bind(self, turns: Iterable[Turn], parent: int | None, frame_id: int) -> tuple[Turn, ...]:
        """The turns of a frame, each result with the name of its call; one without a call is the user's to tell."""
        bound: list[Turn] = []
        own: list[str] = []
        taken: list[CallRef] = []
        for turn in turns:
            if turn.role != "tool":
                bound.append(turn)
                own += [block.id for block in turn.blocks if isinstance(block, ToolCall)]
                continue
            kept: list[Block] = []
            stray: list[Block] = []
            for block in turn.blocks:
                if not isinstance(block, ToolResult):
                    continue
                ref = _own(own, block.call_id, frame_id, taken) or self.find(parent, block.call_id, taken)
                if ref is None:
                    stray += _told(block)
                else:
                    taken.append(ref)
                    kept.append(msgspec.structs.replace(block, ref=ref))
            if kept:
                bound.append(msgspec.structs.replace(turn, blocks=tuple(kept)))
            if stray:
                bound.append(Turn("user", tuple(stray)))
        return tuple(bound)


def _own(own: list[str], call_id: str, frame_id: int, taken: list[CallRef]) -> CallRef | None:
    """The newest such call of the same frame."""
    refs = [CallRef(frame_id, index) for index, known in enumerate(own) if known == call_id]
    return next((ref for ref in reversed(refs) if ref not in taken), None)


def _told(result: ToolResult) -> list[Block]:
    """What the user can tell of a result: text as text that is not trusted, everything else as it is."""
    told: list[Block] = [block for block in result.blocks if not isinstance(block, Text)]
    said = "\n".join(block.text for block in result.blocks if isinstance(block, Text))
    return [Reference(said or "(no text)", STRAY), *told] if said or not told else told
