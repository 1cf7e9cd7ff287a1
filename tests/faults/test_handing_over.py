"""Handing over to another process on a disk that is really full."""

from __future__ import annotations

import asyncio
from functools import partial

import pytest

from session_actor import BacklogFull, FileStore, HandoverFailed, Session, SessionService, StoreDegraded

from ..persistence.disks import until_synced
from .mounts import fill, need_mounts, tmpfs
from .verified import damage_in

MB = 1 << 20


async def until_refused(session: Session, answered: list[str]) -> None:
    """Push until the log is full, too."""
    async with asyncio.timeout(60):
        while True:
            try:
                await session.push(str(len(answered)), "x" * 10_000)
            except StoreDegraded:
                return
            except BacklogFull:  # the disk has yet to say that it is full
                await asyncio.sleep(0.001)
            else:
                answered.append(str(len(answered)))


async def test_a_full_disk_keeps_the_old_process_serving_until_there_is_room(tmp_path):
    need_mounts()
    with tmpfs(tmp_path / "disk", 8 * MB) as disk:
        store = FileStore(disk / "store", segment_bytes=128 * 1024, backlog_bytes=MB)  # which the disk has room for
        service = SessionService.open(store, close_timeout_s=5)
        await service.start()
        session = await service.session("user-42", create=True)
        await session.push("0", durability="synced")
        fill(disk / "filler")
        answered = ["0"]
        await until_refused(session, answered)
        with pytest.raises(HandoverFailed, match="not all that was answered came to the disk"):
            await service.handover("process")
        assert [frame.user_input for frame in await session.stack()] == answered

        (disk / "filler").unlink()
        await until_synced(partial(session.flush, timeout_s=None))
        await service.handover("process")
        assert damage_in(disk / "store") == []
        async with SessionService.open(disk / "store") as heir:
            found = await (await heir.session("user-42")).stack()
            assert [frame.user_input for frame in found] == answered


async def test_an_heir_takes_over_on_a_disk_that_is_full(tmp_path):
    need_mounts()
    with tmpfs(tmp_path / "disk", 8 * MB) as disk:
        service, heir = (
            SessionService.open(
                FileStore(disk / "store", segment_bytes=128 * 1024, lock_timeout_s=None), durability="synced"
            )
            for _ in range(2)
        )
        await service.start()
        await (await service.session("user-42", create=True)).push("0")
        waiting = asyncio.create_task(heir.start())
        fill(disk / "filler")
        await service.handover("process")
        await waiting
        session = await heir.session("user-42")
        assert [frame.user_input for frame in await session.stack()] == ["0"]

        (disk / "filler").unlink()
        await until_synced(partial(session.flush, timeout_s=None))
        await session.push("1")
        await heir.close()
        assert damage_in(disk / "store") == []
