"""The part of a life in which sessions are kept small and sound: snapshots, pruning, salvage."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine
from random import Random
from typing import Any

from session_actor.persistence import Fenced, FileStore, Lease, NotDurable
from session_actor.persistence.repair.mending import SALVAGES

from .model import Model

FOR_GOOD = 1_000_000_000


class Upkeep:
    """Steps of a `Life`, which says what the attributes are."""

    rng: Random
    store: FileStore
    model: Model
    leases: dict[str, Lease]
    pruned_files: int
    salvaged: int
    troubled: bool
    meanwhile: Callable[[Coroutine[Any, Any, Any]], Awaitable[None]]

    async def save(self) -> None:
        """Queue a snapshot of what a session is now, and perhaps wait until it is durable."""
        held = [session for session in sorted(self.leases) if self.leases[session].appended_seq]
        if held:
            lease = self.leases[self.rng.choice(held)]
            if lease.live:
                self.store.save(lease, lease.appended_seq, b'{"texts":%d}' % lease.appended_seq)
                if self.rng.random() < 0.5:
                    await self.meanwhile(self.saved(lease))

    async def saved(self, lease: Lease) -> None:
        """Wait until a snapshot is durable; none is any more when the session is deleted or salvaged meanwhile."""
        birth = lease.birth
        try:
            await self.store.saved(lease, lease.appended_seq)
        except (NotDurable, Fenced):
            if lease.live and lease.birth == birth and not self.troubled:
                raise

    async def prune(self) -> None:
        """Save a snapshot, then drop all records that are in whole files before the older one."""
        held = [session for session in sorted(self.leases) if self.leases[session].appended_seq]
        if held:
            session = self.rng.choice(held)
            lease = self.leases[session]
            if lease.live:
                self.model.pruned.add(session)
                self.store.save(lease, lease.appended_seq, b'{"texts":%d}' % lease.appended_seq)
                await self.meanwhile(self.pruned(lease))

    async def pruned(self, lease: Lease) -> None:
        """Prune, which cannot be done any more when the session is deleted meanwhile."""
        try:
            await self.saved(lease)
            self.pruned_files += (await self.store.prune(lease, [(1, FOR_GOOD)])).files
        except Fenced:
            if lease.live:
                raise

    async def salvage(self) -> None:
        """Salvage a session that is sound: all of it goes on by another birth."""
        held = [session for session in sorted(self.leases) if self.leases[session].appended_seq]
        if held:
            session = self.rng.choice(held)
            lease = self.leases[session]
            try:
                await self.store.salvage(lease, self.rng.choice(SALVAGES))
                self.salvaged += 1
            finally:
                if not lease.live:
                    del self.leases[session]
