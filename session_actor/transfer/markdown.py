"""A session as Markdown, for people: each branch from where it leaves the one before."""

from __future__ import annotations

from contextlib import aclosing
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from session_actor.blocks import NULL, CallRef, ToolCall, ToolResult, thawed
from session_actor.state.calls import calls_in, results_in
from session_actor.state.names import MAIN

from .frames_in import frames_of_ids
from .markdown_blocks import block_of, call_of, json_of, name_of, result_of, text_of
from .markdown_text import code, folded, prose

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Iterator

    from session_actor.frames import Frame, Instructions, Turn

    from .source import History

_WHOLE: Final = frozenset(
    {"stop", "end_turn", "tool_use", "tool_calls", "tooluse", "function_call", "stop_sequence", "completed"}
)
"""Why replies stop that are whole, in lower case: that is not told."""


async def lines_of_markdown(history: History) -> AsyncGenerator[bytes]:
    """The parts of the page. Raises what reading frames raises."""
    seen = _Seen()
    async with aclosing(history.frames()) as every:
        async for frame in every:
            seen.note(frame)
    yield _encoded(_heading(history, seen))
    marks = _marks(history)
    covered = {overlay.covered_frame: overlay.summary for overlay in history.sealed.overlays if not overlay.undone}
    written: set[int] = set()
    for title, tip in _sections(history, seen.parents):
        ids: list[int] = []
        at: int | None = tip
        while at is not None and at not in written:
            ids.append(at)
            at = seen.parents.get(at)
        written.update(ids)
        yield _encoded(_section(title, at, bool(ids)))
        async with aclosing(frames_of_ids(history.table, ids[::-1])) as path:
            async for frame in path:
                yield _encoded(_frame(frame, seen, marks.get(frame.id, [])))
                if frame.id in covered:
                    covers = "Compacted up to here: what requests show in its place"
                    yield _encoded(folded(covers, prose(covered[frame.id])))


class _Seen:
    """What is to be known of all frames before the first is written."""

    def __init__(self) -> None:
        self.parents: dict[int, int | None] = {}
        self.names: dict[CallRef, str] = {}
        """The tool of each call."""
        self.answered: set[CallRef] = set()
        self.sent = self.made = 0
        """Tokens that providers charged."""

    def note(self, frame: Frame) -> None:
        """One more frame."""
        self.parents[frame.id] = frame.parent
        self.names.update((ref, call.name) for ref, call in calls_in(frame.id, frame.turns))
        self.answered.update(result.ref for result in results_in(frame.turns) if result.ref is not None)
        for usage in (turn.usage for turn in frame.turns):
            if usage is not None:
                self.sent += usage.input_tokens
                self.made += usage.output_tokens


def _encoded(part: str) -> bytes:
    return f"{part}\n\n".encode("utf-8", "replace") if part else b""


def _heading(history: History, seen: _Seen) -> str:
    sealed = history.sealed
    lines = [f"# Conversation {code(history.session)}", ""]
    if history.damage is not None:
        lines.append(f"- **not whole**, its records are damaged: {code(history.damage)}")
    if history.created_at_us is not None:
        lines.append(
            f"- session made: {datetime.fromtimestamp(history.created_at_us / 1e6, UTC):%Y-%m-%d %H:%M:%S} UTC"
        )
    if history.source is not None:
        at = "" if history.source.frame is None else f", frame {history.source.frame}"
        lines.append(f"- copied from: {code(history.source.session)}{at}")
    if history.ended is not None:
        lines.append(f"- ended: {code(history.ended)}")
    if seen.sent or seen.made:
        lines.append(f"- tokens charged: {seen.sent:,} sent, {seen.made:,} made")
    for name, frame in sealed.branches:
        mark = " (attached)" if name == sealed.attached else ""
        lines.append(f"- branch {code(name)}{mark}: {'empty' if frame is None else f'frame {frame}'}")
    lines += [f"- checkpoint {code(name)}: frame {frame}" for name, frame in sealed.checkpoints]
    if sealed.attached is None and sealed.head is not None:
        lines.append(f"- head: frame {sealed.head}, on no branch")
    if history.metadata != NULL:
        lines += ["", text_of(json_of(thawed(history.metadata)), "Metadata", "json")]
    return "\n".join(lines)


