"""Holding a store's lock without writing to its file."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
from typing import TYPE_CHECKING

from session_actor.persistence.errors import StoreLocked

if TYPE_CHECKING:
    from collections.abc import Generator

    from session_actor.persistence.layout import Layout

_PID_BYTES = 20


@contextlib.contextmanager
def read_lock(layout: Layout) -> Generator[None]:
    """Hold the lock of a store that is not in use. A store without the file LOCK is not in use.

    Raises `StoreLocked`, OSError.
    """
    try:
        descriptor = os.open(layout.lock, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    except FileNotFoundError:
        os.listdir(layout.root)  # noqa: PTH208 - tells whether there is such a folder
        yield
        return
    except OSError as error:
        if error.errno != errno.ELOOP:
            raise
        raise StoreLocked(layout.root, None, f"{layout.lock} is not a plain file; remove it") from error
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise StoreLocked(layout.root, _holder(descriptor)) from None
        yield
    finally:
        os.close(descriptor)


def _holder(descriptor: int) -> int | None:
    text = os.pread(descriptor, _PID_BYTES, 0).strip()
    return int(text) if text.isdigit() else None
