"""How long a request really is: its estimate, corrected by what providers said of the requests before it.

A reply tells how many tokens its request had. Of two such readings of one view, the difference is what the frames
between their heads cost, whatever the rest costs. So a request is priced from three sources:

- the newest reading on its path with the same key and view, its ANCHOR: only what was added since is estimated;
- without one (after a trim, a compaction, other instructions, at a fork): the frames measured by differences, each at
  what it cost, and the fixed part with the offset that an earlier reading showed;
- for what no reading covers: the estimate times the RATIO, which is learned from differences, so that what the tools
  and the system prompt really cost never spoils it; and from a first reading that is further off than these can be.

All of it is pure, and all numbers come from records: a replay prices as the live session did.
"""

from __future__ import annotations

from math import exp
from typing import TYPE_CHECKING, Final, NamedTuple

from .ceilings import answered, ceiling_of, place_of
from .readings import Ceiling, Key, Learned, Quote, Reading, Shown, kept

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    OnPath = Callable[[int], bool]

LOWEST: Final = 0.5
HIGHEST: Final = 3.0
"""A reading, or a ratio, outside of these is believed to be no count of what was sent."""

_PRIOR_TOKENS: Final = 1_000
"""The ratio starts from the one of the same model with other instructions (there: from 1.0), which counts for so many
tokens of messages measured."""
_MEMORY_TOKENS: Final = 50_000
"""Differences count for less (1/e) when so many tokens of messages were measured after them."""

_ESTIMATED: Final = 0.04
"""How far off the estimate of some messages is, as a share of it, before their differences say (one standard
deviation) …"""
_UNKNOWN: Final = 0.10
"""… and with a ratio that nobody has measured."""
_MEASURED: Final = 0.01
"""How far off are measured frames in another view: other placeholders, other thinking, parts of a difference."""
_FIXED_SHARE, _FIXED_TOKENS = 0.15, 300
"""How far off the fixed part is: a share of its estimate, and what a provider puts in unseen when there are tools."""

_MARGIN: Final = 0.10
"""The upper bound of a request of which nothing was measured …"""
_MARGIN_REPRICED: Final = 0.03
"""… of one without an anchor of which some frames were …"""
_MARGIN_ANCHORED: Final = 0.002
"""… of the anchored part of a request; what came since has `_MARGIN`, or more where estimates were further off:"""
_SURE: Final = 2.5
"""so many times as far as they were."""

_OFFSET_SHARE, _OFFSET_TOKENS = 0.5, 2_000
"""The fixed part costs no more beside its estimate than this share of it and so many tokens: what a first reading shows
beyond is the messages'."""

_LITTLE: Final = 4
"""Of two readings whose fixed parts differ by more than a fourth of the messages between them, neither tells what these
cost."""

_BELOW: Final = 0.8
"""A request was refused: the model is believed to take at most this share of it."""
_LOWEST_SHARE: Final = 4
"""A limit below a fourth of what was refused is believed to be something else."""
_KEYS: Final = 8
"""The most keys whose refusals are remembered."""


class Span(NamedTuple):
    """A stretch of the messages of a view, by their estimates from its beginning [tokens]."""

    bottom: int
    top: int
    rate: float
    """Real tokens per estimated one."""
    measured: bool = False

    @property
    def real(self) -> float:
        """What it costs [tokens]."""
        return self.rate * (self.top - self.bottom)


