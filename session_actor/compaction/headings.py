"""The headings of a summary, what stands under them, and a whole summary made of facts alone."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple

from session_actor.tokens.estimate import estimate_tokens

from .needs import artifact_line, safe
from .texts import fenced, folded, key, lines_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from .facts import Fact, Facts

NAMES: Final = (
    *("Goal", "Constraints", "Decisions", "Assumptions", "Retracted"),
    *("Progress", "Files", "Identifiers", "Open question"),
)
"""What the headings are called, in their order."""

HEADINGS: Final = tuple(f"## {name}" for name in NAMES)
"""The headings of a summary, each once, in this order."""

OPTIONAL: Final = "Retracted"
"""It is only there when something was taken back."""

NOTHING: Final = "None"

MADE_OF_FACTS: Final = (
    "No model wrote this summary: it was put together from what was recorded. The rules, decisions and assumptions "
    "here are complete and word for word; of the messages only the beginnings of the last ones are quoted below, and "
    "what tools returned is not repeated. Read files again before changing them."
)
"""What a summary without a model says of itself."""

_LEAD_IN: Final = re.compile(
    r"(?i)\A\s{0,9}(?:(?:sure|certainly|of course|okay|ok|understood)[,.!:]?\s{1,3})?"
    r"(?:(?:here(?:'s|\u2019s| is)|below is|this is|the following is) (?:the|a|my|your) (?:[a-z-]{1,20} ){0,3}summary"
    r"|# (?:[a-z-]{1,20} ){0,2}summary)(?: of (?:the|our|this)(?: [a-z]{1,20}){1,3})?[:.]?[ \t]{0,9}\n\s{0,9}(?=## )"
)
"""A title, or a line that only says that the summary follows."""
_NAMES: Final = {name.casefold(): name for name in NAMES}
_HEADING: Final = re.compile(r" {0,3}##[ \t]+([*_]{0,2})([A-Za-z][A-Za-z ]{0,20}?)[ \t]*:?\1[ \t]*:?[ \t]*#*[ \t]*\Z")
_OTHER: Final = re.compile(r" {0,3}#{1,2}[ \t]+\S")
_STRANGE: Final = re.compile(
    r"(?:[ \t]*(?:>|[-*+•]|[0-9]{1,3}[.)])[ \t]*){0,8} {0,3}(?:\uff03|#){1,2}(?:[ \t]+\S|(?<=##)[A-Za-z])"
    r"|\s*<[hH][12][ >]"
)
"""A heading of the first or second level, also one that stands in a quote or a list or is not written quite right."""
_UNDERLINE: Final = re.compile(r" {0,3}(?:={2,}|-{2,})[ \t]*")
_UNDERLINED: Final = re.compile(r"[^\s|>*+-].{0,59}(?<![.!?:;,\s|])[ \t]*")
_BULLET: Final = re.compile(r"[ \t]*(?:[-*+•]|[0-9]{1,3}[.)])(?:[ \t]+|\Z)")
_NOTHING: Final = frozenset({"none", "n/a", "nothing", "none so far", "none yet"})
_AROUND: Final = " .!()[]*_-\u2013\u2014"
_BLANK: Final = " \t*_-+\u2013\u2014"
_FEW_WORDS: Final = 64
_QUOTES: Final = "\"'`*_“”‘’«»"  # noqa: RUF001 - all that quotes


class Section(NamedTuple):
    """A heading and the lines under it."""

    name: str
    heading: int
    """The line of the heading."""
    end: int
    """The line behind its last."""


class Item(NamedTuple):
    """A point of a list, or a paragraph."""

    key: str
    start: int
    end: int


class Layout:
    """A text by its headings."""

    __slots__ = ("is_code", "lines", "sections")

    def __init__(self, text: str) -> None:
        """Read a text; any will do."""
        self.lines = lines_of(text)
        self.is_code = fenced(self.lines)
        self.sections = tuple(_sections(self.lines, self.is_code))

    def section(self, name: str) -> Section | None:
        """The first section of that name; None: there is none."""
        return next((section for section in self.sections if section.name == name), None)

    def body(self, section: Section) -> str:
        """The lines under a heading."""
        return "\n".join(self.lines[section.heading + 1 : section.end])

    def items(self, section: Section) -> Iterator[Item]:
        """The points and paragraphs under a heading, no code fences; lines of a paragraph come for themselves, too."""
        start: int | None = None
        for at in range(section.heading + 1, section.end + 1):
            is_end = at == section.end or self.is_code[at] or not self.lines[at].strip()
            if start is not None and (is_end or _BULLET.match(self.lines[at])):
                yield from self._item(start, at)
                start = None
            if start is None and not is_end:
                start = at

    def _item(self, start: int, end: int) -> Iterator[Item]:
        lines = self.lines[start:end]
        bullet = _BULLET.match(lines[0])
        first = lines[0] if bullet is None else lines[0][bullet.end() :]
        yield Item(key("\n".join((first, *lines[1:]))), start, end)
        if bullet is None and len(lines) > 1:
            yield from (Item(key(line), start + place, start + place + 1) for place, line in enumerate(lines))


def _sections(lines: list[str], is_code: list[bool]) -> Iterator[Section]:
    name, start = "", 0
    for at, line in enumerate(lines):
        if is_code[at] or "#" not in line or _OTHER.match(line) is None:
            continue
        if name:
            yield Section(name, start, at)
        heading = _HEADING.match(line)
        name, start = "" if heading is None else _NAMES.get(folded(heading[2]).casefold(), ""), at
    if name:
        yield Section(name, start, len(lines))


def strange_headings(lines: Sequence[str], is_code: Sequence[bool]) -> int:
    """How many of the lines are headings of the first or second level. `lines`: without the known ones."""
    found = 0
    for at, line in enumerate(lines):
        if is_code[at]:
            continue
        if _STRANGE.match(line):
            found += 1
        elif _UNDERLINE.fullmatch(line) and at and _UNDERLINED.fullmatch(lines[at - 1]):
            found += at == 1 or not lines[at - 2].strip()
    return found


def without_lead_in(text: str) -> str:
    """The text without a title or a line that only says that the summary follows."""
    return _LEAD_IN.sub("", text, count=1)


def is_nothing(body: str) -> bool:
    """Whether a body says that there is nothing, and no more: dots may be a point of their own."""
    said = [line for line in lines_of(body) if line.strip(_BLANK)] if len(body) < _FEW_WORDS else ()
    return len(said) == 1 and folded(said[0]).strip(_AROUND).casefold() in _NOTHING


def unquoted(text: str) -> str:
    """A folded text without the quotes or stars around it."""
    return text.strip(_QUOTES).strip()


def compose(facts: Facts, *, cap_tokens: int, family: str = "o200k") -> str:
    """A complete summary of facts alone. The gate takes it unless it is longer than half of the source.

    What has to be kept is in it whole, however long; what was said last fills it up to the cap.

    Args:
        facts: what has to be kept.
        cap_tokens: how long it should be at most [tokens].
        family: the tokenizer's family, one of `FAMILIES`.

    Returns:
        The same text for the same arguments.

    Raises:
        InvalidArgument: there is no such family.
    """
    left = cap_tokens - estimate_tokens(_written(facts, ()), family)
    wrong = [key(fact.text) for fact in facts.retracted]
    inputs: list[Fact] = []
    for fact in reversed(facts.inputs):
        left -= estimate_tokens(f"- {safe(fact)}\n", family) + 1
        if left < 0:
            break
        if not any(text in key(fact.text) for text in wrong):
            inputs.append(fact)
    return _written(facts, tuple(reversed(inputs)))


def _written(facts: Facts, inputs: tuple[Fact, ...]) -> str:
    goal, question = facts.goal, facts.open_question
    bodies = {
        "Goal": [] if goal is None else [safe(goal)],
        "Constraints": list(map(safe, facts.constraints)),
        "Decisions": list(map(safe, facts.decisions)),
        "Assumptions": list(map(safe, facts.assumptions)),
        "Retracted": list(map(safe, facts.retracted)),
        "Progress": [MADE_OF_FACTS, *map(safe, inputs)],
        "Files": list(map(artifact_line, facts.artifacts)),
        "Identifiers": list(map(safe, facts.identifiers)),
        "Open question": [] if question is None else [safe(question)],
    }
    parts: list[str] = []
    for name, heading in zip(NAMES, HEADINGS, strict=True):
        points = list(dict.fromkeys(filter(None, bodies[name])))
        if points or name != OPTIONAL:
            parts.append("\n".join((heading, *(f"- {point}" for point in points), *(() if points else (NOTHING,)))))
    return "\n\n".join(parts) + "\n"
