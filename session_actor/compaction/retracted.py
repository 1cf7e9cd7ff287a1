"""What stands under `Retracted`: only what was retracted; and that stands nowhere else."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from .disguises import as_seen
from .needs import safe
from .polarity import repeated, shared_with
from .texts import folded, key
from .verdict import Reason
from .voiding import is_about_rules, voided_among, voided_in

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from .facts import Fact, Facts
    from .own import Own


_MARKS: Final = " -*+>#`_~.|"
_POINT: Final = re.compile(r"(?:[-*+•]|[0-9]{1,3}[.)])[ \t]+\S")
_NO_MORE: Final = re.compile(r"(?i)\A\W*(?:none|nothing|no other|no further)\b")
_HALF: Final = 0.5


def retractions_wrong(facts: Facts, own: Own) -> Iterator[Reason]:
    """Rules, decisions and assumptions that a summary takes back, and a retracted assumption that it uses."""
    wrong = [key(safe(fact)) for fact in facts.retracted]
    listed = key(own.retracted)
    if listed.strip(_MARKS):
        if not wrong or any(_is_strange(line, wrong) for line in own.retracted.split("\n")):
            yield Reason("retraction_unknown")
        for words in wrong:
            listed = listed.replace(words, " ")
        kept = (facts.constraints, facts.decisions, facts.assumptions)
        for code, laws in zip(("constraint_inverted", "decision_retracted", "assumption_retracted"), kept, strict=True):
            yield from (Reason(code, what=what) for what in _listed(laws, listed, own.retracted, wrong))
    if wrong:
        said = _loosely(key(own.kept))
        yield from (
            Reason("retracted_used", what=what) for what, words in enumerate(wrong) if says(said, _loosely(words))
        )
    live = list(map(safe, facts.assumptions))
    said_so = (one for one in voided_in(own.seen) if not _tells_of_it(one, wrong, live))
    voided = sum(1 for _ in said_so) + voided_among(own.laws)
    if voided:
        yield Reason("rules_voided", count=voided)


def _is_strange(line: str, wrong: Sequence[str]) -> bool:
    """Whether a point is about nothing that was retracted; what stands indented below one is about it."""
    said = as_seen(line)
    is_point = _POINT.match(said) is not None or (said[:1].strip() != "" and is_about_rules(said))
    return is_point and _NO_MORE.search(said) is None and not shared_with(said, wrong)


def _tells_of_it(sentence: str, wrong: Sequence[str], live: Sequence[str]) -> bool:
    """Whether a sentence says of a retracted assumption, and of nothing else, that it was retracted."""
    shared = 0.0 if is_about_rules(sentence) else shared_with(sentence, wrong)
    return shared >= _HALF and shared > shared_with(sentence, live)


def _listed(laws: Sequence[Fact], listed: str, lines: str, wrong: Sequence[str]) -> list[int]:
    """The places of the facts that are listed, word for word or nearly so."""
    texts = [safe(fact) for fact in laws]
    near = repeated(texts, "\n".join(_without(line, wrong) for line in as_seen(lines).split("\n")), wrong)
    exact = (what for what, text in enumerate(texts) if says(_loosely(listed), _loosely(key(text))))
    return sorted({*near, *exact})


def _loosely(text: str) -> str:
    """A text as it looks, in small letters, without the end of its sentence: own words are never compared exactly."""
    return as_seen(text).casefold().rstrip(".! ")


def _without(line: str, wrong: Sequence[str]) -> str:
    line = folded(line)
    for words in wrong:
        line = line.replace(words, " ")
    return line


def says(text: str, words: str) -> bool:
    """Whether a text has these words, not as a part of longer ones."""
    at = text.find(words) if words else -1
    while at >= 0:
        before, after = text[at - 1 : at] if at else "", text[at + len(words) : at + len(words) + 1]
        if not (before.isalnum() and words[0].isalnum()) and not (after.isalnum() and words[-1].isalnum()):
            return True
        at = text.find(words, at + len(words))
    return False