def price(shown: Shown, learned: Learned, on_path: OnPath) -> Quote:
    """How long a request is; some passes over the readings, of which there are at most `LIMIT`.

    Args:
        shown: what it shows.
        learned: what the session knows.
        on_path: whether the frame of this id is `shown.head` or below it.
    """
    same = _of_model(learned, shown.key)
    ratio, off = _rate(same, shown.key)
    anchor = _anchor(same, shown, off, on_path)
    fixed = shown.fixed + _offset(same, shown)
    if anchor is not None:
        since = _since(anchor, shown)
        added = ratio * (shown.messages - anchor.messages + shown.tail - anchor.tail)
        other = 0 if shown.fixed == anchor.fixed else fixed - (anchor.fixed + anchor.offset)
        total = anchor.real + other + added
        doubt = off * since
        margin = max(_MARGIN, _SURE * off) * since + _MARGIN_ANCHORED * anchor.real + _MARGIN * abs(other)
    else:
        found = _spans(shown, [one for one in same if on_path(one.head)], ratio)
        unmeasured = sum(span.top - span.bottom for span in found if not span.measured)
        total = fixed + sum(span.real for span in found) + ratio * shown.tail
        doubt = (off if same else _UNKNOWN) * unmeasured + _MEASURED * (shown.messages - unmeasured)
        share = unmeasured / shown.messages if shown.messages else 1.0
        margin = total * (max(_MARGIN, _SURE * off) * share + _MARGIN_REPRICED * (1 - share))
    tokens = max(0, round(total))
    return Quote(
        *shown[:-1],
        tokens=tokens,
        upper=max(0, round(total + margin)),
        fixed_tokens=min(max(0, round(fixed)), tokens),  # a provider may have counted less than it did before
        doubt=round(doubt),
        anchored=anchor is not None,
    )


def learn(learned: Learned, quote: Quote, real: int, on_path: OnPath) -> Learned:
    """What is known once the provider said how long a request was; `learned` itself when that is implausible.

    Implausible is less than half or more than three times the estimate (0 is: aborted calls report it). The reading
    belongs to the request's head, wherever the session is by now; a second one of the same request's view and head
    replaces the first.

    Args:
        learned: what the session knew.
        quote: of the request, from its record.
        real: its input tokens as the provider counted them, cached ones included.
        on_path: whether the frame of this id is `quote.head` or below it.
    """
    estimate = quote.fixed + quote.messages + quote.tail
    if not (real > 0 and LOWEST * estimate <= real <= HIGHEST * estimate):
        return learned
    place = (quote.key, quote.view, quote.head)
    others = [one for one in learned.readings if (one.key, one.view, one.head) != place]
    before = _before(others, quote, on_path)
    reading = _first(others, quote, real) if before is None else _next(before, quote, real)
    return Learned(kept([*others, reading]), *answered(learned, quote.key, real))


def fail(
    learned: Learned, quote: Quote, on_path: OnPath, *, actual: int | None = None, limit: int | None = None
) -> Learned:
    """What is known once a provider refused a request as too long: the same view is over the allowance from now on.

    The ceiling of its key is then what the error names, or four fifths of the request, and never higher than before.

    Args:
        learned: what the session knew.
        quote: of the request, from its record.
        on_path: whether the frame of this id is `quote.head` or below it.
        actual: the input tokens that the provider's error names; None: it names none.
        limit: the most input tokens that it names (what the model may answer already taken off); None: it names none.
    """
    measured = learned if actual is None else learn(learned, quote, actual, on_path)
    known = quote.tokens if actual is None or measured is learned else actual
    key = place_of(quote.key)
    found = Ceiling(key, max(1, int(known * _BELOW)))
    if limit is not None and known // _LOWEST_SHARE <= limit < known:
        found = Ceiling(key, max(1, limit), named=True)
    before = ceiling_of(learned, key)
    if before is not None and before.tokens <= found.tokens:
        found = before
    others = [one for one in learned.ceilings if one.key != key]
    return Learned(measured.readings, (*others, found)[-_KEYS:], learned.failures)


def ratio_of(learned: Learned, key: Key) -> float:
    """Real tokens per estimated token of messages, between 0.5 and 3; 1.0 when nothing was measured.

    What no reading covers costs so much.
    """
    return _rate(_of_model(learned, key), key).ratio


