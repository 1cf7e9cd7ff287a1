"""Which tasks cannot go on before a future is done: what asyncio keeps of `await`, `gather`, `wait_for`, `TaskGroup`.

Followed is only what is sure: a task that gives up waiting in one of these ways cancels what it waits for, so that this
is of no use to anybody else either. `wait`, `shield`, `as_completed` and callbacks leave what they wait for alone.
"""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

    AnyFuture = asyncio.Future[Any]

_RELEASES: Final[object] = getattr(asyncio.tasks, "_release_waiter", None)
"""How `wait_for` is told, up to Python 3.11; since then it awaits in the same task."""
_GATHERS: Final = "gather.<locals>._done_callback"


class Behind(NamedTuple):
    """What waits for a future."""

    futures: set[AnyFuture]
    """Tasks, and futures for several of them, that cannot be done before it is …"""
    unless: set[AnyFuture]
    """… unless one of these raises, which are gathered with one of them."""


def behind(future: AnyFuture) -> Behind:
    """Everything that waits for a future, directly or over others."""
    found = Behind(set(), set())
    left: list[AnyFuture] = [future]
    while left:
        for waiter in _waiters(left.pop(), found.unless):
            if waiter not in found.futures:
                found.futures.add(waiter)
                left.append(waiter)
    return found


def _waiters(future: AnyFuture, unless: set[AnyFuture]) -> Iterator[AnyFuture]:
    callbacks: Any = getattr(future, "_callbacks", None)
    for callback, _ in callbacks or ():
        told = getattr(callback, "__self__", None)
        if asyncio.isfuture(told):
            if getattr(told, "_fut_waiter", None) is future:
                yield told
        elif isinstance(told, asyncio.TaskGroup):
            yield from _group(told)
        elif isinstance(callback, partial):
            if callback.func is _RELEASES:
                yield callback.args[0]
        elif getattr(callback, "__qualname__", None) == _GATHERS and callback.__module__ == asyncio.tasks.__name__:
            yield from _gathering(future, callback, unless)


def _group(group: Any) -> Iterator[AnyFuture]:
    """The task that a group belongs to, once it waits for the group's end."""
    end = getattr(group, "_on_completed_fut", None)
    parent: Any = getattr(group, "_parent_task", None)
    if end is not None and getattr(parent, "_fut_waiter", None) is end:
        yield parent


def _gathering(future: AnyFuture, callback: Any, unless: set[AnyFuture]) -> Iterator[AnyFuture]:
    """What `gather` returned. Unless it gives exceptions as results, it is done when the first one is raised."""
    kept = dict(zip(callback.__code__.co_freevars, callback.__closure__ or (), strict=False))
    outer, as_results = _kept(kept.get("outer")), _kept(kept.get("return_exceptions"))
    children = getattr(outer, "_children", None)
    if outer is None or children is None or as_results is None:
        return
    if not as_results:
        unless.update(child for child in children if child is not future and not child.done())
    yield outer


def _kept(cell: Any) -> Any:
    """What a cell of a function holds; None: nothing yet, or there is no such cell."""
    try:
        return None if cell is None else cell.cell_contents
    except ValueError:
        return None
