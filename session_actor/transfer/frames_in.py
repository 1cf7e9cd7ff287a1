"""All frames of a session in the order of their ids, without keeping in memory what was on the disk."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from session_actor.state.table import SPAN, Table

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Sequence

    from session_actor.frames import Frame


async def frames_in(table: Table, next_id: int) -> AsyncGenerator[Frame]:
    """Every frame with an id below `next_id`, popped ones too; those that were pruned are not there.

    Raises `StoreCorrupt`, `FrameUnreadable`, `SessionDeleted`, `StoreClosed` for what has to be read and cannot be.
    """
    for first in range(1, next_id, SPAN):
        ids = range(first, min(first + SPAN, next_id))
        span = await _read(table, ids)
        for frame_id in ids:
            frame = table.slot(frame_id) or span.slot(frame_id)
            if frame is not None:
                yield frame
        await asyncio.sleep(0)


async def _read(table: Table, ids: Sequence[int]) -> Table:
    """A table that holds what is cold in the other one among these ids."""
    shelf = table.shelf
    cold = [frame_id for frame_id in ids if table.is_cold(frame_id)]
    if shelf is None or not cold:
        return table
    own = Table.cold(table.cold_below, table.absent, shelf)
    own.instructions = dict(table.instructions or {})
    await own.load(cold)
    return own


async def frames_of_ids(table: Table, ids: list[int]) -> AsyncGenerator[Frame]:
    """The frames of these rising ids. Raises as `frames_in` does."""
    for first in range(0, len(ids), SPAN):
        wanted = ids[first : first + SPAN]
        span = await _read(table, wanted)
        for frame_id in wanted:
            frame = table.slot(frame_id) or span.slot(frame_id)
            if frame is not None:
                yield frame
        await asyncio.sleep(0)
