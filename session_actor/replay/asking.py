"""Asking why a frame is in a request, or not: in one that was given out, or in the next one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from session_actor.compaction.overlays import overlay_at
from session_actor.errors import InvalidArgument
from session_actor.state.history import runs_below
from session_actor.state.paths import on_path
from session_actor.state.runs import contains
from session_actor.window.errors import ContextOverflow
from session_actor.window.fitting import fitted, unfitted
from session_actor.window.pressure import budget_ask, model_at
from session_actor.window.request_options import ask
from session_actor.window.requests_made import newest_request

from .reasons import Cause, in_view, without_turns

if TYPE_CHECKING:
    from session_actor.state.state import State
    from session_actor.window.fitting import Fit


def cause(state: State, frame_id: int, head: int | None, fit: Fit | None, *, sendable: bool = True) -> Cause:
    """Why a frame that was there is shown, or not, at a head.

    `fit`: what is sent; None: nothing says for whom, or, unless `sendable`, nothing can be sent.
    """
    table = state.table
    if head is None or not on_path(table, head)(frame_id):
        return _elsewhere(state, frame_id)
    frame, top = table.at(frame_id), table.at(head)
    quiet = without_turns(frame, top.configured)
    if quiet is not None:
        return quiet
    if fit is not None:
        return in_view(frame, fit)
    overlay = overlay_at(state, head)
    if overlay is not None and frame_id <= overlay.covered_frame and frame_id not in overlay.kept:
        more = f"compaction {overlay.generation} covers the frames up to {overlay.covered_frame}"
        return Cause("compacted", more, overlay.generation)
    return Cause("shown", "as far as can be told without a model") if sendable else Cause("nothing_sent")


def _elsewhere(state: State, frame_id: int) -> Cause:
    """Of a frame that is not on the path: who holds it."""
    table = state.table
    tips = {f"branch {name!r}": tip for name, tip in state.branches.items() if tip is not None}
    tips |= {f"checkpoint {name!r}": tip for name, tip in state.checkpoints.items()}
    if state.head is not None:
        tips["the session's head"] = state.head
    names = [name for name, tip in tips.items() if tip >= frame_id and contains(runs_below(table, (tip,)), frame_id)]
    return Cause("other_branch", "it is below " + ", ".join(names)) if names else Cause("popped")


def next_fit(state: State, head: int | None, dialect: str | None, model: str | None) -> Fit | None:
    """What the next request would show. None: nothing says for whom, or the stack is empty.

    Raises `NothingToSend`, and InvalidArgument for a dialect or a model that cannot be.
    """
    top = None if head is None else state.table.at(head)
    if top is None:
        return None
    try:
        model = model or model_at(state, top)
    except InvalidArgument:
        return None
    newest = newest_request(state, top.id, model, dialect)
    asked = ask(state, top, dialect, model) if dialect and newest is None else budget_ask(state, top, model, newest)
    try:
        return fitted(state, asked)
    except ContextOverflow:
        return unfitted(state, asked)
