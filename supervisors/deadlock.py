"""Finding servers that wait for one another, by following who awaits whom among the servers' own tasks."""

from __future__ import annotations

import asyncio
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from .errors import DeadlockError

if TYPE_CHECKING:
    from collections.abc import Container, Generator

    from .reply import PendingReply
    from .slot import Slot

    Awaited = tuple[Slot, PendingReply[Any] | None]


def chain_from(owner: Slot, target: Slot, pending: PendingReply[Any] | None) -> list[Slot] | None:
    """Return the servers from `owner` over `target` back to `owner` when waiting would close a circle, else None.

    A reply that was deferred closes none: who holds it may give it at any time, whatever its server waits for.
    """
    chain = [owner]
    awaited: Awaited | None = (target, pending)
    while awaited is not None:
        link, pending = awaited
        if pending is not None and link.is_deferred(pending):
            return None
        chain.append(link)
        if link is owner:
            return chain
        awaited = link.awaits
    return None


def owner_of_current_task(slot: Slot) -> Slot | None:
    """Return the server whose own task is running; a task that a handler made is nobody's."""
    task = asyncio.current_task(slot.floor.loop)
    return None if task is None else slot.floor.active.get(task)


@contextmanager
def waiting(target: Slot, pending: PendingReply[Any] | None = None) -> Generator[None, None, None]:
    """Mark the running server, if any, as waiting for `target`: for its reply to `pending`, or for its start.

    Raises:
        DeadlockError: `target` waits, directly or over others, for the running server.
    """
    owner = owner_of_current_task(target)
    if owner is None:
        yield
        return
    chain = chain_from(owner, target, pending)
    if chain is not None:
        raise DeadlockError([link.id for link in chain])
    owner.awaits = (target, pending)
    try:
        yield
    finally:
        owner.awaits = None


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
