"""Work that is cut into slices, so that the event loop is never held for long."""

from __future__ import annotations

import asyncio
from time import perf_counter
from typing import TYPE_CHECKING, Final, TypeVar

if TYPE_CHECKING:
    from collections.abc import Generator

SLICE_S: Final = 0.004
"""The loop gets its turn when a slice has taken so long [s]."""

_T = TypeVar("_T")


def at_once(steps: Generator[None, None, _T]) -> _T:
    """What the steps return, taken without a pause."""
    while True:
        try:
            next(steps)
        except StopIteration as done:
            made: _T = done.value
            return made


async def in_slices(steps: Generator[None, None, _T], slice_s: float = SLICE_S) -> _T:
    """What the steps return; between slices of them the event loop gets its turn.

    Args:
        steps: work that yields wherever it may pause.
        slice_s: how long a slice takes at least, unless the work ends [s]; the step in which it ends comes on top.

    Returns:
        What the steps return. Raises what they raise. Cancelling ends the work at a pause.
    """
    end = perf_counter() + slice_s
    while True:
        try:
            next(steps)
        except StopIteration as done:
            made: _T = done.value
            return made
        if perf_counter() >= end:
            await asyncio.sleep(0)
            end = perf_counter() + slice_s
