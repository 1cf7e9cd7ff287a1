"""Replays that keep states often, so that short histories go through all of it."""

from __future__ import annotations

import pytest

from session_actor.replay import playing, timeline


@pytest.fixture
def often(monkeypatch: pytest.MonkeyPatch) -> None:
    """States are written down after every few records."""
    monkeypatch.setattr(playing, "PIECE_RECORDS", 7)
    monkeypatch.setattr(timeline, "PIECE_RECORDS", 5)
