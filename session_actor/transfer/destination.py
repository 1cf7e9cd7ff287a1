"""Where an import goes: the sessions of a file, one after the other, each under an exchange of its own."""

from __future__ import annotations

from contextlib import AsyncExitStack, suppress
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, Self

from session_actor.refusals import SessionEnded
from session_actor.state.names import NAME_LIMIT

if TYPE_CHECKING:
    from session_actor.handle.handle import Session
    from session_actor.service.service import SessionService

    from .growing import Growing
    from .pieces import Begun
    from .restoring import Restoring


class Destination:
    """An async context manager: whatever happens, no exchange stays open."""

    def __init__(self, service: SessionService, path: str, session_id: str | None) -> None:
        """`session_id`: what a caller wants it to be; None: as the file says, or as it is named."""
        self.service = service
        self.path = path
        self.sessions: list[str] = []
        """The ids, in the order of the file."""
        self.added = self.skipped = 0
        self._session_id = session_id
        self._many = 0
        self._exchange = AsyncExitStack()

    async def __aenter__(self) -> Self:
        """Nothing is open yet."""
        return self

    async def __aexit__(self, *_error: object) -> None:
        """Close what is open."""
        await self._exchange.aclose()

    def name_of(self, begun: Begun) -> str:
        """The id of the session of a conversation."""
        if not begun.of_many:
            return self.named(begun.name)
        self._many += 1
        if self._session_id is None and begun.name is not None:
            return begun.name[:NAME_LIMIT]
        return f"{self.named(None)}-{self._many}"

    def named(self, told: str | None) -> str:
        """The id of the one session of a file. `told`: what the file calls it."""
        if self._session_id is not None:
            return self._session_id
        return (told or PurePath(self.path).stem)[:NAME_LIMIT]

    async def open(self, name: str, metadata: Any = None) -> Session:
        """The session of that id, made if it is missing. Raises what opening one raises, and `SessionBusy`."""
        session = await self.service.session(name, create=True, metadata=metadata, timeout_s=None)
        if name not in self.sessions:
            self.sessions.append(name)
        with suppress(SessionEnded):  # to one that has ended nothing is added, so nothing can come between
            await self._exchange.enter_async_context(session.exchange())
        return session

    async def close(self, done: Growing | Restoring) -> None:
        """The session has all of its part."""
        await self._exchange.aclose()
        self.added += done.added
        self.skipped += done.skipped
