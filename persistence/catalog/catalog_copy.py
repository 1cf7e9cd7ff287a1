"""A copy of the catalog to look at: opening the catalog itself could change it (a transaction is rolled back)."""

from __future__ import annotations

import contextlib
import sqlite3
from typing import TYPE_CHECKING, Final

from session_actor.persistence.errors import CatalogCorrupt
from session_actor.persistence.files.plain_file import NotPlain, open_plain

from .catalog import Catalog

if TYPE_CHECKING:
    from collections.abc import Callable

    from session_actor.persistence.files.storage import Disk

PIECE_BYTES: Final = 1024 * 1024
JOURNAL: Final = "-journal"
"""What SQLite adds to the name of a database for its rollback journal."""


def copy_catalog(disk: Disk, path: str, folder: str) -> Catalog:
    """A copy, in `folder`, of the catalog at `path`, open and checked whole. Blocks.

    Raises `CatalogCorrupt`, `StoreVersionTooNew`, OSError.
    """

    def copy(target: str) -> None:
        copy_file(disk, path, target)
        with contextlib.suppress(FileNotFoundError):
            copy_file(disk, path + JOURNAL, target + JOURNAL)

    return opened_copy(path, folder, copy)


def opened_copy(path: str, folder: str, copy: Callable[[str], None]) -> Catalog:
    """The same, whichever way `copy` makes the copy at the path that it is given."""
    target = f"{folder}/catalog.db"
    try:
        copy(target)
    except FileNotFoundError:
        raise CatalogCorrupt(path, "it is missing") from None
    except NotPlain as error:
        raise CatalogCorrupt(path, "it is no plain file") from error
    catalog = Catalog(target)
    try:
        catalog.open(create=False)
        catalog.check()
        catalog.files.check()
    except BaseException:
        catalog.close()
        raise
    return catalog


def rescue_dead(path: str) -> set[tuple[str, str]]:
    """The deleted births that a damaged catalog still names: as many as can be read. Blocks."""
    found: set[tuple[str, str]] = set()
    try:
        connection = sqlite3.connect(f"file:{path}?immutable=1", uri=True)
    except sqlite3.Error:
        return found
    with contextlib.closing(connection), contextlib.suppress(sqlite3.Error, UnicodeDecodeError, MemoryError):
        connection.text_factory = bytes
        for session, birth, _ in connection.execute("SELECT session, birth, row_sum FROM tombstones"):
            with contextlib.suppress(UnicodeDecodeError, AttributeError):
                found.add((session.decode("utf-8", "surrogatepass"), birth.decode()))
    return found


def copy_file(disk: Disk, source: str, target: str) -> None:
    """Copy a plain file to `target`, outside the store. Blocks. Raises `NotPlain`, OSError."""
    file = open_plain(disk, source)
    try:
        position = 0
        with open(target, "wb") as copy:  # noqa: PTH123 - a copy outside the store
            while piece := file.read(position, PIECE_BYTES):
                copy.write(piece)
                position += len(piece)
    finally:
        file.close()
