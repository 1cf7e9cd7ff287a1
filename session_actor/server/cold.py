"""Cold frames: what recovery from a snapshot leaves on the disk, and how it is made again when somebody asks for it."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final, NamedTuple
from weakref import ref

from session_actor.errors import (
    FrameUnreadable,
    RecordUnknown,
    RecordUnreadable,
    Refused,
    StoreCorrupt,
    WrongLoop,
    translate,
)
from session_actor.events import HistoryCopied, Pushed, decode_event
from session_actor.persistence import PersistenceError, SessionTombstoned
from session_actor.service_errors import SessionDeleted
from session_actor.state.grow import BLOCK, KEYFRAMES, frame_on, standing_in

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable, Sequence
    from typing import TypeAlias

    from session_actor.frames import Frame, Instructions
    from session_actor.persistence import Archive, Record
    from session_actor.state.table import Table

    Filling: TypeAlias = Generator[list[int], list[Record], None]

_REACH: Final = 512
"""How many frames are read at once on the way down to the first that needs no parent."""

_BUILT_PER_TURN: Final = 512
"""How many frames are made between two turns of the loop: about 3 ms."""

_TROUBLE: Final = (PersistenceError, OSError, RecordUnknown, RecordUnreadable)


class Shelf:
    """Where the cold frames of one session are read; all its tables and the stacks that hold them share it.

    Reading raises `StoreCorrupt` and its kin for damage, `FrameUnreadable` when the disk refuses, `SessionDeleted` and
    `StoreClosed` when the session or the store is gone. Each is a refusal of the call that needed the frame: nothing
    has changed, the session lives.
    """

    __slots__ = ("__weakref__", "_archive", "_loop", "_session", "_tables")

    def __init__(self, session: str, archive: Archive, loop: asyncio.AbstractEventLoop | None = None) -> None:
        """`archive`: the store's, for this session. `loop`: the only one on which it may be awaited; None: any."""
        self._session = session
        self._archive = archive
        self._loop = loop
        self._tables: list[ref[Table]] = []

    @property
    def tables(self) -> list[Table]:
        """Those with cold frames that somebody still has."""
        return [table for known in self._tables if (table := known()) is not None]

    def add(self, table: Table) -> None:
        """This table has cold frames, too."""
        self._tables = [*map(ref, self.tables), ref(table)]

    def fill(self, table: Table, ids: Sequence[int]) -> None:
        """Read those frames of `ids` that are cold into the table; blocks."""
        steps = _filling(table, self._session, ids)
        try:
            wanted = next(steps)
            while True:
                wanted = steps.send(self._archive.read(wanted) if wanted else [])
        except StopIteration:
            return
        except _TROUBLE as error:
            raise self._explained(error) from error

    async def load(self, table: Table, ids: Sequence[int]) -> None:
        """The same, reading in a thread; others have their turn between the pieces. Raises WrongLoop elsewhere."""
        if self._loop is not None and asyncio.get_running_loop() is not self._loop:
            raise WrongLoop(
                f"the frames of session {self._session!r} are read on the event loop of its service; "
                "use asyncio.run_coroutine_threadsafe"
            )
        steps = _filling(table, self._session, ids)
        try:
            wanted = next(steps)
            while True:
                wanted = steps.send(await self._archive.fetch(wanted) if wanted else await _give_way())
        except StopIteration:
            return
        except _TROUBLE as error:
            raise self._explained(error) from error

    def _explained(self, error: Exception) -> Exception:
        if isinstance(error, SessionTombstoned):
            return SessionDeleted(self._session)
        ours = translate(error) if isinstance(error, PersistenceError) else None
        return ours if isinstance(ours, Refused | StoreCorrupt) else FrameUnreadable(self._session, error)


async def _give_way() -> list[Record]:
    await asyncio.sleep(0)
    return []


class _Added(NamedTuple):
    """One frame as its record has it."""

    event: Pushed
    at_us: int


