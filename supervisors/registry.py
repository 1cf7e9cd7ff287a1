"""Names for servers: at most one living server per name."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from functools import partial
from typing import TYPE_CHECKING

from .errors import AlreadyRegistered, shown

if TYPE_CHECKING:
    from .exits import ExitReason
    from .ref import ServerRef

_Hear = Callable[["ExitReason", bool], None]


class Registry:
    """Finds a server by name. A name stays over restarts and goes by itself when the server's slot ends."""

    def __init__(self) -> None:
        """Start empty."""
        self._entries: dict[Hashable, tuple[ServerRef, _Hear]] = {}

    def register(self, name: Hashable, ref: ServerRef) -> None:
        """Give `name` to `ref`; the same again changes nothing.

        Raises:
            AlreadyRegistered: a living server has the name.
            ServerStopped, ServerKilled, ServerQuarantined, ServerDown, InitFailed: `ref` itself has ended.
        """
        ref.slot.admit()
        known = self.whereis(name)
        if known is ref:
            return
        if known is not None:
            message = f"name {name!r} belongs to server {shown(known.id)}"
            raise AlreadyRegistered(message, known)
        hear = partial(self._hear, name, ref)
        self._entries[name] = (ref, hear)
        ref.slot.watch(hear)

    def whereis(self, name: Hashable) -> ServerRef | None:
        """Return the server with this name, None when there is none."""
        entry = self._entries.get(name)
        return None if entry is None else entry[0]

    def unregister(self, name: Hashable) -> None:
        """Take a name away; an unknown one is nothing."""
        entry = self._entries.pop(name, None)
        if entry is not None:
            entry[0].slot.unwatch(entry[1])

    def names(self) -> tuple[Hashable, ...]:
        """Return all names."""
        return tuple(self._entries)

    def _hear(self, name: Hashable, ref: ServerRef, reason: ExitReason, restarting: bool) -> None:  # noqa: FBT001 - a callback
        del reason
        if not restarting and self.whereis(name) is ref:
            self.unregister(name)
