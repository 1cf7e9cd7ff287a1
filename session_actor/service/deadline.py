"""How long something may still take, where several steps share one deadline."""

from __future__ import annotations

from asyncio import get_running_loop
from contextlib import contextmanager
from math import inf
from typing import TYPE_CHECKING

import anyio

from session_actor.errors import CallTimeout
from session_actor.given.given_numbers import check_seconds

if TYPE_CHECKING:
    from collections.abc import Generator


class Unsaid(float):
    """A timeout that nobody gave [seconds]: the default of an argument, which can be told from the same number."""

    __slots__ = ()


def deadline_in(timeout_s: float | None) -> float:
    """When the time is over [seconds of the running loop]; None: never. Raises InvalidArgument for no number."""
    check_seconds("timeout_s", timeout_s, optional=True)
    return inf if timeout_s is None else get_running_loop().time() + timeout_s


def seconds_left(deadline_s: float) -> float | None:
    """The seconds until then; None: no limit."""
    return None if deadline_s == inf else max(0.0, deadline_s - get_running_loop().time())


@contextmanager
def no_longer_than(timeout_s: float | None, late: str) -> Generator[None]:
    """Raises CallTimeout, which says `late`, when what is done in it takes longer [seconds]; None: no limit."""
    try:
        with anyio.fail_after(timeout_s):
            yield
    except TimeoutError:
        raise CallTimeout(late) from None
