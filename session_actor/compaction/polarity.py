"""Whether a summary turns a rule into its opposite."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from typing import TYPE_CHECKING, Final, NamedTuple

from .identifiers import plain_number
from .texts import apostrophes, key, sentences

if TYPE_CHECKING:
    from collections.abc import Sequence

_UPPER: Final = re.compile(
    r"\b(?:at most|no more than|not more than|no longer than|no later than|maximum|up to|less than|fewer than"
    r"|max|(?:under|below|within)(?= [$€£]?[0-9]))\b"
)
_LOWER: Final = re.compile(
    r"\b(?:at least|no less than|no fewer than|not less than|no earlier than|minimum|more than|or more"
    r"|min|(?:over|above|beyond)(?= [$€£]?[0-9]))\b"
)
_NUMBER: Final = re.compile(r"[0-9]+(?:[.,][0-9]+)*")
_WORD: Final = re.compile(r"[^\W_]+(?:'[^\W_]+)?")
_NO: Final = frozenset(
    (
        "never",
        "not",
        "no",
        "cannot",
        "without",
        "forbidden",
        "prohibited",
        "avoid",
        "unless",
        "neither",
        "nor",
        "refrain",
    )
)
_EMPTY: Final = frozenset(
    (
        *("the", "a", "an", "and", "or", "to", "of", "in", "on", "at", "is", "are", "be", "it", "this", "that"),
        *("with", "must", "shall", "should", "will", "would", "may", "can", "do", "does", "did", "always", "only"),
        *("please", "you", "we", "i", "they", "user", "wants", "if", "when", "for", "by", "as", "any", "all", "ever"),
        *("allowed", "required", "ensure", "make", "sure", "have", "has", "was", "were", "been", "just", "fine"),
        *("ok", "okay", "now", "also"),
    )
)
_NOT: Final = "not"
_SHARED: Final = 0.75
_LONGER: Final = 4
_FEWEST: Final = 2
"""Facts of fewer words that tell something are only known word for word."""
_STEM: Final = 4


class _Sense(NamedTuple):
    content: frozenset[str]
    negated: bool
    bound: int
    """1: at most; -1: at least; 0: neither, or both."""


def inverted(rules: Sequence[str], own: str) -> list[int]:
    """The places of the rules that a text says the opposite of; `own`: without the rules themselves."""
    stems: dict[str, str] = {}
    said = [_sense(sentence, stems) for sentence in sentences(own)] if rules else []
    holders: defaultdict[str, list[int]] = defaultdict(list)
    for place, sense in enumerate(said):
        for word in sense.content:
            holders[word].append(place)
    return [what for what, rule in enumerate(rules) if _is_inverted(_sense(rule, stems), said, holders)]


def _is_inverted(rule: _Sense, said: Sequence[_Sense], holders: dict[str, list[int]]) -> bool:
    shared: Counter[int] = Counter()
    for word in rule.content:
        shared.update(holders.get(word, ()))
    return any(
        count >= _SHARED * len(rule.content)
        and len(said[place].content) <= 2 * len(rule.content) + _LONGER
        and _differs(rule, said[place])
        for place, count in shared.items()
    )


def renumbered(rules: Sequence[str], own: str) -> list[int]:
    """The places of the rules that a text repeats nearly word for word, with another number."""
    stems: dict[str, str] = {}
    said = [_worded(sentence, stems) for sentence in sentences(own)] if rules else []
    found = list[int]()
    for what, rule in enumerate(rules):
        content, numbers = _worded(rule, stems)
        same = (others for one, others in said if _covers(one, content)) if len(content) >= _FEWEST else ()
        if any(numbers - others and others - numbers for others in same):
            found.append(what)
    return found


def _worded(sentence: str, stems: dict[str, str]) -> tuple[frozenset[str], frozenset[str]]:
    """What a sentence is about, and its numbers."""
    numbers = frozenset(map(plain_number, _NUMBER.findall(sentence)))
    return _sense(_NUMBER.sub(" ", sentence), stems).content, numbers


def repeated(facts: Sequence[str], own: str, others: Sequence[str] = ()) -> list[int]:
    """The places of the facts that a text says, in these words or nearly so; `others`: what it may say.

    A fact that is nearly one of the others is only known word for word.
    """
    stems: dict[str, str] = {}
    said = [_sense(sentence, stems).content for sentence in sentences(own)] if facts else []
    allowed = [_sense(other, stems).content for other in others]
    found = list[int]()
    for what, fact in enumerate(facts):
        content = _sense(fact, stems).content
        near = len(content) >= _FEWEST and not any(_covers(other, content) for other in allowed)
        if near and any(_covers(one, content) for one in said):
            found.append(what)
    return found


def shared_with(sentence: str, facts: Sequence[str]) -> float:
    """How much of the words of a fact a sentence has, at most: 0 for none of any, 1 for all of one."""
    stems: dict[str, str] = {}
    said = _sense(sentence, stems).content
    contents = (_sense(fact, stems).content for fact in facts)
    return max((len(said & content) / len(content) for content in contents if content), default=0.0)


def _covers(text: frozenset[str], content: frozenset[str]) -> bool:
    return len(text & content) >= _SHARED * len(content)


def _differs(rule: _Sense, said: _Sense) -> bool:
    return rule.negated != said.negated or rule.bound * said.bound < 0


def _sense(sentence: str, stems: dict[str, str]) -> _Sense:
    """What a sentence is about, and whether it says yes or no. `stems`: of the words that were seen before."""
    plain = apostrophes(key(sentence)).lower()
    rest, upper = _UPPER.subn(" ", plain)
    rest, lower = _LOWER.subn(" ", rest)
    negations, content = 0, set[str]()
    for word in _WORD.findall(rest):
        stem = stems.get(word)
        if stem is None:
            stem = stems[word] = _stem(word)
        negations += stem == _NOT
        content.add(stem)
    return _Sense(frozenset(content - {_NOT, ""}), negations % 2 == 1, (upper > 0) - (lower > 0))


def _stem(word: str) -> str:
    """The word without a common English ending; of words that negate `_NOT`, of words without content `""`."""
    if word in _NO or word.endswith("n't"):
        return _NOT
    if word in _EMPTY:
        return ""
    for ending in ("ing", "ed", "es", "s", "e"):
        if word.endswith(ending) and len(word) - len(ending) >= _STEM - 1:
            return word.removesuffix(ending)
    return word
