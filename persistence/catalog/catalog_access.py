"""The connection to a catalog: one for all threads, one call at a time, and what SQLite's errors mean."""

from __future__ import annotations

import errno
import sqlite3
import threading
from typing import TYPE_CHECKING, Final

from session_actor.persistence.errors import CatalogCorrupt, StoreClosed

if TYPE_CHECKING:
    from collections.abc import Callable

_DISK_ERRORS: Final = {
    sqlite3.SQLITE_FULL: errno.ENOSPC,
    sqlite3.SQLITE_IOERR: errno.EIO,
    sqlite3.SQLITE_READONLY: errno.EROFS,
    sqlite3.SQLITE_CANTOPEN: errno.EIO,
    sqlite3.SQLITE_BUSY: errno.EBUSY,
    sqlite3.SQLITE_LOCKED: errno.EBUSY,
    sqlite3.SQLITE_PERM: errno.EACCES,
    sqlite3.SQLITE_NOMEM: errno.ENOMEM,
    sqlite3.SQLITE_AUTH: errno.EACCES,
    sqlite3.SQLITE_INTERRUPT: errno.EINTR,
    sqlite3.SQLITE_NOLFS: errno.EFBIG,
    sqlite3.SQLITE_PROTOCOL: errno.EBUSY,
}


class CatalogAccess:
    """Enter it for the connection. Written out, not a generator: every question to a catalog goes through it.

    Entering raises `StoreClosed`. What is raised inside becomes OSError where the disk refused, and `CatalogCorrupt`
    where SQLite says anything else.
    """

    __slots__ = ("_connection", "_mutex", "_path")

    def __init__(self, path: str) -> None:
        """Not open. `path`: for errors."""
        self._path = path
        self._connection: sqlite3.Connection | None = None
        self._mutex = threading.Lock()

    def open(self, connect: Callable[[], sqlite3.Connection]) -> None:
        """From now on there is a connection. Raises as entering does, and what `connect` raises."""
        with self._mutex:
            try:
                self._connection = connect()
            except (sqlite3.Error, UnicodeDecodeError) as error:
                self._translate(error)
                raise

    def close(self) -> None:
        """There is none any more; again: no effect."""
        with self._mutex:
            connection, self._connection = self._connection, None
            if connection is not None:
                connection.close()

    def __enter__(self) -> sqlite3.Connection:
        """Waits for whoever has it."""
        self._mutex.acquire()
        if self._connection is None:
            self._mutex.release()
            raise StoreClosed(f"the catalog {self._path} is not open")
        return self._connection

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        """Lets the next have it."""
        self._mutex.release()
        if error is not None:
            self._translate(error)

    def _translate(self, error: BaseException) -> None:
        if isinstance(error, UnicodeDecodeError):
            raise CatalogCorrupt(self._path, "it holds text that is none") from error
        if isinstance(error, sqlite3.Error):
            code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_CORRUPT) & 0xFF
            if code in _DISK_ERRORS:
                raise OSError(_DISK_ERRORS[code], f"the catalog: {error}", self._path) from error
            raise CatalogCorrupt(self._path, f"SQLite says: {error}") from error
