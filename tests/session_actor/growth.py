"""How the work of something grows with its size: counted in lines of Python that run, which no machine makes slower."""

from __future__ import annotations

import sys
from collections.abc import Callable


def steps(run: Callable[[], object]) -> int:
    """How many lines run, those of loops each time."""
    count = 0

    def note(_frame, event, _argument):
        nonlocal count
        count += event == "line"
        return note

    before = sys.gettrace()
    sys.settrace(note)
    try:
        run()
    finally:
        sys.settrace(before)
    return count


def growth(prepared: Callable[[int], Callable[[], object]], small: int, large: int) -> float:
    """How many times more lines run for `large` than for `small`, of what `prepared` gives for a size."""
    prepared(small)()  # imports, and what is made once
    return steps(prepared(large)) / steps(prepared(small))
