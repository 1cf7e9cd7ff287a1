"""Whole sessions on a disk that loses power, or whose calls fail: with cold reads, snapshots, prunings, passivation."""

from __future__ import annotations

from collections import Counter

import pytest

from session_actor.server import snapshots

from ..simulation.databases import close_spare_connections
from ..simulation.image import Image
from ..simulation.loop import simulated
from .hurried_lives import HurriedLife
from .session_lives import SessionLife
from .verified import damage_on

PARTS = 4
CRASHING_LIVES = 40
FAILING_LIVES = 120
HURRIED_LIVES = 32
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


@pytest.mark.parametrize("failing", [False, True], ids=["slow", "failing"])
@pytest.mark.parametrize("part", range(PARTS))
def test_calls_that_are_given_up_and_made_again_with_their_key_happen_once(faults, tmp_path, part, failing):
    """CallTimeout and cancellation leave it open whether it happened; no wait takes longer than it may, none hangs."""
    counts: Counter[str] = Counter()
    for case in range(max(3, faults.count(HURRIED_LIVES // PARTS))):  # in one of a hundred nothing is given up
        number = faults.number()
        life = in_a_hurry(number, failing=failing)
        counts += life.counts
        if case % VERIFIED == 0:
            assert damage_on(life.image, tmp_path / str(case)) == []
    assert counts["given up"] > 0
    assert counts["asked again"] > 0


def test_the_same_hurried_life_is_led_twice_in_the_same_way():
    lives = []
    for _ in range(2):
        close_spare_connections()
        lives.append(in_a_hurry(5, failing=True))
    assert lives[0].loop.time() == lives[1].loop.time()
    assert lives[0].counts == lives[1].counts
    assert what_is_on(lives[0].image) == what_is_on(lives[1].image)


def what_is_on(image: Image) -> dict[str, bytes]:
    return {path: bytes(inode.data) for path, inode in image.files().items()}


def in_a_hurry(number: int, *, failing: bool) -> HurriedLife:
    """Lead the life of that number."""
    with simulated(number) as (loop, clock):
        life = HurriedLife(number, loop, clock)
        try:
            loop.run(life.live_in_a_hurry(failing=failing))
        except BaseException as error:
            error.add_note(f"life {number}")
            raise
    return life
