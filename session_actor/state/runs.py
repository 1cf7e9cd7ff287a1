"""Sets of ids as runs: sorted pairs of the first and the last id, both included, with a gap between any two."""

from __future__ import annotations

from bisect import bisect_right
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterable

Runs: TypeAlias = list[tuple[int, int]]
"""Ids; `[(1, 3), (5, 5)]` are 1, 2, 3 and 5."""


def merged(*sets: Iterable[tuple[int, int]]) -> Runs:
    """All ids of these sets, whose pairs may come in any order and overlap."""
    found: Runs = []
    for first, last in sorted(run for runs in sets for run in runs):
        if found and first <= found[-1][1] + 1:
            found[-1] = (found[-1][0], max(last, found[-1][1]))
        else:
            found.append((first, last))
    return found


def without(runs: Runs, taken: Runs) -> Runs:
    """The ids of `runs` that are not in `taken`."""
    found: Runs = []
    place = 0
    for first, last in runs:
        at = first
        while place < len(taken) and taken[place][1] < at:
            place += 1
        here = place
        while here < len(taken) and taken[here][0] <= last:
            if taken[here][0] > at:
                found.append((at, taken[here][0] - 1))
            at = taken[here][1] + 1
            here += 1
        if at <= last:
            found.append((at, last))
    return found


def contains(runs: Runs, number: int) -> bool:
    """Whether a number is one of these ids."""
    place = bisect_right(runs, number, key=_first)
    return place > 0 and runs[place - 1][1] >= number


def _first(run: tuple[int, int]) -> int:
    return run[0]


def count(runs: Iterable[tuple[int, int]]) -> int:
    """How many ids they are."""
    return sum(last + 1 - first for first, last in runs)
