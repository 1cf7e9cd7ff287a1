"""How many of its cases a sweep over many of one kind runs, and the chance that chooses them."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import TypeVar

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
