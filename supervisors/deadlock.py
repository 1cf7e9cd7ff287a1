"""Finding servers that wait for one another, by following who awaits whom among the servers' own tasks.

A handler may also wait for tasks that it made, by `gather` and the like, and these for servers. Who waits for such a
task is looked up when it waits for a server, and again from time to time: its handler may come to wait for it later.
"""

from __future__ import annotations

import asyncio
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Final, cast

from .awaiting import behind
from .errors import DeadlockError

if TYPE_CHECKING:
    from collections.abc import Container, Generator, Iterator, Mapping

    from .floor import Floor
    from .reply import PendingReply
    from .slot import Slot

    Awaited = tuple[Slot, PendingReply[Any] | None]

BORN_INSIDE: Final = ContextVar("session_actor.born_inside_a_handler", default=False)
"""True in async handlers, and in the tasks that they make: only such tasks can close a circle for a handler. That one
is born there does not mean that anybody waits for it."""
FIRST_LOOK_S: Final = 0.002
LONGEST_LOOK_S: Final = 1.0
"""How long a task that waits for a server is left alone until it is looked again whether that is for ever."""


def mark_inside() -> None:
    """Mark the context of a handler, which its tasks will have, too."""
    BORN_INSIDE.set(True)


def owner_of_current_task(slot: Slot) -> Slot | None:
    """Return the server whose own task is running; a task that a handler made is nobody's."""
    task = asyncio.current_task(slot.floor.loop)
    return None if task is None else slot.floor.active.get(task)


@contextmanager
def waiting(target: Slot, pending: PendingReply[Any] | None = None) -> Generator[None, None, None]:
    """Mark the running server, if any, as waiting for `target`: for its reply to `pending`, or for its start.

    Raises:
        DeadlockError: `target` waits, directly or over others, for the running server, or for the running task.
    """
    owner = owner_of_current_task(target)
    if owner is not None:
        _refuse(chain_from((owner,), (target, pending)))
        owner.awaits = (target, pending)
        try:
            yield
        finally:
            owner.awaits = None
    elif BORN_INSIDE.get():
        with _task_waiting((target, pending)):
            yield
    else:
        yield


@contextmanager
def _task_waiting(wait: Awaited) -> Generator[None, None, None]:
    """Mark the running task, which a handler made, as waiting; look now and then whether that is for ever."""
    floor = wait[0].floor
    task = asyncio.current_task(floor.loop)
    if task is None:
        yield
        return
    _refuse(_chain_over(floor, task, wait))
    floor.beside[task] = wait
    watch = _Watch(task, wait)
    try:
        yield
    finally:
        watch.end()
        floor.beside.pop(task, None)


class _Watch:
    """Looks whether what a task waits for has become a circle, less and less often."""

    def __init__(self, task: asyncio.Future[Any], wait: Awaited) -> None:
        self._task = task
        self._wait = wait
        self._floor = wait[0].floor
        self._after_s = FIRST_LOOK_S
        self._timer = self._floor.loop.call_later(FIRST_LOOK_S, self._look, context=self._floor.context)

    def end(self) -> None:
        self._timer.cancel()

    def _look(self) -> None:
        chain, pending = _chain_over(self._floor, self._task, self._wait), self._wait[1]
        if chain is None:
            self._after_s = min(2 * self._after_s, LONGEST_LOOK_S)
            self._timer = self._floor.loop.call_later(self._after_s, self._look, context=self._floor.context)
        elif pending is not None:
            pending.forget_in_queue()
            pending.fail(_error(chain))


def _refuse(chain: list[Slot] | None) -> None:
    if chain is not None:
        raise _error(chain)


def _error(chain: list[Slot]) -> DeadlockError:
    return DeadlockError([link.id for link in chain])


def chain_from(owners: Container[Slot], wait: Awaited) -> list[Slot] | None:
    """Return the servers from one of `owners` over what is waited for back to it, when that is a circle, else None.

    A reply that was deferred closes none: who holds it may give it at any time, whatever its server waits for. Nor does
    one that was given, though its caller was not yet woken.
    """
    left: list[tuple[Awaited, tuple[Slot, ...]]] = [(wait, ())]
    seen: set[Slot] = set()
    while left:
        (link, pending), path = left.pop()
        if link in seen or (pending is not None and (pending.done() or link.is_deferred(pending))):
            continue
        path = (*path, link)
        if link in owners:
            return [link, *path]
        seen.add(link)
        left += [(following, path) for following in _waits_of(link)]
    return None


def _waits_of(slot: Slot) -> Iterator[Awaited]:
    """What a server waits for, in its own task and in those that its handler waits for."""
    if slot.awaits is not None:
        yield slot.awaits
    for task, wait in slot.floor.beside.items():
        if slot in _owners_of(slot.floor, task):
            yield wait


def _chain_over(floor: Floor, task: asyncio.Future[Any], wait: Awaited) -> list[Slot] | None:
    """The same for a task that a handler made; its owners are the servers whose handlers wait for it."""
    owners = _owners_of(floor, task)
    return chain_from(owners, wait) if owners else None


def _owners_of(floor: Floor, task: asyncio.Future[Any]) -> set[Slot]:
    """The servers whose handlers cannot go on before a task is done.

    None, when another task might let them go on by raising, one that is not waiting for the same servers itself.
    """
    waits = behind(task)
    active = cast("Mapping[object, Slot]", floor.active)
    owners = {active[waiter] for waiter in waits.futures if waiter in active}
    return owners if all(_waits_for(floor, other, owners) for other in waits.unless) else set()


def _waits_for(floor: Floor, task: asyncio.Future[Any], owners: set[Slot]) -> bool:
    """Whether a task waits for one of these servers, over no tasks but the servers' own."""
    wait = floor.beside.get(task)
    seen: set[Slot] = set()
    while wait is not None:
        link, pending = wait
        if link in seen or (pending is not None and (pending.done() or link.is_deferred(pending))):
            return False
        if link in owners:
            return True
        seen.add(link)
        wait = link.awaits
    return False


def refuse_own_handler(slot: Slot) -> None:
    """Refuse a call to a server from inside its own sync handler.

    A task in its eager first step (Python 3.12) only looks as if it were inside: it can wait while the handler goes on.

    Raises:
        DeadlockError: with the chain.
    """
    eager: Container[object] = getattr(asyncio.tasks, "_eager_tasks", ())
    if asyncio.current_task(slot.floor.loop) in eager:
        return
    stack = slot.floor.stack
    raise DeadlockError([link.id for link in (*stack[stack.index(slot) :], slot)])


def refuse_own_task(slot: Slot) -> None:
    """Refuse to wait for the end of a server from inside it, or of a supervisor from inside one of its servers.

    Raises:
        DeadlockError: with the chain.
    """
    link = owner_of_current_task(slot)
    chain: list[object] = []
    while link is not None:
        chain.append(link.id)
        if link is slot:
            raise DeadlockError([*chain, chain[0]])
        link = None if link.parent is None else link.parent.slot
