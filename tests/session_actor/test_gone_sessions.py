"""A handle belongs to one session: when that is deleted, it never reaches another one that has the id now."""

from __future__ import annotations

import asyncio
import gc
import threading
import time
from contextlib import suppress

import pytest

from session_actor import (
    CallTimeout,
    SessionActorError,
    SessionCrashed,
    SessionDeleted,
    SessionNotFound,
    SessionService,
    StoreError,
    telemetry,
)
from session_actor.persistence import MemoryStore
from session_actor.persistence.files.storage import OsFile
from session_actor.supervisors import ChildSpec, DynamicSupervisor, GenServer, handles


class Slow(MemoryStore):
    """Deleting takes its time, before and after it happens."""

    error: OSError | None = None

    def __init__(self):
        super().__init__()
        self.begun, self.happened = asyncio.Event(), asyncio.Event()

    async def delete(self, lease):
        self.begun.set()
        await asyncio.sleep(0.02)
        if self.error is not None:
            raise self.error
        await super().delete(lease)
        self.happened.set()
        await asyncio.sleep(0.02)


class Tool(GenServer):
    """Lives and dies with a session."""

    def __init__(self, session):
        super().__init__()
        self.session = session

    async def init(self):
        self.link(self.session.ref)

    @handles(str)
    def fail(self, _):
        raise RuntimeError


async def outcome(work):
    try:
        return await work
    except SessionActorError as error:
        return type(error)


async def test_a_server_that_crashes_while_its_session_is_deleted_does_not_come_back_in_the_next_one():
    async with SessionService.open(Slow()) as service, DynamicSupervisor() as tools:
        old = await service.session("user-42", create=True)
        await old.push("said before")
        tool = await tools.start_child(ChildSpec("tool", start=lambda: Tool(old), restart="temporary"))
        deleting = asyncio.create_task(service.delete("user-42"))
        await asyncio.sleep(0)
        late = asyncio.create_task(outcome(old.push("sent before the deletion")))
        await asyncio.sleep(0)
        tool.cast("fail")
        await deleting
        new = await service.session("user-42", create=True)
        await new.push("first")
        await asyncio.sleep(0.15)  # the restart of the old server comes
        assert await late is SessionDeleted
        assert await outcome(old.push("again")) is SessionDeleted
        assert await outcome(old.get(1)) is SessionDeleted
        await new.push("second")
        assert [frame.user_input for frame in await new.stack()] == ["first", "second"]


@pytest.mark.parametrize("happened", [False, True], ids=["before it is deleted", "after it is deleted"])
async def test_a_deletion_whose_server_is_killed_leaves_the_session_or_ends_its_handles(happened):
    store = Slow()
    async with SessionService.open(store) as service:
        old = await service.session("user-42", create=True)
        await old.push("said before")
        await service._people().rest("user-42")
        deleting = asyncio.create_task(outcome(service.delete("user-42")))
        await (store.happened if happened else store.begun).wait()
        old.ref.kill()
        assert await deleting is SessionCrashed
        await asyncio.sleep(0.1)
        if not happened:
            assert (await old.push("said after")).id == 2
            return
        assert await outcome(old.push("again")) is SessionDeleted
        new = await service.session("user-42", create=True)
        assert (await new.push("first")).id == 1
        assert await outcome(old.push("again")) is SessionDeleted
        assert len(await new.stack()) == 1


async def test_an_id_that_another_session_has_by_now_is_not_loaded_into_the_handles_of_the_one_before():
    store = MemoryStore()
    async with SessionService.open(store) as service:
        old = await service.session("user-42", create=True)
        await old.push("said before")
        await service._people().rest("user-42")
        await store.delete(await store.acquire("user-42", create=False))  # behind the service's back
        lease = await store.acquire("user-42", create=True)
        store.release(lease)
        assert await outcome(old.push("again")) is SessionDeleted
        new = await service.session("user-42", create=True)
        assert (await new.push("first")).id == 1


async def test_a_change_behind_a_deletion_that_is_refused_may_be_sent_again():
    store = Slow()
    async with SessionService.open(store) as service:
        session = await service.session("user-42", create=True)
        await session.push("one")
        await service._people().rest("user-42")
        store.error = OSError(5, "I/O error")
        deleting = asyncio.create_task(outcome(service.delete("user-42")))
        await asyncio.sleep(0.01)
        assert await outcome(session.push("two", key="k")) is SessionCrashed
        assert await deleting is StoreError
        await session.push("two", key="k")
        assert [frame.user_input for frame in await session.stack()] == ["one", "two"]


async def test_who_reads_a_session_that_is_being_deleted_waits_without_turning_the_loop(monkeypatch):
    async with SessionService.open(Slow()) as service:
        session = await service.session("user-42", create=True)
        await session.push("one")
        await service._people().rest("user-42")
        deleting = asyncio.create_task(service.delete("user-42"))
        await asyncio.sleep(0.005)
        looks = 0
        ready = session._cell.server_ref

        def counted():
            nonlocal looks
            looks += 1
            return ready()

        monkeypatch.setattr(type(session._cell), "server_ref", lambda _: counted())
        assert await outcome(session.get(1)) is SessionDeleted
        assert looks < 20
        await deleting


async def test_a_reader_of_changes_that_the_collector_finds_while_handlers_change_holds_up_nobody():
    """As when an object with a feed is part of a circle: it is collected wherever memory is asked for."""
    async with SessionService.open(MemoryStore()) as service:
        session = await service.session("user-42", create=True)
        feed = session.changes()
        assert telemetry.heard

        def collected() -> None:
            nonlocal feed
            with telemetry._changing:
                del feed
                gc.collect()

        thread = threading.Thread(target=collected, daemon=True)
        thread.start()
        await asyncio.to_thread(thread.join, 5)
        assert not thread.is_alive()
        assert not telemetry.heard


async def test_who_has_no_reply_in_time_is_told_of_the_session_and_how_to_ask_again_safely(tmp_path, monkeypatch):
    sync = OsFile.sync
    async with SessionService.open(Slow()) as service:
        session = await service.session("user-42", create=True)
        deleting = asyncio.create_task(service.delete("user-42"))
        await asyncio.sleep(0)
        with pytest.raises(
            CallTimeout, match=r"session 'user-42' did not answer within 0.001 s; it was not run"
        ) as late:
            await session.push("one", timeout_s=0.001)
        assert (late.value.started, late.value.timeout_s) == (False, 0.001)
        await deleting
    async with SessionService.open(tmp_path / "store") as service:
        session = await service.session("user-42", create=True)
        monkeypatch.setattr(OsFile, "sync", lambda file: time.sleep(0.05) or sync(file))
        with pytest.raises(
            CallTimeout, match=r"'user-42' .* may still be done: send it again with the same key="
        ) as late:
            await session.push("one", durability="synced", key="k", timeout_s=0.001)
        assert (late.value.started, late.value.timeout_s) == (True, 0.001)
        assert (await session.push("one", durability="synced", key="k")).id == 1


async def test_who_makes_a_session_while_another_deletes_it_gets_one_whenever_that_is(tmp_path):
    async with SessionService.open(tmp_path, durability="synced") as service:
        for turns in range(40):
            making = asyncio.ensure_future(service.session("user-42", create=True))
            for _ in range(turns):
                await asyncio.sleep(0)
            with suppress(SessionNotFound):
                await service.delete("user-42")
            made = await making
            with suppress(SessionDeleted):  # made, told and deleted
                await made.push("tide")
