"""Power is lost at any moment of a store's life: every store opens, and holds all that was acknowledged as synced."""

from __future__ import annotations

import errno
from collections.abc import Callable
from random import Random

import pytest

from ..simulation.crashes import check, lead
from ..simulation.disk import Fault
from ..simulation.loop import simulated
from .test_machine import ways
from .verified import damage_on

STATES = 88_000
"""With those in which calls fail meanwhile 100,000, none of them as another of the same life."""
PARTS = 22
A_LIFE = 1000
LATE_STATES = 4_000
LATE_PARTS = 2
REFUSED_STATES = 4_000
REFUSED_PARTS = 2
FOLDER_STATES = 4_000
FOLDER_PARTS = 2
STEPS = 15
REFUSING = 0.2
"""In so many lives a folder is read-only now and then, so that some records are in journals and others in the log."""
SALVAGING = 0.2
"""In so many lives sessions are salvaged now and then."""


@pytest.mark.parametrize("part", range(PARTS))
def test_no_loss_of_power_loses_what_was_synced_or_leaves_a_store_that_does_not_open(faults, tmp_path, part):
    lose_power(faults, tmp_path, STATES // PARTS)


@pytest.mark.parametrize("part", range(LATE_PARTS))
def test_no_loss_of_power_undoes_what_was_built_on_a_commit_that_failed_and_happened(faults, tmp_path, part):
    lose_power(faults, tmp_path, LATE_STATES // LATE_PARTS, late_commits)


@pytest.mark.parametrize("part", range(REFUSED_PARTS))
def test_no_loss_of_power_takes_what_a_sync_said_ok_for_after_one_of_the_same_file_was_refused(faults, tmp_path, part):
    lose_power(faults, tmp_path, REFUSED_STATES // REFUSED_PARTS, refused_syncs)


@pytest.mark.parametrize("part", range(FOLDER_PARTS))
def test_no_loss_of_power_takes_a_name_that_a_sync_said_ok_for_after_one_of_its_folder_was_refused(
    faults, tmp_path, part
):
    lose_power(faults, tmp_path, FOLDER_STATES // FOLDER_PARTS, refused_folders)


def lose_power(faults, tmp_path, count: int, failing: Callable[[Random], Fault] | None = None) -> None:
    """`failing`: makes calls that fail meanwhile."""
    left = faults.count(count)
    while left > 0:
        number = faults.number()
        rng = Random(number)
        with simulated(number) as (loop, _):
            refuses, salvages = rng.random() < REFUSING, rng.random() < SALVAGING
            chosen = ways(rng, faults=False, crashes=False, refuses=refuses, salvages=salvages)
            refused = [failing(rng) for _ in range(3)] if failing else []
            try:
                model, states = lead(loop, rng, STEPS, min(left, A_LIFE), chosen, refused)
                check(loop, states, model, chosen)
                assert damage_on(states[-1].image, tmp_path / str(left)) == []  # after a store was opened on it
            except BaseException as error:
                error.add_note(f"life {number}")
                raise
        left -= len(states)


def late_commits(rng: Random) -> Fault:
    """All commits of a while fail after they happened."""
    first = rng.randint(20, 400)
    return Fault(first, first + rng.choice((5, 40)), errno.EIO, frozenset({"commit"}), partly=True)


def refused_syncs(rng: Random) -> Fault:
    """The syncs of files in a while lose what they should have made durable; later ones may do nothing, and say OK."""
    first = rng.randint(20, 400)
    return Fault(first, first + rng.choice((0, 5, 40)), errno.EIO, frozenset({"sync"}))


def refused_folders(rng: Random) -> Fault:
    """The same of folders, and in half of the cases of files, too."""
    first = rng.randint(1, 400)
    kinds = rng.choice((("sync_dir",), ("sync_dir", "sync")))
    return Fault(first, first + rng.choice((0, 5, 40)), errno.EIO, frozenset(kinds))
