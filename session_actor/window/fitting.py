"""How much of a path goes into a request, so that it fits the model's window. Pure but for what is kept rendered."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple, TypedDict

from session_actor.budget.calibration import HIGHEST, LOWEST, price, spans
from session_actor.budget.costs import Fixed, cost_of_extra
from session_actor.budget.readings import Key, Shown
from session_actor.budget.report import RED, YELLOW
from session_actor.budget.trim import TARGET, Beside, TooBig, Trim, least, plan_trim
from session_actor.compaction.overlays import overlay_at, pinned_now
from session_actor.frames import Artifact
from session_actor.ledger.entries import ResultsEntry
from session_actor.ledger.fold import tail
from session_actor.state.artifacts import artifacts_in
from session_actor.state.paths import on_path

from .crowding import crowded
from .errors import ContextOverflow, NothingToSend
from .long_history import begun
from .marks import Mark, Unseen, newest_artifacts
from .message_limit import room_for_messages
from .requests_made import next_number
from .units import repriced, units_of, whole_frames
from .window import mark_at, view_at, window_of

if TYPE_CHECKING:
    from session_actor.budget.readings import Quote
    from session_actor.budget.trim import Unit
    from session_actor.commands import How
    from session_actor.compaction.overlays import Overlay
    from session_actor.ledger.entries import Chunk
    from session_actor.ledger.view import Place
    from session_actor.state.state import State

    from .errors import Part
    from .rendered import Rendered
    from .request_options import Ask

_ROUNDS: Final = 40
"""How often a plan is made anew because what it left was longer than it seemed. Two are rarely needed; but a cap of
results may have to go down in twenty, and none may be left for the next request at the same head."""

_SHORTEST_RESULT: Final = 64
"""No cap of results is lower [tokens]."""


class Fit(NamedTuple):
    """What is shown at a head by a mark, and what it costs."""

    mark: Mark | None
    rendered: Rendered
    last: Chunk
    """The open chunk."""
    end: Chunk
    """The last chunk as it is sent, but for what is lent to the request."""
    sent: Chunk
    """The last chunk as it is sent."""
    fixed: Fixed
    extra: int
    """What `extra` costs [tokens]."""
    lent: int
    """What the ephemeral part costs [tokens]."""
    quote: Quote
    allowance: int
    overlay: Overlay | None
    """The compaction that is shown."""


def measured(state: State, ask: Ask, mark: Mark | None, overlay: Overlay | None, seq: int | None = None) -> Fit:
    """What a request would be with this mark and this compaction. Raises `NothingToSend`.

    `seq`: as it was just before this record; None: now.
    """
    top, target, window = ask.top, ask.target(mark), window_of(state)
    rendered = window.rendered(ask, target, view_at(state, ask, mark, overlay, seq), state.table)
    if rendered.is_empty:
        raise NothingToSend
    last = rendered.open_chunk()
    end = tail(last, target)
    sent = tail(last, target, ask.ephemeral) if ask.ephemeral else end
    fixed, extra = window.fixed(ask, target), cost_of_extra(ask.extra_value, target)
    messages = rendered.done.cost + rendered.lasting(last)
    cost = rendered.cost_of(sent.entries)
    shown = Shown(
        Key(ask.model, ask.dialect, top.configured, 0 if overlay is None else overlay.generation),
        0 if mark is None else mark.number,
        top.id,
        fixed.total + extra,
        messages,
        max(0, rendered.done.cost + cost - messages),
        rendered.up_to(messages),
    )
    quote = price(shown, ask.learned, on_path(state.table, top.id))
    lent = cost - rendered.cost_of(end.entries) if ask.ephemeral else 0
    allowance = ask.allowance(calibrated=quote.anchored)
    return Fit(mark, rendered, last, end, sent, fixed, extra, lent, quote, allowance, overlay)


def unfitted(state: State, ask: Ask) -> Fit:
    """What a request would be by what is recorded, whether it fits or not. Raises `NothingToSend`."""
    overlay = overlay_at(state, ask.top.id)
    mark = mark_at(state, ask, overlay)
    return measured(state, ask, begun(state, ask, mark, overlay), overlay)


def fitted(state: State, ask: Ask) -> Fit:
    """What a request is, with a new mark when it is time for one. Raises `NothingToSend`, `ContextOverflow`.

    When nothing fits by what a refusal has taught, as little as possible is shown all the same: a refusal may have been
    mistaken, and only an answer corrects it.
    """
    fit = unfitted(state, ask)
    for _ in range(_ROUNDS):
        mark = _next_mark(state, ask, fit)
        if mark is None:
            break
        fit = measured(state, ask, mark, fit.overlay)
    if fit.quote.tokens <= fit.allowance:
        return fit
    fit = fit._replace(allowance=ask.reserves(calibrated=fit.quote.anchored).allowance)
    if fit.quote.tokens > fit.allowance:
        raise _overflow(state, ask, fit)
    return fit


def _next_mark(state: State, ask: Ask, fit: Fit) -> Mark | None:
    """What to show instead; None: it is right as it is, or nothing can be done."""
    quote, allowance = fit.quote, fit.allowance
    place = crowded(ask, fit)
    if place is not None:
        return _mark(state, ask, fit, _as_is(fit), unseen=Unseen(ask.dialect, place))
    room = room_for_messages(ask, fit)
    if room is None and quote.tokens < YELLOW * allowance and quote.upper < RED * allowance:
        return None
    units = units_at(state, ask, fit)
    plan = _plan(units, fit) if room is None else _fewer(units, fit, room)
    if plan is None:
        return None
    if isinstance(plan, TooBig):
        cap = _shorter(plan, fit) if quote.tokens > allowance and plan.part == "results" else None
        if cap is not None:
            return _mark(state, ask, fit, _as_is(fit), cap=cap)
        if ask.warned is None:
            return None
        plan = least(units, _beside(units, fit), **_borders(fit))
    mark = _mark(state, ask, fit, plan)
    return None if _same(mark, fit) else mark


def frame_units_at(state: State, ask: Ask, fit: Fit) -> list[Unit]:
    """The same for what can only take whole frames."""
    return whole_frames(units_at(state, ask, fit), state.table)


def units_at(state: State, ask: Ask, fit: Fit) -> list[Unit]:
    """The units of what is shown, with what they really cost, as far as is known: all together their part of the quote.

    Measured frames cost what they did, the rest by the ratio.
    """
    rendered, quote = fit.rendered, fit.quote
    shown = Shown(
        quote.key, quote.view, quote.head, quote.fixed, quote.messages, quote.tail, rendered.up_to(quote.messages)
    )
    units = units_of(rendered, rendered.piece(fit.last), state.table, 1.0, pinned_now(state))
    found = spans(shown, ask.learned, on_path(state.table, quote.head))
    estimate = sum(span.real for span in found) + found[0].rate * quote.tail
    scale = (quote.tokens - quote.fixed_tokens) / estimate if estimate else 1.0
    return repriced(units, found, min(max(scale, LOWEST), HIGHEST))


def _plan(units: list[Unit], fit: Fit) -> Trim | TooBig | None:
    """A plan for what is yellow or over the allowance; and for what may be over it."""
    quote, allowance = fit.quote, fit.allowance
    beside, borders = _beside(units, fit), _borders(fit)
    plan = plan_trim(units, beside, allowance, **borders)
    if plan is not None or quote.upper < RED * allowance:
        return plan
    less = max(1, min(sum(beside) + sum(unit.cost for unit in units), allowance) - 1)
    return plan_trim(units, beside, less, **borders, target=TARGET * allowance / less)


def _fewer(units: list[Unit], fit: Fit, room: float) -> Trim | TooBig | None:
    """A plan for more messages than are taken: as large a part of what they cost goes as if all were of one length."""
    beside, cost = _beside(units, fit), sum(unit.cost for unit in units)
    less = max(1, sum(beside) + cost - 1)
    target = (sum(beside) + TARGET * room * cost) / less
    return plan_trim(units, beside, less, **_borders(fit), target=target)


def _beside(units: list[Unit], fit: Fit) -> Beside:
    """What there is beside the units, so that all together is what was quoted."""
    system, tools = fit.fixed.system, fit.fixed.tools
    other = fit.quote.tokens - system - tools - sum(unit.cost for unit in units)
    return Beside(system, tools, max(other, 0))


def _as_is(fit: Fit) -> Trim:
    view = fit.rendered.view
    return Trim(view.cut, view.kept, view.stubs, 0, view.turn, view.portions, view.stub_turn)


class _Borders(TypedDict):
    cut: Place
    stubs: Place


def _borders(fit: Fit) -> _Borders:
    """Those of what is shown."""
    view = fit.rendered.view
    return {"cut": (view.cut, view.turn), "stubs": (view.stubs, view.stub_turn)}


def _mark(
    state: State, ask: Ask, fit: Fit, plan: Trim, *, cap: int | None = None, unseen: Unseen | None = None
) -> Mark:
    before = fit.mark or Mark(0, 0, 0, 0)
    others = [one for one in before.unseen if unseen is not None and one.dialect != unseen.dialect]
    return Mark(
        next_number(state),
        ask.top.id,
        plan.cut,
        fit.allowance,
        plan.stubs,
        plan.kept,
        *_artifacts(state, fit, plan.cut),
        before.result_cap if cap is None else cap,
        0 if fit.overlay is None else fit.overlay.generation,
        before.warned or ask.warned,
        plan.turn,
        plan.portions,
        plan.stub_turn,
        before.unseen if unseen is None else (*others, unseen),
    )


def _same(mark: Mark, fit: Fit) -> bool:
    """Whether it shows what is shown already."""
    as_is, cap = _as_is(fit), None if fit.mark is None else fit.mark.result_cap
    shows = Trim(mark.cut, mark.kept, mark.stubs, 0, mark.turn, mark.portions, mark.stub_turn)
    return (shows, mark.result_cap) == (as_is, cap)


def _artifacts(state: State, fit: Fit, cut: int) -> tuple[tuple[Artifact, ...], int]:
    """What was read or modified below the cut, the newest last; and how many are not named."""
    before_cut = 0 if fit.mark is None else fit.mark.cut
    below = [frame_id for frame_id in fit.rendered.frames if before_cut <= frame_id < cut]
    known: dict[str, How] = {}
    if fit.mark is not None:
        known.update((artifact.path, artifact.how) for artifact in fit.mark.artifacts)
    for path, how in artifacts_in(map(state.table.at, below)).items():
        before = known.pop(path, None)
        known[path] = "modified" if before == "modified" else how
    found = [Artifact(path, how) for path, how in known.items()]
    named = newest_artifacts(found, fit.allowance, fit.rendered.target.family)
    return named, len(found) - len(named) + (0 if fit.mark is None else fit.mark.more)


def _shorter(plan: TooBig, fit: Fit) -> int | None:
    """A lower cap of results, when the newest ones are too long all together; None: it is as low as it may be."""
    cap = fit.rendered.target.result_cap_tokens
    results = sum(len(entry.results) for entry in fit.last.entries if type(entry) is ResultsEntry)
    lower = max(_SHORTEST_RESULT, min(cap * 3 // 4, plan.room // max(results, 1)))
    return lower if lower < cap else None


def _overflow(state: State, ask: Ask, fit: Fit) -> ContextOverflow:
    """Blame the largest part of what cannot be left out."""
    units, tokens = units_at(state, ask, fit), fit.quote.tokens
    beside = _beside(units, fit)
    plan = plan_trim(units, beside, min(fit.allowance, tokens - 1))
    at_least = plan.tokens if isinstance(plan, TooBig) else tokens
    parts: dict[Part, int] = {
        "system": fit.fixed.system,
        "tools": fit.fixed.tools,
        "format": fit.extra,
        "ephemeral": fit.lent,
    }
    parts["messages"] = at_least - sum(parts.values())
    part = max(parts, key=lambda name: parts[name])
    return ContextOverflow(part, parts[part], fit.allowance, ask.model)
