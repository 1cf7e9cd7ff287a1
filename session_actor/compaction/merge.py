"""The facts of a range: those of its frames, and those that the summary before it kept."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from session_actor.tokens.estimate import estimate_tokens

from .facts import Fact, Facts
from .languages import spoken, summed
from .secrets import has_secret, redacted
from .slices import at_once
from .texts import QUESTION_MARKS, folded, key

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable, Mapping, Sequence

    from .frame_facts import FrameFacts, Ranked

IDENTIFIERS_KEPT: Final = 64
ROUNDS_KEPT: Final = 2
"""An identifier that was not seen again in so many compactions in a row is let go."""

_CAP_SHARE: Final = 4
"""Identifiers, and artifacts, may take this part of the cap each: a quarter."""
_TRIED: Final = 4 * IDENTIFIERS_KEPT
_ARTIFACTS_KEPT: Final = 64
_ANSWERED_KEPT: Final = 16
_INPUTS_KEPT: Final = 8
_SEEN_TWICE: Final = 2
_GOAL_SPACES: Final = 2
_NONE: Final[Mapping[str, int]] = MappingProxyType({})
_STEP: Final = 512
"""So many frames are looked at between two pauses."""


def merged(
    parts: Sequence[FrameFacts],
    previous: Facts | None = None,
    *,
    retracted: Mapping[str, int] = _NONE,
    cap_tokens: int,
    family: str = "o200k",
) -> Facts:
    """The facts that a summary of these frames has to keep.

    Args:
        parts: of each frame of the range, oldest first.
        previous: what the summary kept that these frames come after; None: there is none.
        retracted: the assumptions that were taken back on the path, each with the newest frame that did so. One that
            was stated anew since is live.
        cap_tokens: how long the summary may be [tokens].
        family: the tokenizer's family, one of `FAMILIES`.

    Raises:
        InvalidArgument: there is no such family.
    """
    return at_once(merging(parts, previous, retracted=retracted, cap_tokens=cap_tokens, family=family))


def merging(
    parts: Sequence[FrameFacts],
    previous: Facts | None = None,
    *,
    retracted: Mapping[str, int] = _NONE,
    cap_tokens: int,
    family: str = "o200k",
) -> Generator[None, None, Facts]:
    """`merged` in steps, so that nothing else has to wait for long where there are many frames."""
    old = previous or Facts()
    budget = max(1, cap_tokens // _CAP_SHARE)
    answered, question = _questions(parts, old)
    yield
    constraints = _said(old.constraints, parts, lambda part: part.rules)
    yield
    decisions = _said(old.decisions, parts, lambda part: part.decisions)
    yield
    assumptions, wrong = _live(_said(old.assumptions, parts, lambda part: part.assumptions), old, retracted)
    yield
    taken_back = _retracted(old, parts, wrong)
    artifacts = _artifacts(old, parts, budget, family)
    yield
    identifiers = yield from _identifiers(old, parts, budget, family)
    yield
    inputs = (*old.inputs, *(Fact(part.said, part.frame, "input") for part in parts if part.said))[-_INPUTS_KEPT:]
    yield
    return Facts(
        goal=old.goal or _goal(parts),
        constraints=constraints,
        decisions=decisions,
        assumptions=assumptions,
        retracted=taken_back,
        artifacts=artifacts,
        identifiers=identifiers,
        open_question=question,
        answered=answered,
        inputs=inputs,
        languages=spoken(summed(part.tally for part in parts)) or old.languages,
    )


def _goal(parts: Sequence[FrameFacts]) -> Fact | None:
    """What the user said first; a word or two, such as a greeting, only if there is nothing else."""
    said = [part for part in parts if part.said]
    first = next((part for part in said if part.said.count(" ") >= _GOAL_SPACES), said[0] if said else None)
    return None if first is None else Fact(first.said, first.frame, "goal")


def _safe(text: str) -> str:
    return redacted(folded(text))


def _said(
    old: Iterable[Fact], parts: Iterable[FrameFacts], told: Callable[[FrameFacts], Iterable[str]]
) -> tuple[Fact, ...]:
    """What was said, each once, the first wording first."""
    found = {key(fact.text): fact for fact in old}
    for part in parts:
        for text in told(part):
            before = found.get(key(text))
            if before is None:
                found[key(text)] = Fact(text, part.frame, "", 1, part.frame)
            elif before.last_seen != part.frame:
                found[key(text)] = Fact(before.text, before.frame, before.kind, before.seen + 1, part.frame)
    return tuple(found.values())


def _live(stated: Sequence[Fact], old: Facts, retracted: Mapping[str, int]) -> tuple[tuple[Fact, ...], dict[str, str]]:
    """The assumptions that hold, and those that do not, as they were stated, by what identifies them."""
    taken = {key(fact.text): (fact.text, 0) for fact in old.retracted}
    taken.update((key(safe), (safe, at)) for text, at in retracted.items() if key(safe := _safe(text)))
    live = tuple(fact for fact in stated if fact.last_seen > taken.get(key(fact.text), ("", -1))[1])
    again = {key(fact.text) for fact in live}
    return live, {one: text for one, (text, _) in taken.items() if one not in again}


def _retracted(old: Facts, parts: Sequence[FrameFacts], wrong: dict[str, str]) -> tuple[Fact, ...]:
    stated = {key(fact.text): fact for fact in (*old.retracted, *old.assumptions)}
    for part in parts:
        for text in part.assumptions:
            stated.setdefault(key(text), Fact(text, part.frame, "", 1, part.frame))
    return tuple(stated.get(one, Fact(text, 0)) for one, text in wrong.items())


def _artifacts(old: Facts, parts: Iterable[FrameFacts], budget: int, family: str) -> tuple[Fact, ...]:
    """What was used last, as far as there is room; what was modified once counts as modified."""
    found = {fact.text: fact for fact in old.artifacts}
    for part in parts:
        for path, how in part.artifacts:
            before = found.pop(path, Fact(path, part.frame, how, 0))
            kind = "modified" if "modified" in {before.kind, how} else how
            found[path] = Fact(path, before.frame, kind, before.seen + 1, part.frame)
    latest = [fact for fact in reversed(found.values()) if fact.text and not has_secret(fact.text)]
    return tuple(reversed(_fitting(latest[:_TRIED], _ARTIFACTS_KEPT, budget, family)))


def _identifiers(
    old: Facts, parts: Sequence[FrameFacts], budget: int, family: str
) -> Generator[None, None, tuple[Fact, ...]]:
    """The names of the last quarter, those seen twice, and those that were kept and have not expired."""
    found: dict[str, tuple[Fact, int]] = {}
    for fact in old.identifiers:
        if fact.missed + 1 < ROUNDS_KEPT:
            found[fact.text] = (Fact(fact.text, fact.frame, fact.kind, fact.seen, fact.last_seen, fact.missed + 1), 2)
    late = parts[len(parts) - (len(parts) + 3) // 4].frame if parts else 0
    for place, part in enumerate(parts, 1):
        for name in part.names:
            found[name.text] = _seen(found.get(name.text), name, part.frame)
        if not place % _STEP:
            yield
    chosen = [
        (fact, rank)
        for fact, rank in found.values()
        if fact.last_seen >= late or fact.seen >= _SEEN_TWICE or fact.missed
    ]
    chosen.sort(key=lambda one: (one[1], -one[0].seen, -one[0].last_seen, one[0].text))
    safe = [fact for fact, _ in chosen[:_TRIED] if not has_secret(fact.text)]
    return tuple(sorted(_fitting(safe, IDENTIFIERS_KEPT, budget, family), key=lambda fact: (fact.frame, fact.text)))


def _seen(before: tuple[Fact, int] | None, name: Ranked, frame: int) -> tuple[Fact, int]:
    if before is None:
        return Fact(name.text, frame, name.kind, 1, frame), name.rank
    fact, rank = before
    return Fact(fact.text, fact.frame, fact.kind, fact.seen + 1, frame), min(rank, name.rank)


def _fitting(facts: Iterable[Fact], count: int, budget: int, family: str) -> list[Fact]:
    """The first of them that fit into a budget [tokens]."""
    kept: list[Fact] = []
    for fact in facts:
        cost = estimate_tokens(f"- {fact.text}\n", family)
        if cost <= budget:
            kept.append(fact)
            budget -= cost
        if len(kept) == count:
            break
    return kept


def _questions(parts: Iterable[FrameFacts], old: Facts) -> tuple[tuple[str, ...], Fact | None]:
    """The last questions that were answered, and the last one that was not."""
    answered = list(old.answered)
    waiting = [] if old.open_question is None else [old.open_question]
    for part in parts:
        if part.questions:
            waiting += [Fact(text, part.frame, "question") for text in part.questions]
        if part.ends == "answered":
            answered += [fact.text for fact in waiting if fact.text.endswith(QUESTION_MARKS)]
            waiting = []
    asked = waiting[-1] if waiting else None
    still = None if asked is None else key(asked.text)
    return tuple(dict.fromkeys(text for text in answered if key(text) != still))[-_ANSWERED_KEPT:], asked
