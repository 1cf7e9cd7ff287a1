"""Frames and what is in them, for programs and for people."""

from __future__ import annotations

import json
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, cast

from session_actor.blocks import Document, Image, Native, Reference, Text, Thinking, ToolCall, ToolResult
from session_actor.state.paths import path_runs
from session_actor.state.table import Table

from .harmless import block, brief, one_line
from .lines import ShownFrame
from .output import iso, styled, when
from .parts import BlockPart, BudgetPart, TurnPart, UsagePart

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from session_actor.blocks import Block
    from session_actor.budget.report import Budget
    from session_actor.frames import Frame, Turn, Usage
    from session_actor.state.state import State

_RULE: Final = "──"
_PIECE: Final = 64
"""So many frames are read at once: memory holds no more."""


# --- finding them -----------------------------------------------------------------------------------------------------


def stack_ids(state: State, on: str | None = None, last: int | None = None) -> Iterator[int]:
    """The ids of a stack, first frame first; at most the newest `last`. Of each run only the first frame is read."""
    head = state.head_of(on)
    runs = [] if head is None else path_runs(state.table, head)
    if last is not None:
        kept: list[tuple[int, int]] = []
        for low, high in reversed(runs):
            if last <= 0:
                break
            kept.append((max(low, high - last + 1), high))
            last -= high - low + 1
        runs = kept[::-1]
    return (frame for low, high in runs for frame in range(low, high + 1))


def frames_of(table: Table, ids: Iterator[int]) -> Iterator[Frame]:
    """These frames, read in pieces; what was on the disk is not kept in memory."""
    while wanted := list(islice(ids, _PIECE)):
        source = _warmed(table, wanted)
        for frame_id in wanted:
            frame = table.slot(frame_id) or source.slot(frame_id)
            if frame is not None:
                yield frame


def _warmed(table: Table, ids: Sequence[int]) -> Table:
    """A table that holds what is cold in the other one among these ids."""
    cold = [frame_id for frame_id in ids if table.is_cold(frame_id)]
    if table.shelf is None or not cold:
        return table
    own = Table.cold(table.cold_below, table.absent, table.shelf)
    own.instructions = dict(table.instructions or {})
    own.read(cold)
    return own


# --- for programs -----------------------------------------------------------------------------------------------------


def frame_part(frame: Frame) -> ShownFrame:
    """A frame with all that was said in it."""
    told = frame.instructions
    return ShownFrame(
        id=frame.id,
        parent=frame.parent,
        depth=frame.depth,
        at=iso(frame.at_us) or "",
        turns=tuple(map(_turn_part, frame.turns)),
        user_input=frame.user_input,
        assistant_output=frame.assistant_output,
        assumptions=frame.assumptions,
        decisions=frame.decisions,
        forked_from=frame.forked_from,
        pinned=frame.pinned,
        system=None if told is None else told.system,
        tools=() if told is None else tuple(tool.name for tool in told.tools),
        model=None if told is None else told.model,
        retracted=None if frame.retracted is None else frame.retracted.assumption,
    )


def _turn_part(turn: Turn) -> TurnPart:
    blocks = tuple(map(_block_part, turn.blocks))
    return TurnPart(turn.role, blocks, turn.model, turn.dialect, turn.stop_reason, usage_part(turn.usage))


def _block_part(of: Block) -> BlockPart:
    match of:
        case Text(text) | Thinking(text):
            return BlockPart("text" if isinstance(of, Text) else "thinking", text)
        case Reference(text, source):
            return BlockPart("reference", text, source=source)
        case ToolCall(call_id, name, arguments):
            return BlockPart("tool_call", id=call_id, name=name, arguments=arguments)
        case ToolResult(call_id, blocks, is_error):
            inside = tuple(map(_block_part, blocks))
            return BlockPart("tool_result", id=call_id, is_error=is_error, blocks=inside)
        case Image() | Document():
            return BlockPart(
                "image" if isinstance(of, Image) else "document",
                name=of.name if isinstance(of, Document) else None,
                media_type=of.media_type,
                url=of.url,
                file_id=of.file_id,
                size_bytes=None if of.data is None else len(of.data),
            )
        case Native(dialect, _, raw):
            return BlockPart("native", dialect=dialect, raw=raw_text(raw))


