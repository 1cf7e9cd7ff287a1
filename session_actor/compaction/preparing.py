"""Plans of a live session: what is on the disk is read off the loop, and the loop is never held for long."""

from __future__ import annotations

import asyncio
import sys
from importlib import import_module
from typing import TYPE_CHECKING, Final

import anyio
import msgspec

from session_actor.commands import BuildRequest
from session_actor.state.paths import path_runs
from session_actor.window.errors import NothingToSend
from session_actor.window.fitting import frame_units_at, unfitted
from session_actor.window.pressure import budget_ask, model_at
from session_actor.window.requests_made import newest_request
from session_actor.window.warming import load_shown
from session_actor.window.window import mark_at, view_at, window_of

from .overlays import overlay_at, pinned_below
from .retracting import retracted_on

if TYPE_CHECKING:
    from collections.abc import Sequence

    from session_actor.frames import Frame
    from session_actor.state.state import State
    from session_actor.window.request_options import Ask

    from .overlays import Overlay
    from .plan import Plan, Previous, Wanted

SLICE_FRAMES: Final = 16
"""So many frames are rendered between two turns of the loop."""

_PLANNING: Final = f"{__package__}.planning"

PARTS_KEPT: Final = 8_192
"""What is known of frames is forgotten when it is of more than so many."""


class Wish(msgspec.Struct, frozen=True):
    """What the embedder says of a plan."""

    instructions: str | None = None
    model: str | None = None
    summarizer_window: int | None = None
    rule_words: tuple[str, ...] = ()
    past_calls: bool = False
    """Plan as if no call waited for its result: only to tell whether one is in the way."""


async def prepare(state: State, on: str | None, wish: Wish) -> Plan | None:
    """A plan for what is at a head; None: there is nothing to gain. Changes nothing but what is kept to be used again.

    Raises `InvalidArgument`, `BranchUnknown`, and what reading frames raises.
    """
    head = state.head_of(on)
    if head is None:
        return None
    if _PLANNING not in sys.modules:  # importing it takes a while
        await anyio.to_thread.run_sync(import_module, _PLANNING)
    from .planning import planning
    from .slices import in_slices

    await state.table.load((head,))
    top = state.table.at(head)
    model = wish.model or model_at(state, top)
    await load_shown(state, BuildRequest("", model, on=on))
    asked = budget_ask(state, top, model, newest_request(state, head, model))
    overlay = overlay_at(state, head)
    frames = await _frames_above(state, head, 0 if overlay is None else overlay.covered_frame)
    await _render(state, asked, overlay, frames)
    if wish.past_calls and frames:
        frames[-1] = msgspec.structs.replace(frames[-1], open_calls=())
    try:
        wanted = _wanted(state, asked, overlay, frames, wish)
    except NothingToSend:
        return None
    known = window_of(state).known
    if len(known) > PARTS_KEPT:
        known.clear()
    return await in_slices(planning(wanted, known))


async def _frames_above(state: State, head: int, covered: int) -> list[Frame]:
    """The frames of a path above one of them, oldest first, each as it is pinned now."""
    table = state.table
    found: list[Frame] = []
    for first, last in path_runs(table, head):
        if last > covered:
            ids = range(max(first, covered + 1), last + 1)
            await table.load(ids)
            for frame_id in ids:
                found.append(_as_pinned(state, table.at(frame_id)))
                if not frame_id % (SLICE_FRAMES * SLICE_FRAMES):
                    await asyncio.sleep(0)
    return found


def _as_pinned(state: State, frame: Frame) -> Frame:
    pin = state.pins.get(frame.id)
    return frame if pin is None or pin.pinned == frame.pinned else msgspec.structs.replace(frame, pinned=pin.pinned)


async def _render(state: State, asked: Ask, overlay: Overlay | None, frames: Sequence[Frame]) -> None:
    """Render and count what will be shown, in slices, unless a request has done so."""
    mark = mark_at(state, asked, overlay)
    view, target, window = view_at(state, asked, mark, overlay), asked.target(mark), window_of(state)
    shown = [frame for frame in frames if view.shows(frame.id)]
    for frame in shown[SLICE_FRAMES - 1 :: SLICE_FRAMES]:
        if not window.has_rendered(target, view, frame.id):
            rendered = window.rendered(asked._replace(top=frame), target, view, state.table)
            rendered.parts(rendered.piece(rendered.open_chunk()))
            await asyncio.sleep(0)


def _wanted(state: State, asked: Ask, overlay: Overlay | None, frames: Sequence[Frame], wish: Wish) -> Wanted:
    """What a plan is made from. Raises `NothingToSend`."""
    from .plan import Wanted, shown_tokens

    fit, head = unfitted(state, asked), asked.top.id
    units, profile = frame_units_at(state, asked, fit), asked.profile
    taken = sum(unit.cost for unit in units)
    if overlay is not None:
        taken += shown_tokens(overlay.summary, profile.family)
    return Wanted(
        session=state.session,
        generation=state.generation + 1,
        frames=frames,
        lent=_lent(state, head, overlay),
        units=units,
        fixed_tokens=max(0, fit.quote.tokens - taken),
        window=profile.window,
        family=profile.family,
        previous=_previous(overlay),
        retracted=retracted_on(state, head),
        instructions=wish.instructions,
        summarizer_window=wish.summarizer_window,
        extra_markers=wish.rule_words,
        runs=path_runs(state.table, head),
    )


def _lent(state: State, head: int, overlay: Overlay | None) -> list[Frame]:
    """The covered frames that are shown all the same, as they are pinned now."""
    if overlay is None:
        return []
    runs, cut = path_runs(state.table, head), overlay.covered_frame + 1
    ids = {*overlay.kept, *(frame for pin in pinned_below(state, runs, cut) for frame in pin.frames if frame < cut)}
    return [_as_pinned(state, state.table.at(frame)) for frame in sorted(ids) if state.table.has(frame)]


def _previous(overlay: Overlay | None) -> Previous | None:
    from .plan import Previous

    if overlay is None:
        return None
    return Previous(overlay.generation, overlay.covered_frame, overlay.summary, overlay.facts, overlay.kept)
