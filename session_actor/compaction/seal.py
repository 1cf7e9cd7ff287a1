"""Sealing: what a summary left out of the facts is put back under its heading, word for word."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from .headings import HEADINGS, NAMES, OPTIONAL, Layout, is_nothing, unquoted
from .needs import absent_names, is_said, needs_of
from .texts import fenced, key

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .facts import Facts
    from .headings import Section
    from .needs import Need, Needs

_BEFORE: Final = "Progress"
"""The heading that a missing `Retracted` is put before."""


def seal(text: str, facts: Facts) -> str:
    """The summary with what it lacks of the facts at the end of the section that it belongs to.

    A body that only says `None` gives way. Where a heading is missing nothing is put; only `Retracted` is made, before
    `Progress`. Sealing again changes nothing. Lines end in a line feed afterwards.
    """
    layout = Layout(text)
    return sealed_with(layout, lacking_in(layout, needs_of(facts)))


def sealed_with(layout: Layout, absent: Sequence[tuple[Needs, Sequence[Need]]]) -> str:
    """The summary with what it lacks. `absent`: as `lacking_in` gives it."""
    lines = list(layout.lines)
    places = [(_place(layout, needs), needs, lacking) for needs, lacking in absent]
    for place, needs, lacking in sorted(places, key=lambda one: one[0], reverse=True):
        section = layout.section(needs.heading)
        if section is not None:
            nothing = is_nothing(layout.body(section))
            end = _end(layout, section)
            _put(lines, section.heading + 1, end, _points(needs.wanted if nothing else lacking), instead=nothing)
        elif place >= 0:
            lines[place:place] = [HEADINGS[NAMES.index(OPTIONAL)], *_points(lacking), ""]
    return "\n".join(lines)


def _place(layout: Layout, needs: Needs) -> int:
    """The line where something is put; below 0: nowhere."""
    section = layout.section(needs.heading)
    if section is None and needs.heading == OPTIONAL:
        section = layout.section(_BEFORE)
    return -1 if section is None else section.heading


def _points(needed: Sequence[Need]) -> list[str]:
    return [f"- {line}" for line in dict.fromkeys(need.line for need in needed)]


def lacking_in(layout: Layout, needed: Sequence[Needs]) -> list[tuple[Needs, Sequence[Need]]]:
    """What is not there, by heading; headings that lack nothing are left out."""
    found = [(needs, _lacking(layout, needs)) for needs in needed]
    return [(needs, lacking) for needs, lacking in found if lacking]


def _lacking(layout: Layout, needs: Needs) -> Sequence[Need]:
    if not needs.wanted:
        return ()
    section = layout.section(needs.heading)
    if needs.heading == "Identifiers" and (section is None or not is_nothing(layout.body(section))):
        return absent_names(needs, key("\n".join(_outside(layout, OPTIONAL))))
    if section is None or is_nothing(layout.body(section)):
        return [need for need in needs.wanted if section is None or not is_nothing(need.key)]
    if needs.heading == "Files":
        return absent_names(needs, key(layout.body(section)))
    points = [item.key for item in layout.items(section)]
    items = frozenset((*points, *map(unquoted, points)))
    joined = "\n".join(points)
    return [need for need in needs.wanted if not is_said(need.key, items, joined)]


def _outside(layout: Layout, name: str) -> list[str]:
    section = layout.section(name)
    return layout.lines if section is None else layout.lines[: section.heading] + layout.lines[section.end :]


def _end(layout: Layout, section: Section) -> int:
    """The line behind a section's last one that is read: code that is never closed would hide what stands behind it."""
    end = section.end
    if fenced([*layout.lines[:end], ""])[-1]:
        while end > section.heading + 1 and layout.is_code[end - 1]:
            end -= 1
    return end


def _put(lines: list[str], start: int, end: int, points: list[str], *, instead: bool) -> None:
    """Add points to the lines of a section, or put them in the place of what it says."""
    if instead:
        lines[start:end] = [*points, *([""] if end < len(lines) else [])]
        return
    while end > start and not lines[end - 1].strip():
        end -= 1
    lines[end:end] = points
