"""Work that is done to its end, whatever becomes of who waits for it."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final, TypeVar

if TYPE_CHECKING:
    from collections.abc import Awaitable

Result = TypeVar("Result")

_begun: Final[set[asyncio.Future[Any]]] = set()
"""What is being done: an event loop alone holds no task."""


async def to_its_end(work: Awaitable[Result]) -> Result:
    """What the work returns, which is done however often the caller is cancelled; that is raised when it is done.

    Raises what the work raises.
    """
    task = asyncio.ensure_future(work)
    _begun.add(task)
    task.add_done_callback(_begun.discard)
    cancelled: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.wait([task])
        except asyncio.CancelledError as error:
            cancelled = error
    result = task.result()
    if cancelled is not None:
        raise cancelled
    return result
