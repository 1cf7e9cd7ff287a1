"""How many of its cases a test of this folder runs, and the chance that chooses them."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest
from random import Random
from typing import TypeVar

import pytest

Case = TypeVar("Case")


class Faults:
    """The scale and the seed of this run."""

    def __init__(self, scale: float, seed: int, name: str) -> None:
        """`name`: of the test, so that each has chances of its own, in whatever order they are run."""
        self.scale = scale
        self.seed = seed
        self.rng = Random(f"{seed} {name}")

    def count(self, full: int) -> int:
        """How many of `full` cases are run."""
        return max(1, round(full * self.scale))

    def some(self, cases: Sequence[Case]) -> list[Case]:
        """The cases that are run of all there are: in a full run, all of them."""
        return list(cases) if self.scale == 1 else self.rng.sample(cases, self.count(len(cases)))

    def number(self) -> int:
        """The seed of one case."""
        return self.rng.randrange(1 << 32)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """All cases of a test may take longer than one test should.

    Those that have a limit of their own take longest. They come first, not to be waited for at the end, and in turns
    with others: a process of pytest-xdist has the test after the one that it runs in hand, and no other can take it.
    """
    if config.option.faults == "full":
        long = [item for item in items if item.get_closest_marker("timeout")]
        short = [item for item in items if not item.get_closest_marker("timeout")]
        items[:] = [item for pair in zip_longest(long, short) for item in pair if item is not None]
        for item in short:
            item.add_marker(pytest.mark.timeout(600))


@pytest.fixture
def faults(request: pytest.FixtureRequest) -> Faults:
    option = request.config.option
    return Faults({"tenth": 0.1, "full": 1.0}[option.faults], option.faults_seed, request.node.name)