def spans(shown: Shown, learned: Learned, on_path: OnPath) -> list[Span]:
    """What the messages of a view cost by what was measured of them, the newest first; arguments as of `price`.

    For the units of `plan_trim`, which are parts of a view.
    """
    same = _of_model(learned, shown.key)
    return _spans(shown, [one for one in same if on_path(one.head)], _rate(same, shown.key).ratio)


# --- what readings say -----------------------------------------------------------------------------------------------


def _of_model(learned: Learned, key: Key) -> list[Reading]:
    """The readings of a key's model and dialect, oldest first."""
    model, dialect = key.model, key.dialect
    return [one for one in learned.readings if one.key.model == model and one.key.dialect == dialect]


def _anchor(same: Sequence[Reading], shown: Shown, off: float, on_path: OnPath) -> Reading | None:
    """The reading of this key and view that tells most: since it little came, and little of what is fixed is another.

    What is fixed changes with `extra`, such as a response format. Of readings that have the same the newest counts.
    """
    newest = {one.fixed: one for one in sorted(_on_path(same, shown, on_path), key=_head)}
    return min(
        newest.values(),
        key=lambda one: (off * _since(one, shown) + _FIXED_SHARE * abs(shown.fixed - one.fixed), -one.head),
        default=None,
    )


def _on_path(readings: Iterable[Reading], shown: Shown | Quote, on_path: OnPath) -> list[Reading]:
    """The readings of a key and a view on the path."""
    return [one for one in readings if one.view == shown.view and one.key == shown.key and on_path(one.head)]


def _since(anchor: Reading, shown: Shown) -> int:
    """What came since, as estimated."""
    return abs(shown.messages - anchor.messages) + abs(shown.tail - anchor.tail)


def _head(reading: Reading) -> int:
    return reading.head


def _plausible(reading: Reading) -> bool:
    """Whether a difference can be what its frames cost: else something was left out, or put in, that frames are not."""
    estimate = reading.estimate_since
    return estimate > 0 and LOWEST * estimate <= reading.real_since <= HIGHEST * estimate


class _Rate(NamedTuple):
    """What messages cost per estimated token."""

    ratio: float
    off: float
    """How far off single differences are from it, as a share of their estimate."""


def _rate(same: Sequence[Reading], key: Key) -> _Rate:
    """Of readings of one model: from the differences of the same key, beginning with what those of other keys say."""
    ours: list[Reading] = []
    others: list[Reading] = []
    for one in reversed(same):
        if one.since and _plausible(one):
            (ours if one.key == key else others).append(one)
    return _weighed(ours, _weighed(others, _Rate(_first_ratio(same), _ESTIMATED)))


def _first_ratio(same: Sequence[Reading]) -> float:
    """By the newest first reading, when it is further off than the fixed part can be; else 1.0."""
    for one in reversed(same):
        if not one.since and _plausible(one):
            beyond = abs(one.real - one.fixed - one.messages - one.tail) > _most_offset(one.fixed)
            return one.real_since / one.estimate_since if beyond else 1.0
    return 1.0


def _weighed(newest_first: Sequence[Reading], prior: _Rate) -> _Rate:
    if not newest_first:
        return prior
    real, estimate, passed = prior.ratio * _PRIOR_TOKENS, float(_PRIOR_TOKENS), 0
    weights: list[float] = []
    for one in newest_first:
        weight = exp(-passed / _MEMORY_TOKENS)
        weights.append(weight)
        real += weight * one.real_since
        estimate += weight * one.estimate_since
        passed += one.estimate_since
    ratio, off = real / estimate, prior.off * _PRIOR_TOKENS
    for one, weight in zip(newest_first, weights, strict=True):
        off += weight * abs(one.real_since - ratio * one.estimate_since)
    return _Rate(ratio, off / estimate)


