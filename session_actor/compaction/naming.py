"""Whether what a summary names is known: paths, addresses, hashes, ids, numbers and frames."""

from __future__ import annotations

import re
from collections import Counter
from copy import copy
from typing import TYPE_CHECKING, Final

from .disguises import unstyled
from .identifiers import found_in, holds_name, holds_part, numbers_in, plain_number, schemes_in
from .verdict import Reason

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Iterator

    from .facts import Fact, Facts
    from .known import Known

_CODES: Final = {"path": "unknown_path", "url": "unknown_url", "hash": "unknown_hash"}
_OTHER: Final = "unknown_id"
_IN_PARTS: Final = frozenset({"path", "url"})
_LOOKED_UP: Final = 64
"""So many names that are not known as they stand are looked for in the source; the others count as unknown."""

_UNKNOWN_NUMBERS: Final = 2
_LEAST_DIGITS: Final = 3
_POINTER: Final = re.compile(
    r"(?i)\bframes?[ \t]{1,4}#?([0-9]{1,18})(?:[ \t]{0,4}(?:-|\u2013|to|and|,)[ \t]{0,4}#?([0-9]{1,18}))?(?![\w])"
)
_MARKER: Final = re.compile(r"(?m)^[ \t]*(?:[0-9]{1,3}[.)](?=[ \t])|[\u2460-\u249b]|[^\D0-9]{1,3}[.)\u3001\uff0e])")

_STOP: Final = re.compile(r"(?<=\w)[\u3002\uff61](?=[A-Za-z])")
"""What stands for a dot in the name of a host."""


class _Plain:
    """Those of the source's texts that have letters or digits of other widths and styles, in plain ones."""

    def __init__(self, texts: Iterable[str]) -> None:
        self._styled = texts
        self._texts: tuple[str, ...] | None = None

    @property
    def texts(self) -> tuple[str, ...]:
        """Found when they are asked for first."""
        if self._texts is None:
            self._texts = tuple(plain for text in self._styled if (plain := unstyled(text)) != text)
        return self._texts


class Names:
    """What a summary may name."""

    def __init__(self, known: Known, texts: Iterable[str], facts: Facts) -> None:
        """`texts`: all of the source."""
        self._known = known
        self._texts = tuple(texts)
        self._plain = _Plain(self._texts)
        kept = list(map(unstyled, _texts_of(facts)))
        self._kept = frozenset(name.text for text in kept for name in found_in(text).names)
        self._numbers = frozenset(number for text in kept for number in numbers_in(text))
        self._left = _LOOKED_UP

    def fresh(self) -> Names:
        """The same, with nothing looked up yet."""
        again = copy(self)
        again._left = _LOOKED_UP  # noqa: SLF001 - of the same class
        return again

    def unknown(self, own: str) -> Iterator[Reason]:
        """The names of a text that the source does not have, by kind."""
        count: Counter[str] = Counter()
        plain = _STOP.sub(".", unstyled(own))
        for name in (*found_in(plain).names, *schemes_in(plain)):
            if not self._has(name.text, name.kind):
                count[_CODES.get(name.kind, _OTHER)] += 1
        return (Reason(code, count=number) for code, number in sorted(count.items()))

    def _has(self, text: str, kind: str) -> bool:
        names, kept = self._known.names, self._kept
        if text in names or text in kept or text.removeprefix("./") in names:
            return True
        if text.startswith("#") and plain_number(text[1:]) in self._known.numbers:
            return True
        if kind in _IN_PARTS:
            return self._finds(text.rstrip("/\\"), parts=True)
        return self._finds(text, parts=False)

    def _finds(self, text: str, *, parts: bool) -> bool:
        if self._left <= 0:
            return False
        self._left -= 1
        holds = holds_part if parts else holds_name
        if any(holds(source, text) for source in self._texts if text in source):
            return True
        return any(holds(source, text) for source in self._plain.texts if text in source)

    def strange_numbers(self, own: str) -> Iterator[Reason]:
        """Too many numbers that the source does not have, and those that look like one that is kept."""
        plain = unstyled(_MARKER.sub("", _POINTER.sub("", own)))
        strange = [
            number
            for number in dict.fromkeys(numbers_in(plain))
            if number not in self._known.numbers and number not in self._numbers and not self._finds(number, parts=True)
        ]
        changed = sum(any(is_near(number, kept) for kept in sorted(self._numbers)) for number in strange)
        if len(strange) > _UNKNOWN_NUMBERS:
            yield Reason("unknown_numbers", count=len(strange), limit=_UNKNOWN_NUMBERS)
        if changed:
            yield Reason("number_changed", count=changed)

    def lost_pointers(self, own: str, frames: Container[int]) -> Iterator[Reason]:
        """Frames that are pointed to and are neither on the path nor spoken of in the source."""
        lost = 0
        for pointer, numbers in {found[0]: found.groups() for found in _POINTER.finditer(own)}.items():
            named = [int(number) for number in numbers if number]
            if any(number not in frames for number in named) and not self._finds(pointer, parts=True):
                lost += 1
        if lost:
            yield Reason("pointer_unknown", count=lost)


def is_near(number: str, kept: str) -> bool:
    """Whether two numbers differ by one digit that was lost, added or changed, or by two that changed places.

    Short ones are never near.
    """
    one, other = sorted((number.replace(".", ""), kept.replace(".", "")), key=len)
    if len(one) < _LEAST_DIGITS or len(other) - len(one) > 1:
        return False
    same = next((at for at, digit in enumerate(one) if digit != other[at]), len(one))
    if len(one) == len(other):
        is_swapped = one[same : same + 2] == other[same : same + 2][::-1]
        return one[same + 1 :] == other[same + 1 :] or (is_swapped and one[same + 2 :] == other[same + 2 :])
    return one[same:] == other[same + 1 :]


def _texts_of(facts: Facts) -> Iterator[str]:
    lists: tuple[tuple[Fact, ...], ...] = (facts.constraints, facts.decisions, facts.assumptions, facts.retracted)
    for kept in (*lists, facts.artifacts, facts.identifiers, facts.inputs):
        yield from (fact.text for fact in kept)
    yield from (fact.text for fact in (facts.goal, facts.open_question) if fact is not None)
