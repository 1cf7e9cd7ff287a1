"""The targets as ratios of two figures of one run, each with its verdict."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from bench.harness import shown


@dataclass(frozen=True, slots=True)
class Verdict:
    """A target and what was measured. `must` marks correctness: a miss makes the command fail."""

    name: str
    measured: float
    limit: float
    sign: Literal["<=", ">=", "="] = "<="
    unit: str = "x"
    must: bool = False

    @property
    def passed(self) -> bool:
        """Whether the target was met."""
        if self.sign == "=":
            return self.measured == self.limit
        return self.measured >= self.limit if self.sign == ">=" else self.measured <= self.limit

    def line(self) -> str:
        """Return the verdict as one line of text."""
        word = "PASS" if self.passed else "MISS"
        target = f"{self.sign} {shown(self.limit)}{self.unit}"
        return f"{word}  {self.name}: {shown(self.measured)}{self.unit}  (target {target})"


def ratio(name: str, ours: float | None, base: float | None, *, at_most: float) -> Verdict | None:
    """Return the verdict that ours is at most `at_most` times the base; None when one side was not measured."""
    if ours is None or not base:
        return None
    return Verdict(name, ours / base, at_most)


def ratio_at_least(name: str, ours: float | None, base: float | None, *, at_least: float) -> Verdict | None:
    """Return the verdict that ours is at least `at_least` times the base; None when one side was not measured."""
    if ours is None or not base:
        return None
    return Verdict(name, ours / base, at_least, ">=")


def limit(name: str, measured: float | None, *, at_most: float, unit: str) -> Verdict | None:
    """Return the verdict that a figure is at most a limit in a unit; None when it was not measured."""
    return None if measured is None else Verdict(name, measured, at_most, unit=unit)


def exactly(name: str, measured: float, wanted: float, *, unit: str) -> Verdict:
    """Return the verdict of a correctness target: anything but the wanted figure is a miss and a failed run."""
    return Verdict(name, measured, wanted, "=", unit, must=True)
