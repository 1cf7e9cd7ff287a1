"""Whether the open question is still there, and none that was answered."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from .headings import is_nothing
from .needs import safe
from .texts import key
from .verdict import Reason

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .facts import Facts
    from .headings import Layout

_WORD: Final = re.compile(r"\w{3,}")
_PRESENT: Final = 0.6
_SAME: Final = 0.8
_FEWEST: Final = 3
"""Questions of fewer words are only known word for word."""


def questions_wrong(layout: Layout, facts: Facts) -> Iterator[Reason]:
    """What is wrong under `Open question`."""
    section = layout.section("Open question")
    if section is None:
        return
    body = key(layout.body(section))
    asked = None if facts.open_question is None else key(safe(facts.open_question))
    if asked is not None and not _is_there(asked, body):
        yield Reason("question_missing")
    points = [] if is_nothing(body) else [item.key for item in layout.items(section)]
    listed = sum(any(_is_same(question, point) for question in facts.answered) for point in points if point != asked)
    if listed:
        yield Reason("question_answered", count=listed)


def _is_there(asked: str, body: str) -> bool:
    if asked in body:
        return True
    words = _words(asked)
    return len(words) >= _FEWEST and len(words & _words(body)) >= _PRESENT * len(words)


def _is_same(question: str, point: str) -> bool:
    """Whether a point asks this, word for word or nearly so."""
    plain, said = key(question).casefold(), point.casefold()
    one, other = _words(plain), _words(said)
    if len(one) < _FEWEST:
        return plain == said
    return plain in said or len(one & other) >= _SAME * max(len(one), len(other))


def _words(text: str) -> frozenset[str]:
    return frozenset(_WORD.findall(text.casefold()))
