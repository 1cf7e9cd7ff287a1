"""After an import every prefix makes a request that a provider takes, in every dialect."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from session_actor import validate_request
from session_actor.commands import BuildRequest, Goto
from session_actor.state.apply import apply
from session_actor.state.decide import decide
from session_actor.window.errors import NothingToSend

from ..window.asked import DIALECTS, MODELS, shown
from .transferring import ALL, imported, memory

SHARED = Path(__file__).parents[4] / "shared"
REAL = Path(os.environ.get("REAL_SESSION", SHARED / "transcripts" / "pi_large_session.jsonl"))


def asked(state, frame: int, dialect: str):
    """The request at a frame; None: there is nothing to say."""
    for command in (Goto(frame), BuildRequest(dialect, model="small")):
        try:
            event, _, found = decide(state, command)
        except NothingToSend:
            return None
        reply = apply(state, event, state.seq + 1, 1_700_000_000_000_000, found)
    return reply


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_every_prefix_of_every_sample_is_asked_for(dialect: str):
    made = 0
    for path in ALL:
        async with memory() as service:
            _, state = await imported(service, path)
        state.models = MODELS
        for frame in range(1, state.next_id):
            request = asked(state, frame, dialect)
            if request is not None:
                assert validate_request(dialect, request) == [], (path.name, frame)
                made += 1
    assert made > 150


@pytest.mark.skipif(not REAL.exists(), reason="the shared transcript is not here")
@pytest.mark.parametrize("dialect", DIALECTS)
async def test_prefixes_of_a_real_session_are_asked_for(dialect: str, faults):
    async with memory() as service:
        report, state = await imported(service, REAL)
    state.models = MODELS
    assert (report.added, report.unread) == (915, [])
    for frame in faults.some(range(2 + DIALECTS.index(dialect), state.next_id, 7)):
        request = asked(state, frame, dialect)
        assert request is None or validate_request(dialect, request) == [], frame


async def test_a_summary_is_shown_in_place_of_what_it_covers():
    async with memory() as service:
        _, state = await imported(service, next(path for path in ALL if path.name == "claude_code.jsonl"))
    state.models = MODELS
    at_once, after = (shown(asked(state, frame, "anthropic")) for frame in (16, 22))

    assert "This session is being continued" in after
    assert "The gauge jumps" not in after
    assert "Same again?" in after
    assert "The gauge jumps" not in at_once
    assert "The gauge jumps" in shown(asked(state, 15, "anthropic"))
