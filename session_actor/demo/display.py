"""What the demo shows on a terminal: a bar that moves, a table of figures."""

from __future__ import annotations

import math
import sys
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from collections.abc import Sequence

_BAR_CELLS = 32


class Progress:
    """A progress bar on standard error: drawn in place on a terminal, else one line a kill."""

    def __init__(self, total: int, kills: int, stream: TextIO | None = None) -> None:
        """Prepare for `total` steps and `kills` kills; `stream` None: standard error."""
        self._stream = stream or sys.stderr
        self._total = total
        self._kills = kills
        self._in_place = self._stream.isatty()
        self._drawn = ""

    def step(self, done: int, killed: int) -> None:
        """Redraw for `done` acknowledged steps and `killed` kills; silent where nothing can be drawn in place."""
        if not self._in_place:
            return
        cells = _BAR_CELLS * done // max(1, self._total)
        bar = "█" * cells + "░" * (_BAR_CELLS - cells)
        text = f"{bar} {done}/{self._total} steps   {killed}/{self._kills} kills"
        if text != self._drawn:
            self._drawn = text
            print(f"\r{text}", end="\x1b[K", file=self._stream, flush=True)

    def killed(self, number: int, step: int, *, again: bool = False) -> None:
        """Tell of one kill, where the bar does not; `again`: nothing was fed since the kill before."""
        if not self._in_place:
            text = f"kill {number} of {self._kills}: at step {step} of {self._total}"
            more = " again, before anything more was fed" if again else ""
            print(f"{text}{more}", file=self._stream, flush=True)

    def close(self) -> None:
        """Leave the line of the bar."""
        if self._in_place and self._drawn:
            print(file=self._stream, flush=True)


def percentile(values: Sequence[float], share: float) -> float:
    """Return the smallest value that at least `share` (0 to 1) of all values do not exceed; nan when there is none."""
    if not values:
        return math.nan
    ordered = sorted(values)
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)]


def table(rows: Sequence[tuple[str, str]]) -> str:
    """Lay out names and values in two columns."""
    width = max(len(name) for name, _ in rows)
    return "\n".join(f"  {name:<{width}}   {value}" for name, value in rows)
