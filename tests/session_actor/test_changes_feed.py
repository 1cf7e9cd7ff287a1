"""The live feed of a session's changes: nothing twice, nothing left out, nothing too early."""

from __future__ import annotations

import asyncio
import gc
import json

import pytest

from session_actor import (
    FileStore,
    HandedOver,
    Hook,
    InvalidArgument,
    Lagged,
    MemoryStore,
    ServiceClosed,
    SessionCrashed,
    SessionDeleted,
    SessionNotFound,
    SessionService,
    telemetry,
)

from ..persistence.disks import TroubledDisk
from .conftest import Poison


async def taken(feed, count: int) -> list[int]:
    """The numbers of the next changes."""
    async with asyncio.timeout(20):
        return [(await anext(feed)).seq for _ in range(count)]


async def rest(feed) -> list:
    async with asyncio.timeout(20):
        return [change async for change in feed]


async def idle(feed) -> bool:
    """Whether nothing comes for some turns of the loop."""
    waiting = asyncio.ensure_future(anext(feed))
    for _ in range(20):
        await asyncio.sleep(0)
    told = waiting.done()
    waiting.cancel()
    await asyncio.wait([waiting])
    return not told


async def test_a_change_is_told_with_its_number_its_kind_and_what_it_concerns(session):
    async with session.changes(0) as feed:
        await session.add_user("hello")
        await session.checkpoint("here")
        await session.fork(1, user_input="again", branch="idea")
        await session.goto("main")
        await session.rename_branch("idea", "thought")
        await session.pop()
        told = [await anext(feed) for _ in range(7)]
    assert [(change.seq, change.kind) for change in told] == [
        (1, "session_created"),
        (2, "pushed"),
        (3, "checkpointed"),
        (4, "pushed"),
        (5, "moved"),
        (6, "renamed"),
        (7, "popped"),
    ]
    values = [change.value() for change in told]
    assert [(value.get("frame"), value.get("name"), value.get("branch")) for value in values] == [
        (None, None, None),
        (1, None, None),
        (1, "here", None),
        (2, None, "idea"),
        (1, None, "main"),
        (None, "idea", None),
        (None, None, None),
    ]
    assert values[5]["new_name"] == "thought"
    assert "hello" not in json.dumps(values)


async def test_what_comes_by_the_store_is_told_as_what_comes_live(session):
    live = session.changes()
    await session.add_user("hello")
    await session.push("a", "b")
    await session.pop()
    later = session.changes(1)
    assert [await anext(live) for _ in range(3)] == [await anext(later) for _ in range(3)]


async def test_without_a_number_only_what_is_made_from_now_on_is_told(session):
    await session.add_user("before")
    feed = session.changes()
    await session.add_user("after")
    assert await taken(feed, 1) == [3]
    await feed.aclose()
    assert await rest(feed) == []


@pytest.mark.parametrize("known", [0, 1, 40, 79, 80])
async def test_changes_made_while_it_is_read_come_once_and_in_order(session, known):
    for number in range(79):
        await session.add_user(str(number))
    feed = session.changes(known)

    async def write() -> None:
        for number in range(40):
            await session.add_user(str(number))
            await asyncio.sleep(0)

    writing = asyncio.ensure_future(write())
    assert await taken(feed, 120 - known) == list(range(known + 1, 121))
    await writing


async def test_the_changes_of_a_session_that_is_not_loaded_come_from_behind_its_snapshot_and_before_it(folder):
    async with SessionService.open(folder) as service:
        session = await service.session("user-42", create=True)
        for number in range(1_200):
            await session.add_user(str(number))
    async with SessionService.open(folder) as service:
        session = await service.session("user-42")
        for known in (0, 1_199):
            feed = session.changes(known)
            assert (await taken(feed, 1_201 - known))[-1] == 1_201
        await session.add_user("new")
        assert await taken(feed, 1) == [1_202]


async def test_a_reader_that_is_too_slow_is_told_where_it_was_and_can_go_on_from_there(session):
    feed = session.changes(limit=10)
    for number in range(3):
        await session.add_user(str(number))
    assert await taken(feed, 2) == [2, 3]
    for number in range(20):
        await session.add_user(str(number))
    with pytest.raises(Lagged) as caught:
        await anext(feed)
    assert (caught.value.last_seq, caught.value.lost, await rest(feed)) == (3, False, [])
    assert await taken(session.changes(caught.value.last_seq), 21) == list(range(4, 25))


