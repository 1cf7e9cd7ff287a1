"""Opening what should be a plain file, whatever stands in its place."""

from __future__ import annotations

import contextlib
import errno
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Generator

    from .storage import Disk, DiskFile

_NOT_PLAIN: Final = frozenset({errno.ELOOP, errno.EINVAL, errno.ENXIO, errno.EISDIR, errno.EMLINK})
"""What opening something else than a plain file fails with."""


class NotPlain(Exception):
    """A link, a pipe, a folder or something else stands where a plain file should. It was not read."""


@contextlib.contextmanager
def plain_only() -> Generator[None]:
    """Opening something in here raises `NotPlain` when it is no plain file. Other errors pass."""
    try:
        yield
    except OSError as error:
        if error.errno in _NOT_PLAIN:
            raise NotPlain(error.filename) from error
        raise


def open_plain(disk: Disk, path: str, *, write: bool = False) -> DiskFile:
    """Open a file that is there. Blocks. Raises `NotPlain`, FileNotFoundError, and OSError when the disk refuses."""
    try:
        return disk.open(path, write=write)
    except OSError as error:
        if error.errno in _NOT_PLAIN:
            raise NotPlain(error.filename) from error
        raise
