"""Taking over from another generation of the library, cancelled at any step: somebody has the store, or nobody."""

from __future__ import annotations

import asyncio
import errno
from types import SimpleNamespace

import pytest

from session_actor import FileStore, HandedOver, HandoverFailed, ServiceDown, SessionService
from session_actor.service.lifetime import Lifetime

from ...persistence.disks import TroubledDisk, until_synced
from ..test_service_start import STEPS, cancelled_at, is_whole, none_left


async def offered(service: SessionService):
    """What the service hands on, as it looks to another generation: not of a class of its own."""
    handover = await service.handover()
    return SimpleNamespace(store=handover.store, bridge=handover.bridge, protocol=handover.protocol)


async def pushed(session, outcomes: list[str]) -> None:
    """Pushes while the session is paused; at last it is answered, or refused."""
    while (slot := getattr(session._cell.ref, "slot", None)) and not slot.suspended:  # noqa: ASYNC110  nobody tells
        await asyncio.sleep(0)
    try:
        await session.push("waits", timeout_s=None)
        outcomes.append("answered")
    except HandedOver:
        outcomes.append("refused")


async def test_a_takeover_that_is_cancelled_at_any_wait_leaves_one_that_serves_or_a_store_that_can_be_opened(tmp_path):
    seen: set[tuple[bool, str]] = set()
    for wait in range(STEPS):
        folder = tmp_path / str(wait)
        old = SessionService.open(folder)
        await old.start()
        session = await old.session("a", create=True)
        outcomes: list[str] = []
        heir = SessionService.take(await offered(old))
        waiting = asyncio.create_task(pushed(session, outcomes))
        starting = asyncio.create_task(cancelled_at(heir.start(), wait))
        await asyncio.wait([starting])
        if not starting.cancelled():
            break
        goes_on = "open" in repr(old)
        if goes_on and not waiting.done():
            waiting.cancel()
        async with asyncio.timeout(5):
            await asyncio.wait([waiting])
        if outcomes:
            seen.add((goes_on, outcomes[0]))
        if goes_on:
            await session.push("goes on")
        await old.close()
        assert await none_left(), wait
        await is_whole(SessionService.open(folder))
    else:
        pytest.fail("it has more steps")
    await asyncio.wait_for(waiting, 5)
    assert outcomes == ["answered"]
    assert seen >= {(False, "refused")}
    await heir.close()
    await old.close()


async def test_a_takeover_from_a_service_that_cannot_close_refuses_what_waits_and_lets_go_of_the_store(
    folder, monkeypatch
):
    old = SessionService.open(folder)
    await old.start()
    session = await old.session("a", create=True)
    outcomes: list[str] = []
    heir = SessionService.take(await offered(old))
    waiting = asyncio.create_task(pushed(session, outcomes))
    real = Lifetime.let_go

    async def let_go(self) -> None:
        await real(self)
        raise ServiceDown("on purpose")

    monkeypatch.setattr(Lifetime, "let_go", let_go)
    with pytest.raises(ServiceDown):
        await heir.start()
    await asyncio.wait_for(waiting, 5)
    assert outcomes == ["refused"]
    assert await none_left()
    await is_whole(SessionService.open(folder))


async def test_a_takeover_while_the_disk_refuses_fails_as_any_and_the_old_one_goes_on(tmp_path):
    disk = TroubledDisk()
    old = SessionService.open(FileStore(tmp_path / "store", disk=disk))
    await old.start()
    session = await old.session("a", create=True)
    await session.flush("synced")
    disk.errors |= dict.fromkeys(("write", "create", "preallocate", "sync"), errno.EIO)
    await session.push("1")
    heir = SessionService.take(await offered(old))
    with pytest.raises(HandoverFailed, match="the service could not be handed over: NotDurable"):
        await heir.start()
    assert not session._cell.ref.slot.suspended
    disk.errors.clear()
    await until_synced(session.flush)
    async with SessionService.take(await offered(old)) as heir:
        assert [frame.user_input for frame in await (await heir.session("a")).stack()] == ["1"]
    assert await none_left()
