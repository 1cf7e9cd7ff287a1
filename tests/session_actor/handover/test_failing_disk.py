"""Handing over to another process while the disk refuses: what only the memory has must not go with the process."""

from __future__ import annotations

import asyncio
import errno
import gc

import pytest

from session_actor import FileStore, HandedOver, HandoverFailed, ServiceClosed, SessionService

from ...persistence.disks import TroubledDisk, until_synced
from ..conftest import reopened
from .handing import inputs


@pytest.fixture
def disk() -> TroubledDisk:
    return TroubledDisk()


@pytest.fixture
def patience_s() -> float:
    """How long a handover waits for the disk."""
    return 0.4


@pytest.fixture
async def service(folder, disk, patience_s):
    service = SessionService.open(FileStore(folder, disk=disk), close_timeout_s=patience_s)
    await service.start()
    yield service
    disk.errors.clear()
    for gate in disk.gates.values():
        gate.set()
    await service.close()


def refuse(disk: TroubledDisk) -> None:
    disk.errors |= dict.fromkeys(("write", "create", "preallocate", "sync"), errno.EIO)


async def test_a_service_whose_disk_refuses_is_not_handed_over_and_goes_on(service, folder, disk):
    session = await service.session("user-42", create=True)
    await session.push("before", durability="synced")
    refuse(disk)
    await session.push("only in memory")

    with pytest.raises(HandoverFailed, match=r"in 0\.4 s not all .* NotDurable.*the old generation goes on.*try again"):
        await service.handover("process")

    assert await inputs(session) == ["before", "only in memory"]
    assert (await service.session("user-42")).id == "user-42"
    disk.errors.clear()
    await until_synced(service._lifetime.population.store.flush)
    await session.push("afterwards")
    assert service.health().live == 1
    await service.handover("process")
    with pytest.raises(HandedOver):
        await session.push("late")
    async with reopened(folder) as session:
        assert await inputs(session) == ["before", "only in memory", "afterwards"]


@pytest.mark.parametrize("patience_s", [60])
async def test_a_handover_waits_for_a_disk_that_comes_back(service, folder, disk):
    session = await service.session("user-42", create=True)
    refuse(disk)
    await session.push("only in memory")
    asyncio.get_running_loop().call_later(0.1, disk.errors.clear)
    await service.handover("process")

    async with reopened(folder) as session:
        assert await inputs(session) == ["only in memory"]


async def test_a_disk_that_hangs_does_not_hold_the_old_one_for_ever(service, folder, disk):
    session = await service.session("user-42", create=True)
    gate = disk.hold("sync")
    await session.push("only in memory")
    with pytest.raises(HandoverFailed, match="the disk does not answer"):
        await service.handover("process")
    assert await inputs(session) == ["only in memory"]

    gate.set()
    await until_synced(service._lifetime.population.store.flush)
    await service.handover("process")
    async with reopened(folder) as session:
        assert await inputs(session) == ["only in memory"]


class Betraying(FileStore):
    """Its disk refuses from the moment on in which its service refuses calls: all was well when it looked."""

    service: SessionService | None = None
    disk: TroubledDisk
    betrayed = False

    def reach(self, level) -> None:
        if self.service is not None and self.service._lifetime.population.closed is not None and not self.betrayed:
            refuse(self.disk)
            self.betrayed = True
        super().reach(level)


async def test_a_disk_that_fails_when_calls_are_refused_already_leaves_the_old_one_as_it_was(folder, disk):
    store = Betraying(folder, disk=disk)
    store.disk = disk
    answered: list[str] = []
    refused: list[HandedOver] = []

    async def talk(session) -> None:
        while not refused:
            try:
                await session.push(str(len(answered)), durability="async")
            except HandedOver as error:
                refused.append(error)
            else:
                answered.append(str(len(answered)))
                await asyncio.sleep(0)

    async with SessionService.open(store, close_timeout_s=0.4) as service:
        session, idle = [await service.session(name, create=True) for name in ("user-42", "idle")]
        store.service = service
        talking = asyncio.create_task(talk(session))
        with pytest.raises(HandoverFailed, match="NotDurable"):
            await service.handover("process")
        await talking

        assert store.betrayed
        assert len(refused) == 1
        assert await inputs(session) == answered
        disk.errors.clear()
        await until_synced(service._lifetime.population.store.flush)
        assert [(await one.push("afterwards")).user_input for one in (session, idle)] == ["afterwards"] * 2
        assert service.health().live == 2
    async with reopened(folder) as session:
        assert await inputs(session) == [*answered, "afterwards"]


async def test_closing_while_a_handover_fails_closes_all_the_same(service, folder, disk):
    session = await service.session("user-42", create=True)
    await session.push("before", durability="synced")
    store = service._lifetime.population.store
    gate = disk.hold("sync")
    await session.push("only in memory")
    handing = asyncio.create_task(service._lifetime.close(handing=True))  # as if all had been well just before
    await asyncio.sleep(0)
    closing = asyncio.create_task(service.close())
    with pytest.raises(HandoverFailed):
        await handing
    gate.set()
    await closing

    assert store.health().appended_position == 0
    with pytest.raises(ServiceClosed):
        await session.push("late")
    async with reopened(folder) as session:
        assert await inputs(session) == ["before", "only in memory"]


async def test_a_handover_that_nobody_waits_for_fails_without_a_report(service, disk):
    reported: list[dict] = []
    asyncio.get_running_loop().set_exception_handler(lambda _loop, context: reported.append(context))
    session = await service.session("user-42", create=True)
    refuse(disk)
    await session.push("only in memory")
    handing = asyncio.create_task(service._lifetime.close(handing=True))
    await asyncio.sleep(0)
    failing = service._lifetime._closing
    handing.cancel()
    await asyncio.wait([handing, failing])
    with pytest.raises(asyncio.CancelledError):
        await handing
    await asyncio.sleep(0)
    del failing
    gc.collect()
    assert reported == []
    assert service.health().live == 1
    assert await inputs(session) == ["only in memory"]
    disk.errors.clear()
    await until_synced(service._lifetime.population.store.flush)
