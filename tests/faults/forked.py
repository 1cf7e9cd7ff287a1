"""Work that is done in a forked child, by a process that has imported everything: that is made once, not every time."""

from __future__ import annotations

import gc
import os
import traceback
from collections.abc import Callable


def freeze() -> None:
    """Let no child copy all that is there, only because its garbage is looked for there."""
    gc.collect()
    gc.freeze()


def fork(work: Callable[[int], None]) -> tuple[int, int]:
    """Run `work(pipe)` in a forked child; returns its id and the other end of the pipe."""
    reader, writer = os.pipe()
    pid = os.fork()
    if pid:
        os.close(writer)
        return pid, reader
    os.close(reader)
    code = 1
    try:
        work(writer)
        code = 0
    except BaseException as error:  # noqa: BLE001 - all of it is told by the exit code
        traceback.print_exception(error)
    finally:
        os._exit(code)


def wait(pid: int, reader: int) -> tuple[int, bytes]:
    """The exit code of a child, and what it told."""
    told = b""
    while piece := os.read(reader, 1 << 16):
        told += piece
    os.close(reader)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), told
