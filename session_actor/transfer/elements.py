"""The values of JSON text one by one, so that one that cannot be read costs itself alone.

Ends are found by brackets and quotes, whatever stands between them. So a value with a doubled key, nested too deep or
with other bytes than UTF-8 has its end, and what follows it is found; one that is torn goes on to where brackets close.
"""

from __future__ import annotations

import re
from itertools import chain, islice
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

_BEFORE: Final = re.compile(rb"\0*")
_BETWEEN: Final = re.compile(rb"(?:[ \t\r\n,]++|\xef\xbb\xbf)*+")
_STRING: Final = rb'"(?:[^"\\]++|\\.)*+"'
_BARE: Final = re.compile(_STRING + rb'|"|[^\[\]{}",]++', re.DOTALL)
"""A value without brackets, or a quote that nothing closes."""
_BRACKET: Final = re.compile(rb'(?:[^"\[\]{}]++|' + _STRING + rb")*+([\[\]{}]?)", re.DOTALL)
"""All up to the next bracket that is in no string; of what does not close its quote no bracket."""
_OPENER: Final = {b"]": ord("["), b"}": ord("{")}


class Element(NamedTuple):
    """A value of a text, in a list at its top or beside one."""

    offset: int
    """Where it begins [bytes]."""
    data: bytes
    """Its text; empty where a list does not end."""
    list: int
    """In which of the text's lists it stands, from 1; 0: in none."""


def elements_of(data: bytes, offset: int = 0) -> Iterator[Element]:
    """The values that stand at the top of a text, of lists their elements. `offset`: where the text begins."""
    lists, inside = 0, False
    at = _past(_BEFORE, data, 0)
    while (at := _past(_BETWEEN, data, at)) < len(data):
        kind, start = data[at : at + 1], at
        if kind == b"[" and not inside:
            lists, inside, at = lists + 1, True, at + 1
            continue
        if kind == b"]" and inside:
            inside, at = False, at + 1
            continue
        end = _end_of(data, at)
        at = len(data) if end is None else end
        yield Element(offset + start, data[start:at], lists if inside else 0)
        if end is None:
            return
    if inside:
        yield Element(offset + len(data), b"", lists)


def are_many(elements: Iterator[Element]) -> tuple[bool, Iterator[Element]]:
    """Whether there is more than one, and all of them."""
    first = list(islice(elements, 2))
    return len(first) > 1 and first[1].data != b"", chain(first, elements)


def _past(pattern: re.Pattern[bytes], data: bytes, at: int) -> int:
    found = pattern.match(data, at)
    return found.end() if found else at


def _end_of(data: bytes, at: int) -> int | None:
    """Where the value ends that begins there: at the latest where the list ends that it is in. None: it does not."""
    if data[at : at + 1] in _OPENER:  # it closes what nothing opened
        return at + 1
    if data[at : at + 1] not in {b"[", b"{"}:
        end = _past(_BARE, data, at)
        return None if data[at:end] == b'"' else end
    opened = bytearray()
    while (found := _BRACKET.match(data, at)) and (kind := found[1]):
        at = found.end()
        if kind not in _OPENER:
            opened += kind
        elif opened == b"{" and kind == b"]":
            return at - 1
        elif _closes(opened, _OPENER[kind]):
            return at
    return None


def _closes(opened: bytearray, opener: int) -> bool:
    """Close what is open, if the bracket fits it, or what is around it; whether nothing is open any more."""
    for depth in (1, 2):
        if opened[-depth:][:1] == bytes((opener,)) and len(opened) >= depth:
            del opened[-depth:]
            break
    return not opened