def _filling(table: Table, session: str, ids: Sequence[int]) -> Filling:
    """Make the cold frames of `ids`: each yield names the ids whose records are needed next, or none to give way.

    A frame needs its parent, down to a keyframe: the block of 32 ids is enough. Records that were made before there
    were keyframes have no place: then the parent is needed, too, and so on down; ever more are read at once.
    """
    wanted = [frame_id for frame_id in ids if table.is_cold(frame_id)]
    found: dict[int, _Added] = {}
    asked: set[int] = set()
    strange: set[int] = set()
    needed, reach = wanted, 0
    while needed:
        block = [frame_id for frame_id in _blocks(needed) if frame_id not in asked and table.is_cold(frame_id)]
        if not block:
            break
        asked.update(block)
        read = _frames_in((yield block))
        found.update(read)
        strange.update(_instructions_missing(table, read))
        reach = min(2 * reach + KEYFRAMES, _REACH)
        needed = [below for frame_id in _parents_missing(table, found, block) for below in _down(frame_id, reach)]
    missing = sorted(strange.difference(table.instructions or ()))
    if missing:
        _keep_instructions(table, _frames_in((yield missing)))
    order = sorted(found)
    for first in range(0, len(order), _BUILT_PER_TURN):
        if first:
            yield []
        _build(table, found, order[first : first + _BUILT_PER_TURN])
    for frame_id in wanted:
        if table.slot(frame_id) is None:
            raise StoreCorrupt(f"session {session!r}", f"its frame {frame_id} cannot be made: records are missing")


def _down(frame_id: int, reach: int) -> range:
    return range(max(1, frame_id - reach), frame_id + 1)


def _blocks(ids: Iterable[int]) -> list[int]:
    """These ids, and those before each in its block; sorted."""
    newest: dict[int, int] = {}
    for frame_id in ids:
        block = frame_id & ~BLOCK
        newest[block] = max(frame_id, newest.get(block, 0))
    return [frame_id for block in sorted(newest) for frame_id in range(block, newest[block] + 1)]


def _frames_in(records: Iterable[Record]) -> dict[int, _Added]:
    found: dict[int, _Added] = {}
    for record in records:
        event = decode_event(record.kind, record.data)
        if isinstance(event, Pushed):
            found[event.id] = _Added(event, record.at_us)
        elif type(event) is HistoryCopied:
            found.update((copied.frame.id, _Added(copied.frame, copied.at_us)) for copied in event.frames)
    return found


def _parents_missing(table: Table, found: dict[int, _Added], block: Iterable[int]) -> Iterable[int]:
    for frame_id in block:
        added = found.get(frame_id)
        if added is not None and added.event.place is None:
            parent = added.event.parent
            if parent is not None and parent not in found and table.is_cold(parent):
                yield parent


def _instructions_missing(table: Table, found: dict[int, _Added]) -> set[int]:
    """The frames whose instructions are inherited by keyframes among those found, and not yet known."""
    _keep_instructions(table, found)
    known = table.instructions or {}
    missing = set[int]()
    for added in found.values():
        place = added.event.place
        if place is not None and place.configured is not None and place.configured not in known:
            instructions = table.instructions_of(place.configured)
            if instructions is None:
                missing.add(place.configured)
            else:
                known = _keep(table, place.configured, instructions)
    return missing


def _keep_instructions(table: Table, found: dict[int, _Added]) -> None:
    for frame_id, added in found.items():
        if added.event.instructions is not None and frame_id < table.cold_below:
            _keep(table, frame_id, added.event.instructions)


def _keep(table: Table, frame_id: int, instructions: Instructions) -> dict[int, Instructions]:
    if table.instructions is None:
        table.instructions = {}
    table.instructions.setdefault(frame_id, instructions)
    return table.instructions


def _build(table: Table, found: dict[int, _Added], ids: Iterable[int]) -> None:
    """Make those frames found, parents first; one whose parent is not to be had is left out."""
    for frame_id in ids:
        if not table.is_cold(frame_id):
            continue
        event, at_us = found[frame_id]
        parent: Frame | None = None
        if event.parent is not None and (parent := table.slot(event.parent)) is None:
            place, known = event.place, table.instructions or {}
            if place is None or (place.configured is not None and place.configured not in known):
                continue
            parent = standing_in(event.parent, place, None if place.configured is None else known[place.configured])
        table.keep(frame_on(parent, event, at_us))
