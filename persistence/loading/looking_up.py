"""Finding sessions that are not in memory: what the catalog says of them, and what lies in their files."""

from __future__ import annotations

import errno
from typing import TYPE_CHECKING, NamedTuple

from session_actor.persistence.files.gathering import Gathering
from session_actor.persistence.log.session_log import Extent, SessionLog
from session_actor.persistence.reserve import is_full
from session_actor.persistence.snapshots.snapshot import shelves, slots_without_look

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable

    from session_actor.persistence.catalog.catalog import Catalog, CatalogRow
    from session_actor.persistence.files.disk_thread import DiskThread
    from session_actor.persistence.files.storage import Disk

    from .loader import Loader


class LookedUp(NamedTuple):
    """What was found of a session."""

    log: SessionLog | None
    """None: it has no journal. Its files are read ahead already, since it is most likely to be loaded."""
    deleted: bool


class _Running:
    """The look-ups of one session that run since it was last in memory."""

    __slots__ = ("count", "overtaken")

    def __init__(self) -> None:
        self.count = 0
        self.overtaken = False
        """The session was in memory meanwhile: what was read may be older than what was done there."""


class LookUps:
    """Looks up the sessions of an open store; those that are asked for at once together."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        thread: DiskThread,
        disk: Disk,
        *,
        snapshots: str,
        catalog: Catalog,
        loader: Loader,
        is_deleted: Callable[[str, str], bool],
    ) -> None:
        """`snapshots`: their folder. `is_deleted(session, birth)`: of what the catalog has not forgotten yet."""
        self._disk = disk
        self._snapshots = snapshots
        self._catalog = catalog
        self._loader = loader
        self._is_deleted = is_deleted
        self._gathering: Gathering[str, LookedUp] = Gathering(loop, thread, self._look_up)
        self._running: dict[str, _Running] = {}

    async def find(self, session: str) -> LookedUp:
        """Look a session up, again when it was forgotten meanwhile. Raises `CatalogCorrupt`, `StoreClosed`, OSError."""
        while True:
            running = self._running.setdefault(session, _Running())
            running.count += 1
            try:
                found = await self._gathering.ask(session)
            finally:
                running.count -= 1
                if not (running.count or running.overtaken):
                    del self._running[session]
            if not running.overtaken:
                return found

    def forgotten(self, session: str) -> None:
        """A session is not in memory any more: its files may have changed since it was looked for."""
        running = self._running.pop(session, None)
        if running is not None:
            running.overtaken = True

    def _look_up(self, sessions: list[str]) -> list[LookedUp]:
        self._settle_births(sessions)
        rows, found = self._catalog.get_all(sessions), shelves(self._disk, self._snapshots)
        return [self._found(session, row, found) for session, row in zip(sessions, rows, strict=True)]

    def _settle_births(self, sessions: list[str]) -> None:
        """A process that died, or that was told of an error, may have left births that are not surely on the disk."""
        try:
            self._catalog.settle_births(sessions)
        except OSError as error:
            if not (is_full(error) or error.errno == errno.EROFS):  # reads go on where nothing can be written
                raise

    def _found(self, session: str, row: CatalogRow | None, found: frozenset[str] | None) -> LookedUp:
        if row is None:
            return LookedUp(None, self._catalog.deleted(session))
        if self._is_deleted(session, row.birth):
            return LookedUp(None, deleted=True)
        extent = Extent(row.journal, row.bytes, row.seq, row.sum, row.crc)
        log = SessionLog(session, row.birth, row.created_us, extent)
        log.ahead = self._loader.read_ahead(log, slots_without_look(session, found))
        return LookedUp(log, deleted=False)
