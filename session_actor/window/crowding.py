"""Media that are too many, or too much, for one request: what of them is not shown any more."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from session_actor.budget.trim import TARGET
from session_actor.errors import InvalidArgument
from session_actor.ledger.held import NO_LOAD
from session_actor.requests.limits import MEGABYTE, limits_of

from .rendered import load_in

if TYPE_CHECKING:
    from session_actor.ledger.held import Held, Load
    from session_actor.ledger.view import MediaPlace
    from session_actor.requests.limits import Limits

    from .fitting import Fit
    from .request_options import Ask

_BYTES_A_TOKEN: Final = 8
"""About what a request takes up beside its media: more than most texts do."""


def crowded(ask: Ask, fit: Fit) -> MediaPlace | None:
    """The place before which media have to go, so that the provider takes the rest; None: it takes them all.

    Of the finished chunks so many go that 60% of what may be sent is left, so that the next time is far away and the
    prefix stays; of the newest chunk no more than must. Raises `InvalidArgument` when what is lent alone is too much.
    """
    done, last = fit.rendered.done, load_in(fit.sent)
    if done.load is NO_LOAD and last is NO_LOAD:
        return None
    limits = limits_of(ask.dialect, ask.profile.window)
    room = (limits.megabytes or 0) * MEGABYTE - _BYTES_A_TOKEN * fit.quote.tokens
    if _fits(done.load.and_all(last), limits, room, 1):
        return None
    newest = sorted([held for held in fit.sent.media if held.place is not None], key=_place, reverse=True)
    older = [held for piece in reversed(done.pieces) for held in sorted(piece.chunk.media, key=_place, reverse=True)]
    taken = _fixed(fit)
    if not _fits(taken, limits, room, 1) and ask.ephemeral:
        raise InvalidArgument("ephemeral", f"holds more images or files than {ask.dialect} takes in one request")
    border: MediaPlace | None = None
    for held, share in [*((held, 1.0) for held in newest), *((held, TARGET) for held in older)]:
        taken = taken.plus(held)
        if not _fits(taken, limits, room, share):
            return border or _behind(held)
        border = held.place
    return None


def _fixed(fit: Fit) -> Load:
    """What stays in any case: what is lent, and what stands in the model's own turns."""
    load = fit.rendered.done.load.and_all(load_in(fit.sent))
    for chunk in [*(piece.chunk for piece in fit.rendered.done.pieces), fit.sent]:
        for held in chunk.media:
            if held.place is not None:
                load = load.minus(held)
    return load


def _fits(load: Load, limits: Limits, room: int, share: float) -> bool:
    if limits.images is not None and load.images > share * limits.images:
        return False
    if limits.many is not None and load.large and load.images > share * limits.many:
        return False
    if limits.pages is not None and load.pages > share * limits.pages:
        return False
    return limits.megabytes is None or load.size_bytes <= share * room


def _place(held: Held) -> MediaPlace:
    return held.place or (0, 0, 0)


def _behind(held: Held) -> MediaPlace:
    """The place right behind one."""
    frame, turn, number = _place(held)
    return frame, turn, number + 1
