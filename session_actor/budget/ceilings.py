"""Ceilings: what refusals said of how much a model takes, and what answers make of that."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from .readings import Ceiling, Failure, Key

if TYPE_CHECKING:
    from .readings import Learned

_STEP: Final = 1.1
"""What a model is believed to take goes up so many times with every answer, where a refusal did not name it."""
_LARGEST: Final = 100_000_000
"""No window is so large: a ceiling that has gone up to it says nothing any more."""


def ceiling(learned: Learned, key: Key, allowance: int = _LARGEST) -> int | None:
    """The most input tokens that a model is believed to take from its refusals; None: it refused nothing.

    `allowance`: what it takes by its window; what it is believed to take is never above it.
    """
    found, failure = ceiling_of(learned, key), _failure_of(learned, key)
    known = [] if found is None else [found.tokens]
    if failure is not None:
        known += [max(1, int(allowance / failure.factor)), failure.ceiling or allowance]
    return min(known, default=None)


def ceiling_of(learned: Learned, key: Key) -> Ceiling | None:
    """What refusals said of a model under the same instructions, whatever compaction is shown."""
    place = place_of(key)
    return next((one for one in learned.ceilings if one.key == place), None)


def place_of(key: Key) -> Key:
    """Whose ceiling it is: that of no compaction."""
    return key if not key.generation else Key(key.model, key.dialect, key.configured)


def answered(learned: Learned, key: Key, real: int) -> tuple[tuple[Ceiling, ...], tuple[Failure, ...]]:
    """What is left of ceilings, and of what earlier versions knew, after an answer to `real` tokens."""
    ceilings = [_corrected(one, key, real) for one in learned.ceilings]
    failures = [_answered(one, key, real) for one in learned.failures]
    return (
        tuple(one for one in ceilings if one is not None),
        tuple(one for one in failures if one is not None),
    )


def _failure_of(learned: Learned, key: Key) -> Failure | None:
    return next((one for one in learned.failures if (one.model, one.dialect) == (key.model, key.dialect)), None)


def _answered(one: Failure, key: Key, real: int) -> Failure | None:
    """What is left of an earlier version's after an answer: what it was is measured now."""
    if (one.model, one.dialect) != (key.model, key.dialect):
        return one
    if one.ceiling is None or real > one.ceiling:
        return None
    return Failure(one.model, one.dialect, 1.0, one.ceiling)


def _corrected(one: Ceiling, key: Key, real: int) -> Ceiling | None:
    """What is left of a ceiling after an answer: nothing, when a longer request was answered."""
    if one.key != place_of(key):
        return one
    if real > one.tokens or one.tokens > _LARGEST:
        return None
    return one if one.named else Ceiling(one.key, int(one.tokens * _STEP) + 1)
