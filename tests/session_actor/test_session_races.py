"""Deletion, creation, forks and exchanges that meet: every handle tells the truth, and nothing is left half done."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from session_actor import MemoryStore, SessionService
from session_actor.errors import CallTimeout, InvalidArgument, LevelUnreachable
from session_actor.service_errors import SessionBusy, SessionDeleted, SessionExists, SessionNotFound

from .test_passivation import until


@pytest.fixture(params=["memory", "file"])
def store(request: pytest.FixtureRequest, tmp_path: Path):
    return MemoryStore() if request.param == "memory" else tmp_path / "conversations"


async def test_a_flush_at_a_level_that_does_not_exist_holds_no_later_reply(folder):
    async with SessionService.open(folder) as service:
        session = await service.session("a", create=True)
        await session.push("1", "")
        with pytest.raises(InvalidArgument):
            await session.flush("bogus")
        assert (await session.push("2", "", durability="synced")).id == 2


async def test_a_refused_flush_does_not_keep_a_session_loaded():
    async with SessionService.open(MemoryStore(), idle_timeout_s=0.01) as service:
        session = await service.session("a", create=True)
        with pytest.raises(LevelUnreachable):
            await session.flush("synced")
        await until(lambda: service.health().live == 0)
        assert await session.branches() == {"main": None}


@pytest.mark.parametrize("resting", [False, True])
async def test_a_deletion_whose_caller_has_left_still_kills_the_handles_and_frees_the_id(store, resting):
    async with SessionService.open(store, idle_timeout_s=0.01 if resting else None) as service:
        old = await service.session("a", create=True)
        await old.push("1", "")
        if resting:
            await until(lambda: service.health().live == 0)
        task = asyncio.ensure_future(service.delete("a"))
        await asyncio.sleep(0)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        while True:
            try:
                await old.stack()
            except SessionDeleted:
                break
            await asyncio.sleep(0)
        new = await service.session("a", create=True)
        assert (await new.push("new", "")).id == 1
        with pytest.raises(SessionDeleted):
            await old.push("into the new one", "")
        assert [frame.user_input for frame in await new.stack()] == ["new"]


async def test_a_deletion_that_times_out_for_its_caller_still_frees_the_id(folder):
    async with SessionService.open(folder) as service:
        old = await service.session("a", create=True)
        await old.push("1", "")
        with pytest.raises(CallTimeout):
            await service.delete("a", timeout_s=1e-9)
        while len(await (new := await service.session("a", create=True)).stack()):  # noqa: ASYNC110 - it is on its way
            await asyncio.sleep(0)
        await new.push("2", "")
        assert len(await new.stack()) == 1


@pytest.mark.parametrize("resting", [False, True])
async def test_a_session_made_while_the_old_one_is_deleted_is_alive_and_alone(store, resting):
    async with SessionService.open(store, idle_timeout_s=0.01 if resting else None) as service:
        old = await service.session("a", create=True)
        await old.push("old", "")
        if resting:
            await until(lambda: service.health().live == 0)
        deletion = asyncio.ensure_future(service.delete("a"))
        while True:
            new = await service.session("a", create=True)
            if not len(await new.stack()):
                break
            await asyncio.sleep(0)
        await new.push("new", "")
        await deletion
        assert [frame.user_input for frame in await new.stack()] == ["new"]
        assert [frame.user_input for frame in await (await service.session("a")).stack()] == ["new"]
        assert (await new.push("on", "")).id == 2
        with pytest.raises(SessionDeleted):
            await old.stack()


async def test_two_deletions_at_once_delete_once(store):
    async with SessionService.open(store) as service:
        await service.session("a", create=True)
        results = await asyncio.gather(service.delete("a"), service.delete("a"), return_exceptions=True)
        assert [type(result) for result in results if result is not None] in ([], [SessionNotFound])
        with pytest.raises(SessionNotFound):
            await service.delete("a")


async def test_what_is_queued_before_a_deletion_is_done_and_what_comes_after_is_refused(store):
    async with SessionService.open(store) as service:
        session = await service.session("a", create=True)
        before = [asyncio.ensure_future(session.push(str(number), "")) for number in range(5)]
        deletion = asyncio.ensure_future(service.delete("a"))
        await asyncio.sleep(0)
        after = asyncio.ensure_future(session.push("late", ""))
        await deletion
        assert [(await push).id for push in before] == [1, 2, 3, 4, 5]
        with pytest.raises(SessionDeleted):
            await after


async def test_ending_a_session_twice_changes_nothing(store):
    async with SessionService.open(store) as service:
        await service.session("a", create=True)
        await service.end("a", reason="done")
        session = await service.end("a", reason="other")
        assert await session.ended() == "done"


async def test_a_fork_at_an_empty_branch_has_an_empty_history(store):
    async with SessionService.open(store) as service:
        session = await service.session("a", create=True)
        await session.push("1", "1")
        await session.fork(branch="other")
        await session.push("2", "2")
        await session.on("main").pop(5)
        copy = await service.fork("a", "b", at="main")
        assert await copy.branches() == {"main": None}
        assert len(await copy.stack()) == 0


async def test_an_exchange_without_waiting_does_not_wait_for_one_that_is_about_to_begin(session):
    async def other() -> None:
        async with session.exchange(wait_s=10):
            await asyncio.sleep(0.01)

    async with session.exchange():
        task = asyncio.ensure_future(other())
        await asyncio.sleep(0)
    with pytest.raises(SessionBusy):
        async with session.exchange():
            pass
    await task


async def test_a_fork_onto_a_resting_session_is_refused_and_nobody_else_is(store):
    async with SessionService.open(store, idle_timeout_s=0.01) as service:
        resting = await service.session("a", create=True)
        await resting.push("1", "")
        await service.session("b", create=True)
        await until(lambda: service.health().live == 0)
        fork = asyncio.ensure_future(service.fork("b", "a"))
        await asyncio.sleep(0)
        pushed, found, refused = await asyncio.gather(
            resting.push("2", ""), service.session("a"), fork, return_exceptions=True
        )
        assert pushed.id == 2
        assert found.id == "a"
        assert isinstance(refused, SessionExists)


async def test_a_session_that_is_not_there_is_no_crash(store, capsys):
    async with SessionService.open(store) as service:
        with pytest.raises(SessionNotFound):
            await service.session("nobody")
    assert "crashed" not in "".join(capsys.readouterr())
