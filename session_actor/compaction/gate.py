"""The gate: whether a summary may take the place of what it was made from.

Pure: the same text, facts and source give the same verdict, byte for byte, on any machine.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from session_actor.tokens.estimate import estimate_tokens

from .asking import questions_wrong
from .headings import NAMES, OPTIONAL, Layout, compose, is_nothing
from .languages import is_foreign
from .naming import Names
from .needs import needs_of, safe
from .own import own_words
from .polarity import inverted
from .seal import lacking_in, seal
from .secrets import has_secret
from .texts import key
from .verdict import CODES, Reason, Verdict
from .wording import is_empty, is_normal, misworded, transcribed

if TYPE_CHECKING:
    from collections.abc import Container, Iterator

    from .facts import Facts
    from .known import Known
    from .own import Own

LEAST_TOKENS: Final = 64
"""A shorter summary keeps nothing."""

GAIN_TOKENS: Final = 2_000
GAIN_SHARE: Final = 10
"""A summary has to save so many tokens, or a tenth of the request."""

_ROOM: Final = 4
"""Where what has to be kept fills the cap, a quarter of the cap is left for the model's own words."""

_CHARACTERS_A_TOKEN: Final = 24
"""A text with more of them is too long whatever it says: it is not read."""

_NONE: Final[frozenset[int]] = frozenset()
_ORDER: Final = {code: place for place, code in enumerate(CODES)}


class Source(NamedTuple):
    """What a summary was made from."""

    known: Known
    """All exact names and numbers of it."""
    texts: tuple[str, ...]
    """All texts that the summary may take names from."""
    tokens: int
    """What it takes up in a request now [tokens]."""
    view_tokens: int
    """What the whole request takes up now [tokens]."""
    frames: Container[int]
    """The frames that a summary may point to."""

    def __repr__(self) -> str:
        """Without the content."""
        return f"Source({len(self.texts)} texts, {self.tokens} tokens of {self.view_tokens})"


def evaluate(
    text: str,
    facts: Facts,
    source: Source,
    *,
    cap_tokens: int,
    family: str = "o200k",
    stop_reason: str | None = "end",
) -> Verdict:
    """Seal a summary, then judge it. Fails for no text.

    Args:
        text: what the model wrote; anything but a str is refused.
        facts: what has to be kept.
        source: what it was made from.
        cap_tokens: how long it may be [tokens]; `allowed_tokens` tells when it may be longer.
        family: the tokenizer's family, one of `FAMILIES`.
        stop_reason: why the model stopped, in any provider's words; None: not known, which counts as normal.

    Returns:
        The verdict. What had to be sealed is a warning.

    Raises:
        InvalidArgument: there is no such family.
    """
    stopped = [] if is_normal(stop_reason) else [Reason("stop_reason")]
    allowed = allowed_tokens(facts, source, cap_tokens, family)
    unread = _unreadable(text, allowed)
    if unread is not None:
        return _verdict([*stopped, unread], "", 0)
    layout = Layout(text)
    lacking = lacking_in(layout, needs_of(facts))
    absent = frozenset(need.what for needs, found in lacking if needs.code == "constraint_missing" for need in found)
    sealed = seal(text, facts)
    judged = [
        *misworded(layout, own_words(layout, facts).text),
        *_judged(sealed, facts, source, allowed, family=family, absent=absent),
    ]
    failed = {(reason.code, reason.what) for reason in judged}
    told = [Reason(needs.code, "warning", what=need.what) for needs, found in lacking for need in found]
    warned = [reason for reason in told if (reason.code, reason.what) not in failed]
    return _verdict([*stopped, *judged, *warned], sealed, estimate_tokens(sealed, family))


def judge(text: str, facts: Facts, source: Source, *, cap_tokens: int, family: str = "o200k") -> tuple[Reason, ...]:
    """Judge a text as it is, without sealing it; arguments and errors as for `evaluate`."""
    allowed = allowed_tokens(facts, source, cap_tokens, family)
    unread = _unreadable(text, allowed)
    if unread is not None:
        return (unread,)
    layout = Layout(text)
    found = [*misworded(layout, own_words(layout, facts).text), *_judged(text, facts, source, allowed, family=family)]
    return tuple(sorted(found, key=_place))


