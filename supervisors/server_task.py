"""The task that a child lives in."""

from __future__ import annotations

import asyncio
import inspect
import sys
from typing import Any, Final

GROUPS_FORGET: Final = sys.version_info < (3, 13)
"""Before Python 3.13 a `TaskGroup` that cancels its parent while that one waits in its `__aexit__` never takes the
cancellation back: it would look like one of a stranger that the child swallowed."""


class ServerTask(asyncio.Task[None]):
    """`cancelling()` of it is not 0 only while, or after, somebody outside of the child cancels it."""

    __slots__ = ()

    def cancel(self, msg: Any = None) -> bool:
        """As `asyncio.Task.cancel`, with a group's cancellation taken back where the group forgets it."""
        cancelled = super().cancel(msg)
        if GROUPS_FORGET:
            here = inspect.currentframe()  # nothing else tells who cancels
            caller = None if here is None else here.f_back
            if caller is not None and caller.f_globals.get("__name__") == "asyncio.taskgroups":
                group = caller.f_locals.get("self")
                if getattr(group, "_exiting", False):
                    self.uncancel()
        return cancelled
