"""The values of JSON text one by one, so that one that cannot be read costs itself alone.

Ends are found by brackets and quotes, whatever stands between them. So a value with a doubled key, nested too deep or
with other bytes than UTF-8 has its end, and what follows it is found; one that is torn goes on to where brackets close.
"""

from __future__ import annotations

import json
import re
from itertools import chain, islice
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from .fields import DECODER, UNREADABLE, parsed

if TYPE_CHECKING:
    from collections.abc import Iterator

_BEFORE: Final = re.compile(rb"\0*")
_BETWEEN: Final = re.compile(rb"(?:[ \t\r\n,]++|\xef\xbb\xbf)*+")
_STRING: Final = rb'"(?:[^"\\]++|\\.)*+"'
_BARE: Final = re.compile(_STRING + rb'|"|[^\[\]{}",]++', re.DOTALL)
"""A value without brackets, or a quote that nothing closes."""
_BRACKET: Final = re.compile(rb'(?:[^"\[\]{}]++|' + _STRING + rb")*+([\[\]{}]?)", re.DOTALL)
"""All up to the next bracket that is in no string; of what does not close its quote no bracket."""
_BRACKETS_AT_MOST: Final = 1_000_000
"""How many of them are looked at to find the end of one value that cannot be read: about a second."""
_OPENER: Final = {b"]": b"[", b"}": b"{"}


class Element(NamedTuple):
    """A value of a text, in a list at its top or beside one."""

    offset: int
    """Where it begins [bytes]; where a list does not end, the end of the text."""
    value: Any
    list: int
    """In which of the text's lists it stands, from 1; 0: in none."""
    error: Exception | None = None
    """Why it cannot be read."""


def elements_of(data: bytes, offset: int = 0) -> Iterator[Element]:
    """The values that stand at the top of a text, of lists their elements. `offset`: where the text begins."""
    lists, inside = 0, False
    read = _Reader(data)
    at = _past(_BEFORE, data, 0)
    while (at := _past(_BETWEEN, data, at)) < len(data):
        kind, start = data[at : at + 1], at
        if kind == b"[" and not inside:
            lists, inside, at = lists + 1, True, at + 1
            continue
        if kind == b"]" and inside:
            inside, at = False, at + 1
            continue
        value, error, end = read.value(at)
        yield Element(offset + start, value, lists if inside else 0, error)
        if end is None:
            return
        at = end
    if inside:
        yield Element(offset + len(data), None, lists, _Torn("a list that does not end", "", 0))


def are_many(elements: Iterator[Element]) -> tuple[bool, Iterator[Element]]:
    """Whether there is more than one, and all of them."""
    first = list(islice(elements, 2))
    return len(first) > 1 and not isinstance(first[1].error, _Torn), chain(first, elements)


class _Torn(json.JSONDecodeError):
    """A list has no end."""


class _Reader:
    """Reads values of a text where they begin."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._text: str | None = data.decode("latin-1")
        """A character a byte, as long as all can be read: an error counts the lines of all that is before it."""

    def value(self, at: int) -> tuple[Any, Exception | None, int | None]:
        """The value that begins there, why there is none, and where it ends (None: it does not)."""
        data = self._data
        if self._text is not None:
            try:
                value, end = DECODER.raw_decode(self._text, at)
                return value if data[at:end].isascii() else parsed(data[at:end]), None, end
            except UNREADABLE:
                self._text = None
        ends = _end_of(data, at)
        try:
            return parsed(data[at:ends]), None, ends
        except UNREADABLE as error:
            return None, error, ends


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
    opened: list[bytes] = []
    for _ in range(_BRACKETS_AT_MOST):
        found = _BRACKET.match(data, at)
        if found is None or not (kind := found[1]):
            return None
        at = found.end()
        if kind not in _OPENER:
            opened.append(kind)
        elif opened == [b"{"] and kind == b"]":
            return at - 1
        elif _closes(opened, _OPENER[kind]):
            return at
    return None


def _closes(opened: list[bytes], opener: bytes) -> bool:
    """Close what is open, if the bracket fits it, or what is around it; whether nothing is open any more."""
    if opened[-1] == opener:
        del opened[-1:]
    elif opened[-2:-1] == [opener]:
        del opened[-2:]
    return not opened
