"""Hooks while the disk takes nothing: nothing runs before it is noted, and all of it runs once when it works again."""

from __future__ import annotations

import errno
from contextlib import suppress

import pytest

from session_actor import FileStore, NotDurable, StoreDegraded

from ...persistence.disks import TroubledDisk
from .conftest import idle, opened, turns, until


async def test_an_end_that_the_disk_refuses_is_not_answered_and_its_hooks_wait(calls, tmp_path):
    disk = TroubledDisk()
    async with opened(FileStore(tmp_path / "store", disk=disk), calls.must("bill")) as service:
        await service.session("user-42", create=True)
        other = await service.session("user-43", create=True)
        await other.flush("synced")
        disk.errors = {"write": errno.EIO, "sync": errno.EIO}
        with pytest.raises((NotDurable, StoreDegraded)):
            await service.end("user-42")
        with suppress(NotDurable, StoreDegraded):
            await service.end("user-43")
        appended = service.health().store.appended_position
        await turns(200)
        assert calls.names == []
        assert service.health().store.appended_position <= appended + 2
        disk.errors = {}
        await until(lambda: service.health().store.degraded_since_us is None)
        for session_id in ("user-42", "user-43"):
            await service.end(session_id)
        await idle(service)
    assert sorted(ctx.session_id for ctx in calls.contexts) == ["user-42", "user-43"]
    assert {ctx.attempt for ctx in calls.contexts} == {1}
