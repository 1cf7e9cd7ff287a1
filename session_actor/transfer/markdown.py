"""A session as Markdown, for people: each branch from where it leaves the one before."""

from __future__ import annotations

import json
from contextlib import aclosing
from typing import TYPE_CHECKING, Final

from session_actor.blocks import Document, Image, Native, Reference, Text, Thinking, ToolCall, ToolResult
from session_actor.names import MAIN

from .frames_in import frames_of_ids
from .markdown_text import code, fenced, folded, plain, prose

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Iterator

    from session_actor.blocks import Block
    from session_actor.frames import Frame, Instructions, Turn

    from .source import History

LONG_LINES: Final = 20
LONG_CHARACTERS: Final = 2_000
"""What is longer is folded."""


async def lines_of_markdown(history: History) -> AsyncGenerator[bytes]:
    """The parts of the page. Raises what reading frames raises."""
    parents = {frame.id: frame.parent async for frame in history.frames()}
    yield _encoded(_heading(history))
    named = {frame: name for name, frame in history.sealed.checkpoints}
    covered = {overlay.covered_frame: overlay.summary for overlay in history.sealed.overlays if not overlay.undone}
    written: set[int] = set()
    for title, tip in _sections(history, parents):
        ids: list[int] = []
        at: int | None = tip
        while at is not None and at not in written:
            ids.append(at)
            at = parents.get(at)
        written.update(ids)
        yield _encoded(_section(title, at, bool(ids)))
        async with aclosing(frames_of_ids(history.table, ids[::-1])) as path:
            async for frame in path:
                yield _encoded(_frame(frame, named.get(frame.id)))
                if frame.id in covered:
                    covers = "Compacted up to here: what requests show in its place"
                    yield _encoded(folded(covers, prose(covered[frame.id])))


def _encoded(part: str) -> bytes:
    return f"{part}\n\n".encode("utf-8", "replace") if part else b""


def _heading(history: History) -> str:
    sealed = history.sealed
    lines = [f"# Conversation {code(history.session)}", ""]
    if history.ended is not None:
        lines.append(f"- ended: {code(history.ended)}")
    for name, frame in sealed.branches:
        mark = " (attached)" if name == sealed.attached else ""
        lines.append(f"- branch {code(name)}{mark}: {'empty' if frame is None else f'frame {frame}'}")
    lines += [f"- checkpoint {code(name)}: frame {frame}" for name, frame in sealed.checkpoints]
    if sealed.attached is None and sealed.head is not None:
        lines.append(f"- head: frame {sealed.head}, on no branch")
    return "\n".join(lines)


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


def _frame(frame: Frame, name: str | None) -> str:
    parts: list[str] = []
    for number, turn in enumerate(frame.turns):
        who = f"### {frame.id} · {turn.role}" if number == 0 else f"#### {turn.role}"
        parts += [f"{who}{_beside(frame, turn, number)}", *map(_block, turn.blocks)]
        if turn.stop_reason in {"aborted", "error", "cancelled", "interrupted"}:
            parts.append(f"*(stopped: {plain(turn.stop_reason or '')})*")
    if not frame.turns:
        parts.append(f"### {frame.id} · {'instructions' if frame.instructions else 'note'}")
    if frame.instructions is not None:
        parts.append(_instructions(frame.instructions))
    parts += [f"- assumed: {code(text)}" for text in frame.assumptions]
    parts += [f"- decided: {code(text)}" for text in frame.decisions]
    parts += [f"- {artifact.how}: {code(artifact.path)}" for artifact in frame.artifacts]
    parts += [f"- held: {code(hold.reason)}" for hold in frame.holds]
    if frame.retracted is not None:
        parts.append(f"- retracted: {code(frame.retracted.assumption)}")
    if name is not None:
        parts.append(f"*Checkpoint {code(name)}*")
    return "\n\n".join(part for part in parts if part)


def _beside(frame: Frame, turn: Turn, number: int) -> str:
    model = f" · {code(turn.model)}" if turn.model else ""
    return f"{model} · {frame.timestamp:%Y-%m-%d %H:%M:%S} UTC" if number == 0 else model


def _instructions(instructions: Instructions) -> str:
    parts = [] if instructions.model is None else [f"Model {code(instructions.model)}"]
    if instructions.system:
        parts.append(_text(instructions.system, "System prompt"))
    if instructions.tools:
        parts.append("Tools: " + ", ".join(code(tool.name) for tool in instructions.tools))
    return "\n\n".join(parts)


def _block(block: Block) -> str:
    match block:
        case Text():
            return prose(block.text)
        case Thinking():
            return folded("Thinking", prose(block.text)) if block.text else ""
        case Reference():
            return f"Not trusted text{'' if block.source is None else f' from {code(block.source)}'}:\n\n" + _text(
                block.text, "Text"
            )
        case ToolCall():
            return f"**calls** {code(block.name)}\n\n" + _text(_pretty(block.arguments), "Arguments", "json")
        case ToolResult():
            what = "**failed**" if block.is_error else "**result**"
            return "\n\n".join([f"{what} of {code(block.call_id)}", *map(_shown, block.blocks)])
        case _:
            return _shown(block)


def _shown(block: object) -> str:
    """A block that a result can hold."""
    if isinstance(block, Text):
        return _text(block.text, "Result")
    if isinstance(block, Native):
        return _text(json.dumps(block.value, indent=2, default=repr), "Block of the provider's own", "json")
    if isinstance(block, Image | Document):
        kind = type(block).__name__
        of = code(block.url or block.file_id or block.media_type or "")
        return f"*{kind}* {of}" + ("" if block.data is None else f", {len(block.data):,} bytes")
    return ""


def _pretty(arguments: str) -> str:
    try:
        return json.dumps(json.loads(arguments), indent=2, ensure_ascii=False)
    except (ValueError, RecursionError):
        return arguments


def _text(text: str, what: str, language: str = "") -> str:
    """A text as it is; a long one is folded."""
    if not text:
        return ""
    lines = text.count("\n") + 1
    if lines <= LONG_LINES and len(text) <= LONG_CHARACTERS:
        return fenced(text, language)
    return folded(f"{what}: {lines:,} lines, {len(text):,} characters", fenced(text, language))
