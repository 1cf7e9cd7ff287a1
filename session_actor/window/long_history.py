"""Long histories that no request has shown yet: most of such a path is left out without being rendered first.

Whatever is shown of a path is rendered and counted, so that it is known what has to go. Where an imported history has
many times more than fits, that would take seconds. It is known without: no text has fewer tokens than a thirty-second
of its characters, and a result that is shown as one line still has some.
"""

from __future__ import annotations

from itertools import takewhile
from typing import TYPE_CHECKING, Final

from session_actor.blocks import Reference, Text, ToolCall, ToolResult
from session_actor.compaction.overlays import pinned_now
from session_actor.frames import Artifact
from session_actor.state.artifacts import artifacts_in
from session_actor.state.paths import path_runs

from .marks import Mark, newest_artifacts
from .requests_made import newest_request, next_number

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from session_actor.blocks import Block
    from session_actor.compaction.overlays import Overlay
    from session_actor.frames import Frame
    from session_actor.ledger.view import Place
    from session_actor.state.state import State
    from session_actor.state.table import Table

    from .request_options import Ask

FRAMES: Final = 1_000
"""Paths with no more frames that no request has shown are rendered as they are."""

_CHARACTERS_A_TOKEN: Final = 32
_LINE: Final = 40
"""Of a result so many characters count: it may be shown as one line."""


def begun(state: State, ask: Ask, mark: Mark | None, overlay: Overlay | None = None) -> Mark | None:
    """The mark to begin with: `mark`, or one that leaves out what is far beyond all that fits.

    It follows from the state alone. O(1) where a request has shown nearly all of the path.
    """
    top, base = ask.top, mark or _base(ask, overlay)
    cut = base.cut
    shown = newest_request(state, top.id, ask.model, ask.dialect)
    same = shown is not None and (shown.quote.view, shown.quote.key.generation) == (base.number, base.generation)
    seen = shown.quote.head if shown is not None and same else 0
    if _count(state.table, top.id, max(cut, seen + 1)) <= FRAMES:
        return mark
    start = _start(state.table, top.id, cut, _CHARACTERS_A_TOKEN * ask.allowance())
    return mark if start is None or start <= base.border else _without(state, ask, base, start)


def _base(ask: Ask, overlay: Overlay | None) -> Mark:
    """What is shown without a mark, as one."""
    if overlay is None:
        return Mark(0, ask.top.id, 0, ask.allowance())
    return Mark(
        0, ask.top.id, overlay.covered_frame + 1, ask.allowance(), 0, overlay.kept, generation=overlay.generation
    )


def _count(table: Table, head: int, low: int) -> int:
    """How many frames of a path have this id or a higher one."""
    return sum(max(0, last + 1 - max(first, low)) for first, last in path_runs(table, head))


def _down(table: Table, head: int | None, low: int) -> Iterator[Frame]:
    """The frames of a path from `head` down to the id `low`; cold ones are read, many at once."""
    at, run_from = head, head
    while at is not None and run_from is not None and at >= low:
        if table.slot(at) is None:
            table.read(range(max(min(run_from, at), low, at - FRAMES), at + 1))
        frame = table.at(at)
        yield frame
        at, run_from = frame.parent, frame.run_from


def _start(table: Table, head: int, cut: int, room: int) -> Place | None:
    """Where a step or an exchange begins above which there are more than `room` characters; or None."""
    taken = 0
    for frame in _down(table, head, cut):
        taken += len(frame.user_input) + len(frame.assistant_output) if frame.given_turns is None else 0
        taken += sum([_least(block) for turn in frame.given_turns or () for block in turn.blocks])
        if taken > room and frame.id in {frame.exchange, frame.step}:
            return frame.id, _results_first(frame)
    return None


def _results_first(frame: Frame) -> int:
    """How many turns a frame begins with that belong to the step before."""
    return sum(1 for _ in takewhile(lambda turn: turn.role == "tool", frame.turns))


def _least(block: Block) -> int:
    if isinstance(block, Text | Reference):
        return len(block.text)
    if isinstance(block, ToolCall):
        return len(block.arguments)
    return _LINE if isinstance(block, ToolResult) else 0


def _without(state: State, ask: Ask, mark: Mark, start: Place) -> Mark:
    """The mark that leaves out what is below `start`, but for pinned steps and what the user asked for last."""
    below = state.table.at(start[0]).parent
    hidden = list(_down(state.table, below, mark.cut))[::-1]
    kept = tuple(frame_id for frame_id in mark.kept if state.table.has(frame_id))
    kept += _kept(hidden, ask.top.exchange, pinned_now(state))
    noted = artifacts_in(hidden)
    found = [*mark.artifacts, *(Artifact(path, how) for path, how in noted.items())]
    allowance = ask.allowance()
    named = newest_artifacts(found, allowance, ask.profile.family)
    more = len(found) - len(named) + mark.more
    number, stubs, cap = next_number(state), mark.stubs, mark.result_cap
    warned = mark.warned or ask.warned
    return Mark(
        number,
        ask.top.id,
        start[0],
        allowance,
        stubs,
        kept,
        named,
        more,
        cap,
        mark.generation,
        warned,
        start[1],
        mark.portions,
        mark.stub_turn,
        mark.unseen,
    )


def _kept(hidden: Sequence[Frame], exchange: int | None, pinned: Callable[[Frame], bool]) -> tuple[int, ...]:
    """The ids of the steps and user turns among these frames that hold a pinned frame, or the newest user turn."""
    wanted = {(frame.exchange, frame.step) for frame in hidden if pinned(frame) or frame.id == exchange}
    return tuple(frame.id for frame in hidden if (frame.exchange, frame.step) in wanted) if wanted else ()
