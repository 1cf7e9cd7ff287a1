"""A real session, imported: every prefix of it makes a request that a provider takes, in every dialect."""

from __future__ import annotations

import asyncio
import os
from functools import cache
from pathlib import Path

import pytest

from session_actor.commands import AddUser, Push
from session_actor.demo.transcript import Transcript
from session_actor.frames import Turn
from session_actor.window.errors import NothingToSend

from .asked import Asked, messages_of, shown

SHARED = Path(__file__).parents[4] / "shared"
REAL = Path(os.environ.get("REAL_SESSION", SHARED / "transcripts" / "pi_large_session.jsonl"))

pytestmark = pytest.mark.skipif(not REAL.exists(), reason="the shared transcript is not here")


@cache
def turns() -> tuple[Turn, ...]:
    """All of its turns."""

    async def read() -> list[Turn]:
        return [entry.content async for entry in Transcript(REAL) if isinstance(entry.content, Turn)]

    return tuple(asyncio.run(read()))


def test_every_prefix_is_asked_for_in_a_small_window(dialect, faults):
    live = Asked("half")
    live.SHAPES_EVERY = live.WHOLE_EVERY = faults.count(50)
    asked, before = 0, []
    prefixes = set(faults.some(range(len(turns()))))
    for number, turn in enumerate(turns()):
        live.do(Push(turns=(turn,)))
        if number not in prefixes:
            continue
        try:
            request = live.ask(dialect)
        except NothingToSend:
            continue
        asked += 1
        if live.asked.made is not None:
            before = []
        # All but the newest step and what follows it stays as it was.
        assert messages_of(request)[: max(0, len(before) - 40)] == before[: max(0, len(before) - 40)]
        before = messages_of(request)
    assert asked > faults.count(800)
    assert live.state.marks


def test_prefixes_are_asked_for_in_a_large_window(dialect):
    live = Asked("gpt-4.1")
    asked = 0
    for number, turn in enumerate(turns()):
        live.do(Push(turns=(turn,)))
        if number % 80 in {0, 1, 7}:
            live.ask(dialect)
            asked += 1
    assert asked > 30
    assert live.state.marks == ()
    live.do(AddUser("And now?"))
    request = live.ask(dialect)
    assert len(messages_of(request)) > 700
    assert "And now?" in shown(messages_of(request)[-1])
