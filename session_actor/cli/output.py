"""How the commands speak: JSON lines for programs, lines with some colour for people."""

from __future__ import annotations

import contextlib
import json
import os
import sys
from typing import TYPE_CHECKING, Final

from session_actor.state.times import as_datetime

from .codes import say
from .harmless import one_line

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable

    from session_actor.budget.report import Budget
    from session_actor.replay import Moment

    from .parts import Line

_STYLES: Final = {"bold": "1", "dim": "2", "red": "31", "green": "32", "yellow": "33", "blue": "34", "cyan": "36"}
_KILO: Final = 1024


def tell(line: Line) -> None:
    """Print one object as one line of JSON. All of it is ASCII: lone surrogates and control characters are escapes."""
    import msgspec

    say(json.dumps(msgspec.to_builtins(line), separators=(",", ":")))


def is_coloured() -> bool:
    """Whether stdout takes colours: a terminal that is not dumb, and no NO_COLOR (https://no-color.org)."""
    return not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb" and sys.stdout.isatty()


def styled(text: str, *styles: str) -> str:
    """A text in a colour, where there are any."""
    if not styles or not text or not is_coloured():
        return text
    return f"\033[{';'.join(_STYLES[style] for style in styles)}m{text}\033[0m"


@contextlib.contextmanager
def busy(what: str) -> Generator[None]:
    """While something takes long, a bar on stderr says so; only on a terminal."""
    if not sys.stderr.isatty() or os.environ.get("TERM") == "dumb":
        yield
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    console = Console(stderr=True)
    columns = (TextColumn("{task.description}", markup=False), BarColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True) as progress:
        progress.add_task(one_line(what), total=None)
        yield


def iso(at_us: int | None) -> str | None:
    """A time as text for programs, UTC, exact to the microsecond."""
    return None if at_us is None else as_datetime(at_us).isoformat(timespec="microseconds").replace("+00:00", "Z")


def when(at_us: int | None) -> str:
    """The same for people, UTC."""
    return "-" if at_us is None else as_datetime(at_us).strftime("%Y-%m-%d %H:%M:%SZ")


def size(count: float) -> str:
    """`1.4 MB`, by 1,024."""
    for unit in ("B", "kB", "MB", "GB"):
        if count < _KILO:
            return f"{count:,.0f} {unit}" if unit == "B" else f"{count:,.1f} {unit}"
        count /= _KILO
    return f"{count:,.1f} TB"


def runs_of(frames: Iterable[int]) -> list[tuple[int, int]]:
    """Rising ids as first and last of each run."""
    found: list[tuple[int, int]] = []
    for frame in frames:
        if found and found[-1][1] == frame - 1:
            found[-1] = (found[-1][0], frame)
        else:
            found.append((frame, frame))
    return found


def shown_runs(runs: Iterable[tuple[int, int]]) -> str:
    """`1-3, 7`."""
    return ", ".join(str(first) if first == last else f"{first}-{last}" for first, last in runs)


WEIGHED: Final = 20_000
"""A window that would show more frames is not weighed: all of them would have to be read, and held in memory."""


def weighed(moment: Moment, on: str | None = None) -> Budget | None:
    """How full the window is; None: nothing says for which model, or it would show too many frames."""
    return None if _is_long(moment, on) else moment.budget(on=on)


def _is_long(moment: Moment, on: str | None) -> bool:
    state = moment.state
    head = state.head_of(on) or 0
    cuts = [0, *(mark.cut for mark in state.marks), *(overlay.covered_frame for overlay in state.overlays)]
    return min(len(moment.stack(on)), head - max(cut for cut in cuts if cut <= head)) > WEIGHED


def fullness(moment: Moment, on: str | None = None) -> str:
    """The same for people."""
    if _is_long(moment, on):
        return f"how full the window is was not weighed: more than {WEIGHED:,} frames were never left out of a request"
    return pressure(moment.budget(on=on))


def pressure(budget: Budget | None) -> str:
    """How full a window is, in a few words."""
    if budget is None:
        return "no model is named"
    percent = 100 * budget.used / budget.allowance if budget.allowance else 100.0
    told = f"{budget.pressure}: {budget.used:,} of {budget.allowance:,} tokens ({percent:.0f}%) of {budget.model}"
    return styled(one_line(told), budget.pressure)
