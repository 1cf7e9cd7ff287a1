"""Ten compactions of a real session, one on top of the other: what was laid down and decided is never lost."""

from __future__ import annotations

import asyncio
import os
from functools import cache
from pathlib import Path

import pytest

from session_actor.commands import Push
from session_actor.compaction.needs import safe
from session_actor.compaction.plan import Plan, Previous
from session_actor.compaction.planning import plan_of
from session_actor.compaction.source import Part
from session_actor.compaction.texts import key
from session_actor.frames import Turn
from session_actor.tokens.estimate import estimate_tokens
from session_actor.transcript import Transcript

from ..window.ledger_talk import Talk
from .planned import FAMILY, adopted, wanted

SHARED = Path(__file__).parents[4] / "shared"
REAL = Path(os.environ.get("REAL_SESSION", SHARED / "transcripts" / "pi_large_session.jsonl"))
ROUNDS = 10
WINDOW = 16_000
DECIDED = 9
"""So often a decision is recorded with an answer: with every ninth turn."""

pytestmark = pytest.mark.skipif(not REAL.exists(), reason="the shared transcript is not here")


@cache
def turns() -> list[Turn]:
    async def read() -> list[Turn]:
        return [entry.content async for entry in Transcript(REAL) if isinstance(entry.content, Turn)]

    return asyncio.run(read())


def push(talk: Talk, number: int, turn: Turn) -> list[str]:
    """Add a turn; return what was decided with it."""
    decided = [f"Decision {number}: the part of turn {number} stays as it is."] if number % DECIDED == 0 else []
    talk.do(Push(turns=(turn,), decisions=decided))
    return decided


def laconic(plan: Plan) -> str:
    """What a model may write that keeps none of the facts: the gate puts them in."""
    return (
        "## Goal\nThe user wants the themes of a terminal application to be right on all terminals, and its documents "
        "to tell how they are made.\n\n## Constraints\nNone\n\n## Decisions\nNone\n\n## Assumptions\nNone\n\n"
        "## Progress\n- The components were ported to the theme, the colours of the dark theme were adjusted many "
        "times with the user, and the documents were extended step by step.\n- What the user saw on the screen was "
        "compared with the sources.\n\n## Files\nNone\n\n## Identifiers\nNone\n\n## Open question\n"
        + ("None" if plan.facts.open_question is None else safe(plan.facts.open_question))
        + "\n"
    )


@pytest.mark.parametrize("summary", ["without a model", "by a model that keeps nothing"])
def test_every_rule_and_decision_survives_ten_rounds_and_the_summary_stays_within_its_cap(summary: str) -> None:
    talk, previous, known = Talk(), None, dict[int, Part]()
    share = len(turns()) // ROUNDS + 1
    decisions: list[tuple[int, str]] = []
    rules: set[str] = set()
    rounds = 0
    for start in range(0, len(turns()), share):
        for number, turn in enumerate(turns()[start : start + share], start):
            decided = push(talk, number, turn)
            decisions += [(talk.frames[-1].id, text) for text in decided]
        plan = plan_of(wanted(talk, previous, window=WINDOW), known)
        assert plan is not None
        rounds += 1
        verdict = plan.evaluate(plan.extractive() if summary == "without a model" else laconic(plan))
        assert verdict.ok, verdict.errors
        check(plan, verdict.sealed, previous)
        covered = [part for frame, part in known.items() if frame <= plan.covered_frame and frame not in plan.kept]
        rules |= {key(rule) for part in covered for rule in part.facts.rules}
        gone = [text for frame, text in decisions if frame <= plan.covered_frame and frame not in plan.kept]
        sealed = key(verdict.sealed)
        assert gone
        assert all(text in sealed for text in gone)
        assert all(rule in sealed for rule in rules)
        previous = adopted(plan, verdict.sealed)
    assert rounds == ROUNDS
    assert len(rules) > 5


def check(plan: Plan, sealed: str, previous: Previous | None) -> None:
    """What holds of every round."""
    assert estimate_tokens(sealed, FAMILY) <= plan.cap_tokens <= plan.range_tokens // 2
    assert plan.tokens_after(sealed) < plan.tokens_before
    assert previous is None or plan.covered_frame > previous.covered_frame
    for prompt in plan.prompts:
        assert estimate_tokens(prompt, FAMILY) + plan.max_tokens <= WINDOW
