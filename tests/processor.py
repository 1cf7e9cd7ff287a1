"""A bound on the work of a test, which no other load of the machine counts against."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def at_most(limit_s: float) -> Iterator[None]:
    """Fail when what is done meanwhile takes this process more than so many seconds of a processor."""

    def stop(*_: object) -> None:
        raise AssertionError(f"more than {limit_s} s of processor time")

    before = signal.signal(signal.SIGVTALRM, stop)
    signal.setitimer(signal.ITIMER_VIRTUAL, limit_s)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)
