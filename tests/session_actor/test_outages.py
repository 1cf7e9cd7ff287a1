"""A store that refuses: whatever it says is an answer, and no crash of the session that asked."""

from __future__ import annotations

import asyncio
import errno
from contextlib import suppress
from pathlib import Path

import pytest

from session_actor import (
    CallTimeout,
    FileStore,
    MemoryStore,
    NotDurable,
    Session,
    SessionCrashed,
    SessionDeleted,
    SessionFenced,
    SessionNotFound,
    SessionService,
    StoreDegraded,
    StoreError,
    persistence,
)
from session_actor.server import snapshots

from ..persistence.disks import TroubledDisk
from .conftest import Poison
from .test_passivation import until

REFUSALS = [persistence.StoreDegraded("the disk is away"), OSError(errno.EIO, "input/output error")]


class Refusing(MemoryStore):
    """Each call that `refused` names raises what stands there, as often as it stands there."""

    def __init__(self) -> None:
        super().__init__()
        self.refused: dict[str, list[Exception]] = {}
        self.gate = asyncio.Event()
        self.gate.set()

    def refuse(self, call: str) -> None:
        errors = self.refused.get(call)
        if errors:
            raise errors.pop()

    async def acquire(self, session, *, create):
        await self.gate.wait()
        self.refuse("acquire")
        return await super().acquire(session, create=create)

    async def load(self, lease, **options):
        self.refuse("load")
        return await super().load(lease, **options)

    async def delete(self, lease):
        self.refuse("delete")
        await super().delete(lease)

    async def sessions(self, prefix=""):
        async for info in super().sessions(prefix):
            self.refuse("sessions")
            yield info

    def archive(self, lease):
        return RefusingArchive(self, super().archive(lease))


class RefusingArchive:
    """Of a `Refusing` store."""

    def __init__(self, store: Refusing, archive) -> None:
        self.store = store
        self.archive = archive

    def read(self, ids):
        return self.archive.read(ids)

    async def fetch(self, ids):
        self.store.refuse("fetch")
        return await self.archive.fetch(ids)


async def written(store, *, resting: bool, **options) -> tuple[SessionService, Session]:
    """A running service with one session, which is loaded or not."""
    service = SessionService.open(store, idle_timeout_s=0.01 if resting else None, **options)
    await service.start()
    session = await service.session("a", create=True)
    await session.push("1", "")
    if resting:
        await until(lambda: service.health().live == 0)
    return service, session


@pytest.mark.parametrize("resting", [False, True])
async def test_a_deletion_that_cannot_be_synced_says_so_and_is_made_when_the_disk_works(tmp_path: Path, resting):
    disk = TroubledDisk()
    service, old = await written(FileStore(tmp_path / "store", disk=disk), resting=resting, max_restarts=0)
    disk.errors = {"write": errno.EIO, "sync": errno.EIO}
    with pytest.raises(NotDurable):
        await service.delete("a")
    with pytest.raises(SessionDeleted):
        await old.push("2", "")
    with pytest.raises(SessionNotFound):
        await service.delete("a")
    assert service.health().quarantined == ()
    disk.errors = {}
    async with asyncio.timeout(20):
        while service.health().store.degraded_since_us is not None:  # noqa: ASYNC110 - threads do it
            await asyncio.sleep(0.005)
    await service.close()
    async with SessionService.open(tmp_path / "store") as service:
        with pytest.raises(SessionNotFound):
            await service.session("a")


async def test_many_deletions_on_a_failing_disk_use_nobody_s_restarts_up(tmp_path: Path):
    disk = TroubledDisk()
    async with SessionService.open(FileStore(tmp_path / "store", disk=disk), max_restarts=0) as service:
        for number in range(5):
            await (await service.session(str(number), create=True)).push("1", "", durability="synced")
        disk.errors = {"write": errno.EIO, "sync": errno.EIO}
        for number in range(5):
            with pytest.raises((NotDurable, StoreDegraded)):
                await service.delete(str(number))
        assert service.health().quarantined == ()
        disk.errors = {}


@pytest.mark.parametrize("resting", [False, True])
@pytest.mark.parametrize("error", REFUSALS, ids=["degraded", "os error"])
async def test_a_deletion_that_the_store_refuses_leaves_the_session_as_it_was(error, resting):
    store = Refusing()
    service, session = await written(store, resting=resting, max_restarts=0)
    store.refused["delete"] = [error]
    with pytest.raises(StoreError if isinstance(error, OSError) else StoreDegraded):
        await service.delete("a")
    assert (await session.push("2", "")).id == 2
    assert [frame.user_input for frame in await session.stack()] == ["1", "2"]
    assert service.health().quarantined == ()
    await service.delete("a")
    await service.close()


async def test_a_resting_session_whose_store_cannot_be_read_is_not_deleted_and_says_so():
    store = Refusing()
    service, session = await written(store, resting=True)
    store.refused["acquire"] = [REFUSALS[1]]
    with pytest.raises(StoreError, match="'a' could not be deleted: input/output error"):
        await service.delete("a")
    assert (await session.push("2", "")).id == 2
    await service.close()


async def test_a_deletion_by_who_is_no_owner_any_more_is_told_so():
    store = Refusing()
    service, session = await written(store, resting=False)
    await store.acquire("a", create=False)
    with pytest.raises(SessionFenced):
        await service.delete("a")
    with pytest.raises(SessionFenced):
        await session.push("2", "")
    assert (await (await service.session("a")).push("2", "")).id == 2
    await service.close()


async def test_a_deletion_that_was_not_begun_in_time_is_made_and_nobody_waits_for_ever():
    store = Refusing()
    service, session = await written(store, resting=True)
    store.gate.clear()
    with pytest.raises(CallTimeout, match="it may still be"):
        await service.delete("a", timeout_s=0.001)
    store.gate.set()
    with pytest.raises(SessionDeleted):
        await session.push("2", "")
    assert (await (await service.session("a", create=True)).push("new", "")).id == 1
    await service.close()


@pytest.mark.parametrize(
    ("call", "error"),
    [
        ("fetch", REFUSALS[1]),
        ("fetch", REFUSALS[0]),
        ("load", persistence.NotDurable(3, "written", "the disk is away")),
        ("acquire", REFUSALS[1]),
    ],
)
async def test_what_the_disk_refuses_while_a_session_restarts_is_waited_out(monkeypatch, call, error):
    monkeypatch.setattr(snapshots, "EVERY_RECORDS", 3)
    store = Refusing()
    service, session = await written(store, resting=False, max_restarts=1)
    for number in range(2, 8):
        await session.push(str(number), "")
    store.refused[call] = [error] * 3
    with suppress(SessionCrashed):
        await session.send(Poison())
    assert (await session.push("8", "")).id == 8
    assert store.refused[call] == []
    assert service.health().quarantined == ()
    await service.close()


async def test_a_listing_that_the_disk_cuts_short_says_so():
    store = Refusing()
    service, _ = await written(store, resting=False)
    store.refused["sessions"] = [REFUSALS[1]]
    with pytest.raises(StoreError, match="cannot be listed: input/output error"):
        [info async for info in service.sessions()]
    assert [info.id async for info in service.sessions()] == ["a"]
    await service.close()
