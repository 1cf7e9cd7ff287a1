"""Deleting a session: by its own server when it is loaded, else by a server that only deletes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from session_actor.persistence import PersistenceError, SessionTombstoned, SessionUnknown
from session_actor.supervisors import Call, GenServer, handles

from .errors import translate
from .service_errors import SessionNotFound

if TYPE_CHECKING:
    from session_actor.persistence import Lease, Store
    from session_actor.supervisors import ExitReason

    from .cell import Cell


class Delete(msgspec.Struct, Call[None], frozen=True, gc=False):
    """Delete the session and end."""


async def delete_records(store: Store, lease: Lease, cell: Cell) -> None:
    """Delete the records of a session, then end all its handles, in one step with the reply to whoever asked.

    Raises the package's own error when the store refuses; then the session is as it was.
    """
    try:
        await store.delete(lease)
    except PersistenceError as error:
        raise translate(error) from None
    cell.die()


class Deleter(GenServer):
    """Stands in a resting session's place while it is deleted, so that it cannot be loaded meanwhile.

    It does not read the records: a session whose records are damaged can be deleted, too.
    """

    def __init__(self, cell: Cell, store: Store) -> None:
        """`cell`: the session's."""
        super().__init__()
        self._cell = cell
        self._store = store
        self._lease: Lease

    async def init(self) -> None:
        """Acquire the session. Raises SessionNotFound when there is none."""
        try:
            self._lease = await self._store.acquire(self._cell.id, create=False)
        except BaseException as error:
            self._cell.rest()
            if isinstance(error, SessionUnknown | SessionTombstoned):
                raise SessionNotFound(self._cell.id) from None
            raise

    @handles(Delete)
    async def delete(self, message: Delete) -> None:
        """Delete, and end in any case: what was refused leaves a resting session, whose next message brings it back."""
        del message
        try:
            await delete_records(self._store, self._lease, self._cell)
        finally:
            self.stop_self()

    async def terminate(self, reason: ExitReason) -> None:
        """Give the session up, if it still is there."""
        del reason
        self._store.release(self._lease)
