"""Reading a store that may be in use: which sessions there are, and their records one by one. Nothing is changed."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Self

from session_actor.errors import translate
from session_actor.persistence import PersistenceError, SessionTombstoned, SessionUnknown
from session_actor.persistence.reading.reader import StoreReader
from session_actor.service.reserved import is_reserved
from session_actor.service_errors import SessionDeleted, SessionNotFound

if TYPE_CHECKING:
    import os
    from collections.abc import Generator, Iterator
    from types import TracebackType

    from session_actor.persistence import Record, SessionInfo
    from session_actor.persistence.reading.session_lines import Damage, SessionLines


def read_store(path: str | os.PathLike[str]) -> Reader:
    """Look at the store in a directory, without its lock: one in use, one that is closed, a copy, a damaged one.

    Nothing in the directory is changed, and whoever has the store open does not notice. A copy of its catalog is kept
    in a temporary folder until the reader is closed. What a store in use has not yet written is not seen. Blocks.

    Raises NotAStore, StoreVersionTooNew, StoreCorrupt, and OSError when the disk refuses.
    """
    return Reader(path)


class Reader:
    """A store as it was when it was looked at last. All methods block; use it in one thread at a time, and close it."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        """See `read_store`."""
        with translated():
            self._store = StoreReader(path)

    @property
    def root(self) -> str:
        """The store's directory."""
        return self._store.layout.root

    def refresh(self) -> None:
        """Look again: what was written since is seen from now on. Raises as `read_store`."""
        with translated():
            self._store.refresh()

    def sessions(self, prefix: str = "") -> Iterator[SessionInfo]:
        """Every session whose id starts with `prefix`, by id; what the library keeps beside them is left out.

        No journal is read. Raises StoreCorrupt, OSError.
        """
        with translated():
            yield from (info for info in self._store.sessions(prefix) if not is_reserved(info.id))

    def session(self, session_id: str) -> SessionInfo:
        """One session. Raises SessionNotFound, SessionDeleted, UnusableId, StoreCorrupt."""
        with translated():
            return self._store.find(session_id)

    def records(self, session_id: str, after_seq: int = 0) -> Records:
        """The records of a session behind record `after_seq`, in order, in bounded memory. Raises as `session`."""
        return Records(self.lines(session_id), after_seq)

    def lines(self, session_id: str) -> SessionLines:
        """What reads the records with their places. Raises as `session`."""
        with translated():
            return self._store.lines(session_id)

    def close(self) -> None:
        """Remove the copy of the catalog; again: no effect."""
        self._store.close()

    def __enter__(self) -> Self:
        """The reader itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Close it."""
        self.close()


class Records:
    """The records of one session, to be gone through once. Raises SessionDeleted when it is deleted meanwhile."""

    def __init__(self, lines: SessionLines, after_seq: int) -> None:
        """`lines`: where they are read."""
        self._lines = lines
        self._found = self._all(after_seq)

    @property
    def damage(self) -> Damage | None:
        """After the end: where reading had to stop; None: nothing is damaged."""
        return self._lines.damage

    def __iter__(self) -> Iterator[Record]:
        """The records themselves."""
        return self._found

    def __next__(self) -> Record:
        """The next one."""
        return next(self._found)

    def _all(self, after_seq: int) -> Iterator[Record]:
        with translated():
            for placed in self._lines.after(after_seq):
                yield placed.record


@contextlib.contextmanager
def translated() -> Generator[None]:
    """Errors of the floor below come out as those of this package."""
    try:
        yield
    except SessionUnknown as error:
        raise SessionNotFound(error.session) from None
    except SessionTombstoned as error:
        raise SessionDeleted(error.session) from None
    except PersistenceError as error:
        raise translate(error) from error
