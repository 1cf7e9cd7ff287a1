"""Levels, the output gate, flush, keys: what an acknowledgement means."""

from __future__ import annotations

import asyncio
import signal
import sys
from pathlib import Path

import pytest

from session_actor import MemoryStore, SessionService
from session_actor.errors import HeadMoved, InvalidArgument, KeyConflict, LevelUnreachable
from session_actor.service_errors import SessionCrashed

from ..unhurried import unhurried
from .conftest import Poison, reopened

CHILD = Path(__file__).with_name("child_pusher.py")


@pytest.mark.parametrize("level", ["async", "written", "synced"])
async def test_a_change_at_each_level_is_answered_when_that_level_is_reached(folder, level):
    async with SessionService.open(folder) as service:
        session = await service.session("user-42", create=True)
        for number in range(1, 11):
            frame = await session.push(f"q{number}", "", durability=level)
            assert session.durable_seq[level] >= number + 1
            assert frame.id == number


async def test_replies_of_different_levels_leave_in_the_order_of_their_changes(folder):
    async with SessionService.open(folder) as service:
        session = await service.session("user-42", create=True)
        order: list[int] = []

        async def push(number: int) -> None:
            await session.push(str(number), "", durability=("synced", "written")[number % 2], timeout_s=None)
            order.append(number)

        await asyncio.gather(*(push(number) for number in range(40)))
    assert order == list(range(40))


async def test_the_mailbox_goes_on_while_replies_wait_for_the_disk(folder):
    async with SessionService.open(folder) as service:
        session = await service.session("user-42", create=True)
        unhurried(session.ref)
        waiting = asyncio.ensure_future(session.push("slow", "", durability="synced"))
        await asyncio.sleep(0)
        quick = await session.push("quick", "", durability="async")
        assert quick.id == 2
        assert not waiting.done()
        assert (await waiting).id == 1


async def test_reads_see_memory_and_never_wait_for_the_disk(folder):
    async with SessionService.open(folder) as service:
        session = await service.session("user-42", create=True)
        waiting = asyncio.ensure_future(session.push("slow", "", durability="synced"))
        await asyncio.sleep(0)
        assert (await session.get(1)).user_input == "slow"
        assert not waiting.done()
        await waiting


async def test_flush_waits_for_everything_before_it_casts_included(folder):
    async with SessionService.open(folder) as service:
        session = await service.session("user-42", create=True)
        for number in range(20):
            await session.push(str(number), "")
        seq = await session.flush("synced")
        assert seq == 21
        assert session.durable_seq == {"async": 21, "written": 21, "synced": 21}


async def test_a_memory_store_refuses_levels_that_it_cannot_promise_and_changes_nothing():
    async with SessionService.open(MemoryStore()) as service:
        session = await service.session("user-42", create=True)
        for level in ("written", "synced"):
            with pytest.raises(LevelUnreachable):
                await session.push("a", "b", durability=level)
            with pytest.raises(LevelUnreachable):
                await session.flush(level)
        assert len(await session.stack()) == 0


async def test_a_service_whose_default_the_store_cannot_promise_does_not_start():
    with pytest.raises(LevelUnreachable):
        async with SessionService.open(MemoryStore(), durability="synced"):
            pass


async def test_an_unknown_level_is_refused_and_the_session_lives(session):
    with pytest.raises(InvalidArgument):
        await session.push("a", "b", durability="fast")
    assert len(await session.stack()) == 0
    assert (await session.push("a", "b")).id == 1


async def test_a_retry_with_the_same_key_gets_the_first_reply_and_doubles_nothing(session):
    first = await session.push("a", "b", key="turn-1")
    again = await session.push("a", "b", key="turn-1")
    assert again == first
    assert len(await session.stack()) == 1
    with pytest.raises(KeyConflict):
        await session.push("a", "c", key="turn-1")


async def test_a_retry_waits_for_its_own_level(folder):
    async with SessionService.open(folder) as service:
        session = await service.session("user-42", create=True)
        first = await session.push("a", "b", key="turn-1", durability="async")
        again = await session.push("a", "b", key="turn-1", durability="synced")
        assert again == first
        assert session.durable_seq["synced"] >= 2


async def test_keys_survive_a_crash_and_a_reopening(folder):
    async with SessionService.open(folder) as service:
        session = await service.session("user-42", create=True)
        first = await session.push("a", "b", key="turn-1")
        popped = await session.pop(1, key="undo")
        with pytest.raises(SessionCrashed):
            await session.send(Poison())
        assert await session.push("a", "b", key="turn-1") == first
    async with reopened(folder) as session:
        assert await session.push("a", "b", key="turn-1") == first
        assert await session.pop(1, key="undo") == popped
        assert len(await session.stack()) == 0


async def test_a_change_that_expects_another_head_changes_nothing(session):
    await session.push("a", "b")
    with pytest.raises(HeadMoved):
        await session.push("c", "d", expect_head=7)
    await session.push("c", "d", expect_head=1)
    assert len(await session.stack()) == 2


async def test_one_hundred_callers_at_once_give_one_history(folder):
    async with SessionService.open(folder) as service:
        session = await service.session("user-42", create=True)
        frames = await asyncio.gather(*(session.push(str(n), "", durability="written") for n in range(100)))
        assert sorted(frame.id for frame in frames) == list(range(1, 101))
    async with reopened(folder) as session:
        stack = await session.stack()
        assert [frame.parent for frame in stack] == [None, *range(1, 100)]


@pytest.mark.parametrize(("level", "acknowledged"), [("written", 1), ("written", 400), ("synced", 37), ("synced", 400)])
async def test_nothing_that_was_acknowledged_is_lost_by_kill_9(folder: Path, level: str, acknowledged: int):
    child = await asyncio.create_subprocess_exec(sys.executable, CHILD, folder, level, stdout=asyncio.subprocess.PIPE)
    last = 0
    try:
        while last < acknowledged and (line := await child.stdout.readline()):
            last = int(line)
    finally:
        child.kill()
    last = max([last, *map(int, (await child.stdout.read()).split(b"\n")[:-1])])
    assert await child.wait() == -signal.SIGKILL
    assert last >= acknowledged
    async with reopened(folder) as session:
        stack = await session.stack()
        assert len(stack) >= last
        assert [frame.user_input for frame in stack] == [f"q{number}" for number in range(len(stack))]
        assert (await session.push("on", "")).id == len(stack) + 1
