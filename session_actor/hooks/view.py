"""A session as it was at one moment: what a hook may read."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from session_actor.blocks import thawed
from session_actor.errors import BranchUnknown
from session_actor.stack import Retractions, Stack
from session_actor.state.times import as_datetime

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from session_actor.frames import Usage
    from session_actor.state.state import State
    from session_actor.state.table import Table


@dataclass(frozen=True, slots=True, repr=False)
class SessionView:
    """A value that never changes, whatever becomes of the session meanwhile."""

    session_id: str
    seq: int
    """The number of its newest record then."""
    created_at: datetime
    """When the session was made (aware, UTC)."""
    ended: str | None
    """Why it was ended; None: it was not."""
    head: int | None
    """The id of the newest frame of its stack; None: it was empty."""
    branch: str | None
    """The branch that it was on; None: on none."""
    branches: Mapping[str, int | None]
    """Every branch and the id of its newest frame."""
    checkpoints: Mapping[str, int]
    """Every checkpoint and its frame."""
    usage: Usage | None
    """What providers charged in all; None: not known, of a session that older versions wrote."""
    _metadata: object = field(default=None)
    _table: Table | None = field(default=None)
    _retractions: Retractions | None = field(default=None)

    @property
    def metadata(self) -> Any:
        """What the session was created with, a value of your own; None: nothing."""
        return thawed(self._metadata)

    async def stack(self, branch: str | None = None) -> Stack:
        """The frames of a branch, root first, all read from the disk; None: of the stack that it was on.

        Raises BranchUnknown, StoreCorrupt, FrameUnreadable, StoreClosed; and SessionDeleted when the session's data are
        gone, which they are not before its mandatory hooks are through.
        """
        head = self.head
        if branch is not None:
            try:
                head = self.branches[branch]
            except KeyError:
                raise BranchUnknown(branch) from None
        if self._table is None:
            raise TypeError("a view is made by the service")
        return await Stack(self._table, head, None, self._retractions).load()

    def __repr__(self) -> str:
        """Numbers only."""
        return f"SessionView({self.session_id!r}, seq={self.seq}, head={self.head})"


def view_of(state: State) -> SessionView:
    """The session as it is now; O(branches and checkpoints)."""
    return SessionView(
        state.session,
        state.seq,
        as_datetime(state.created_at_us or 0),
        state.ended,
        state.head,
        state.attached,
        MappingProxyType(dict(state.branches)),
        MappingProxyType(dict(state.checkpoints)),
        state.usage,
        state.raw_metadata,
        state.table,
        state.taken_back,
    )
