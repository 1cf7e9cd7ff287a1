"""One moment of a session: what it was after one of its records."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from session_actor.errors import FrameUnknown, InvalidArgument
from session_actor.given.private import as_repr
from session_actor.state.losses import unknown
from session_actor.state.state import State
from session_actor.state.times import as_datetime
from session_actor.window.pressure import budget_of

if TYPE_CHECKING:
    from datetime import datetime

    from session_actor.budget.report import Budget
    from session_actor.frames import Frame, Usage
    from session_actor.stack import Stack


class Moment(msgspec.Struct, frozen=True, eq=False):
    """A session as it was after one of its records: a value of its own, which never changes.

    Its frames are read from the disk when they are asked for; so it is of use as long as the replay is open.
    """

    seq: int
    """The record."""
    at_us: int
    """When that was made: microseconds since the epoch, UTC. `at` is the same as a datetime."""
    kind: str
    """What changed by it: the kind of the record."""
    state: State
    """All that the session remembered. For reading."""

    @property
    def at(self) -> datetime:
        """When the record was made, aware, UTC, exact to the microsecond."""
        return as_datetime(self.at_us)

    @property
    def session(self) -> str:
        """The session's id."""
        return self.state.session

    @property
    def head(self) -> int | None:
        """The newest frame of the stack; None: it was empty."""
        return self.state.head

    @property
    def branch(self) -> str | None:
        """The branch that moved with the head; None: the head was detached."""
        return self.state.attached

    @property
    def branches(self) -> dict[str, int | None]:
        """Every branch and its head (None: empty), as a dict of your own."""
        return dict(self.state.branches)

    @property
    def checkpoints(self) -> dict[str, int]:
        """Every checkpoint and its frame, as a dict of your own."""
        return dict(self.state.checkpoints)

    @property
    def ended(self) -> str | None:
        """Why the session had ended; None: it went on."""
        return self.state.ended

    @property
    def metadata(self) -> Any:
        """What the session was created with, a value of your own; None: nothing."""
        return self.state.metadata

    @property
    def usage(self) -> Usage | None:
        """What providers had charged in the session; None: a version that did not add it up made the records."""
        return self.state.usage

    def stack(self, on: str | None = None) -> Stack:
        """The stack of branch `on`; None: the session's own. Raises BranchUnknown."""
        return self.state.stack(on)

    def get(self, frame_id: int) -> Frame:
        """A frame that was there, on any branch; popped ones, too. Blocks. Raises FrameUnknown, StoreCorrupt."""
        if type(frame_id) is not int:
            raise InvalidArgument("frame_id", f"must be an int, got {type(frame_id).__name__}")
        frame = self.state.table.get(frame_id)
        if frame is None:
            raise unknown(self.state, frame_id)
        return frame

    def budget(self, model: str | None = None, on: str | None = None) -> Budget | None:
        """How full a model's window was; None: nothing says for which model. Blocks.

        `model`: None: as `Session.budget` takes it. Raises BranchUnknown, FrameUnknown for a frame that was pruned
        since, StoreCorrupt.
        """
        try:
            return budget_of(self.state, on, model, quietly=True)
        except InvalidArgument:
            if model is not None:
                raise
            return None
        except LookupError as error:
            raise gone(error) from None

    def __repr__(self) -> str:
        """Numbers and names only."""
        return f"Moment({self.session!r}, seq={self.seq}, kind={self.kind!r}, head={self.head}, branch={self.branch!r})"

    __rich_repr__ = as_repr


def gone(error: LookupError) -> FrameUnknown:
    """The error for a frame that was pruned since."""
    frame = error.args[0] if error.args and type(error.args[0]) is int else 0
    return FrameUnknown(frame, "it was pruned since, and its record is gone")
