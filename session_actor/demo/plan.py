"""What the demo does, step by step, and what must be there afterwards: a plain model that knows no session."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import msgspec

from session_actor.blocks import CallRef, Text, ToolCall, ToolResult
from session_actor.frames import Frame, Instructions, Turn

from .transcript import ModelChange, Transcript, UnreadableLine

if TYPE_CHECKING:
    from pathlib import Path

CHECKPOINT = "one-third"
IDEA = "idea"
_SUMMARY_CHARACTERS = 80


@dataclass(frozen=True, slots=True)
class Step:
    """One change of the session: a method of the handle, its arguments, and the frame that it makes (0: none)."""

    method: str
    arguments: dict[str, Any]
    frame: int = 0


@dataclass(slots=True)
class Plan:
    """All steps of the demo, and the frames, branches and checkpoints that must be there when they are done."""

    steps: list[Step] = field(default_factory=list[Step])
    frames: list[Frame] = field(default_factory=list[Frame])
    branches: dict[str, int] = field(default_factory=dict[str, int])
    checkpoints: dict[str, int] = field(default_factory=dict[str, int])
    unreadable: list[UnreadableLine] = field(default_factory=list[UnreadableLine])
    """Lines that were not read; of very many the first 1,000."""
    unreadable_count: int = 0
    stray_results: int = 0
    """Tool results that were left out: their call is not in the transcript, or has a result already."""


async def read_plan(path: Path) -> Plan:
    """Read a transcript and plan the demo: one frame a line, at one third a checkpoint, at two thirds a fork from it.

    Raises OSError when the file cannot be read, and ValueError when it holds too little to fork.
    """
    transcript = Transcript(path)
    contents = [entry.content async for entry in transcript]
    planner = _Planner()
    third = len(contents) // 3
    if third == 0:
        raise ValueError(f"{path} holds {len(contents)} readable turns: give a transcript with at least 3")
    for number, content in enumerate(contents):
        if number == third:
            planner.checkpoint(CHECKPOINT)
        if number == 2 * third:
            planner.try_an_idea()
        planner.feed(content)
    plan = planner.plan
    plan.branches["main"] = planner.head
    plan.unreadable, plan.unreadable_count = transcript.unreadable, transcript.unreadable_count
    return plan


class _Planner:
    """Builds the plan and counts along: the next frame's id, the head, the calls that wait for a result."""

    def __init__(self) -> None:
        self.plan = Plan()
        self.head = 0
        self._instructions = Instructions()
        self._open: dict[str, CallRef] = {}

    def feed(self, content: Turn | ModelChange) -> None:
        """Add the step of one line of the transcript."""
        if isinstance(content, ModelChange):
            self._instructions = msgspec.structs.replace(self._instructions, model=content.model)
            self._step("configure", {"model": content.model}, instructions=self._instructions, given_turns=())
        elif content.role == "tool":
            self._result(content)
        else:
            self._push(content)

    def checkpoint(self, name: str) -> None:
        """Name the head."""
        self.plan.checkpoints[name] = self.head
        self.plan.steps.append(Step("checkpoint", {"name": name}))

    def try_an_idea(self) -> None:
        """Fork from the checkpoint, answer there, and go back to the main branch."""
        main = self.head
        self.head = self.plan.checkpoints[CHECKPOINT]
        question = {
            "user_input": "What if we had gone another way from here?",
            "assumptions": ("nobody else is waiting",),
        }
        answer = {"assistant_output": "Then this branch would hold it.", "decisions": ("keep both",)}
        self._step("fork", {"frame": CHECKPOINT, "branch": IDEA, **question}, forked_from=self.head, **question)
        self._step("push", answer, **answer)
        self.plan.branches[IDEA] = self.head
        self.plan.steps.append(Step("goto", {"target": "main"}))
        self.head = main

    def _push(self, turn: Turn) -> None:
        calls = [block for block in turn.blocks if isinstance(block, ToolCall)]
        said = _summary(turn)
        texts = {"user_input": said} if turn.role == "user" else {"assistant_output": said}
        notes = {**texts, "decisions": tuple(f"call {call.name}" for call in calls)}
        self._step("push", {"turns": (turn,), **notes}, given_turns=(turn,), **notes)
        self._open.update({call.id: CallRef(self.head, index) for index, call in enumerate(calls)})

    def _result(self, turn: Turn) -> None:
        (result,) = turn.blocks
        if not isinstance(result, ToolResult) or result.call_id not in self._open:
            self.plan.stray_results += 1
            return
        notes = {"assumptions": ("the tool failed",) if result.is_error else ()}
        kept = msgspec.structs.replace(result, ref=self._open.pop(result.call_id))
        self._step("push", {"turns": (turn,), **notes}, given_turns=(Turn("tool", (kept,)),), **notes)

    def _step(self, method: str, arguments: dict[str, Any], **expected: Any) -> None:
        frames = self.plan.frames
        depth = frames[self.head - 1].depth if self.head else 0
        frame = Frame(id=len(frames) + 1, parent=self.head or None, depth=depth + 1, at_us=0, **expected)
        frames.append(frame)
        self.plan.steps.append(Step(method, arguments, frame.id))
        self.head = frame.id


def _summary(turn: Turn) -> str:
    """Return the start of what a turn says."""
    texts = (block.text for block in turn.blocks if isinstance(block, Text))
    return " ".join(texts)[:_SUMMARY_CHARACTERS]
