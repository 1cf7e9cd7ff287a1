"""Outages of the store while a session starts: they are waited out, and are no crash of the session."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final, TypeVar

from session_actor.errors import Refused
from session_actor.persistence import NotDurable, StoreDegraded

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

_WAIT_S: Final = (0.05, 0.1, 0.2, 0.5, 1.0)
"""How long to wait for a store that cannot be used at present; the last one repeats."""

Result = TypeVar("Result")


async def through_outages(start: Callable[[], Awaitable[Result]]) -> Result:
    """What `start` returns, tried again as long as the disk does not serve it.

    Raises what else `start` raises. Cancelling ends it.
    """
    tries = 0
    while True:
        try:
            return await start()
        except BaseException as error:
            if not _is_outage(error):
                raise
        await asyncio.sleep(_WAIT_S[min(tries, len(_WAIT_S) - 1)])
        tries += 1


def _is_outage(error: BaseException) -> bool:
    """Whether the disk may give or take later what it refuses now.

    A refusal of ours is an answer, as when a new session is not admitted, unless it hands on what the disk said.
    """
    cause = error.__cause__ if isinstance(error, Refused) else error
    return isinstance(cause, StoreDegraded | NotDurable | OSError) and not isinstance(cause, Refused)
