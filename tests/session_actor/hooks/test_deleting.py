"""Deleting sessions whose hooks must run first."""

from __future__ import annotations

import asyncio

import pytest

from session_actor import (
    CallTimeout,
    MemoryStore,
    ServiceClosed,
    SessionDeleted,
    SessionEnded,
    SessionNotFound,
    StoreCorrupt,
)

from .conftest import idle, opened, pass_time, turns, until


async def made(service, session_id: str = "user-42"):
    session = await service.session(session_id, create=True)
    await session.push("hello", "hi")
    return session


async def ids(service) -> list[str]:
    return [info.id async for info in service.sessions()]


async def test_a_session_goes_when_its_hooks_are_through_and_they_can_read_it(calls, store):
    async with opened(store, calls.must("bill")) as service:
        session = await made(service)
        await service.delete("user-42")
        assert calls.names == ["bill"]
        assert calls.contexts[0].reason == calls.contexts[0].view.ended == "deleted"
        assert await ids(service) == []
        assert service.health().hooks.deletions == 0
        with pytest.raises(SessionDeleted):
            await session.push("more", "of it")
        again = await made(service)
        assert await again.head() == 1


async def test_meanwhile_it_can_be_read_and_its_data_are_there(calls, store):
    calls.gates["bill"] = asyncio.Event()
    async with opened(store, calls.must("bill")) as service:
        session = await made(service)
        with pytest.raises(CallTimeout, match="mandatory hooks are not through"):
            await service.delete("user-42", timeout_s=0.02)
        with pytest.raises(SessionEnded):
            await session.push("more", "of it")
        assert [frame.user_input for frame in await session.stack()] == ["hello"]
        await until(lambda: calls.contexts)
        assert [frame.user_input for frame in await calls.contexts[0].view.stack()] == ["hello"]
        assert service.health().hooks.deletions == 1
        both = asyncio.gather(service.delete("user-42"), service.delete("user-42"))
        await turns()
        calls.gates["bill"].set()
        await both
        assert await ids(service) == []
    assert calls.names == ["bill"]


async def test_whoever_gives_up_the_wait_does_not_give_up_the_deletion(calls, store):
    calls.gates["bill"] = asyncio.Event()
    async with opened(store, calls.must("bill")) as service:
        await made(service)
        wait = asyncio.ensure_future(service.delete("user-42"))
        await until(lambda: calls.names)
        wait.cancel()
        await turns()
        calls.gates["bill"].set()
        await until(lambda: not service.health().hooks.deletions)
        with pytest.raises(SessionNotFound):
            await service.session("user-42")


async def test_a_deletion_goes_on_after_a_restart(calls, store):
    calls.gates["bill"] = asyncio.Event()
    async with opened(store, calls.must("bill"), close_timeout_s=0.1) as service:
        await made(service)
        with pytest.raises(CallTimeout):
            await service.delete("user-42", timeout_s=0.02)
    async with opened(store) as service:
        assert await ids(service) == ["user-42"]
        with pytest.raises(CallTimeout):
            await service.delete("user-42", timeout_s=0.02)
    calls.gates["bill"].set()
    async with opened(store, calls.must("bill")) as service:
        await until(lambda: not service.health().hooks.deletions)
        assert await ids(service) == []
    assert len({ctx.key for ctx in calls.contexts}) == 1


async def test_a_session_that_has_ended_waits_for_the_hooks_of_its_end(calls, store):
    calls.gates["bill"] = asyncio.Event()
    async with opened(store, calls.must("bill")) as service:
        await made(service)
        await service.end("user-42", "paid")
        wait = asyncio.ensure_future(service.delete("user-42"))
        await turns()
        assert not wait.done()
        calls.gates["bill"].set()
        await wait
        assert await ids(service) == []
    assert [ctx.reason for ctx in calls.contexts] == ["paid"]


async def test_a_session_whose_hooks_are_through_is_deleted_without_them(calls, store):
    async with opened(store, calls.must("bill")) as service:
        await made(service)
        await service.end("user-42")
        await idle(service)
        await service.delete("user-42")
        assert await ids(service) == []
    assert calls.names == ["bill"]


