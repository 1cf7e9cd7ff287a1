"""Compares what is on disk with the plan: every field of every frame, the branches and the checkpoints."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import msgspec

from session_actor import SessionService
from session_actor.blocks import NULL
from session_actor.errors import FrameUnknown

from .child import SESSION_ID
from .tree import draw_tree

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from session_actor import Frame, Session, Turn

    from .parent import Outcome
    from .plan import Plan

_FIELDS = (
    "id",
    "parent",
    "depth",
    "at_us",
    "user_input",
    "assistant_output",
    "assumptions",
    "decisions",
    "turns",
    "forked_from",
    "pinned",
    "instructions",
)


@dataclass(slots=True)
class Verdict:
    """What the comparison found."""

    fields: int = 0
    equal: int = 0
    differences: list[str] = field(default_factory=list[str])
    """Where it differs: frame and field, or the name; never the content."""
    tree: str = ""

    def compare(self, same: bool, where: str) -> None:  # noqa: FBT001  # the one thing that it is told
        """Count one comparison."""
        self.fields += 1
        if same:
            self.equal += 1
        else:
            self.differences.append(where)


async def verify(directory: Path, plan: Plan, outcome: Outcome) -> Verdict:
    """Open the store once more, in this process, and compare everything with the plan and with the acknowledgements."""
    verdict = Verdict()
    times = {message.frame: message.at_us for message in outcome.acknowledged.values()}
    async with SessionService.open(directory, lock_timeout_s=5.0) as service:
        session = await service.session(SESSION_ID)
        frames = [await _frame(session, expected.id) for expected in plan.frames]
        for expected, frame in zip(plan.frames, frames, strict=True):
            _compare_frame(verdict, expected, frame, times.get(expected.id))
        branches, checkpoints = await session.branches(), await session.checkpoints()
        _compare_names(verdict, "branch", plan.branches, branches)
        _compare_names(verdict, "checkpoint", plan.checkpoints, checkpoints)
        await _compare_stacks(verdict, plan, session)
        verdict.tree = draw_tree([frame for frame in frames if frame], branches, checkpoints, "main")
    return verdict


async def _frame(session: Session, frame_id: int) -> Frame | None:
    try:
        return await session.get(frame_id)
    except FrameUnknown:
        return None


def _compare_frame(verdict: Verdict, expected: Frame, frame: Frame | None, at_us: int | None) -> None:
    """Compare one frame; its time with the one that was acknowledged (None: the acknowledgement never came)."""
    for name in _FIELDS:
        if name == "at_us":
            same = frame is not None and at_us in {None, frame.at_us}
        elif name == "turns":
            same = frame is not None and same_turns(expected.turns, frame.turns)
        else:
            same = frame is not None and getattr(expected, name) == getattr(frame, name)
        verdict.compare(same, f"frame {expected.id}: {name}")


def same_turns(first: tuple[Turn, ...], second: tuple[Turn, ...]) -> bool:
    """Tell whether two tuples of turns are equal, the providers' own reports by their values."""
    return len(first) == len(second) and all(map(_same_turn, first, second))


def _same_turn(first: Turn, second: Turn) -> bool:
    if first.usage is None or second.usage is None:
        return first == second
    return first.usage.raw_value == second.usage.raw_value and _without_report(first) == _without_report(second)


def _without_report(turn: Turn) -> Turn:
    usage = turn.usage and msgspec.structs.replace(turn.usage, raw=NULL)
    return msgspec.structs.replace(turn, usage=usage)


def _compare_names(verdict: Verdict, what: str, expected: Mapping[str, int], found: Mapping[str, int | None]) -> None:
    for name in sorted({*expected, *found}):
        verdict.compare(expected.get(name) == found.get(name), f"{what} {name!r}")


async def _compare_stacks(verdict: Verdict, plan: Plan, session: Session) -> None:
    """Compare which frames each branch sees, in their order."""
    for name, head in plan.branches.items():
        expected: list[int] = []
        at: int | None = head
        while at:
            expected.append(at)
            at = plan.frames[at - 1].parent
        seen = [frame.id for frame in await session.on(name).stack()]
        verdict.compare(expected[::-1] == seen, f"the stack of branch {name!r}")
