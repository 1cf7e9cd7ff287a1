"""Decisions about compactions and pins. Each builds one event and changes nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from session_actor.errors import EmptyStack, InvalidArgument
from session_actor.events import Compacted, Pinned, Uncompacted
from session_actor.given import content
from session_actor.given.content import checked
from session_actor.state.moves import frame_of
from session_actor.state.paths import path_runs
from session_actor.state.runs import contains
from session_actor.state.weight import SMALL, weigh

from .errors import CompactionUnknown, PlanUsed, StalePlan, SummaryRejected
from .overlays import shown_on

if TYPE_CHECKING:
    from session_actor.commands import CommitCompaction, Pin, Uncompact
    from session_actor.frames import Frame
    from session_actor.state.decide import Decision
    from session_actor.state.runs import Runs
    from session_actor.state.state import State

    from .overlays import Compaction, Overlay
    from .plan import Plan
    from .verdict import Verdict


def commit_compaction(state: State, command: CommitCompaction, head: int | None) -> Decision:
    """A summary takes the place of what its plan covers, if all that is still as it was planned."""
    from .plan import Plan

    plan = command.plan
    if type(plan) is not Plan:
        raise InvalidArgument("plan", f"must be a Plan, as prepare_compaction gives it, got {type(plan).__name__}")
    text = checked(content.text, command.text, "text")
    stop_reason = None if command.stop_reason is None else checked(content.text, command.stop_reason, "stop_reason")
    usage = None if command.usage is None else checked(content.usage, command.usage, "usage")
    check_holds(state, plan, head)
    verdict = _verdict(command, text, stop_reason)
    if not verdict.ok:
        raise SummaryRejected(verdict)
    event = Compacted(
        state.generation + 1,
        plan.covered_frame,
        verdict,
        plan.facts,
        plan.kept,
        plan.hash,
        plan.generation,
        plan.tokens_before,
        plan.tokens_after(verdict.sealed),
        usage,
        command.on,
    )
    return event, weigh(event), None


def _verdict(command: CommitCompaction, text: str, stop_reason: str | None) -> Verdict:
    from .judged import Judged

    judged = command.judged
    known = judged.verdict_on(command.plan, text, stop_reason) if type(judged) is Judged else None
    return command.plan.evaluate(text, stop_reason) if known is None else known


def compaction_again(state: State, command: CommitCompaction, seq: int) -> Compaction:
    """What was answered when record `seq` was made of the same command. Raises `CompactionUnknown`."""
    for overlay in state.overlays:
        if overlay.seq == seq:
            return overlay.compaction
    raise CompactionUnknown(command.plan.generation)


def check_holds(state: State, plan: Plan, head: int | None) -> None:
    """Raise `PlanUsed` or `StalePlan` unless a plan can be carried out at a head."""
    if plan.session != state.session:
        raise StalePlan("it was made for another session")
    for overlay in state.overlays:
        if (overlay.planned, overlay.covered_frame, overlay.hash) == (plan.generation, plan.covered_frame, plan.hash):
            raise PlanUsed(overlay.generation)
    runs = [] if head is None else path_runs(state.table, head)
    why = _why_stale(state, plan, runs, head)
    if why is not None:
        raise StalePlan(why)


def _why_stale(state: State, plan: Plan, runs: Runs, head: int | None) -> str | None:
    """What is different from when it was made; None: nothing that matters."""
    if head is None or not contains(runs, plan.covered_frame):
        return f"frame {plan.covered_frame}, up to which it covers, is not on this path"
    if _text_of(shown_on(state.overlays, runs)) != plan.basis.earlier:
        return "another compaction was made, or taken back, since"
    if any(call.ref.frame <= plan.covered_frame for call in state.table.at(head).open_calls):
        return "it covers a tool call that waits for its result"
    if _retracted_since(state, plan, runs):
        return "an assumption was retracted since, or a retraction popped"
    if not all(_is_as_planned(state, frame) for frame in plan.basis.frames):
        return "the frames that it covers are others"
    return None


def _text_of(overlay: Overlay | None) -> str | None:
    return None if overlay is None else overlay.summary


def _retracted_since(state: State, plan: Plan, runs: Runs) -> bool:
    """Whether another set of assumptions is retracted on the path than the plan knows."""
    went_on = contains(runs, plan.head)
    return any(
        contains(runs, frame) if frame > plan.head else not went_on and plan.covered_frame < frame
        for frame in state.retractions
    )


def _is_as_planned(state: State, planned: Frame) -> bool:
    """Whether a frame is the one that was planned with; it is another object when the session was loaded again."""
    frame = state.table.get(planned.id)
    if frame is planned:
        return True
    from .source import digest_of

    return frame is not None and frame.at_us == planned.at_us and digest_of(frame) == digest_of(planned)


def uncompact(state: State, command: Uncompact, _head: int | None) -> Decision:
    """A compaction is taken back."""
    generation = checked(content.count, command.generation, "generation")
    if not any(one.generation == generation and not one.undone for one in state.overlays):
        raise CompactionUnknown(generation)
    return Uncompacted(generation), SMALL, None


def pin(state: State, command: Pin, head: int | None) -> Decision:
    """A frame stays shown, with what belongs to it, or need not any more."""
    pinned = checked(content.flag, command.pinned, "pinned")
    frame = frame_of(state, command.frame)
    if frame is None:
        raise EmptyStack("pin")
    frames = _step_of(state, frame, head) if pinned else (frame.id,)
    return Pinned(frame.id, pinned, frames), SMALL + 8 * len(frames), frame


def _step_of(state: State, frame: Frame, head: int | None) -> tuple[int, ...]:
    """The frame and the rest of its step or user turn, on the path of a head: results without their call are none."""
    table, found = state.table, [frame.id]
    at = frame.parent
    while at is not None and _belong_together(below := table.at(at), frame):
        found.append(at)
        at = below.parent
    runs = [] if head is None else path_runs(table, head)
    if contains(runs, frame.id):
        at = _above(runs, frame.id)
        while at is not None and _belong_together(above := table.at(at), frame):
            found.append(above.id)
            at = _above(runs, above.id)
    return tuple(sorted(found))


def _belong_together(frame: Frame, other: Frame) -> bool:
    return (frame.exchange, frame.step) == (other.exchange, other.step)


def _above(runs: Runs, frame_id: int) -> int | None:
    """The next id of a path; None: it is the last."""
    for first, last in runs:
        if first > frame_id:
            return first
        if frame_id < last:
            return frame_id + 1
    return None
