"""Whole sessions on a disk that loses power, or whose calls fail: with cold reads, snapshots, prunings, passivation."""

from __future__ import annotations

from collections import Counter

import pytest

from session_actor import snapshots

from ..simulation.loop import simulated
from .session_lives import SessionLife
from .verified import damage_on

PARTS = 4
CRASHING_LIVES = 60
FAILING_LIVES = 200
CRASHES = 25
VERIFIED = 20
"""One of so many lives and states is looked at by `verify`, too."""


@pytest.fixture(autouse=True)
def frequent_snapshots(monkeypatch):
    monkeypatch.setattr(snapshots, "EVERY_RECORDS", 12)
    monkeypatch.setattr(snapshots, "RESTING_RECORDS", 2)


@pytest.mark.parametrize("part", range(PARTS))
def test_no_crash_loses_what_sessions_acknowledged_or_brings_back_what_they_dropped(faults, tmp_path, part):
    """By loss of power at `synced`, by death of the process at `written`; the clock may be set back an hour before."""
    counts: Counter[str] = Counter()
    for _ in range(faults.count(CRASHING_LIVES // PARTS)):
        number = faults.number()
        with simulated(number) as (loop, clock):
            life = SessionLife(number, loop, clock)
            try:
                loop.run(life.live(CRASHES))
                for crash in life.crashes:
                    loop.run(life.recover(crash))
                    counts["states"] += 1
                    if counts["states"] % VERIFIED == 1:
                        assert damage_on(crash.image, tmp_path / str(counts["states"])) == []
            except BaseException as error:
                error.add_note(f"life {number}")
                raise
            counts += life.counts
    assert counts["compared"] >= 4 * counts["states"] > 0


@pytest.mark.parametrize("part", range(PARTS))
def test_whatever_call_fails_sessions_hold_what_they_acknowledged(faults, tmp_path, part):
    """An operation that failed may have happened, or not: never by half, and never twice."""
    counts: Counter[str] = Counter()
    for case in range(faults.count(FAILING_LIVES // PARTS)):
        number = faults.number()
        with simulated(number) as (loop, clock):
            life = SessionLife(number, loop, clock)
            try:
                loop.run(life.live_with_failures())
                if case % VERIFIED == 0:
                    assert damage_on(life.image, tmp_path / str(case)) == []
            except BaseException as error:
                error.add_note(f"life {number}")
                raise
            counts += life.counts
    assert counts["refused"] > 0
    assert counts["acknowledged"] > counts["refused"]
