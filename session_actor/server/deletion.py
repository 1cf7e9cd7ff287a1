"""Deleting a session: by its own server when it is loaded, else by a server that only deletes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from session_actor.errors import StoreError, translate
from session_actor.persistence import Fenced, NotDurable, PersistenceError, SessionTombstoned, SessionUnknown
from session_actor.service_errors import SessionFenced, SessionNotFound
from session_actor.supervisors import Call, GenServer, handles

if TYPE_CHECKING:
    from session_actor.persistence import Lease, Store
    from session_actor.supervisors import ExitReason

    from .cell import Cell


class Delete(msgspec.Struct, Call[None], frozen=True, gc=False):
    """Delete the session and end."""


async def delete_records(store: Store, lease: Lease, cell: Cell) -> None:
    """Delete the records of a session, then end all its handles, in one step with the reply to whoever asked.

    Raises the package's own error when the store refuses, which crashes nobody. With `NotDurable` the deletion is made
    and queued: the handles are dead all the same. With any other nothing is deleted, and the session lives; when it has
    lost its lease over that, the next message loads it again.
    """
    try:
        await store.delete(lease)
    except NotDurable as error:
        cell.die()
        raise translate(error) from None
    except Fenced:
        cell.fence()
        raise SessionFenced(cell.id) from None
    except (PersistenceError, OSError) as error:
        if not lease.live:
            cell.rest()
        if isinstance(error, OSError):
            raise _undeletable(cell, error) from error
        raise translate(error) from None
    cell.die()


def _undeletable(cell: Cell, error: OSError) -> StoreError:
    return StoreError.of(f"session {cell.id!r} could not be deleted", error, "it is as it was: try again")


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
        """Acquire the session. Raises SessionNotFound when there is none, and StoreError when the disk refuses."""
        try:
            self._lease = await self._store.acquire(self._cell.id, create=False)
        except BaseException as error:
            self._cell.rest()
            if isinstance(error, SessionUnknown | SessionTombstoned):
                if self._cell.lease is not None:  # there are handles, of the session that is gone
                    self._cell.die()
                raise SessionNotFound(self._cell.id) from None
            if isinstance(error, OSError):
                raise _undeletable(self._cell, error) from error
            raise

    @handles(Delete)
    async def delete(self, message: Delete) -> None:
        """Delete, and end in any case: what was refused leaves a resting session, whose next message brings it back."""
        del message
        try:
            await delete_records(self._store, self._lease, self._cell)
        finally:
            if not self._cell.deleted:
                self._cell.rest()
            self.stop_self()

    async def terminate(self, reason: ExitReason) -> None:
        """Give the session up, if it still is there."""
        del reason
        self._store.release(self._lease)
