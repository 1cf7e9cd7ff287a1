"""One conversation of a foreign transcript on its way into a session."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Final

from session_actor.errors import LevelUnreachable
from session_actor.state.weight import weight_of

from .errors import SessionChanged
from .frames_in import frames_in
from .identity import ROOT, Marks, content_of
from .naming import sealed_after
from .planting import Planter
from .source import state_in
from .taking import CHUNK_FRAMES, CHUNK_WEIGHT, TakeIn

if TYPE_CHECKING:
    from session_actor.events import CopiedFrame, HistorySealed
    from session_actor.handle.handle import Session
    from session_actor.state.state import State

    from .pieces import Planted

_TRIES: Final = 5


class Growing:
    """Adds the pieces of a transcript to a session, a record for many of them; the names come with the last record.

    Until then the session shows what it showed before, so a process that dies leaves nothing half done: the next import
    of the same file finds what is there and goes on.
    """

    def __init__(self, session: Session, planter: Planter) -> None:
        """Use `begin`."""
        self.session = session
        self.planter = planter
        self._sent_to = planter.next_id

    @classmethod
    async def begin(cls, session: Session) -> Growing:
        """Look at what the session has."""
        state = await state_in(session)
        next_id, known = state.next_id, Marks()
        marks: dict[int, bytes] = {}
        async for frame in frames_in(state.table, next_id):
            below = ROOT if frame.parent is None else marks.get(frame.parent, ROOT)
            marks[frame.id] = known.add(below, content_of(frame), frame.id)
        return cls(session, Planter(known, next_id))

    @property
    def added(self) -> int:
        """Frames that are new."""
        return self.planter.added

    @property
    def skipped(self) -> int:
        """Frames that were there already."""
        return self.planter.skipped

    def plant(self, piece: Planted) -> None:
        """Add a piece. Raises `RecordTooLarge` when no record can hold it; then nothing was added."""
        self.planter.plant(piece)

    async def send_ready(self) -> None:
        """Send what is enough for a record."""
        planter = self.planter
        if len(planter.ready) > CHUNK_FRAMES or planter.ready_weight > CHUNK_WEIGHT:
            rest = planter.ready.pop()  # the last frame comes with the names
            await self._send(tuple(planter.ready))
            planter.ready = [rest]
            planter.ready_weight = weight_of(rest.frame)

    async def finish(self) -> None:
        """Add what is left, and the names. Changes nothing when nothing was new."""
        if not self.planter.added:
            return
        for left in reversed(range(_TRIES)):
            state = await state_in(self.session)
            try:
                await self._send_last(state)
                return
            except SessionChanged:
                if not left:
                    raise

    async def _send_last(self, state: State) -> None:
        seq = state.seq
        sealed = sealed_after(state, self.planter)
        await self._send(tuple(self.planter.ready), sealed, seq)
        self.planter.ready = []

    async def _send(
        self, frames: tuple[CopiedFrame, ...], sealed: HistorySealed | None = None, seq: int | None = None
    ) -> None:
        await send(self.session, TakeIn(self._sent_to, frames, sealed, seq))
        if frames:
            self._sent_to = frames[-1].frame.id + 1


async def send(session: Session, message: TakeIn) -> None:
    """Add a part, and wait until the operating system has it: what waits for the disk stays little."""
    state = await state_in(session)
    ours = {copied.frame.id for copied in message.frames}
    below = {copied.frame.parent for copied in message.frames} - ours - {None}
    await state.table.load(sorted(parent for parent in below if parent is not None))
    await session.send(message, None)
    with suppress(LevelUnreachable):  # of a store in memory
        await session.flush("written", timeout_s=None)
