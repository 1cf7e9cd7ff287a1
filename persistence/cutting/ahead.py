"""Cutting the log ahead: what closing leaves in it, the next opening must read before anybody is served."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from session_actor.persistence.engine import Engine
    from session_actor.persistence.log.segment import Segment

LEAST_BYTES: Final = 64 * 1024
"""A log that is shorter holds few sessions. One that is longer would be cut while sessions are loaded: both at once."""

_ROUNDS: Final = 3
"""What came while the log was cut may be much again; each round takes less time than the one before."""

_LOOK_S: Final = 0.005


async def cut_ahead(engine: Engine) -> None:
    """Move what is in the log now into journals, unless it is little; records go on coming meanwhile.

    The workers must run. Cancelling leaves it to them. A disk that refuses keeps this waiting: give it a time limit.
    """
    log = engine.log
    for _ in range(_ROUNDS):
        left = log.current
        if left is None or left.end < LEAST_BYTES:
            return
        while log.current is left:
            engine.writer.renew()
            await asyncio.sleep(_LOOK_S)
        await _cut(engine, left)


async def _cut(engine: Engine, left: Segment) -> None:
    """Wait until a segment that takes no more lines is cut."""
    while left in engine.log.live():
        if left.synced < left.end:
            engine.syncer.want()
        engine.cutter.wake()
        await asyncio.sleep(_LOOK_S)
