"""Moving sessions from one generation of a service to the next, one after the other, while they are used.

A session moves in its own task, between two messages: its server is replaced (OTP: code_change), and its slot, with the
mailbox and all callers, gets another supervisor. There is never a second server, and the others are served meanwhile.
"""

from __future__ import annotations

import asyncio
from time import perf_counter
from typing import TYPE_CHECKING

from session_actor.server.cell import Dormant
from session_actor.server.session import SessionServer
from session_actor.service.finishing import to_its_end
from session_actor.supervisors import SupervisorError
from session_actor.supervisors.introspection import ask
from session_actor.supervisors.slot import OPEN
from session_actor.supervisors.swapping import replace

from .errors import failed
from .telling import ms_since, tell

if TYPE_CHECKING:
    from session_actor.server.cell import Cell
    from session_actor.service.population import Population
    from session_actor.supervisors import ServerRef
    from session_actor.supervisors.slot import Slot


async def move_all(former: Population, heir: Population) -> int:
    """Move every session of `former`; returns how many were loaded. Handles go on as if nothing had been.

    When a session cannot be taken, those that were moved go back, and HandoverFailed says which and why. So they do
    when this is cancelled.
    """
    try:
        return await _move_all(former, heir, back=False)
    except BaseException:
        await to_its_end(_move_all(heir, former, back=True))
        raise


async def _move_all(former: Population, heir: Population, *, back: bool) -> int:
    """`back`: to where they came from."""
    heir.share_shelves(former)
    heir.heir, former.heir = None, heir
    heir.source, former.source = former, None
    count = 0
    while True:
        live, dormant = former.cells()
        for cell in dormant:
            _move_resting(cell, former, heir)
        if not live:
            heir.source = None
            return count
        for cell in live:
            if former.has(cell):  # else it was deleted meanwhile, or woken there, which is as good
                count += await _move(cell, former, heir, back=back)


def _move_resting(cell: Cell, former: Population, heir: Population) -> None:
    former.leave(cell)
    heir.take_in(cell)


async def _move(cell: Cell, former: Population, heir: Population, *, back: bool) -> bool:
    """Move a session, or wait a moment for it; says whether a server was replaced."""
    ref = cell.ref
    if isinstance(ref, Dormant):
        _move_resting(cell, former, heir)
    elif ref.phase == "quarantined":
        await former.evict(cell)  # other code, another chance: the next message loads it there
    elif ref.phase == "backoff":
        cell.home = heir
        _adopt(cell, ref, former, heir)  # it restarts there, at once
    else:
        begun_s = perf_counter()
        moved = await _replaced(ref.slot, cell, former, heir, back=back)
        if isinstance(moved, Exception):
            raise failed(f"session {cell.id!r}", moved)
        if moved:
            tell("session", {"gap_us": ms_since(begun_s) * 1000}, session=cell.id)
        await asyncio.sleep(0)  # others have their turn
        return moved
    return False


async def _replaced(slot: Slot, cell: Cell, former: Population, heir: Population, *, back: bool) -> bool | Exception:
    """`_replace`: here and now when the session is idle, else in its own task after what runs there."""
    if slot.door == OPEN:
        work = _replace(slot, cell, former, heir, back=back)
        try:
            work.send(None)
        except StopIteration as done:
            moved: bool | Exception = done.value
            return moved
        work.close()  # it has to read, and has changed nothing: not while all others wait
        cell.home = former
    begun: list[asyncio.Future[None]] = []

    async def replaced(own: Slot) -> bool | Exception:
        begun.append(own.floor.loop.create_future())
        try:
            return await _replace(own, cell, former, heir, back=back)
        finally:
            begun[0].set_result(None)

    try:
        moved = await ask(slot.ref, replaced, None)
    except SupervisorError:  # it crashed or ended before its turn: look again
        return False
    except asyncio.CancelledError:
        for ended in begun:  # in the session's task: whose the session is must be known before anything goes back
            await to_its_end(ended)
        raise
    return moved


async def _replace(slot: Slot, cell: Cell, former: Population, heir: Population, *, back: bool) -> bool | Exception:
    """Put a server of the next generation into the slot; runs in the session's task, between two messages.

    False: not yet, its server only deletes, and ends. An exception: the old server goes on, unharmed. On the way back
    the state is made from the records, as after a crash: what the next generation had made of it is not trusted.
    """
    server = slot.server
    if not isinstance(server, SessionServer):
        return False
    cell.home = heir
    try:
        value = server.swap_out()
        await replace(slot, heir.new_server(cell), server.version, value | {"state": None} if back else value)
    except Exception as error:  # noqa: BLE001 - whatever the next generation's code raises, the old one goes on
        if not back:
            cell.home = former
            return error
        slot.crash_from_outside(error)
    except BaseException:  # the process is told to end, or the session's task: it is still the former one's
        cell.home = former
        raise
    _adopt(cell, slot.ref, former, heir)
    return True


def _adopt(cell: Cell, ref: ServerRef, former: Population, heir: Population) -> None:
    heir.supervisor.adopt(ref, heir.spec(cell, cell))
    former.leave(cell)
    heir.enter(cell, ref)
