"""How full the window is, told when it is asked for, and as an event when it passes from one pressure to another."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from session_actor import telemetry
from session_actor.budget.costs import cost_of_instructions
from session_actor.budget.report import Budget, Pressure, pressure_of
from session_actor.errors import InvalidArgument, Refused
from session_actor.models import profile_of
from session_actor.state.table import FramesCold

from .errors import NothingToSend
from .fitting import unfitted
from .request_options import Ask, ask
from .requests_made import newest_request
from .window import window_of

if TYPE_CHECKING:
    from session_actor.events import Requested
    from session_actor.frames import Frame
    from session_actor.state.state import State

    from .fitting import Fit

PRESSURE: Final = ("session_actor", "window", "pressure")
"""The name of the event."""


def budget_of(state: State, on: str | None, model: str | None, *, quietly: bool = False) -> Budget:
    """The budget at a head, by what is recorded. `quietly`: no event. Raises `InvalidArgument`, `BranchUnknown`."""
    head = state.head_of(on)
    top = None if head is None else state.table.at(head)
    model = model or model_at(state, top)
    if top is None:
        return _blank(state, model)
    newest = newest_request(state, top.id, model)
    asked = budget_ask(state, top, model, newest)
    try:
        fit = unfitted(state, asked)
    except NothingToSend:
        return _blank(state, model, asked)
    if not quietly:
        tell(state, on, model, fit.quote.tokens, fit.quote.upper, fit.allowance)
    return _budget(asked, fit, newest)


def budget_ask(state: State, top: Frame, model: str, newest: Requested | None) -> Ask:
    """The next request, as far as it can be known: as the newest one of its model was."""
    if newest is None:
        return ask(state, top, profile_of(model, state.models).dialects[0], model)
    return ask(state, top, newest.quote.key.dialect, model, newest.wanted_output, newest.extra)


def model_at(state: State, top: Frame | None) -> str:
    """The model of the instructions in force, else of the newest request. Raises `InvalidArgument`."""
    if top is not None:
        if top.in_force is not None and top.in_force.model is not None:
            return top.in_force.model
        newest = newest_request(state, top.id, None)
        if newest is not None:
            return newest.quote.key.model
    raise InvalidArgument("model", 'is not known: give it here, or once for all by configure(model="…")')


def _budget(asked: Ask, fit: Fit, newest: Requested | None) -> Budget:
    quote, fixed = fit.quote, fit.fixed
    scale = quote.fixed_tokens / quote.fixed if quote.fixed else 1.0
    rest = quote.tokens
    parts: list[int] = []
    for part in (fixed.system, fixed.tools, fit.extra):
        parts.append(min(round(scale * part), rest))
        rest -= parts[-1]
    sent = _sent(fit, newest)
    messages = rest * sent // (quote.messages + quote.tail) if sent else 0
    return _filled(
        asked,
        calibrated=quote.anchored,
        parts=(parts[0], parts[1], parts[2], messages, rest - messages),
        upper=quote.upper,
    )


def _sent(fit: Fit, newest: Requested | None) -> int:
    """What of the messages the newest request showed, as estimated."""
    if newest is None:
        return 0
    if newest.quote.view == fit.quote.view and newest.quote.key == fit.quote.key:
        return min(newest.quote.messages, fit.quote.messages)
    return fit.rendered.up_to(fit.quote.messages)(newest.quote.head)


def _blank(state: State, model: str, asked: Ask | None = None) -> Budget:
    """The budget of a path without a message."""
    if asked is None:
        profile = profile_of(model, state.models)
        asked = Ask.of_nothing(profile, model)
    fixed = cost_of_instructions(asked.instructions, asked.target(None), asked.profile)
    parts = (fixed.system, fixed.tools, 0, fixed.request, 0)
    return _filled(asked, calibrated=False, parts=parts, upper=fixed.total)


def _filled(asked: Ask, *, calibrated: bool, parts: tuple[int, int, int, int, int], upper: int) -> Budget:
    reserves, allowance = asked.reserves(calibrated=calibrated), asked.allowance(calibrated=calibrated)
    used = sum(parts)
    return Budget(
        asked.model,
        asked.profile.window,
        reserves.output,
        reserves.safety,
        allowance,
        *parts,
        used,
        upper,
        max(0, allowance - used),
        pressure_of(used, upper, allowance),
        calibrated,
    )


def tell(state: State, on: str | None, model: str, used: int, upper: int, allowance: int) -> None:  # noqa: PLR0917 - what the event says
    """Tell that the pressure of a branch is another than the one that was told last."""
    pressures = window_of(state).pressures
    branch = state.branch_of(on)
    now: Pressure = pressure_of(used, upper, allowance)
    before = pressures.get((branch, model), "green")
    if now == before:
        return
    pressures[branch, model] = now
    if telemetry.attached:
        telemetry.emit(
            PRESSURE,
            {"tokens": used, "upper": upper, "allowance": allowance},
            {"session": state.session, "branch": branch, "model": model, "from": before, "to": now},
        )


def watch(state: State, on: str | None) -> None:
    """Tell of a crossing after a change, where a request was built before and all that is shown is in memory.

    It is called on the loop: what is on the disk is not read for it. The next request or budget tells then.
    """
    head = state.head_of(on)
    top = None if head is None else state.table.slot(head)
    if top is None:
        return
    try:
        with state.table.without_the_disk():
            newest = newest_request(state, top.id, None)
            if newest is None:
                return
            model = newest.quote.key.model
            fit = unfitted(state, budget_ask(state, top, model, newest))
    except (Refused, FramesCold):
        return
    tell(state, on, model, fit.quote.tokens, fit.quote.upper, fit.allowance)
