"""Which language a text is in, as far as its script and its commonest words tell."""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING, Final, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterable

Tally: TypeAlias = tuple[tuple[str, int], ...]
"""How many of a language's commonest words were found, by language."""

_SAMPLE: Final = 1_000
_WORD: Final = re.compile(r"[^\W\d_]+")
_COMMON: Final = {
    "en": "the and of to is was that for with this are not has have been be it as on by from which will you we",
    "de": "der die das und nicht ist mit für auf ein eine den dem des zu von wird wurde sich auch bei oder im ich wir",
    "fr": "le la les des et est une dans pour que qui avec sur pas du au ont été sont un ce il nous je vous",
    "es": "el los las una que para con por está fue del como más pero se y no es en la de lo su al",
    "pt": "o os uma não que para com por está foi do da em ao e as dos um no na mais como se",
    "it": "il gli una che per con non è sono della di del un la le i nel alla si da più anche",
    "nl": "de het een niet en van is voor met zijn dat op te die er ook aan wordt naar bij",
}
_LANGUAGES: Final = {
    word: tuple(sorted(name for name, words in _COMMON.items() if word in words.split()))
    for words in _COMMON.values()
    for word in words.split()
}
_SCRIPTS: Final = {
    "cyrillic": (re.compile("[\u0400-\u052f]"), 8),
    "greek": (re.compile("[\u0370-\u03ff]"), 8),
    "hebrew": (re.compile("[\u0590-\u05ff]"), 8),
    "arabic": (re.compile("[\u0600-\u06ff]"), 8),
    "devanagari": (re.compile("[\u0900-\u097f]"), 8),
    "thai": (re.compile("[\u0e00-\u0e7f]"), 8),
    "hangul": (re.compile("[\uac00-\ud7af]"), 4),
    "kana": (re.compile("[\u3040-\u30ff]"), 4),
    "han": (re.compile("[\u4e00-\u9fff]"), 4),
}
"""By script: its letters, and how many of them weigh as much as one common word."""

_ENOUGH: Final = 12
_SHARE: Final = 5
"""A language counts as spoken when it has a fifth of all that was found."""


def tally(text: str) -> Tally:
    """Count the commonest words of the languages in the beginning of a text."""
    return _counted(text[:_SAMPLE].lower())


def _counted(sample: str) -> Tally:
    found: Counter[str] = Counter()
    for word, count in Counter([word for word in _WORD.findall(sample) if word in _LANGUAGES]).items():
        for name in _LANGUAGES[word]:
            found[name] += count
    if not sample.isascii():
        for name, (letters, weight) in _SCRIPTS.items():
            found[name] += len(letters.findall(sample)) // weight
    return tuple(sorted((name, count) for name, count in found.items() if count))


def summed(tallies: Iterable[Tally]) -> Tally:
    """The sum of tallies."""
    found: Counter[str] = Counter()
    for one in tallies:
        for name, count in one:
            found[name] += count
    return tuple(sorted(found.items()))


def spoken(found: Tally) -> tuple[str, ...]:
    """The languages of a tally, in the order of their names; none when it is too small to tell."""
    total = max((count for _, count in found), default=0)
    return tuple(name for name, count in found if count * _SHARE >= total) if total >= _ENOUGH else ()


def is_foreign(text: str, languages: Iterable[str]) -> bool:
    """Whether a text is clearly in another language than these; not when either side cannot be told."""
    own = dict(_counted(text.lower()))
    expected = list(languages)
    most = max(own.values(), default=0)
    return bool(expected) and most >= _ENOUGH and all(own.get(name, 0) * 2 < most for name in expected)