def usage_part(usage: Usage | None) -> UsagePart | None:
    """What was charged."""
    if usage is None:
        return None
    return UsagePart(
        usage.input_tokens,
        usage.output_tokens,
        usage.cache_read_tokens,
        usage.cache_write_tokens,
        usage.reasoning_tokens,
    )


def budget_part(budget: Budget | None) -> BudgetPart | None:
    """How full a window is."""
    if budget is None:
        return None
    return BudgetPart(budget.model, budget.pressure, budget.used, budget.upper, budget.allowance, budget.window)


def raw_text(raw: object) -> str:
    """JSON text as it is kept."""
    return bytes(cast("bytes", raw)).decode()


def json_of(raw: object) -> Any:
    """The value of such a text; what JSON cannot say is in it by tags, as on the disk."""
    return json.loads(raw_text(raw))


# --- for people -------------------------------------------------------------------------------------------------------


def head_line(frame: Frame) -> str:
    """What a frame is, without a word of what was said."""
    roles = [_role(turn) for turn in frame.turns]
    marks = ["pinned"] if frame.pinned else []
    marks += [f"forked from {frame.forked_from}"] if frame.forked_from else []
    marks += ["instructions"] if frame.instructions else []
    marks += ["takes an assumption back"] if frame.retracted else []
    told = " · ".join([f"frame {frame.id}", when(frame.at_us), *(roles or ["no turn"]), *marks])
    return styled(f"{_RULE} {one_line(told)}", "bold")


def _role(turn: Turn) -> str:
    told: list[str] = [turn.role]
    told += [turn.model] if turn.model else []
    told += [turn.stop_reason] if turn.stop_reason else []
    if turn.usage is not None:
        told.append(f"{turn.usage.input_tokens:,} in, {turn.usage.output_tokens:,} out")
    return ", ".join(told)


def content_lines(frame: Frame) -> Iterator[str]:
    """What was said in a frame, indented, so that nothing of it looks like a line of ours."""
    if (told := frame.instructions) is not None:
        yield from _named("system prompt", told.system)
        if told.tools:
            yield from _named("tools", ", ".join(tool.name for tool in told.tools))
        if told.model:
            yield from _named("model", told.model)
    for turn in frame.turns:
        for each in turn.blocks:
            yield from _block_lines(each)
    yield from _annotations(frame)


def _annotations(frame: Frame) -> Iterator[str]:
    if frame.given_turns is not None:
        yield from _named("user, in short", frame.user_input)
        yield from _named("assistant, in short", frame.assistant_output)
    for text in frame.assumptions:
        yield from _named("assumed", text)
    for text in frame.decisions:
        yield from _named("decided", text)
    for hold in frame.holds:
        yield from _named(f"held call {hold.ref.index} of frame {hold.ref.frame}", hold.reason)
    if frame.retracted is not None:
        yield from _named("taken back", frame.retracted.assumption)
        yield from _named("because", frame.retracted.note or "")


def _named(name: str, text: str) -> Iterator[str]:
    if not text:
        return
    first, *rest = block(text).split("\n")
    yield f"  {styled(name + ':', 'cyan')} {first}"
    yield from (f"    {line}" for line in rest)


def _block_lines(of: Block) -> Iterator[str]:
    match of:
        case Text(text):
            yield from (f"  {line}" for line in block(text).split("\n"))
        case Reference(text, source):
            yield from _named(f"reference {brief(source or '')}".rstrip(), text)
        case Thinking(text):
            yield from _named("thinking", text or "(sealed)")
        case ToolCall(call_id, name, arguments):
            yield from _named(f"call {brief(name)} ({brief(call_id)})", arguments or "{}")
        case ToolResult(call_id, blocks, is_error):
            yield styled(f"  {'error' if is_error else 'result'} of {brief(call_id)}:", "cyan")
            for inside in blocks:
                yield from (f"  {line}" for line in _block_lines(inside))
        case Image() | Document():
            kind = "image" if isinstance(of, Image) else "document"
            where = f"{len(of.data):,} bytes" if of.data is not None else brief(of.url or of.file_id or "")
            yield from _named(kind, " ".join(filter(None, [of.media_type, where])))
        case Native(dialect, _, raw):
            yield from _named(f"native {brief(dialect)}", raw_text(raw))


def text_in(frame: Frame) -> str:
    """All that was said in a frame, to be searched."""
    return "\n".join(line.lstrip() for line in content_lines(frame))
