"""Ten compactions of a real session, one on top of the other: what was laid down and decided is never lost."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from session_actor import MemoryStore, Session, SessionService
from session_actor.compaction.frame_facts import facts_of
from session_actor.compaction.needs import safe
from session_actor.compaction.plan import Plan
from session_actor.compaction.texts import key
from session_actor.demo.transcript import Transcript
from session_actor.frames import Turn
from session_actor.tokens.estimate import estimate_tokens

from .compacted import MODELS, SMALL, planned, requests, shown

SHARED = Path(__file__).parents[4] / "shared"
REAL = Path(os.environ.get("REAL_SESSION", SHARED / "transcripts" / "pi_large_session.jsonl"))
ROUNDS = 10
DECIDED = 9
"""So often a decision is recorded with an answer: with every ninth turn."""

pytestmark = pytest.mark.skipif(not REAL.exists(), reason="the shared transcript is not here")


async def read() -> list[Turn]:
    return [entry.content async for entry in Transcript(REAL) if isinstance(entry.content, Turn)]


async def push(session: Session, start: int, some: list[Turn]) -> list[tuple[int, str]]:
    """Add turns; return what was decided with them, by frames."""
    found: list[tuple[int, str]] = []
    for number, turn in enumerate(some, start):
        decided = [f"Decision {number}: the part of turn {number} stays as it is."] if number % DECIDED == 0 else []
        frame = await session.push(turns=[turn], decisions=decided)
        found += [(frame.id, text) for text in decided]
    return found


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
async def test_every_rule_and_decision_survives_ten_rounds_and_the_summary_stays_within_its_cap(summary: str) -> None:
    """After each round the requests of all dialects are valid, and show what is kept."""
    turns = await read()
    share = len(turns) // ROUNDS + 1
    decisions: list[tuple[int, str]] = []
    rules: set[str] = set()
    covered = 0
    async with SessionService.open(MemoryStore(), models=MODELS) as service:
        session = await service.session("real", create=True)
        await session.configure(model="small")
        for generation, start in enumerate(range(0, len(turns), share), 1):
            decisions += await push(session, start, turns[start : start + share])
            plan = await planned(session)
            verdict = plan.evaluate(plan.extractive() if summary == "without a model" else laconic(plan))
            assert verdict.ok, verdict.errors
            check(plan, verdict.sealed, covered)
            covered = plan.covered_frame
            rules |= {key(rule) for frame in plan.basis.frames for rule in facts_of(frame, pinned=False).rules}
            gone = [text for frame, text in decisions if frame <= covered and frame not in plan.kept]
            sealed = key(verdict.sealed)
            assert gone
            assert all(text in sealed for text in (*gone, *rules))
            assert (await session.commit_compaction(plan, verdict.sealed)).generation == generation
            for request in (await requests(session)).values():
                assert request.generation == generation
                assert all(text in shown(request) for text in gone)
    assert generation == ROUNDS
    assert len(rules) > 5


def check(plan: Plan, sealed: str, covered: int) -> None:
    """What holds of every round."""
    assert estimate_tokens(sealed, SMALL.family) <= plan.cap_tokens <= plan.range_tokens // 2
    assert plan.tokens_after(sealed) < plan.tokens_before
    assert plan.covered_frame > covered
    for prompt in plan.prompts:
        assert estimate_tokens(prompt, SMALL.family) + plan.max_tokens <= SMALL.window