async def test_a_reader_that_is_too_slow_to_even_begin_loses_nothing_either(service, session):
    await service._lifetime.population.rest(session.id)
    feed = session.changes(limit=2)
    for number in range(5):
        await session.add_user(str(number))
    assert await taken(feed, 5) == [2, 3, 4, 5, 6]
    with pytest.raises(Lagged) as caught:
        await anext(feed)
    assert (caught.value.last_seq, caught.value.lost) == (6, False)


async def test_a_reader_of_another_history_is_told_to_read_anew(session):
    with pytest.raises(Lagged) as caught:
        await anext(session.changes(99))
    assert (caught.value.last_seq, caught.value.lost) == (1, True)
    assert telemetry.heard is False


async def test_what_was_pruned_is_told_as_lost():
    store = MemoryStore()
    async with SessionService.open(store) as service:
        session = await service.session("user-42", create=True)
        for number in range(2_500):
            await session.add_user(str(number))
        await session.pop(2_400)
        await session.prune()
        feed = session.changes(1)
        with pytest.raises(Lagged) as caught:
            await taken(feed, 3_000)
        assert caught.value.lost
        assert (await taken(session.changes(caught.value.last_seq), 1))[0] == caught.value.last_seq + 1


async def test_it_ends_when_the_session_ends_and_tells_so_first(service, session):
    feeds = [session.changes(), session.changes(0)]
    await service.end(session.id)
    assert [[change.kind for change in await rest(feed)] for feed in feeds] == [
        ["session_ended"],
        ["session_created", "session_ended"],
    ]
    assert await rest(session.changes()) == []
    assert [change.seq for change in await rest(session.changes(0))] == [1, 2]


async def test_it_ends_when_the_session_is_deleted(service, session):
    feed = session.changes()
    await session.add_user("hello")
    await service.delete(session.id)
    assert [change.seq for change in await rest(feed)] == [2]
    with pytest.raises(SessionDeleted):
        await anext(session.changes(0))


async def test_it_ends_when_the_service_is_closed_also_of_a_session_at_rest():
    store = MemoryStore()
    async with SessionService.open(store) as service:
        session = await service.session("user-42", create=True)
        other = await service.session("at-rest", create=True)
        feeds = [session.changes(), other.changes()]
        await service._lifetime.population.rest("at-rest")
        await session.add_user("hello")
    assert [[change.seq for change in await rest(feed)] for feed in feeds] == [[2], []]


@pytest.mark.parametrize("after_seq", [None, 0])
@pytest.mark.parametrize("leaves", ["closes", "is handed over"])
async def test_one_that_is_opened_while_the_service_goes_ends_with_it(folder, leaves, after_seq):
    begun, on = asyncio.Event(), asyncio.Event()

    async def waits(_ctx) -> None:
        begun.set()
        await on.wait()

    service = SessionService.open(folder, hooks=[Hook("waits", waits, "passivated")])
    await service.start()
    session = await service.session("user-42", create=True)
    going = asyncio.ensure_future(service.close() if leaves == "closes" else service.handover("process"))
    await begun.wait()
    feed = session.changes(after_seq)
    on.set()
    await going
    with pytest.raises(ServiceClosed if leaves == "closes" else HandedOver):
        await asyncio.wait_for(anext(feed), 30)


async def test_it_goes_on_over_crashes_and_unloading(service, session):
    feed = session.changes(0)
    assert await taken(feed, 1) == [1]
    await session.add_user("first")
    with pytest.raises(SessionCrashed):
        await session.send(Poison("x"))
    await session.add_user("second")
    await service._lifetime.population.rest(session.id)
    assert session._cell.state is None
    await session.add_user("third")
    assert await taken(feed, 3) == [2, 3, 4]


async def test_it_goes_on_when_another_generation_takes_over(folder):
    async with SessionService.open(folder) as old:
        session = await old.session("user-42", create=True)
        feed = session.changes()
        await session.add_user("before")
        async with SessionService.take(await old.handover()) as new:
            await (await new.session("user-42")).add_user("after")
            assert await taken(feed, 2) == [2, 3]
        assert await rest(feed) == []


