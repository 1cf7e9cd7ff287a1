"""What an export reads from: a running service, or anything else that knows the state of a session."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, NamedTuple, Protocol

from session_actor.service.service import SessionService
from session_actor.state.history import seal_to_go

from .frames_in import frames_in
from .taking import Look

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from session_actor.events import HistorySealed, Source
    from session_actor.frames import Frame
    from session_actor.handle.handle import Session
    from session_actor.replay import Reader, Replay
    from session_actor.state.state import State
    from session_actor.state.table import Table


class SessionReader(Protocol):
    """What gives the state of a session: `export_session` takes it in place of a service."""

    async def state_of(self, session_id: str) -> State:
        """The state of a session; frames of its table may be cold. It is read at once, and never changed.

        Raises what tells that there is no such session, or that it cannot be read.
        """
        ...


class History(NamedTuple):
    """A session as it was at one moment, whatever is pushed to it since."""

    session: str
    created_at_us: int | None
    metadata: object
    source: Source | None
    ended: str | None
    seq: int
    sealed: HistorySealed
    table: Table
    damage: str | None
    """Where its records are damaged, so that what came later is not known; None: nothing is."""
    replay: Replay | None
    """What reads its cold frames, as long as it is held."""

    def frames(self) -> AsyncGenerator[Frame]:
        """All of them by id; raises what `frames_in` raises."""
        return frames_in(self.table, self.sealed.next_id)


async def state_in(session: Session) -> State:
    """The state of a live session, between two of its changes; it goes on changing."""
    state: State = await session.send(Look(), None)
    return state


async def history_in(reader: SessionService | SessionReader | Reader, session_id: str) -> History:
    """What is to be exported."""
    from session_actor.replay import Reader

    replay: Replay | None = None
    if isinstance(reader, SessionService):
        state = await state_in(await reader.session(session_id, timeout_s=None))
    elif isinstance(reader, Reader):
        replay, state = await asyncio.to_thread(_newest, reader, session_id)
    else:
        state = await reader.state_of(session_id)
    return History(
        state.session or session_id,
        state.created_at_us,
        state.raw_metadata,
        state.source,
        state.ended,
        state.seq,
        seal_to_go(state),
        state.table,
        None if replay is None or replay.damage is None else str(replay.damage),
        replay,
    )


def _newest(reader: Reader, session_id: str) -> tuple[Replay, State]:
    """The newest state in a store. Blocks."""
    from session_actor.replay import Replay

    replay = Replay.of(reader, session_id)
    return replay, replay.moment.state
