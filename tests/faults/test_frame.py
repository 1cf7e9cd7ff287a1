"""The same seed chooses the same cases; a full run leaves none out."""

from __future__ import annotations

from .conftest import Faults


def test_the_same_seed_chooses_the_same_cases_for_each_test():
    chosen = [Faults(0.1, seed, name).some(range(1000)) for seed, name in ((1, "a"), (1, "a"), (2, "a"), (1, "b"))]
    assert chosen[0] == chosen[1]
    assert chosen[0] not in chosen[2:]
    assert len(set(chosen[0])) == 100


def test_a_full_run_leaves_no_case_out():
    assert Faults(1.0, 1, "a").some(range(50)) == list(range(50))
    assert Faults(1.0, 1, "a").count(100_000) == 100_000


def test_a_run_tells_its_seed(pytestconfig, faults):
    assert pytestconfig.option.faults_seed == faults.seed
