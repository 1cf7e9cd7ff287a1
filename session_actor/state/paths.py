"""Whether a frame is on a path, without walking it: paths are few runs of ids."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .runs import contains, merged

if TYPE_CHECKING:
    from collections.abc import Callable

    from .runs import Runs
    from .table import Table


def path_runs(table: Table, head: int) -> Runs:
    """The ids of a path as runs; O(forks and pops). Reads the first frame of each."""
    found: list[tuple[int, int]] = []
    at: int | None = head
    while at is not None:
        start = table.at(at).run_from
        found.append((start, at))
        at = table.at(start).parent
    return merged(found)


def on_path(table: Table, head: int) -> Callable[[int], bool]:
    """A function that tells whether a frame is on the path of `head`; the path is looked at when it is first asked."""
    runs: Runs = []

    def holds(frame_id: int) -> bool:
        if not runs:
            runs.extend(path_runs(table, head))
        return contains(runs, frame_id)

    return holds
