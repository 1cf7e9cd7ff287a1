"""A copy of the catalog of a store that may be in use: taken without any lock, so that its writer never waits."""

from __future__ import annotations

import contextlib
import errno
import os
import time
from functools import partial
from typing import TYPE_CHECKING, Final

from session_actor.persistence.files.storage import HEADER_BYTES

from .catalog_copy import JOURNAL, copy_file, opened_copy

if TYPE_CHECKING:
    from session_actor.persistence.files.storage import Disk

    from .catalog import Catalog

_TRIES: Final = 200
_PAUSE_S: Final = 0.005
_JOURNAL_BYTES: Final = 28
"""The header of a rollback journal: a number of its own, and how many pages it holds (SQLite: file format, 3)."""


def copy_live(disk: Disk, path: str, folder: str) -> Catalog:
    """A copy, in `folder`, of the catalog at `path` as it was at one moment, open and checked whole. Blocks.

    It is copied again until nothing was committed meanwhile. A transaction that is not committed is rolled back in the
    copy. Raises `CatalogCorrupt`, `StoreVersionTooNew`, OSError.
    """
    return opened_copy(path, folder, partial(_copy_settled, disk, path))


def _copy_settled(disk: Disk, path: str, target: str) -> None:
    for _ in range(_TRIES):
        before = _mark(path)
        copy_file(disk, path, target)
        with contextlib.suppress(FileNotFoundError):
            os.unlink(target + JOURNAL)  # noqa: PTH108 - of the copy before
        with contextlib.suppress(FileNotFoundError):
            copy_file(disk, path + JOURNAL, target + JOURNAL)
        if _mark(path) == before:
            return
        time.sleep(_PAUSE_S)
    raise OSError(errno.EAGAIN, f"the catalog changed each of {_TRIES} times that it was copied; try again", path)


def _mark(path: str) -> tuple[object, object]:
    """What is another as soon as a transaction has changed a byte.

    Every commit changes the counter in SQLite's header (SQLite: file format, 1.3.7).
    """
    return _head(path, HEADER_BYTES), _head(path + JOURNAL, _JOURNAL_BYTES)


def _head(path: str, length: int) -> tuple[bytes, int, int] | None:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return None
    try:
        found = os.fstat(descriptor)
        return os.pread(descriptor, length, 0), found.st_size, found.st_mtime_ns
    finally:
        os.close(descriptor)
