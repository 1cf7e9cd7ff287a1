"""What another generation of the library needs of this one: sessions that are paused, then let go with their callers.

The other generation has classes of its own for all that is here, so only plain values and what asyncio has goes over:
futures, contexts, functions. Messages go over as they are, and are made anew there (see `foreign`).
"""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from session_actor.errors import SessionActorError, remade
from session_actor.persistence import PersistenceError
from session_actor.server.cell import Dormant
from session_actor.supervisors import SupervisorError, Swapped, swap

from .errors import HandedOver

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextvars import Context

    from session_actor.server.cell import Cell
    from session_actor.service.lifetime import Lifetime
    from session_actor.supervisors.reply import PendingReply

_TO: Final = "another generation of the library"


class Waiting(NamedTuple):
    """A message that waits for a session."""

    message: object
    context: Context
    future: asyncio.Future[Any] | None
    """Of its caller; None: nobody waits."""
    fail: Callable[[BaseException], None]
    """Gives the caller an error of the other generation, as the class of this one that has its name."""
    give_up: Callable[[], None]
    """Gives the caller HandedOver: the message cannot be made anew."""


class Bridge:
    """The sessions of one generation, for another one of the library."""

    def __init__(self, lifetime: Lifetime) -> None:
        """`lifetime`: what is to be taken over."""
        self._lifetime = lifetime
        self._paused: list[tuple[Cell, Swapped]] = []

    async def pause(self) -> list[tuple[str, int, dict[str, Any]]]:
        """Pause all loaded sessions; their ids, versions and values. Replies that wait for the disk are out then."""
        population = self._lifetime.population
        paused: set[Cell] = set()
        while left := [cell for cell in population.cells()[0] if cell not in paused]:
            for cell in left:
                await self._pause(cell, paused)
        await population.store.flush(population.close_level)
        return [(cell.id, swapped.version, swapped.value) for cell, swapped in self._paused]

    async def _pause(self, cell: Cell, paused: set[Cell]) -> None:
        ref = cell.ref
        if isinstance(ref, Dormant):
            await asyncio.sleep(0)  # it is ending
        elif ref.phase == "quarantined":
            await self._lifetime.population.evict(cell)
        else:
            try:
                self._paused.append((cell, await swap(ref, None, None)))
                paused.add(cell)
            except SupervisorError:  # it crashed or ended: it is looked at again
                await asyncio.sleep(0)

    def resume(self) -> None:
        """Go on as if nothing had been."""
        for _, swapped in self._paused:
            swapped.resume()

    async def let_go(self) -> dict[str, list[Waiting]]:
        """End this generation, but for the store; what waits for each session. Calls get HandedOver from here on."""
        waiting: dict[str, list[Waiting]] = {}
        lifetime, why = self._lifetime, partial(HandedOver, _TO)
        lifetime.population.closed = lifetime.why_closed = why
        for cell, _ in self._paused:
            slot = cell.server_ref().slot
            cell.ref = Dormant(cell)
            lane, slot.mailbox.user = slot.mailbox.user, None
            waiting[cell.id] = [one for item in lane or () for one in _waiting(item)]
        self.resume()
        try:
            await lifetime.let_go()
        except BaseException:
            for one in [one for messages in waiting.values() for one in messages]:
                one.give_up()
            raise
        return waiting


def _waiting(item: tuple[object, Context] | PendingReply[Any]) -> Iterator[Waiting]:
    if isinstance(item, tuple):
        yield Waiting(*item, None, _nobody, _nobody)
        return
    message = item.message
    if item.forget():  # else its caller has given up
        yield Waiting(message, item.context, item.future, partial(_fail, item), lambda: item.fail(HandedOver(_TO)))


def _nobody(_error: BaseException | None = None) -> None:
    """Nobody waits."""


def _fail(pending: PendingReply[Any], error: BaseException) -> None:
    pending.fail(_ours(error))


def _ours(error: BaseException) -> BaseException:
    """The error of this generation for one of another: the class of the same name, the same message and attributes."""
    wanted = type(error).__module__, type(error).__qualname__
    for root in (SessionActorError, SupervisorError, PersistenceError):
        for kind in _kinds(root):
            if (kind.__module__, kind.__qualname__) == wanted:
                return remade(error, kind)
    return error


def _kinds(root: type[Exception]) -> Iterator[type[Exception]]:
    yield root
    for kind in root.__subclasses__():
        yield from _kinds(kind)