def _offset(same: Sequence[Reading], shown: Shown) -> int:
    """What the fixed part costs beyond its estimate, by the newest reading of it, of its key, or else of its model."""
    ours = [one for one in same if one.key == shown.key] or same
    newest = next((one for one in reversed(ours) if one.fixed == shown.fixed), ours[-1] if ours else None)
    if newest is None:
        return 0
    return newest.offset if shown.fixed >= newest.fixed else round(newest.offset * shown.fixed / newest.fixed)


def _spans(shown: Shown, readings: Iterable[Reading], ratio: float) -> list[Span]:
    """All messages in stretches, the newest first.

    From the head down: frames between the heads of two readings at the rate that their difference shows, as far as
    nothing above has priced them already; the frames below the lowest at the rate of the first reading there. Frames
    that nothing measured cost the ratio.
    """
    ordered = sorted(readings, key=_head, reverse=True)
    floor, above = shown.head, shown.messages
    found: list[Span] = []
    for one in ordered:
        if not one.since or one.since >= floor or not _plausible(one):
            continue
        top = above if one.head >= floor else shown.up_to(one.head)
        bottom = shown.up_to(one.since)
        found += (Span(top, above, ratio), Span(bottom, top, one.real_since / one.estimate_since, measured=True))
        floor, above = one.since, bottom
    first = _first_below(ordered, floor)
    if first is None:
        return [*found, Span(0, above, ratio)]
    top = above if first.head >= floor else shown.up_to(first.head)
    return [*found, Span(top, above, ratio), Span(0, top, first.real_since / first.estimate_since, measured=True)]


def _first_below(ordered: Sequence[Reading], floor: int) -> Reading | None:
    """The first reading (highest head first) that speaks for most of the frames up to `floor`; None: there is none."""
    firsts = [one for one in ordered if not one.since and _plausible(one)]
    whole = [one for one in firsts if one.head >= floor]
    return whole[-1] if whole else next(iter(firsts), None)


# --- how they are made -----------------------------------------------------------------------------------------------


def _most_offset(fixed: int) -> int:
    return int(_OFFSET_SHARE * fixed) + _OFFSET_TOKENS


def _before(readings: Sequence[Reading], quote: Quote, on_path: OnPath) -> Reading | None:
    """The newest reading of the same view that tells what came since: it has about the same fixed part."""
    found = [
        one
        for one in _on_path(readings, quote, on_path)
        if abs(quote.fixed - one.fixed) <= max(0, quote.messages - one.messages) // _LITTLE
    ]
    return max(found, key=_head, default=None)


def _next(before: Reading, quote: Quote, real: int) -> Reading:
    """A reading after another of the same view: what is fixed, known well or not, is the same in both."""
    fixed = quote.fixed - before.fixed + quote.tail - before.tail
    return Reading(
        *_estimates(quote),
        real=real,
        offset=before.offset,
        since=before.head,
        real_since=real - before.real - fixed,
        estimate_since=quote.messages - before.messages,
    )


def _first(readings: Sequence[Reading], quote: Quote, real: int) -> Reading:
    """The first reading of a view: the error of its quote is the fixed part's and the messages', as either is in doubt.

    When an earlier reading of the same key and fixed part has told that one's, it is the messages' alone.
    """
    offset = quote.fixed_tokens - quote.fixed
    if not any(one.key == quote.key and one.fixed == quote.fixed for one in readings):
        error = real - quote.tokens
        doubt = (_FIXED_SHARE * quote.fixed + _FIXED_TOKENS) ** 2
        most = _most_offset(quote.fixed)
        offset = max(-most, min(offset + round(error * doubt / (doubt + quote.doubt**2)), most))
    messages = real - quote.fixed - offset - quote.tail
    return Reading(
        *_estimates(quote), real=real, offset=offset, since=0, real_since=messages, estimate_since=quote.messages
    )


def _estimates(quote: Quote) -> tuple[Key, int, int, int, int, int]:
    return quote.key, quote.view, quote.head, quote.fixed, quote.messages, quote.tail
