"""Which tasks wait for a task by `await` or `wait_for`: they cancel it when they give up, and only it lets them go on.

In any other way (`gather`, `TaskGroup`, `wait`, `shield`, callbacks) somebody else may let them go on.
"""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

    AnyFuture = asyncio.Future[Any]

_RELEASES: Final[object] = getattr(asyncio.tasks, "_release_waiter", None)
"""How `wait_for` is told, up to Python 3.11; since then it awaits in the same task."""


def waiters(task: AnyFuture) -> set[AnyFuture]:
    """The tasks, and the futures between, that cannot be done before `task` is; that one is among them."""
    found = {task}
    left = [task]
    while left:
        more = [waiter for waiter in _direct(left.pop()) if waiter not in found]
        found.update(more)
        left += more
    return found


def _direct(future: AnyFuture) -> Iterator[AnyFuture]:
    callbacks: Any = getattr(future, "_callbacks", None)
    for callback, _ in callbacks or ():
        told = getattr(callback, "__self__", None)
        if asyncio.isfuture(told):
            if getattr(told, "_fut_waiter", None) is future:
                yield told
        elif isinstance(callback, partial) and callback.func is _RELEASES:
            yield callback.args[0]
