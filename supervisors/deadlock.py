"""Finding servers that wait for one another, by following who awaits whom among the servers' own tasks.

A handler may also wait for a task that it made, by `await` or `wait_for`, and that one for a server.
"""

from __future__ import annotations

import asyncio
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Final, cast

from .awaiting import waiters
from .errors import DeadlockError

if TYPE_CHECKING:
    from collections.abc import Container, Generator, Mapping
    from types import FrameType

    from .floor import Floor
    from .reply import PendingReply
    from .slot import Slot

    Awaited = tuple[Slot, PendingReply[Any] | None]

BORN_INSIDE: Final = ContextVar("session_actor.born_inside_a_handler", default=False)
"""True in async handlers, and in the tasks that they make: only such tasks can close a circle for a handler. That one
is born there does not mean that anybody waits for it."""


def mark_inside() -> None:
    """Mark the context of a handler, which its tasks will have, too."""
    BORN_INSIDE.set(True)


def owner_of_current_task(slot: Slot) -> Slot | None:
    """Return the server whose own task is running; a task that a handler made is nobody's."""
    task = asyncio.current_task(slot.floor.loop)
    return None if task is None else slot.floor.active.get(task)


@contextmanager
def waiting(target: Slot, pending: PendingReply[Any] | None = None) -> Generator[None, None, None]:
    """Mark whoever waits for the running task as waiting for `target`: for its reply to `pending`, or its start.

    Raises:
        DeadlockError: `target` waits, directly or over others, for one of them.
    """
    owners = _owners(target.floor)
    if owners:
        chain = chain_from(owners, target, pending)
        if chain is not None:
            raise DeadlockError([link.id for link in chain])
    for owner in owners:
        owner.awaits = (target, pending)
    try:
        yield
    finally:
        for owner in owners:
            owner.awaits = None


def _owners(floor: Floor) -> tuple[Slot, ...]:
    """The server whose own task is running, or those whose handlers cannot go on before the running task is done."""
    task = asyncio.current_task(floor.loop)
    if task is None:
        return ()
    owner = floor.active.get(task)
    if owner is not None:
        return (owner,)
    active = cast("Mapping[object, Slot]", floor.active)
    return tuple(active[waiter] for waiter in waiters(task) if waiter in active) if BORN_INSIDE.get() else ()


def chain_from(owners: Container[Slot], link: Slot, pending: PendingReply[Any] | None) -> list[Slot] | None:
    """Return the servers from one of `owners` over `link` and what that waits for back to it, if it is a circle.

    A reply that was deferred closes none: who holds it may give it at any time, whatever its server waits for. Nor does
    one that was given, though its caller was not yet woken.
    """
    path: list[Slot] = []
    while link not in path and (pending is None or not (pending.done() or link.is_deferred(pending))):
        path.append(link)
        if link in owners:
            return [link, *path]
        if link.awaits is None:
            return None
        link, pending = link.awaits
    return None


def refuse_own_handler(slot: Slot) -> None:
    """Refuse a call to a server from inside its own sync handler.

    A task in its eager first step (Python 3.12) only looks as if it were inside: it can wait while the handler goes on.

    Raises:
        DeadlockError: with the chain.
    """
    if _made_by_handler(asyncio.current_task(slot.floor.loop), slot):
        return
    stack = slot.floor.stack
    raise DeadlockError([link.id for link in (*stack[stack.index(slot) :], slot)])


def _made_by_handler(task: asyncio.Task[Any] | None, slot: Slot) -> bool:
    """Say whether the task was begun by the handler of `slot` that runs now: whether that is further out on the stack.

    Nothing else tells: since Python 3.14 asyncio does not note any more which of its tasks are in their eager step.
    """
    coroutine: Any = None if task is None else task.get_coro()
    own: FrameType | None = getattr(coroutine, "cr_frame", None) or getattr(coroutine, "gi_frame", None)
    frame = None if own is None else own.f_back
    while frame is not None:
        if frame.f_globals.get("__package__") == __package__ and frame.f_locals.get("slot") is slot:
            return True
        frame = frame.f_back
    return False


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