async def test_a_dead_hook_keeps_the_data_until_it_is_driven_or_given_up(calls, store, clock):
    calls.fails["bill"] = 10
    async with opened(store, calls.must("bill"), clock=clock) as service:
        for session_id in ("user-42", "user-43"):
            await made(service, session_id)
            wait = asyncio.ensure_future(service.delete(session_id, timeout_s=None))
            await pass_time(clock, lambda: service.health().hooks.dead)
            assert session_id in await ids(service)
            assert not wait.done()
            (letter,) = service.hooks.dead_letters()
            assert letter.delete
            if session_id == "user-42":
                calls.fails["bill"] = 0
                await service.hooks.drive(letter)
                await pass_time(clock, wait.done)
                calls.fails["bill"] = 10
            else:
                await service.hooks.discard(letter)
            await wait
        assert await ids(service) == []


async def test_hooks_that_are_not_mandatory_are_called_after_it_and_can_read_what_was(calls, store):
    async with opened(store, calls.hook("bill")) as service:
        session = await made(service)
        await session.push("more", "of it")
    async with opened(store, calls.hook("bill")) as service:
        await service.delete("user-42")
        await until(lambda: calls.names)
        assert calls.contexts[0].view.ended == "deleted"
        assert len(await calls.contexts[0].view.stack()) == 2
        with pytest.raises(SessionNotFound):
            await service.delete("user-42")
    assert calls.names == ["bill"]


@pytest.mark.parametrize("mandatory", [True, False])
async def test_whoever_deletes_what_somebody_else_is_deleting_is_answered_alike(calls, store, mandatory):
    async with opened(store, calls.hook("bye", mandatory=mandatory)) as service:
        for number in range(8):
            session_id = f"user-{number}"
            await service.session(session_id, create=True)
            if number % 2:
                await service.end(session_id)
            first = asyncio.ensure_future(service.delete(session_id))
            await turns(2 * number)
            answers = await asyncio.gather(*(service.delete(session_id) for _ in range(3)), return_exceptions=True)
            await first
            assert all(answer is None or isinstance(answer, SessionNotFound) for answer in answers)
        assert [info.id async for info in service.sessions()] == []
    assert len(calls.names) == 8


async def test_deleting_what_is_not_there_makes_nothing_pending(calls, store):
    async with opened(store, calls.must("bill")) as service:
        with pytest.raises(SessionNotFound):
            await service.delete("user-42")
        assert service.hooks.pending() == []


async def test_a_session_that_cannot_be_read_is_kept_where_hooks_must_see_it(calls, tmp_path):
    async with opened(tmp_path / "store") as service:
        await made(service)
    (journal,) = (tmp_path / "store").glob("journals/*/user*.ndjson")
    data = bytearray(journal.read_bytes())
    data[len(data) // 2] ^= 1
    journal.write_bytes(data)
    async with opened(tmp_path / "store", calls.must("bill")) as service:
        with pytest.raises(StoreCorrupt):
            await service.delete("user-42")
        assert await ids(service) == ["user-42"]
    async with opened(tmp_path / "store", calls.hook("bill")) as service:
        await service.delete("user-42")
        assert await ids(service) == []
    assert calls.names == []


async def test_a_session_of_another_birth_is_not_deleted_for_an_older_one(calls):
    store = MemoryStore()
    calls.gates["bill"] = asyncio.Event()
    async with opened(store, calls.must("bill"), close_timeout_s=0.1) as service:
        await made(service)
        with pytest.raises(CallTimeout):
            await service.delete("user-42", timeout_s=0.02)
    async with opened(store) as service:
        lease = await store.acquire("user-42", create=False)
        await store.delete(lease)  # behind the service's back
        await made(service)
    calls.gates["bill"].set()
    async with opened(store, calls.must("bill")) as service:
        await until(lambda: not service.hooks.pending())
        await turns()
        assert await ids(service) == ["user-42"]
        assert service.health().hooks.deletions == 0


async def test_a_deletion_that_is_noted_while_the_service_closes_keeps_nobody_waiting(calls, store):
    calls.gates["bill"] = asyncio.Event()
    async with opened(store, calls.must("bill"), close_timeout_s=0.1) as service:
        await made(service)
        deleting = asyncio.ensure_future(service.delete("user-42", timeout_s=None))
        await turns(3)
        await service.close()
        with pytest.raises(ServiceClosed):
            await asyncio.wait_for(deleting, 5)
    calls.gates["bill"].set()
    async with opened(store, calls.must("bill")) as service:
        await until(lambda: not service.health().hooks.deletions)
        assert await ids(service) == []
