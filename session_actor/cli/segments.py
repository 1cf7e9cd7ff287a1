"""A session's tree as segments: consecutive frames up to one where a line ends, is named, or another leaves it.

Found by going from run to run, so that its size is that of the forks and names, however many frames there are.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from session_actor.state.history import tips_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from session_actor.state.state import State
    from session_actor.state.table import Table


class Segment(NamedTuple):
    """Consecutive frames."""

    first: int
    last: int
    parent: int | None
    level: int
    """How many times it was turned off from the line of the head."""
    is_turn_off: bool
    """Whether it begins a line that leaves another one."""
    branches: tuple[str, ...]
    """Those whose head is the last frame."""
    checkpoints: tuple[str, ...]
    """Those at the last frame."""
    is_head: bool


class _Runs:
    """The runs of frames below some tips, by the first frame of each."""

    def __init__(self, table: Table, tips: Iterable[int]) -> None:
        self.ends: dict[int, set[int]] = {}
        """Of each run the frames where something ends, is named or leaves it."""
        self.below: dict[int, int | None] = {}
        """Of each run the frame that it stands on."""
        self.leaving: dict[int, list[int]] = {}
        """By frame, the runs that stand on it."""
        for tip in tips:
            at: int | None = tip
            while at is not None:
                start = table.at(at).run_from
                known = start in self.ends
                self.ends.setdefault(start, set()).add(at)
                if known:
                    break
                at = self.below[start] = table.at(start).parent
                if at is not None:
                    self.leaving.setdefault(at, []).append(start)


def segments_of(state: State) -> Iterator[Segment]:
    """The segments, a line's own after those that leave it below; the line of the head is level 0."""
    runs = _Runs(state.table, sorted(tips_of(state)))
    branches, checkpoints = _by_frame(state.branches), _by_frame(state.checkpoints)
    mains = _runs_of(state.table, state.head)
    roots = sorted(start for start, below in runs.below.items() if below is None)
    roots.sort(key=lambda start: start in mains)
    todo: list[tuple[int, int, bool]] = [(start, 0, False) for start in reversed(roots)]
    while todo:
        first, level, turned = todo.pop()
        start = first if first in runs.ends else state.table.at(first).run_from
        last = min(end for end in runs.ends[start] if end >= first)
        parent = runs.below[start] if first == start else first - 1
        names = branches.get(last, ()), checkpoints.get(last, ())
        yield Segment(first, last, parent, level, turned, *names, last == state.head)
        onward = list(runs.leaving.get(last, ()))
        if any(end > last for end in runs.ends[start]):
            onward.insert(0, last + 1)
        if onward:
            straight = next((each for each in onward if each in mains), onward[0])
            todo.append((straight, level, False))
            todo += [(each, level + 1, True) for each in reversed(onward) if each != straight]


def _by_frame(names: dict[str, int] | dict[str, int | None]) -> dict[int, tuple[str, ...]]:
    found: dict[int, tuple[str, ...]] = {}
    for name, frame in names.items():
        if frame is not None:
            found[frame] = (*found.get(frame, ()), name)
    return found


def _runs_of(table: Table, head: int | None) -> dict[int, int]:
    """The runs of the head's line: the first frame of each, and the last that is on it."""
    found: dict[int, int] = {}
    at = head
    while at is not None:
        start = table.at(at).run_from
        found[start] = at
        at = table.at(start).parent
    return found
