"""Sessions that are long enough to be compacted, and summaries for them."""

from __future__ import annotations

import json
from typing import Any

from session_actor import ModelProfile, Session, validate_request
from session_actor.compaction.plan import Plan

SMALL = ModelProfile(name="small", window=16_000, max_output=2_000, family="o200k", sees_images=True)
MODELS = {"small": SMALL}
DIALECTS = ("anthropic", "openai_chat", "openai_responses", "gemini")
MESSAGES = {"anthropic": "messages", "openai_chat": "messages", "openai_responses": "input", "gemini": "contents"}

RULE = "Never push to main without asking."
CHOICE = "We keep the old table."
GUESS = "The disk is large."


async def converse(session: Session, exchanges: int = 12, words: int = 400) -> None:
    """A conversation with a rule, a decision and an assumption at its beginning."""
    await session.configure(system="Be brief.", model="small")
    await session.add_user(f"Please fix src/app/main.py (OPS-441). {RULE}")
    await session.add_assistant("It is fixed.", decisions=[CHOICE], assumptions=[GUESS])
    await go_on(session, exchanges, words)


async def go_on(session: Session, exchanges: int, words: int = 400) -> None:
    for number in range(exchanges):
        await session.add_user(f"Question {number}: " + "why is that so " * (words // 4))
        await session.add_assistant(f"Answer {number}: " + "because it is so " * (words // 4))


async def planned(session: Session, **fields: Any) -> Plan:
    plan = await session.prepare_compaction(**fields)
    assert plan is not None
    return plan


async def compact(session: Session) -> Any:
    """Compact by what the plan says without a model."""
    plan = await planned(session)
    return await session.commit_compaction(plan, plan.extractive())


def shown(request: Any) -> str:
    return json.dumps(dict(request), default=str)


async def requests(session) -> dict[str, Any]:
    found = {}
    for dialect in DIALECTS:
        found[dialect] = request = await session.build_request(dialect)
        assert validate_request(dialect, request) == []
    return found
