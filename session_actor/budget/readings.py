"""What a session knows of the real lengths of its requests: readings, which are numbers from its records."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

LIMIT: Final = 32
"""The most readings that are kept."""


class Key(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """What two requests must share before the real length of one says what the other has at the same frame."""

    model: str
    dialect: str
    configured: int | None = None
    """The frame of the instructions in force."""
    generation: int = 0
    """The compaction that is shown; 0: none."""


class Shown(NamedTuple):
    """What is to be priced: a view at a head, with its estimates [tokens, as `cost_of` gives them]."""

    key: Key
    view: int
    """Names the mark in force: the seq of the record that made it; 0: no mark."""
    head: int
    fixed: int
    """System prompt, tools, response format and whatever else stands in every request beside the messages."""
    messages: int
    """All frames that are shown, notes of a trim included; without `tail`."""
    tail: int
    """What this request alone has: the ephemeral part, `Continue.`, placeholders of open calls."""
    up_to: Callable[[int], int]
    """The part of `messages` in frames with ids up to this one, from 0 below the first to `messages` at the head.

    Asked for the heads of readings only. It never falls as the id grows. An answer may be as coarse as a chunk: what
    belongs to a chunk counts from its last frame on.
    """


class Quote(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """The price of a request, as its record keeps it. Numbers are tokens."""

    key: Key
    view: int
    head: int
    fixed: int
    """As estimated; so are the next two."""
    messages: int
    tail: int
    tokens: int
    """How long the request is, as far as is known: the mean."""
    upper: int
    """How long it may be: for red, and for what must not fail."""
    fixed_tokens: int
    """The share of `tokens` that is the fixed part, its offset included."""
    doubt: int
    """How far off the messages may be priced (one standard deviation)."""
    anchored: bool
    """Whether a reading of this key and view was found on the path: `calibrated`."""


class Reading(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """The real length of a request that was answered, and what it says of the frames since the reading before."""

    key: Key
    view: int
    head: int
    """The head of the request: it says nothing of what came later, and nothing on a path without this frame."""
    fixed: int
    messages: int
    tail: int
    """The estimates, as quoted."""
    real: int
    """Input tokens, the cached ones included, as the provider counted them."""
    offset: int
    """What the fixed part costs beyond its estimate."""
    since: int
    """The head of the reading before, of the same key and view on the same path; 0: this is the first."""
    real_since: int
    """What the frames after `since`, up to `head`, really cost. Of a first reading: all messages, less certain."""
    estimate_since: int
    """What they were estimated at."""


class Ceiling(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """What refusals of too long requests said of a model."""

    key: Key
    """Whose requests were refused; of no compaction."""
    tokens: int
    """The most input tokens that are believed to be taken."""
    named: bool = False
    """Whether the provider named it; else it is a guess, which goes up with every answer."""


class Failure(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """What refusals said of a model whatever its instructions, in the records of earlier versions."""

    model: str
    dialect: str
    factor: float = 1.0
    """So many times longer requests are believed to be, until an answer says better."""
    ceiling: int | None = None
    """The most input tokens that the model is believed to take; None: nothing is known."""


class Learned(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """All that a session knows of real lengths; in its state and its snapshots. At most `LIMIT` readings."""

    readings: tuple[Reading, ...] = ()
    """Oldest first."""
    ceilings: tuple[Ceiling, ...] = ()
    """At most one of a key, the newest few, oldest first."""
    failures: tuple[Failure, ...] = ()
    """One of each model and dialect that earlier versions knew of; none come to these."""


NOTHING: Final = Learned()
"""What a new session knows."""


def kept(readings: Iterable[Reading]) -> tuple[Reading, ...]:
    """At most `LIMIT` of these (oldest first): where one is dropped, the one after it speaks for its frames, too.

    Dropped is what says least that is of use: short differences go first, old ones before new ones. So the newest
    differences are those of single calls, older ones are of more and more calls together; no frame is forgotten.
    """
    found = list(readings)
    while len(found) > LIMIT:
        _drop(found, _least(found))
    return tuple(found)


def _least(found: list[Reading]) -> int:
    """The place of the reading that says least; never the newest."""
    after: dict[tuple[Key, int, int], int] = {}
    for one in found:
        place = (one.key, one.view, one.since)
        after[place] = max(after.get(place, 0), one.real_since)
    newest = len(found) - 1
    loss = [
        (max(one.real_since if one.since else 0, 1) + after.get((one.key, one.view, one.head), 0)) / (newest - place)
        for place, one in enumerate(found[:-1])
    ]
    return loss.index(min(loss))


def _drop(found: list[Reading], place: int) -> None:
    gone = found.pop(place)
    for at, one in enumerate(found):
        if one.since == gone.head and one.view == gone.view and one.key == gone.key:
            found[at] = msgspec.structs.replace(
                one,
                since=gone.since,
                real_since=one.real_since + gone.real_since,
                estimate_since=one.estimate_since + gone.estimate_since,
            )
