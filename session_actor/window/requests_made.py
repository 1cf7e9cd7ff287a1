"""What a state remembers of the requests that were made from it: changed by `apply` alone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from session_actor.budget.calibration import fail, learn
from session_actor.budget.readings import Learned
from session_actor.models.same import is_same_model
from session_actor.state.paths import on_path

from .marks import MARKS_KEPT

if TYPE_CHECKING:
    from collections.abc import Callable

    from session_actor.events import Requested, RequestRefused
    from session_actor.frames import Turn, Usage
    from session_actor.state.state import State

    from .marks import Mark

REQUESTS_KEPT: Final = 32
"""How many requests a session remembers: the newest. An answer to an older one measures nothing."""


def note_request(state: State, event: Requested, seq: int) -> None:
    """Remember a request, and the mark that it brought."""
    if not state.requests:
        state.requests = {}
    state.requests[seq] = event
    if len(state.requests) > REQUESTS_KEPT:
        del state.requests[next(iter(state.requests))]
    if event.made is not None:
        note_marks(state, (event.made,))


def note_marks(state: State, marks: tuple[Mark, ...]) -> None:
    """Remember marks that are newer than those known, and forget the oldest above the limit."""
    if marks:
        state.marks = (*state.marks, *marks)[-MARKS_KEPT:]


def next_number(state: State) -> int:
    """The number of the next mark."""
    return state.marks[-1].number + 1 if state.marks else 1


def mark_of(state: State, number: int | None) -> Mark | None:
    """The mark of this number, if it is still known."""
    return next((mark for mark in state.marks if mark.number == number), None)


def note_answer(state: State, request: int, turns: tuple[Turn, ...] | None, astray: tuple[int, ...]) -> None:
    """Learn from the usage that came with the answer to a request. `astray`: as in its record."""
    event = state.requests.get(request)
    real = max((_input_tokens(turn.usage) for turn in turns or ()), default=0)
    if event is not None and real:
        state.learned = learn(state.learned, event.quote, real, _on_path(astray))


def asked_as(state: State, request: int, turn: Turn) -> Turn:
    """The answer to a request, with what that calls the model when the answer's own name of it is another."""
    event = state.requests.get(request)
    if event is None or turn.asked is not None or event.quote.key.dialect != turn.dialect:
        return turn
    asked = event.quote.key.model
    return turn if is_same_model(turn.model, asked) else msgspec.structs.replace(turn, asked=asked)


def _input_tokens(usage: Usage | None) -> int:
    """How long the request was, as the provider counted; 0: not known."""
    if usage is None:
        return 0
    return usage.input_tokens if usage.anchor_tokens is None else usage.anchor_tokens


def note_refusal(state: State, refused: RequestRefused) -> None:
    """Learn from a request that was too long."""
    event = state.requests.get(refused.request)
    if event is not None and refused.too_long:
        state.learned = failed(state.learned, event, refused)


def failed(learned: Learned, event: Requested, refused: RequestRefused) -> Learned:
    """What is known when a request was too long."""
    return fail(learned, event.quote, _on_path(refused.astray), actual=refused.tokens, limit=refused.limit)


def _on_path(astray: tuple[int, ...]) -> Callable[[int], bool]:
    return lambda frame_id: frame_id not in astray


def astray(state: State, seq: int) -> tuple[int, ...]:
    """Of the frames of known readings those that are not on the path of a request; none when it is not known."""
    event = state.requests.get(seq)
    if event is None or not state.learned.readings:
        return ()
    holds = on_path(state.table, event.quote.head)
    return tuple({reading.head: None for reading in state.learned.readings if not holds(reading.head)})


def window_on(state: State, holds: Callable[[int], bool]) -> tuple[tuple[Mark, ...], Learned]:
    """What is known of marks and lengths on frames that are copied."""
    marks = tuple(mark for mark in state.marks if holds(mark.at))
    learned = state.learned
    readings = tuple(one for one in learned.readings if holds(one.head))
    return marks, Learned(readings, learned.ceilings, learned.failures)


def newest_request(state: State, head: int, model: str | None = None, dialect: str | None = None) -> Requested | None:
    """The newest request that is known on a path, of a model and a dialect (None: of any)."""
    if not state.requests:
        return None
    holds = on_path(state.table, head)
    for event in reversed(state.requests.values()):
        key = event.quote.key
        if model in {None, key.model} and dialect in {None, key.dialect} and holds(event.quote.head):
            return event
    return None
