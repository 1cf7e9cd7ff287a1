"""Who waits for a level: callbacks of anybody's, which may raise anything."""

from __future__ import annotations

import asyncio
import errno

import pytest

from session_actor.persistence import FileStore, NotDurable

from .conformance import opened, say
from .disks import TroubledDisk


@pytest.mark.parametrize("error", [KeyError, asyncio.CancelledError, GeneratorExit])
async def test_what_one_raises_who_waits_keeps_the_others_from_nothing(tmp_path, error):
    disk = TroubledDisk()
    async with opened(FileStore(tmp_path, disk=disk)) as store:
        lease = await store.acquire("user-42", create=True)
        say(store, lease, "0")
        await store.flush("written")
        told = []

        def raising(reason: BaseException | None) -> None:
            told.append(type(reason))
            raise error

        say(store, lease, "1")
        store.when("written", store.health().appended_position, raising)
        store.when("written", store.health().appended_position, raising)
        assert await store.flush("written") is None
        disk.errors["write"] = errno.EIO
        say(store, lease, "2")
        store.when("written", store.health().appended_position, raising)
        with pytest.raises(NotDurable):
            await store.flush("written")
        del disk.errors["write"]
        await store.flush("written")
        assert told == [type(None), type(None), NotDurable]
