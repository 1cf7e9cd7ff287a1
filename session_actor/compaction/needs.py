"""What has to stand under which heading of a summary."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from .identifiers import holds_name
from .secrets import redacted
from .texts import folded, key

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from .facts import Fact, Facts

_ENDS: Final = ".!?:;…。！？"  # noqa: RUF001 - ends of sentences


class Need(NamedTuple):
    """One line that has to be there."""

    line: str
    """As it is sealed."""
    key: str
    """As it is looked for."""
    what: int
    """Its place among the facts of its kind."""


class Needs(NamedTuple):
    """All that has to stand under one heading."""

    heading: str
    code: str
    """The code of the reason when it does not."""
    wanted: tuple[Need, ...]


def safe(fact: Fact) -> str:
    """The words of a fact, on one line and without secrets."""
    return redacted(folded(fact.text))


def artifact_line(fact: Fact) -> str:
    """An artifact as it is listed."""
    text = safe(fact)
    return f"{text} ({fact.kind})" if text and fact.kind else text


def needs_of(facts: Facts) -> tuple[Needs, ...]:
    """What a summary has to hold, by heading."""
    return (
        _needs("Constraints", "constraint_missing", map(safe, facts.constraints)),
        _needs("Decisions", "decision_missing", map(safe, facts.decisions)),
        _needs("Assumptions", "assumption_missing", map(safe, facts.assumptions)),
        _needs("Retracted", "retraction_missing", map(safe, facts.retracted)),
        _artifacts(facts),
        _needs("Identifiers", "identifier_missing", map(safe, facts.identifiers)),
    )


def _needs(heading: str, code: str, texts: Iterable[str]) -> Needs:
    return Needs(heading, code, tuple(Need(text, key(text), what) for what, text in enumerate(texts) if text))


def _artifacts(facts: Facts) -> Needs:
    lines = [(artifact_line(fact), key(safe(fact)), what) for what, fact in enumerate(facts.artifacts)]
    return Needs("Files", "artifact_missing", tuple(Need(*line) for line in lines if line[1]))


def is_said(wanted: str, items: frozenset[str], joined: str) -> bool:
    """Whether a point says exactly this: it is the point, or whole sentences of one. `joined`: all, one a line."""
    if wanted in items:
        return True
    at = joined.find(wanted)
    while at >= 0:
        if _is_whole(joined, at, at + len(wanted)):
            return True
        at = joined.find(wanted, at + max(1, len(wanted)))
    return False


def _is_whole(text: str, start: int, end: int) -> bool:
    before, after = text[max(0, start - 2) : start], text[end : end + 2]
    begins = not before or before[-1] == "\n" or (before[-1] == " " and before[0] in _ENDS)
    if not begins or not after or after[0] == "\n":
        return begins
    if text[end - 1] in _ENDS:
        return after[0] == " "
    return after[0] in _ENDS and (len(after) == 1 or after[1].isspace())


def absent_names(needs: Needs, text: str) -> Sequence[Need]:
    """The names that a text does not hold for themselves."""
    return [need for need in needs.wanted if not holds_name(text, need.key)]