def _marks(history: History) -> dict[int, list[str]]:
    """What was said of frames after they were pushed."""
    marks: dict[int, list[str]] = {}
    for name, frame in history.sealed.checkpoints:
        marks.setdefault(frame, []).append(f"*Checkpoint {code(name)}*")
    for frame, pin in history.sealed.pins:
        marks.setdefault(frame, []).append("*Pinned*" if pin.pinned else "*Not pinned any more*")
    return marks


def _sections(history: History, parents: dict[int, int | None]) -> Iterator[tuple[str, int]]:
    """Where to write down from: the head's branch, `main`, the other names, and what none of them holds."""
    sealed = history.sealed
    branches = dict(sealed.branches)
    first = sealed.attached if sealed.attached is not None else MAIN
    for name in sorted(branches, key=lambda name: (name != first, name != MAIN)):
        tip = branches[name]
        if tip is not None:
            yield f"Branch {code(name)}", tip
    if sealed.head is not None:
        yield "Head", sealed.head
    for name, frame in sealed.checkpoints:
        yield f"Checkpoint {code(name)}", frame
    inner = set(parents.values())
    for frame in sorted(frame for frame in parents if frame not in inner):
        yield "Taken back", frame


def _section(title: str, below: int | None, any_new: bool) -> str:  # noqa: FBT001 - used here alone
    if not any_new:
        return f"## {title}\n\nAs frame {below}, above." if title.startswith("Branch") else ""
    return f"## {title}" if below is None else f"## {title}\n\nGoes on from frame {below}."


def _frame(frame: Frame, seen: _Seen, marks: list[str]) -> str:
    parts: list[str] = []
    calls = iter(calls_in(frame.id, frame.turns))
    for number, turn in enumerate(frame.turns):
        who = f"### {frame.id} · {turn.role}" if number == 0 else f"#### {turn.role}"
        parts.append(f"{who}{_beside(frame, turn, number)}")
        for block in turn.blocks:
            if isinstance(block, ToolCall):
                parts.append(call_of(block, is_answered=next(calls)[0] in seen.answered))
            elif isinstance(block, ToolResult):
                parts.append(result_of(block, None if block.ref is None else seen.names.get(block.ref)))
            else:
                parts.append(block_of(block))
        if turn.stop_reason is not None and turn.stop_reason.lower() not in _WHOLE:
            parts.append(f"*(stopped: {code(turn.stop_reason)})*")
    if not frame.turns:
        parts.append(f"### {frame.id} · {'instructions' if frame.instructions else 'note'}")
    return "\n\n".join(part for part in [*parts, *_noted(frame), *marks] if part)


def _beside(frame: Frame, turn: Turn, number: int) -> str:
    model = f" · {code(turn.model)}" if turn.model else ""
    return f"{model} · {frame.timestamp:%Y-%m-%d %H:%M:%S} UTC" if number == 0 else model


def _noted(frame: Frame) -> Iterator[str]:
    """What a frame has beside what was said."""
    if frame.instructions is not None:
        yield _instructions(frame.instructions)
    yield from (f"- assumed: {code(text)}" for text in frame.assumptions)
    yield from (f"- decided: {code(text)}" for text in frame.decisions)
    yield from (f"- {artifact.how}: {code(artifact.path)}" for artifact in frame.artifacts)
    yield from (f"- held: {code(hold.reason)}" for hold in frame.holds)
    if frame.retracted is not None:
        note = "" if frame.retracted.note is None else f": {code(frame.retracted.note)}"
        yield f"- retracted: {code(frame.retracted.assumption)}{note}"
    if frame.pinned:
        yield "*Pinned*"


def _instructions(instructions: Instructions) -> str:
    parts = [] if instructions.model is None else [f"Model {code(instructions.model)}"]
    if instructions.system:
        parts.append(text_of(instructions.system, "System prompt"))
    tools = [*(tool.name for tool in instructions.tools), *map(name_of, instructions.native_tools)]
    if tools:
        parts.append("Tools: " + ", ".join(map(code, tools)))
    return "\n\n".join(parts) or "*None*"
