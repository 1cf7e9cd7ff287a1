"""Paths that callers give."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

from session_actor.errors import InvalidArgument

from .plain import is_a, shown


def path_of(given: object, what: str) -> str:
    """A path as text. Raises InvalidArgument, which calls it `what`, for anything else."""
    path = os.fspath(given) if is_a(given, (str, os.PathLike)) else given  # type: ignore[call-overload]
    if not isinstance(path, str):
        raise InvalidArgument(what, f"must be a path as a str or a Path, got {shown(given)}")
    if "\0" in path:
        raise InvalidArgument(what, "is no path: it has a NUL in it")
    return path


def must_be_file(path: str, what: str) -> None:
    """Refuse a pipe, a device or a socket: it cannot be read twice, nor replaced. What is not there may come to be.

    Raises InvalidArgument, which calls it `what`; OSError. Blocks.
    """
    try:
        mode = Path(path).stat().st_mode
    except FileNotFoundError:
        return
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
    if not stat.S_ISREG(mode):
        raise InvalidArgument(what, f"is no file but a pipe, a device or a socket: {path}")
