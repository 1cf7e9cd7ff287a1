"""The part of the file store that deletes sessions: a tombstone, which is synced, then the files.

Deletions complete whoever waits for them, as other jobs of the store do that must not be left half done.
"""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Any, Final, TypeVar

from .errors import NotDurable, PersistenceError
from .log.scan import TOMBSTONE
from .record_store import RecordStore

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from .engine import Engine
    from .log.session_log import SessionLog

TOMBSTONE_BYTES: Final = 200
Result = TypeVar("Result")


class BuryingStore(RecordStore):
    """Deletes sessions whose leases were given up."""

    def __init__(self, root: str) -> None:
        """`root`: the directory."""
        super().__init__(root)
        self._tasks: set[asyncio.Task[Any]] = set()
        """Deletions, prunings and salvages, which complete whoever waits for them."""
        self._in_salvage: list[SessionLog] = []
        """Those that are salvaged now, each as often as that was begun."""

    @staticmethod
    async def _after_salvage(engine: Engine, delete: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Delete a session that is salvaged now, which gives it a new birth: that is the one to delete."""
        async with engine.alone():
            pass
        await delete()

    async def _bury(self, engine: Engine, log: SessionLog) -> None:
        """Delete a session that has records. Raises `NotDurable`: it is deleted as soon as the disk takes it."""
        log.dying = True
        engine.cutter.unforgotten.add((log.session, log.birth))  # the catalog has it until the tombstone is synced
        log.appended_seq += 1
        tombstone = (log, log.appended_seq, time.time_ns() // 1000, TOMBSTONE, b"{}", TOMBSTONE_BYTES)
        position = engine.backlog.append(tombstone)
        await asyncio.shield(self._keep(self._delete(engine, log, position)))

    def _keep(self, job: Coroutine[Any, Any, Result]) -> asyncio.Task[Result]:
        task = asyncio.get_running_loop().create_task(job)
        self._tasks.add(task)
        task.add_done_callback(self._ended)
        return task

    async def _delete(self, engine: Engine, log: SessionLog, position: int) -> None:
        try:
            await self._flush(engine, "synced", position)
        except NotDurable:
            self._delete_later(engine, log, position)
            raise
        await self._remove(engine, log)

    def _delete_later(self, engine: Engine, log: SessionLog, position: int) -> None:
        """The tombstone could not be synced and stays queued: the session goes when it is, whoever was told."""

        def callback(error: BaseException | None) -> None:
            if error is None:
                self._keep(self._remove(engine, log))
            elif self._engine is engine:
                self._delete_later(engine, log, position)

        self._when(engine, "synced", position, callback)

    async def _remove(self, engine: Engine, log: SessionLog) -> None:
        log.dead = True
        try:
            await engine.cutter.forget(log)
        except (OSError, PersistenceError) as error:
            engine.trouble.note(error, "delete_failed")

    def _ended(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        if not task.cancelled():
            task.exception()  # whoever waits for it is told; if nobody does any more, health() is
