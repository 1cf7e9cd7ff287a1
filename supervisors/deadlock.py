"""Finding servers that wait for one another, by following who awaits whom among the servers' own tasks."""

from __future__ import annotations

import asyncio
from contextlib import contextmanager
from typing import TYPE_CHECKING

from .errors import DeadlockError

if TYPE_CHECKING:
    from collections.abc import Generator

    from .slot import Slot


def chain_from(owner: Slot, target: Slot) -> list[Slot] | None:
    """Return the servers from `owner` over `target` back to `owner` when waiting would close a circle, else None."""
    chain = [owner]
    link: Slot | None = target
    while link is not None:
        chain.append(link)
        if link is owner:
            return chain
        link = link.awaits
    return None


def owner_of_current_task(slot: Slot) -> Slot | None:
    """Return the server whose own task is running; a task that a handler made is nobody's."""
    task = asyncio.current_task(slot.floor.loop)
    return None if task is None else slot.floor.active.get(task)


@contextmanager
def waiting(target: Slot) -> Generator[None, None, None]:
    """Mark the running server, if any, as waiting for `target`.

    Raises:
        DeadlockError: `target` waits, directly or over others, for the running server.
    """
    owner = owner_of_current_task(target)
    if owner is None:
        yield
        return
    chain = chain_from(owner, target)
    if chain is not None:
        raise DeadlockError([link.id for link in chain])
    owner.awaits = target
    try:
        yield
    finally:
        owner.awaits = None


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
