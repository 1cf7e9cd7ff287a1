"""The part of the file store that loads sessions, and salvages those that are damaged."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from .burying_store import BuryingStore
from .errors import StoreCorrupt
from .loading.lost import with_losses
from .recovery.recovered import Recovered

if TYPE_CHECKING:
    from collections.abc import Iterable

    from .engine import Engine
    from .files.storage import Disk
    from .log.session_log import SessionLog
    from .repair.mending import Salvage
    from .repair.salvaging import Salvaged, Salvager
    from .store import Lease, LoadedSession, Recovery, RecoveryReport


class LoadingStore(BuryingStore):
    """Loads sessions whose leases are held."""

    def __init__(self, root: str, disk: Disk, recovery: Recovery) -> None:
        """`root`: the directory. `disk`: the system calls. `recovery`: what is done with a damaged session."""
        super().__init__(root)
        self._disk = disk
        self._recovery: Recovery = recovery
        self._salvaged: dict[str, Salvaged] = {}
        """What was salvaged and not loaded since."""
        self._recovered = Recovered()
        self._logs: dict[str, SessionLog] = {}
        """The sessions that somebody holds, or of which not everything is in their journals."""

    async def load(self, lease: Lease, *, before: int | None = None, snapshots: bool = True) -> LoadedSession:
        """See `Store.load`."""
        try:
            loaded = await self._load(lease, before=before, snapshots=snapshots)
        except StoreCorrupt:
            if self._recovery == "strict":
                raise
            await asyncio.shield(self._keep(self._salvage(lease, self._recovery)))
            loaded = await self._load(lease, before=before, snapshots=snapshots)
        return with_losses(loaded, self._salvaged.pop(lease.session, None))

    async def load_as_it_is(self, lease: Lease, *, snapshots: bool = True) -> LoadedSession:
        """As `load`, for who reads beside the session's owner: what is damaged is not salvaged, but StoreCorrupt."""
        return await self._load(lease, snapshots=snapshots)

    async def _load(self, lease: Lease, *, before: int | None = None, snapshots: bool = True) -> LoadedSession:
        engine, log, torn = self._opened(), self._held(lease), tuple(self._recovered.torn)
        try:
            return await engine.loader.load(log, torn, before=before, snapshots=snapshots)
        finally:
            self._held(lease)

    async def salvage(self, lease: Lease, salvage: Salvage) -> RecoveryReport:
        """Keep what can be kept of a damaged session, by a new birth; originals go to aside/. Cancelled, it goes on.

        The lease stays valid, unless it is not known whether it was done: whoever acquires the session finds that out.
        Raises `Fenced`, `NotDurable`, OSError; `StoreCorrupt`: nothing was kept, nor changed.
        """
        if lease.session not in self._salvaged:  # with the whole log, when it was opened
            await asyncio.shield(self._keep(self._salvage(lease, salvage)))
        return (await self.load(lease, snapshots=False)).report

    def _salvager(self, engine: Engine, salvage: Salvage) -> Salvager:
        from .repair.salvaging import Salvager

        return Salvager(self._disk, engine, salvage, self._replaced)

    async def _salvage(self, lease: Lease, salvage: Salvage) -> None:
        engine = self._opened()
        await self._flush(
            engine, "synced", engine.backlog.appended_position
        )  # as what is cut: it must not outlive more
        log = self._held(lease)
        self._in_salvage.append(log)
        try:
            salvaged = await self._salvager(engine, salvage).session(log)
        finally:
            self._in_salvage.remove(log)
            self._forget_idle([log])
        if salvaged is None and log.exists:
            raise StoreCorrupt(self._root, f"nothing of session {log.session!r} can be kept by salvage {salvage!r}")
        self._held(lease)

    def _replaced(self, log: SessionLog, salvaged: Salvaged) -> None:
        """A session goes on by a new birth; whoever holds it holds that one."""
        holder, log.lease = log.lease, None
        if holder is not None:
            holder.state, holder.birth, salvaged.log.lease = salvaged.log, salvaged.log.birth, holder
        self._logs[log.session] = salvaged.log
        self._salvaged[log.session] = salvaged

    def _forget_idle(self, logs: Iterable[SessionLog]) -> None:
        """Keep nothing in memory of sessions that nobody holds and that are whole in their journals."""
        for log in logs:
            in_journal = log.extent is not None and log.extent.seq == log.appended_seq
            if log in self._in_salvage or (self._engine is not None and self._engine.snapshotter.waits(log)):
                continue
            if log.lease is None and (log.dead or in_journal or not log.appended_seq):
                self._recovered.proven_whole.discard(log)
                if self._logs.get(log.session) is log:
                    del self._logs[log.session]
                    if self._engine is not None:
                        self._engine.look_ups.forgotten(log.session)

    async def _settled(self, engine: Engine) -> None:
        """Return when nothing of the catalog is in doubt. Raises OSError, `CatalogCorrupt`: it still is."""
        async with engine.alone():
            pass
