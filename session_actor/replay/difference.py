"""What is different between two moments of a session."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from session_actor.budget.report import Budget
from session_actor.state.history import live_runs
from session_actor.state.paths import path_runs
from session_actor.state.runs import without

from .moment import gone

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from session_actor.state.runs import Runs

    from .moment import Moment


class Diff(msgspec.Struct, frozen=True):
    """Two moments side by side; ids of frames rise."""

    before: int
    """The record of the first moment."""
    after: int
    """The record of the second, which may be the earlier one."""
    head: tuple[int | None, int | None]
    """The newest frame of the stack; None: it was empty."""
    branch: tuple[str | None, str | None]
    """The branch that moves with the head; None: detached."""
    added: tuple[int, ...]
    """Frames that are on the second stack alone."""
    removed: tuple[int, ...]
    """Frames that are on the first stack alone."""
    new_frames: tuple[int, ...]
    """Frames that were not there at the first moment, on any branch."""
    popped: tuple[int, ...]
    """Frames that the head, a branch or a checkpoint held at the first moment, and nothing holds at the second."""
    branches: dict[str, tuple[int | None, int | None]]
    """Those that were made, moved or deleted, with their heads; None: not there, 0: empty."""
    checkpoints: dict[str, tuple[int | None, int | None]]
    """The same, with their frames."""
    budget: tuple[Budget | None, Budget | None]
    """How full the window of the model is; None: nothing says for which model."""

    @property
    def is_empty(self) -> bool:
        """Whether head, branches, checkpoints and frames are the same."""
        same = self.head[0] == self.head[1] and self.branch[0] == self.branch[1]
        return same and not (self.added or self.removed or self.new_frames or self.branches or self.checkpoints)


def difference(before: Moment, after: Moment) -> Diff:
    """From one moment to another of the same session. Blocks. Raises FrameUnknown, StoreCorrupt."""
    try:
        first, second = _path(before), _path(after)
        held = without(live_runs(before.state), live_runs(after.state))
    except LookupError as error:
        raise gone(error) from None
    table, known = after.state.table, before.state.next_id
    return Diff(
        before.seq,
        after.seq,
        (before.head, after.head),
        (before.branch, after.branch),
        _ids(without(second, first)),
        _ids(without(first, second)),
        tuple(frame for frame in range(known, after.state.next_id) if table.has(frame)),
        tuple(frame for frame in _ids(held) if frame < after.state.next_id),
        _changed({name: head or 0 for name, head in before.state.branches.items()},
                 {name: head or 0 for name, head in after.state.branches.items()}),
        _changed(before.state.checkpoints, after.state.checkpoints),
        (before.budget(), after.budget()),
    )  # fmt: skip


def _path(moment: Moment) -> Runs:
    head = moment.head
    return [] if head is None else path_runs(moment.state.table, head)


def _ids(runs: Iterable[tuple[int, int]]) -> tuple[int, ...]:
    return tuple(frame for first, last in runs for frame in range(first, last + 1))


def _changed(before: Mapping[str, int], after: Mapping[str, int]) -> dict[str, tuple[int | None, int | None]]:
    names = dict.fromkeys((*before, *after))
    found = {name: (before.get(name), after.get(name)) for name in names}
    return {name: pair for name, pair in found.items() if pair[0] != pair[1]}
