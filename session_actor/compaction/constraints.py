"""Rules that a user gives: the sentences that say never, must, only, unless, at most and the like."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, Final, NamedTuple

from .rule_kinds import lays_down, places_in
from .secrets import redacted
from .texts import apostrophes, key, sentences

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_WORDS: Final = (
    *("never", "must", "mustn't", "must not", "only", "do not", "don't", "dont", "unless", "at most", "at least"),
    *("always", "no more than", "no less than", "no fewer than", "no later than", "no earlier than", "not exceed"),
    *("require", "requires", "required", "forbidden", "forbid", "prohibited", "not allowed", "may not", "shall"),
    *("should not", "shouldn't", "under no circumstances", "make sure", "ensure", "avoid", "refrain from"),
    *("not more than", "not less than", "no longer than", "mandatory", "off limits", "off-limits", "without asking"),
)
_ASKS: Final = re.compile(
    r"(?i)(?:\A|[,;:] )(?:why|what|when|where|who|how|which|is|are|was|were|am|do|does|did|has|have|had|should|must"
    r"|may)\b"
)
_REQUEST: Final = re.compile(r"(?i)(?:please|(?:can|could|would|will) you)\b")
_UNSURE: Final = re.compile(
    r"(?i)\bi (?:do not|don't|dont) (?:know|think|tink|understand|see|get|remember|recall|believe)\b"
)
"""Says nothing of what is to be done."""
_CLAUSE: Final = re.compile(r"(?<=[,;:—])\s")
_LONGEST: Final = 600
_GAP: Final = r"[*_`~]{0,3} [*_`~]{0,3}"
"""Between the words of a marker: one of them may be emphasised."""
_UNSPACED: Final = 0x2E80
"""From here on are the scripts that put no spaces between words."""


class Markers(NamedTuple):
    """The words that make a sentence a rule."""

    words: tuple[str, ...]


ENGLISH: Final = Markers(_WORDS)
"""What is built in."""


def markers_with(extra: Iterable[str]) -> Markers:
    """The English markers and an embedder's own, for other languages; a marker may be several words."""
    more = sorted({key(word) for word in extra} - {""} - set(_WORDS))
    return Markers((*_WORDS, *more)) if more else ENGLISH


@lru_cache(maxsize=64)
def _pattern(markers: Markers) -> re.Pattern[str]:
    """One pattern for all; words that begin with another come first."""
    spaced = sorted((word for word in markers.words if not _is_unspaced(word)), key=lambda word: (-len(word), word))
    unspaced = sorted(word for word in markers.words if _is_unspaced(word))
    words = "|".join(_GAP.join(map(re.escape, word.split(" "))) for word in spaced)
    either = [rf"(?<!\w)_{{0,2}}(?:{words})_{{0,2}}(?!\w)", *map(re.escape, unspaced)]
    return re.compile("|".join(either), re.IGNORECASE)


def _is_unspaced(word: str) -> bool:
    return any(ord(character) >= _UNSPACED for character in word)


def rules_in(text: str, markers: Markers = ENGLISH) -> Iterator[str]:
    """The rules in a text, in its order, each folded, secrets hidden; a question is none."""
    pattern = _pattern(markers)
    for sentence in sentences(text):
        plain = _UNSURE.sub("", apostrophes(sentence))
        if (pattern.search(plain) is None and not lays_down(plain)) or _is_question(plain):
            continue
        if len(sentence) <= _LONGEST:
            yield redacted(sentence)
        else:
            yield from map(redacted, _pieces(sentence, pattern))


def _is_question(sentence: str) -> bool:
    """Whether it asks for an answer, and not for something to be done."""
    return sentence.endswith("?") and not _REQUEST.match(sentence) and _ASKS.search(sentence) is not None


def _pieces(sentence: str, pattern: re.Pattern[str]) -> Iterator[str]:
    """The clauses of an endless sentence that hold a marker; of endless clauses what stands around it."""
    for clause in _CLAUSE.split(sentence):
        done = 0
        plain = apostrophes(clause)
        for place in sorted({*(found.start() for found in pattern.finditer(plain)), *places_in(plain)}):
            if place < done:
                continue
            start = max(done, place - _LONGEST // 3) if len(clause) > _LONGEST else 0
            done = min(len(clause), start + _LONGEST) if len(clause) > _LONGEST else len(clause)
            yield _whole_words(clause, start, done)


def _whole_words(clause: str, start: int, end: int) -> str:
    """A piece of a clause, without the halves of words at its ends."""
    first = clause.find(" ", start, start + _LONGEST // 4) if start else -1
    last = clause.rfind(" ", end - _LONGEST // 4, end) if end < len(clause) else -1
    return clause[first + 1 if first >= 0 else start : last if last >= 0 else end].strip()
