"""Pruning: frames that nothing holds are given up, and the store drops the files that hold nothing else."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from session_actor.errors import RecordsLost, StoreError, translate
from session_actor.persistence import PersistenceError
from session_actor.service_errors import SessionDeleted
from session_actor.state.history import Held, tips_of
from session_actor.state.runs import count, merged, without
from session_actor.supervisors import Call, SupervisorError

if TYPE_CHECKING:
    from session_actor.state.runs import Runs
    from session_actor.state.state import State

    from .cell import Cell


class PruneReport(msgspec.Struct, frozen=True):
    """What pruning a session gave back."""

    frames: int = 0
    """Frames that are known no more."""
    files: int = 0
    """Files of the store that are gone."""
    size_bytes: int = 0
    """Bytes that they took."""
    held_by_keys: int = 0
    """Frames that are still there only because one of the last 1,024 keys is answered with a frame on top of them."""


class Save(msgspec.Struct, Call[int], frozen=True, gc=False):
    """Save a snapshot, unless nothing changed since the last; the reply is the record that it follows, 0 for none."""

    resting: bool = False
    """Only if it is worth it for a session that is unloaded next; see `snapshots.pays`."""


class Prune(msgspec.Struct, Call[int], frozen=True):
    """Give up the frames that are neither held, nor held by what happened since; the reply is how many."""

    held: Held


async def hold(state: State, *, keys: bool = True) -> Held:
    """What the head, the branches, the checkpoints and `keys` hold; what is cold is read off the loop."""
    held, table = Held(), state.table
    for needed in held.add(table, tips_of(state, keys=keys)):
        await table.load(needed)
    return held


def unheld(state: State, held: Held) -> Runs:
    """The ids of the frames that are there and not held."""
    return without([(1, state.next_id - 1)], merged(held.runs, state.table.absent)) if state.next_id > 1 else []


async def prune_session(cell: Cell, timeout_s: float | None = None, *, forced: bool = True) -> PruneReport:
    """Prune a session, which stays loaded meanwhile; see `Session.prune`.

    `forced` False: the session is left as it is when no frame would be given up; files of frames that were given up
    earlier are dropped all the same: their records may have been in the log then.
    """
    cell.busy += 1
    try:
        return await _prune(cell, timeout_s, forced=forced)
    except SupervisorError as error:
        raise cell.explain(error) from None
    except PersistenceError as error:
        raise SessionDeleted(cell.id) if cell.deleted else translate(error) from None
    except OSError as error:
        advice = "frames may be given up already, their files are dropped by the next pruning"
        raise StoreError.of(f"pruning session {cell.id!r} was cut short", error, advice) from error
    finally:
        cell.busy -= 1


async def _prune(cell: Cell, timeout_s: float | None, *, forced: bool) -> PruneReport:
    state = await cell.ready(timeout_s)
    if state.losses is not None:
        if forced:
            raise RecordsLost(cell.id)
        return PruneReport()
    held = await hold(state)
    by_keys = count(without(held.runs, (await hold(state, keys=False)).runs)) if forced else 0
    frames = 0
    if forced or unheld(state, held):
        await _save(cell)  # the store keeps two snapshots, and drops what lies before both
        frames = await _ask(cell, Prune(held))
        await _save(cell)
        await _keep_for_others(cell)
    gone = (await cell.ready(timeout_s)).table.absent
    if not gone and not forced:
        return PruneReport()
    dropped = await cell.store.prune(cell.held_lease(), gone)
    return PruneReport(frames, dropped.files, dropped.size_bytes, by_keys)


async def _save(cell: Cell) -> None:
    seq = await _ask(cell, Save())
    if seq:
        await cell.store.saved(cell.held_lease(), seq)


async def _keep_for_others(cell: Cell) -> None:
    """Stacks that were taken before keep their frames: what is gone for the session is read for them now."""
    state, shelf = await cell.ready(None), cell.shelf()
    for table in shelf.tables:
        if table is not state.table:
            for first, last in state.table.absent:
                await table.load(range(first, last + 1))


async def _ask(cell: Cell, message: Call[Any]) -> Any:
    return await cell.server_ref().call(message, timeout_s=None)
