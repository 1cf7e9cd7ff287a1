"""How long a request really is: its estimate, corrected by what providers said of the requests before it.

A reply tells how many tokens its request had. Of two such readings of one view, the difference is what the frames
between their heads cost, whatever the rest costs. So a request is priced from three sources:

- the newest reading on its path with the same key and view, its ANCHOR: only what was added since is
  estimated;
- without one (after a trim, a compaction, other instructions, at a fork): the frames measured by differences, each at
  what it cost, and the fixed part with the offset that an earlier reading showed;
- for what no reading covers: the estimate times the RATIO, which is learned from differences only, so that what the
  tools and the system prompt really cost never spoils it.

All of it is pure, and all numbers come from records: a replay prices as the live session did.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec

if TYPE_CHECKING:
    from collections.abc import Callable

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


class Failure(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """A request was refused as too long."""

    model: str
    dialect: str
    factor: float
    """By how much prices of this model go up, until a reading says better."""
    ceiling: int | None
    """The most input tokens that the model is known to take; None: nothing is known."""


class Learned(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """All that a session knows of real lengths; in its state and its snapshots. At most `LIMIT` readings."""

    readings: tuple[Reading, ...] = ()
    """Oldest first."""
    failures: tuple[Failure, ...] = ()
    """The newest of each model and dialect, oldest first."""


NOTHING: Final = Learned()
"""What a new session knows."""


def price(shown: Shown, learned: Learned, on_path: Callable[[int], bool]) -> Quote:
    """How long a request is; O(`LIMIT`) when unanchored, else one pass over the readings.

    Args:
        shown: what it shows.
        learned: what the session knows.
        on_path: whether the frame of this id is `shown.head` or below it.
    """
    del learned, on_path
    tokens = shown.fixed + shown.messages + shown.tail
    upper = tokens + -(-tokens // 10)
    doubt = shown.messages // 10
    parts = (shown.key, shown.view, shown.head, shown.fixed, shown.messages, shown.tail)
    return Quote(*parts, tokens, upper, shown.fixed, doubt, anchored=False)


def learn(learned: Learned, quote: Quote, real: int, on_path: Callable[[int], bool]) -> Learned:
    """What is known once the provider said how long a request was; `learned` itself when that is implausible.

    Implausible is less than half or more than three times the estimate (0 is: aborted calls report it).

    Args:
        learned: what the session knew.
        quote: of the request, from its record.
        real: its input tokens as the provider counted them, cached ones included.
        on_path: whether the frame of this id is `quote.head` or below it.
    """
    del quote, real, on_path
    return learned


def fail(
    learned: Learned,
    quote: Quote,
    allowance: int,
    on_path: Callable[[int], bool],
    *,
    actual: int | None = None,
    limit: int | None = None,
) -> Learned:
    """What is known once a provider refused a request as too long: the same view is over the allowance from now on.

    Either its price is (by what the provider counted, or by a factor, when nothing was measured), or the allowance
    sinks below its price (`ceiling`).

    Args:
        learned: what the session knew.
        quote: of the request, from its record.
        allowance: what the request had to fit in [tokens].
        on_path: whether the frame of this id is `quote.head` or below it.
        actual: the input tokens that the provider's error names; None: it names none.
        limit: the most input tokens that it names (what the model may answer already taken off); None: it names none.
    """
    del quote, allowance, on_path, actual, limit
    return learned


def ceiling(learned: Learned, model: str, dialect: str) -> int | None:
    """The most input tokens that a model is known to take from its refusals; None: it refused nothing, or said nothing.

    The allowance is never above it.
    """
    known = [one.ceiling for one in learned.failures if (one.model, one.dialect) == (model, dialect)]
    return min((each for each in known if each is not None), default=None)


def ratio_of(learned: Learned, key: Key) -> float:
    """Real tokens per estimated token of messages, between 0.5 and 3; 1.0 when nothing was measured.

    Multiply the estimates of single messages by it where `price` cannot be asked (the units of `plan_trim`).
    """
    del learned, key
    return 1.0