async def test_a_change_is_shown_when_its_level_is_reached_and_in_order(folder):
    disk = TroubledDisk()
    async with SessionService.open(FileStore(folder, disk=disk)) as service:
        session = await service.session("user-42", create=True)
        await session.flush()
        feed = session.changes()
        gate = disk.hold("sync")
        try:
            slow = asyncio.ensure_future(session.add_user("slow", durability="synced"))
            await asyncio.sleep(0)
            await session.add_user("quick")
            late = session.changes(0)
            assert await idle(feed)
            assert await idle(late)
        finally:
            gate.set()
        await slow
        assert await taken(feed, 2) == [2, 3]
        assert await taken(late, 3) == [1, 2, 3]


async def test_what_the_disk_refused_is_shown_when_it_has_it_after_all(folder, monkeypatch):
    from session_actor import NotDurable

    disk = TroubledDisk()
    async with SessionService.open(FileStore(folder, disk=disk)) as service:
        session = await service.session("user-42", create=True)
        await session.flush()
        feed = session.changes()
        disk.errors["write"] = 28
        with pytest.raises(NotDurable):
            await session.add_user("refused", durability="written")
        assert await idle(feed)
        disk.errors.clear()
        await session.flush("written")
        assert await taken(feed, 1) == [2]


async def test_readers_that_are_forgotten_or_closed_cost_nothing_any_more(session):
    feed, _other = session.changes(), session.changes()
    assert telemetry.heard
    await feed.aclose()
    await feed.aclose()
    del _other
    gc.collect()
    assert telemetry.heard is False


async def test_two_tasks_cannot_read_by_one_feed(session):
    feed = session.changes()
    first = asyncio.ensure_future(anext(feed))
    await asyncio.sleep(0)
    with pytest.raises(InvalidArgument):
        await anext(feed)
    await session.add_user("hello")
    assert (await first).seq == 2
    await feed.aclose()


async def test_nor_can_a_second_task_while_the_first_looks_for_what_was_missed(session):
    feed = session.changes(0)
    first = asyncio.ensure_future(anext(feed))
    await asyncio.sleep(0)
    with pytest.raises(InvalidArgument):
        await anext(feed)
    assert (await first).seq == 1


@pytest.mark.parametrize("after_seq", [None, 0])
async def test_closing_ends_the_wait_of_a_task_that_reads(session, after_seq):
    feed = session.changes(after_seq)
    reading = asyncio.ensure_future(rest(feed))
    await asyncio.sleep(0)
    await feed.aclose()
    assert await asyncio.wait_for(reading, 5) == []


async def test_a_reader_whose_session_is_not_there_is_off_the_list_though_somebody_has_it(service):
    other = await service.session("other", create=True)
    await service.delete("other")
    feed = other.changes(0)
    with pytest.raises(SessionDeleted):
        await anext(feed)
    assert telemetry.heard is False


@pytest.mark.parametrize("wrong", [{"after_seq": -1}, {"after_seq": "1"}, {"after_seq": True}, {"limit": 0}])
async def test_what_cannot_be_right_is_refused(session, wrong):
    with pytest.raises(InvalidArgument):
        session.changes(**wrong)


async def test_a_session_that_is_not_there_is_an_error_of_the_first_change(service, session):
    other = await service.session("other", create=True)
    feed = other.changes()
    await service.delete("other")
    assert await rest(feed) == []
    with pytest.raises(SessionNotFound):
        await service.session("other")


async def test_changes_held_at_a_crash_are_shown_in_order_when_the_disk_has_them(folder):
    disk = TroubledDisk()
    async with SessionService.open(FileStore(folder, disk=disk)) as service:
        session = await service.session("user-42", create=True)
        await session.flush()
        feed = session.changes()
        gate = disk.hold("sync")
        try:
            slow = asyncio.ensure_future(session.add_user("slow", durability="synced"))
            await asyncio.sleep(0)
            with pytest.raises(SessionCrashed):
                await session.send(Poison("x"))
            with pytest.raises(SessionCrashed):  # its outcome is unknown to the caller; the record is kept
                await slow
            await session.add_user("after the crash")
            assert await idle(feed)
        finally:
            gate.set()
        assert await taken(feed, 2) == [2, 3]
