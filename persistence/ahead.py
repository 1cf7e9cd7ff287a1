"""Cutting the log ahead: what closing leaves in it, the next opening must read before anybody is served."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from .engine import Engine

LEAST_BYTES: Final = 512 * 1024
"""A log that is shorter is read in some milliseconds; cutting it would not be worth its syncs."""

_LOOK_S: Final = 0.005


async def cut_ahead(engine: Engine) -> None:
    """Move what is in the log now into journals, unless it is little; records go on coming meanwhile.

    The workers must run. Cancelling leaves it to them. A disk that refuses keeps this waiting: give it a time limit.
    """
    log, left = engine.log, engine.log.current
    if left is None or left.end < LEAST_BYTES:
        return
    while log.current is left:
        engine.writer.renew()
        await asyncio.sleep(_LOOK_S)
    while left in log.live():
        if left.synced < left.end:
            engine.syncer.want()
        engine.cutter.wake()
        await asyncio.sleep(_LOOK_S)
