"""What a process does before it waits for the lock, so that nothing but the disk is left to do when it has it."""

from __future__ import annotations

import anyio

from session_actor.supervisors.log import logger


def import_all() -> None:
    """Import what is imported when it is first used: structlog, and anyio's half for asyncio. A fifth of a second."""
    logger()
    anyio.current_time()
