"""What a summary says in its own words: without the facts that it repeats word for word."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from .disguises import as_seen
from .headings import MADE_OF_FACTS, OPTIONAL, is_nothing
from .needs import artifact_line, safe
from .texts import key

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from .facts import Fact, Facts
    from .headings import Layout

_MADE: Final = key(MADE_OF_FACTS)
_LAWS: Final = ("Constraints", "Decisions", "Assumptions")


class Own(NamedTuple):
    """A summary without the facts that are whole points of it."""

    text: str
    """All of it."""
    seen: str
    """The same as it looks."""
    kept: str
    """What stands outside `Retracted`."""
    rules: str
    """What stands under `Constraints`."""
    laws: str
    """What stands under `Constraints`, `Decisions` and `Assumptions`."""
    retracted: str
    """What stands under `Retracted`."""
    before: str
    """What stands before the first heading."""


def own_words(layout: Layout, known: Mapping[str, frozenset[str]]) -> Own:
    """Leave out what is a fact of its section, word for word. Such a point is the user's or the embedder's wording.

    `known`: as `points_of` gives it.
    """
    lines = list(layout.lines)
    for section in layout.sections:
        lines[section.heading] = ""
        if is_nothing(layout.body(section)):
            lines[section.heading + 1 : section.end] = [""] * (section.end - section.heading - 1)
        repeated = known.get(section.name, frozenset())
        for item in layout.items(section) if repeated else ():
            if item.key in repeated:
                lines[item.start : item.end] = [""] * (item.end - item.start)
    retracted = layout.section(OPTIONAL)
    kept = lines if retracted is None else lines[: retracted.heading] + lines[retracted.end :]
    laws = {name: _under(layout, lines, name) for name in _LAWS}
    first = layout.sections[0].heading if layout.sections else 0
    text = "\n".join(lines)
    return Own(
        text,
        as_seen(text),
        "\n".join(kept),
        laws["Constraints"],
        "\n".join(laws.values()),
        _under(layout, lines, OPTIONAL),
        "\n".join(lines[:first]),
    )


def _under(layout: Layout, lines: Sequence[str], name: str) -> str:
    """The lines under all headings of a name."""
    found = (lines[section.heading + 1 : section.end] for section in layout.sections if section.name == name)
    return "\n".join(line for body in found for line in body)


def points_of(facts: Facts) -> dict[str, frozenset[str]]:
    """The facts as points, by section."""
    goal = () if facts.goal is None else (facts.goal,)
    question = () if facts.open_question is None else (facts.open_question,)
    return {
        "Goal": _keys(goal),
        "Constraints": _keys(facts.constraints),
        "Decisions": _keys(facts.decisions),
        "Assumptions": _keys(facts.assumptions),
        "Retracted": _keys(facts.retracted),
        "Progress": _keys(facts.inputs) | {_MADE},
        "Files": frozenset(key(artifact_line(fact)) for fact in facts.artifacts),
        "Identifiers": _keys(facts.identifiers),
        "Open question": _keys(question),
    }


def _keys(facts: Iterable[Fact]) -> frozenset[str]:
    return frozenset(key(safe(fact)) for fact in facts)
