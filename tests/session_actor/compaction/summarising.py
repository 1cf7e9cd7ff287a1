"""Summarisers of all kinds, and sessions that come under pressure."""

from __future__ import annotations

import asyncio
from typing import Any

from session_actor import MemoryStore, SessionService
from session_actor.compaction.headings import HEADINGS

from .compacted import MODELS, converse, go_on


def good_summary() -> str:
    bodies = {
        "## Goal": "The user wants src/app/main.py fixed, and asked many questions about why things are so.",
        "## Progress": "The file was fixed. The questions that followed were all answered, each with its reasons, one "
        "after the other, and the user did not object to any of the answers that were given so far in this talk.",
    }
    return "\n".join(
        f"{heading}\n{bodies.get(heading, 'None')}\n" for heading in HEADINGS if "Retracted" not in heading
    )


class Scripted:
    """A summariser that answers as it is told, the last answer again and again."""

    def __init__(self, *answers: Any) -> None:
        self.answers = list(answers)
        self.prompts: list[str] = []

    async def __call__(self, prompt: str, *, max_tokens: int, session_id: str) -> str:
        assert max_tokens > 0
        assert session_id == "user-42"
        self.prompts.append(prompt)
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, BaseException):
            raise answer
        if callable(answer):
            return await answer()
        return answer


async def hang() -> str:
    await asyncio.Event().wait()
    return ""


async def swallow() -> str:
    """Does not let itself be cancelled, for a while."""
    for _ in range(20):
        try:
            await asyncio.sleep(0.05)
        except asyncio.CancelledError:
            continue
    return good_summary()


def opened(summarizer: Any, **options: Any) -> SessionService:
    return SessionService.open(MemoryStore(), models=MODELS, summarizer=summarizer, **options)


async def settled(session) -> None:
    """Wait for what runs in the background."""
    automatic = session._cell.automatic
    while session._cell in automatic._rounds:
        await asyncio.wait({automatic._rounds[session._cell].done}, timeout=10)


async def to_yellow(session) -> Any:
    """Ask until a request is at yellow."""
    await converse(session, 10)
    while (await session.budget()).pressure == "green":
        await go_on(session, 1)
    await session.add_user("And now?")
    return await session.build_request("anthropic")


async def to_red(session) -> None:
    await converse(session, 16)
    await session.add_user("And now?")
