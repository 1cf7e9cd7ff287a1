"""The window of a session: how much of a path is shown to a model, and what was rendered of it, to be used again.

What a request shows follows from the state alone; a `Window` only saves making it again. It belongs to a session that
is loaded, is in no record, and may be thrown away at any time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from msgspec.structs import replace

from session_actor.budget.costs import cost_of_instructions
from session_actor.compaction.overlays import changes_on, pinned_below
from session_actor.ledger.view import View, stale_below
from session_actor.requests.own import owned
from session_actor.requests.tools import check_distinct, check_names, check_number
from session_actor.state.paths import on_path, path_runs
from session_actor.state.runs import contains

from .marks import in_force
from .rendered import NO_PIECES, Rendered

if TYPE_CHECKING:
    from collections.abc import Iterable

    from session_actor.budget.costs import Fixed
    from session_actor.compaction.overlays import Overlay, Pin
    from session_actor.compaction.source import Part as FrameFactsPart
    from session_actor.frames import Frame, Instructions
    from session_actor.ledger.entries import Target
    from session_actor.models import ModelProfile
    from session_actor.state.runs import Runs
    from session_actor.state.state import State
    from session_actor.state.table import Table

    from .marks import Mark
    from .request_options import Ask

_VIEWS_KEPT: Final = 3
"""How many views of a session are kept rendered: of branches or models that take turns."""


class Window:
    """What was rendered of a session, and how full it was said to be."""

    __slots__ = ("_assembled", "_fixed", "_views", "known", "pressures", "warm")

    def __init__(self) -> None:
        """Nothing yet."""
        self._views: list[Rendered] = []
        self._assembled: tuple[Instructions | None, tuple[str, str, int, list[str]], dict[str, Any]] | None = None
        self._fixed: tuple[Instructions | None, Target, ModelProfile, Fixed] | None = None
        self.pressures: dict[tuple[str | None, str], str] = {}
        """The pressure that was last told, by branch and model."""
        self.warm: set[tuple[int, int]] = set()
        """Runs of frames that are known to be in memory."""
        self.known: dict[int, FrameFactsPart] = {}
        """What is known of frames that a plan was made of, by their ids."""

    def fixed(self, ask: Ask, target: Target) -> Fixed:
        """What the instructions of a request cost; counted once for as long as they are in force."""
        known = self._fixed
        if known is None or known[0] is not ask.instructions or known[1] != target or known[2] is not ask.profile:
            found = cost_of_instructions(ask.instructions, target, ask.profile)
            known = self._fixed = (ask.instructions, target, ask.profile, found)
        return known[3]

    def assembled(self, ask: Ask, output: int, tools_used: list[str]) -> dict[str, Any]:
        """A request without its messages and without `extra`, the caller's own; rendered once for as long as it is so.

        Raises `InvalidArgument` for a tool whose name the dialect refuses or that two have, and for too many tools.
        """
        known, asked = self._assembled, (ask.dialect, ask.model, output, tools_used)
        if known is None or known[0] is not ask.instructions or known[1] != asked:
            check_names(ask.instructions, ask.dialect)
            check_distinct(ask.instructions, ask.dialect, ask.model)
            check_number(ask.instructions, ask.dialect, ask.model)
            made = ask.renderer.assemble(ask.model, ask.instructions, [], output, tools_used)
            if ask.profile.says_max_tokens and ask.dialect == "openai_chat":
                made["max_tokens"] = made.pop("max_completion_tokens")
            known = self._assembled = (ask.instructions, asked, made)
        return owned(known[2])

    def has_rendered(self, target: Target, view: View, frame_id: int) -> bool:
        """Whether a view was rendered up to this frame of a path, or further."""
        return any(made.view == view and made.target == target and made.head >= frame_id for made in self._views)

    def rendered(self, ask: Ask, target: Target, view: View, table: Table) -> Rendered:
        """The view at the head that is asked for. Costs what is new since it was last asked for, if that is below."""
        head = ask.top.id
        alike = [made for made in self._views if made.target == target and made.profile is ask.profile]
        same = [made for made in alike if made.view == view]
        for made in same:
            above = frames_above(table, head, made.head)
            if above is not None:
                made.grow(above)
                return self._kept(made)
        for made in same:
            earlier = made.back(on_path(table, head))
            if earlier is not None:
                earlier.grow(frames_above(table, head, earlier.head) or ())
                return self._kept(earlier)
        made = Rendered(target, view, ask.profile, ask.renderer)
        made.grow(shown_frames(table, head, view), alike[0].done.by_frames() if alike else NO_PIECES)
        return self._kept(made)

    def _kept(self, made: Rendered) -> Rendered:
        """Put it first, and forget what was not asked for for longest."""
        views = self._views
        if not views or views[0] is not made:
            self._views = [made, *(other for other in views if other is not made)][:_VIEWS_KEPT]
        return made


def window_of(state: State) -> Window:
    """The window of a state, made when it is first wanted."""
    if state.window is None:
        state.window = Window()
    return state.window


def frames_above(table: Table, head: int, below: int) -> list[Frame] | None:
    """The frames from above `below` up to `head`, oldest first; None: it is not on the path of `head`."""
    found: list[Frame] = []
    at: int | None = head
    while at is not None and at > below:
        frame = table.at(at)
        found.append(frame)
        at = frame.parent
    return found[::-1] if at == below else None


def shown_frames(table: Table, head: int, view: View) -> list[Frame]:
    """The frames of a path that a view shows, oldest first."""
    found: list[Frame] = []
    at: int | None = head
    while at is not None and at >= view.cut:
        if table.slot(at) is None:
            low = max(found[-1].run_from if found else at, view.cut)
            table.read(range(min(low, at), at + 1))
        frame = table.at(at)
        found.append(frame)
        at = frame.parent
    below = sorted({*view.kept, *(portion[0] for portion in view.portions)})
    kept = [table.at(frame_id) for frame_id in below if frame_id < view.cut and table.has(frame_id)]
    return [*kept, *reversed(found)]


def mark_at(state: State, ask: Ask, overlay: Overlay | None = None) -> Mark | None:
    """The mark in force for what is asked for; None: all is shown. `overlay`: the compaction that is."""
    if not state.marks:
        return None
    generation = 0 if overlay is None else overlay.generation
    return in_force(state.marks, on_path(state.table, ask.top.id), ask.allowance(), ask.key, generation)


def view_at(state: State, ask: Ask, mark: Mark | None, overlay: Overlay | None = None, seq: int | None = None) -> View:
    """What is shown at a head by a mark and a compaction. `seq`: as it was just before this record; None: now."""
    table, top = state.table, ask.top
    cut, kept = (0, ()) if overlay is None else (overlay.covered_frame + 1, overlay.kept)
    trimmed = mark is not None and (mark.border > (cut, 0) or not set(kept) <= set(mark.kept))
    turn = 0
    if mark is not None:
        cut, kept, turn = mark.cut, mark.kept, mark.turn
    changes = [at for at in (top.configured, None if mark is None else mark.at) if at is not None]
    if state.overlays or state.pins:
        runs = path_runs(table, top.id)
        pins = pinned_below(state, runs, cut, seq)
        changes += changes_on(state, runs, pins, seq)
        kept = _with_pins(kept, pins, runs, cut + (turn > 0))
    stale = max((stale_below(table.at(at), table.at) for at in changes), default=0)
    summary, covered = ("", 0) if overlay is None else (overlay.summary, overlay.covered_frame)
    if mark is None:
        return View(cut, kept, stale=stale, summary=summary, covered=covered)
    artifacts, more = (mark.artifacts, mark.more) if trimmed else ((), 0)
    shown = View(cut, kept, mark.stubs, stale, trimmed, artifacts, more, summary, covered)
    return replace(
        shown,
        turn=turn,
        portions=mark.portions,
        stub_turn=mark.stub_turn,
        unseen=mark.unseen_before(ask.dialect),
    )


def _with_pins(kept: tuple[int, ...], pins: Iterable[Pin], runs: Runs, cut: int) -> tuple[int, ...]:
    """Frames below the cut that are shown, with those that were pinned later."""
    more = {frame for pin in pins for frame in pin.frames if frame < cut and contains(runs, frame)}
    return tuple(sorted(more.union(kept))) if more else kept
