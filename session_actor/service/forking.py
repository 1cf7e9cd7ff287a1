"""A new session with the history of another one."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, Any

from session_actor.events import Source
from session_actor.server.cell import Birth
from session_actor.state.history import created, history_of, history_to, load_live, load_stack
from session_actor.state.moves import frame_of

from .deadline import no_longer_than, seconds_left

if TYPE_CHECKING:
    from session_actor.commands import Target

    from .population import Population


async def birth_from(
    people: Population,
    source: str,
    new_id: str,
    at: Target | None,
    *,
    metadata: Any,
    within: tuple[float | None, float],
) -> Birth:
    """What makes session `new_id` of the history of `source` up to `at`; see `SessionService.fork`, also for errors.

    `within`: how long it may take, for the error, and when that is over [seconds].
    """
    timeout_s, deadline_s = within
    cell = await people.load(source, None, timeout_s)
    state = await cell.ready(seconds_left(deadline_s))
    tip = None if at is None else frame_of(state, at)
    frame = None if tip is None else tip.id
    late = f"session {source!r} was not read within {timeout_s} s: nothing was copied; give it more time"
    with no_longer_than(seconds_left(deadline_s), late):
        await (load_live(state) if at is None else load_stack(state, frame))
    first = created(new_id, metadata, Source(source, None if at is None else frame or 0))
    return Birth(lambda: chain([first], history_of(state) if at is None else history_to(state, frame)))
