"""Power is lost at any moment of a store's life: every store opens, and holds all that was acknowledged as synced."""

from __future__ import annotations

from random import Random

import pytest

from ..simulation.crashes import check, lead
from ..simulation.loop import simulated
from .test_machine import ways
from .verified import damage_on

STATES = 100_000
"""None of them as another of the same life."""
PARTS = 20
A_LIFE = 1000
STEPS = 15
REFUSING = 0.2
"""In so many lives a folder is read-only now and then, so that some records are in journals and others in the log."""


@pytest.mark.parametrize("part", range(PARTS))
def test_no_loss_of_power_loses_what_was_synced_or_leaves_a_store_that_does_not_open(faults, tmp_path, part):
    left = faults.count(STATES // PARTS)
    while left > 0:
        number = faults.number()
        rng = Random(number)
        with simulated(number) as (loop, _):
            chosen = ways(rng, faults=False, crashes=False, refuses=rng.random() < REFUSING)
            try:
                model, states = lead(loop, rng, STEPS, min(left, A_LIFE), chosen)
                check(loop, states, model, chosen)
                assert damage_on(states[-1].image, tmp_path / str(left)) == []  # after a store was opened on it
            except BaseException as error:
                error.add_note(f"life {number}")
                raise
        left -= len(states)