def allowed_tokens(facts: Facts, source: Source, cap_tokens: int, family: str = "o200k") -> int:
    """How long a summary may be [tokens]: half of the source, and the cap.

    Where what has to be kept word for word takes more than three quarters of the cap, the cap gives way to it and to a
    quarter for the model's own words, never to more than half of the source.
    """
    half = source.tokens // 2
    if half <= cap_tokens:
        return half
    needed = estimate_tokens(compose(facts, cap_tokens=0, family=family), family)
    return min(half, max(cap_tokens, needed + cap_tokens // _ROOM))


def _verdict(reasons: list[Reason], sealed: str, tokens: int) -> Verdict:
    ok = all(reason.severity == "warning" for reason in reasons)
    return Verdict(ok, tuple(sorted(reasons, key=_place)), sealed if ok else "", tokens)


def _place(reason: Reason) -> tuple[int, str, int]:
    return _ORDER[reason.code], reason.severity, -1 if reason.what is None else reason.what


def _unreadable(text: object, allowed: int) -> Reason | None:
    """Why a text is not even read; None: it is."""
    if type(text) is not str:
        return Reason("not_text")
    if is_empty(text):
        return Reason("empty")
    if len(text) > _CHARACTERS_A_TOKEN * (allowed + LEAST_TOKENS):
        return Reason("too_long", count=len(text) // _CHARACTERS_A_TOKEN, limit=allowed)
    return None


def _judged(
    text: str, facts: Facts, source: Source, allowed: int, *, family: str, absent: frozenset[int] = _NONE
) -> Iterator[Reason]:
    """All that is wrong with a text that was sealed. `absent`: the rules that it lacked before."""
    layout = Layout(text)
    own = own_words(layout, facts)
    yield from _headings_wrong(layout, facts)
    yield from _length_wrong(estimate_tokens(text, family), source, allowed)
    for needs, lacking in lacking_in(layout, needs_of(facts)):
        yield from (Reason(needs.code, what=need.what) for need in lacking)
    yield from _rules_inverted(facts, own, absent)
    yield from _retracted_used(facts, own)
    names = Names(source.known, source.texts, facts)
    yield from names.unknown(own.text)
    yield from names.strange_numbers(own.text)
    yield from names.lost_pointers(own.text, source.frames)
    yield from transcribed(own.text)
    yield from questions_wrong(layout, facts)
    if has_secret(text):
        yield Reason("secret_sealed")
    if is_foreign(own.text, facts.languages):
        yield Reason("language")


def _headings_wrong(layout: Layout, facts: Facts) -> Iterator[Reason]:
    there = [section.name for section in layout.sections]
    for what, name in enumerate(NAMES):
        if name not in there and name != OPTIONAL:
            yield Reason("heading_missing", what=what)
        if there.count(name) > 1:
            yield Reason("heading_twice", count=there.count(name), what=what)
    places = [NAMES.index(name) for name in dict.fromkeys(there)]
    if places != sorted(places):
        yield Reason("heading_order")
    said = {"Goal": facts.goal is not None, "Progress": bool(facts.inputs or facts.decisions)}
    for section in layout.sections:
        body = layout.body(section)
        if is_empty(body.strip(" \t\n-*+>#`")) or (said.get(section.name, False) and is_nothing(body)):
            yield Reason("heading_empty", what=NAMES.index(section.name))


def _length_wrong(tokens: int, source: Source, allowed: int) -> Iterator[Reason]:
    if tokens > allowed:
        yield Reason("too_long", count=tokens, limit=allowed)
    if tokens < LEAST_TOKENS:
        yield Reason("too_short", count=tokens, limit=LEAST_TOKENS)
    saved = source.tokens - tokens
    if saved < GAIN_TOKENS and saved * GAIN_SHARE < source.view_tokens:
        yield Reason("no_gain", count=max(0, saved), limit=min(GAIN_TOKENS, source.view_tokens // GAIN_SHARE))


def _rules_inverted(facts: Facts, own: Own, absent: frozenset[int]) -> Iterator[Reason]:
    """An opposite beside the rule is told of; an opposite among the rules in the place of the rule is refused."""
    rules = [safe(fact) for fact in facts.constraints]
    replaced = absent.intersection(inverted(rules, own.rules)) if absent else frozenset[int]()
    for what in inverted(rules, own.text):
        yield Reason("constraint_inverted", "error" if what in replaced else "warning", what=what)


def _retracted_used(facts: Facts, own: Own) -> Iterator[Reason]:
    if not facts.retracted:
        return
    said = key(own.kept)
    for what, fact in enumerate(facts.retracted):
        if _says(said, key(safe(fact))):
            yield Reason("retracted_used", what=what)


def _says(text: str, words: str) -> bool:
    """Whether a text has these words, not as a part of longer ones."""
    at = text.find(words) if words else -1
    while at >= 0:
        before, after = text[at - 1 : at] if at else "", text[at + len(words) : at + len(words) + 1]
        if not (before.isalnum() and words[0].isalnum()) and not (after.isalnum() and words[-1].isalnum()):
            return True
        at = text.find(words, at + len(words))
    return False
