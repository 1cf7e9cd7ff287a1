"""The gate: whether a summary may take the place of what it was made from.

Pure: the same text, facts and source give the same verdict, byte for byte, on any machine.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from session_actor.tokens.estimate import estimate_tokens

from .asking import questions_wrong
from .headings import NAMES, OPTIONAL, Layout, compose, is_nothing, strange_headings, without_lead_in
from .languages import is_foreign
from .naming import Names
from .needs import needs_of, safe
from .own import own_words, points_of
from .polarity import inverted, renumbered
from .retracted import retractions_wrong
from .seal import lacking_in, sealed_with
from .secrets import has_secret
from .verdict import CODES, Reason, Verdict
from .wording import is_empty, is_normal, misworded, transcribed

if TYPE_CHECKING:
    from collections.abc import Container, Iterator, Mapping, Sequence

    from .facts import Facts
    from .headings import Section
    from .known import Known
    from .needs import Need, Needs
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


class Gate:
    """Judges summaries of one source. What follows from the facts and the source alone is found once, here."""

    __slots__ = ("_allowed", "_facts", "_family", "_names", "_needed", "_points", "_rules", "_source")

    def __init__(
        self,
        facts: Facts,
        source: Source,
        *,
        cap_tokens: int,
        family: str = "o200k",
        names: Names | None = None,
        needed_tokens: int | None = None,
    ) -> None:
        """Read what summaries are judged by.

        Args:
            facts: what has to be kept.
            source: what the summaries are made from.
            cap_tokens: how long they may be [tokens]; `allowed_tokens` tells when they may be longer.
            family: the tokenizer's family, one of `FAMILIES`.
            names: what they may name, if it was found already.
            needed_tokens: what the facts alone take up as a summary, if it was counted already [tokens].

        Raises:
            InvalidArgument: there is no such family.
        """
        self._facts = facts
        self._source = source
        self._family = family
        self._allowed = allowed_tokens(facts, source, cap_tokens, family, needed_tokens)
        self._needed = needs_of(facts)
        self._points = points_of(facts)
        self._rules = tuple(map(safe, facts.constraints))
        self._names = Names(source.known, source.texts, facts) if names is None else names

    def __repr__(self) -> str:
        """Without the content."""
        return f"Gate({self._facts!r}, {self._source!r})"

    def evaluate(self, text: str, stop_reason: str | None = "end") -> Verdict:
        """Seal a summary, then judge it, without a line that only says that it follows. Fails for no text.

        Args:
            text: what the model wrote; anything but a str is refused.
            stop_reason: why the model stopped, in any provider's words; None: not known, which counts as normal.

        Returns:
            The verdict. What had to be sealed is a warning.
        """
        stopped = [] if is_normal(stop_reason) else [Reason("stop_reason")]
        unread = _unreadable(text, self._allowed)
        if unread is not None:
            return _verdict([*stopped, unread], "", 0)
        said = self._read(without_lead_in(text))
        missing = [Reason(needs.code, "warning", what=need.what) for needs, found in said.lacking for need in found]
        absent = frozenset(reason.what for reason in missing if reason.code == "constraint_missing")
        sealed = sealed_with(said.layout, said.lacking)
        summary = self._read(sealed) if missing else said._replace(text=sealed)
        tokens = estimate_tokens(sealed, self._family)
        judged = [*misworded(said.layout, said.own), *self._judged(summary, tokens, absent)]
        failed = {(reason.code, reason.what) for reason in judged}
        warned = [reason for reason in missing if (reason.code, reason.what) not in failed]
        return _verdict([*stopped, *judged, *warned], sealed, tokens)

    def judge(self, text: str) -> tuple[Reason, ...]:
        """Judge a text as it is, without sealing it."""
        unread = _unreadable(text, self._allowed)
        if unread is not None:
            return (unread,)
        said = self._read(text)
        tokens = estimate_tokens(text, self._family)
        found = [*misworded(said.layout, said.own), *self._judged(said, tokens, frozenset())]
        return tuple(sorted(found, key=_place))

    def _read(self, text: str) -> _Summary:
        layout = Layout(text)
        return _Summary(text, layout, own_words(layout, self._points), lacking_in(layout, self._needed))

    def _judged(self, said: _Summary, tokens: int, absent: frozenset[int | None]) -> Iterator[Reason]:
        """All that is wrong with a summary. `absent`: the rules that it lacked before it was sealed."""
        facts, own, names = self._facts, said.own, self._names.fresh()
        yield from _headings_wrong(said.layout, facts, self._points)
        yield from _strange_parts(said)
        yield from _length_wrong(tokens, self._source, self._allowed)
        for needs, lacking in said.lacking:
            yield from (Reason(needs.code, what=need.what) for need in lacking)
        yield from _rules_inverted(self._rules, own, absent)
        yield from retractions_wrong(facts, own)
        yield from names.unknown(own.text)
        yield from names.strange_numbers(own.text)
        yield from names.lost_pointers(own.text, self._source.frames)
        yield from transcribed(own)
        yield from questions_wrong(said.layout, facts)
        if has_secret(said.text):
            yield Reason("secret_sealed")
        if is_foreign(own.text, facts.languages):
            yield Reason("language")


class _Summary(NamedTuple):
    """A summary as it was read."""

    text: str
    layout: Layout
    own: Own
    lacking: list[tuple[Needs, Sequence[Need]]]


def evaluate(
    text: str,
    facts: Facts,
    source: Source,
    *,
    cap_tokens: int,
    family: str = "o200k",
    stop_reason: str | None = "end",
) -> Verdict:
    """Seal a summary, then judge it: `Gate.evaluate` for a single one."""
    return Gate(facts, source, cap_tokens=cap_tokens, family=family).evaluate(text, stop_reason)


def judge(text: str, facts: Facts, source: Source, *, cap_tokens: int, family: str = "o200k") -> tuple[Reason, ...]:
    """Judge a text as it is, without sealing it: `Gate.judge` for a single one."""
    return Gate(facts, source, cap_tokens=cap_tokens, family=family).judge(text)


def allowed_tokens(
    facts: Facts, source: Source, cap_tokens: int, family: str = "o200k", needed_tokens: int | None = None
) -> int:
    """How long a summary may be [tokens]: half of the source, and the cap.

    Where what has to be kept word for word takes more than three quarters of the cap, the cap gives way to it and to a
    quarter for the model's own words, never to more than half of the source.
    """
    half = source.tokens // 2
    if half <= cap_tokens:
        return half
    if needed_tokens is None:
        needed_tokens = estimate_tokens(compose(facts, cap_tokens=0, family=family), family)
    return min(half, max(cap_tokens, needed_tokens + cap_tokens // _ROOM))


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


def _headings_wrong(layout: Layout, facts: Facts, points: Mapping[str, frozenset[str]]) -> Iterator[Reason]:
    there = [section.name for section in layout.sections]
    for what, name in enumerate(NAMES):
        if name not in there and name != OPTIONAL:
            yield Reason("heading_missing", what=what)
        if there.count(name) > 1:
            yield Reason("heading_twice", count=there.count(name), what=what)
    places = [NAMES.index(name) for name in dict.fromkeys(there)]
    if places != sorted(places):
        yield Reason("heading_order")
    goal = "" if facts.goal is None else safe(facts.goal)
    said = {"Goal": bool(goal), "Progress": bool(facts.inputs or facts.decisions)}
    bare = {section.name for section in layout.sections if _is_bare(layout, section, points[section.name], said)}
    yield from (Reason("heading_empty", what=what) for what, name in enumerate(NAMES) if name in bare)


def _strange_parts(said: _Summary) -> Iterator[Reason]:
    """What stands under no heading of a summary."""
    unknown = strange_headings(said.own.text.split("\n"), said.layout.is_code)
    if unknown:
        yield Reason("heading_unknown", count=unknown)
    if not is_empty(said.own.before.strip(" \t\r\n-*_")):
        yield Reason("text_before")


def _is_bare(layout: Layout, section: Section, points: frozenset[str], said: Mapping[str, bool]) -> bool:
    """Whether a heading has no body, or says None although there is something. `points`: its facts."""
    if any(item.key in points for item in layout.items(section)):
        return False  # somebody's own words, whatever they are
    body = layout.body(section)
    return is_empty(body.strip(" \t\n-*+>#`")) or (said.get(section.name, False) and is_nothing(body))


def _length_wrong(tokens: int, source: Source, allowed: int) -> Iterator[Reason]:
    if tokens > allowed:
        yield Reason("too_long", count=tokens, limit=allowed)
    if tokens < LEAST_TOKENS:
        yield Reason("too_short", count=tokens, limit=LEAST_TOKENS)
    saved = source.tokens - tokens
    if saved < GAIN_TOKENS and saved * GAIN_SHARE < source.view_tokens:
        yield Reason("no_gain", count=max(0, saved), limit=min(GAIN_TOKENS, source.view_tokens // GAIN_SHARE))


def _rules_inverted(rules: Sequence[str], own: Own, absent: frozenset[int | None]) -> Iterator[Reason]:
    """An opposite beside the rule is told of; among the rules in its place it is refused, another number there, too."""
    replaced = set[int]()
    if absent:
        replaced = {*inverted(rules, own.rules), *renumbered(rules, own.rules)} & absent
    for what in sorted(replaced.union(inverted(rules, own.text))):
        yield Reason("constraint_inverted", "error" if what in replaced else "warning", what=what)
