"""Reading off the loop what a request will show: after a recovery its frames may be on the disk."""

from __future__ import annotations

from typing import TYPE_CHECKING

from session_actor.compaction.overlays import changes_on, overlay_at, pinned_below
from session_actor.state.history import Held

from .pressure import budget_ask, model_at
from .request_options import ask
from .requests_made import newest_request
from .window import mark_at, window_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from session_actor.commands import BuildRequest
    from session_actor.compaction.overlays import Overlay
    from session_actor.frames import Frame
    from session_actor.state.runs import Runs
    from session_actor.state.state import State
    from session_actor.state.table import Table

    from .marks import Mark


async def load_shown(state: State, command: BuildRequest) -> None:
    """Read what is cold of all that building a request looks at; does not suspend when nothing is.

    Raises what `Table.load` and `ask` raise.
    """
    table, head = state.table, state.head_of(command.on)
    if head is None:
        return
    await _load(table, (head,))
    held = Held()
    for needed in held.add(table, (head,)):
        await _load(table, needed)
    top = table.at(head)
    await _load_change(table, top.configured)
    overlay = overlay_at(state, head)
    mark = _mark(state, top, command, overlay)
    if mark is not None:
        await _load_change(table, mark.at)
        await _load(table, (*mark.kept, *(portion[0] for portion in mark.portions)))
    cut = 0 if overlay is None else overlay.covered_frame + 1
    if overlay is not None:
        await _load(table, overlay.kept)
    cut = max(cut, 0 if mark is None else mark.cut)
    pins = pinned_below(state, held.runs, cut)
    for change in changes_on(state, held.runs, pins):
        await _load_change(table, change)
    await _load(table, [frame for pin in pins for frame in pin.frames])
    await _load(table, [call.ref.frame for call in top.open_calls])
    await _load_runs(state, held.runs, cut)


def _mark(state: State, top: Frame, command: BuildRequest, overlay: Overlay | None) -> Mark | None:
    """The mark that will be in force. Raises `InvalidArgument`."""
    if not state.marks:
        return None
    dialect, model = command.dialect, command.model
    if not dialect:  # only the budget is asked for
        model = model or model_at(state, top)
        asked = budget_ask(state, top, model, newest_request(state, top.id, model))
    else:
        asked = ask(state, top, dialect, model, command.max_output_tokens)
    return mark_at(state, asked, overlay)


async def _load_runs(state: State, runs: Runs, cut: int) -> None:
    table, warm = state.table, window_of(state).warm
    for first, last in runs:
        low, high = max(first, cut), min(last, table.cold_below - 1)
        if low <= high and (low, high) not in warm:
            await table.load(range(low, high + 1))
            warm.add((low, high))


async def _load_change(table: Table, frame_id: int | None) -> None:
    """A frame that changed what is shown, and the step that it came in."""
    if frame_id is not None:
        await _load(table, (frame_id,))
        step = table.at(frame_id).step
        await _load(table, () if step is None else (step,))


async def _load(table: Table, ids: Iterable[int]) -> None:
    cold = [frame_id for frame_id in ids if table.is_cold(frame_id)]
    if cold:
        await table.load(cold)
