"""Opening and closing a service, whatever happens meanwhile."""

from __future__ import annotations

import asyncio
import inspect
import threading
from pathlib import Path

import pytest

from session_actor import FileStore, MemoryStore, SessionService
from session_actor.commands import Push
from session_actor.errors import (
    AsyncioOnly,
    BranchUnknown,
    InvalidArgument,
    SessionActorError,
    StoreDegraded,
    UnknownMessage,
    WrongLoop,
)
from session_actor.handle.branching import Branching
from session_actor.handle.changes import Changes
from session_actor.handle.handle import Session
from session_actor.persistence.engine import Engine
from session_actor.service_errors import CloseTimeout, ServiceDown, SessionCrashed, SessionDeleted, SessionFenced
from session_actor.supervisors import Call, statistics

from ..persistence.disks import TroubledDisk
from .conftest import Poison, reopened
from .test_passivation import until


@pytest.fixture(params=["memory", "file"])
def store(request: pytest.FixtureRequest, tmp_path: Path):
    return MemoryStore() if request.param == "memory" else tmp_path / "conversations"


@pytest.mark.parametrize("turns", range(8))
async def test_a_close_that_is_cancelled_goes_on_and_a_second_one_joins_it(folder, turns):
    service = SessionService.open(folder)
    await service.start()
    session = await service.session("a", create=True)
    await session.push("1", "")
    task = asyncio.ensure_future(service.close())
    for _ in range(turns):
        await asyncio.sleep(0)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    await service.close()
    await asyncio.sleep(0)
    assert asyncio.all_tasks() == {asyncio.current_task()}
    async with reopened(folder, "a") as again:
        assert len(await again.stack()) == 1


async def test_the_errors_of_the_body_are_not_hidden_by_those_of_closing(folder):
    class Hanging(MemoryStore):
        async def close(self) -> None:
            await super().close()
            await asyncio.sleep(60)

    with pytest.raises(KeyError):
        async with SessionService.open(Hanging(), close_timeout_s=0.01):
            raise KeyError("mine")
    with pytest.raises(CloseTimeout, match="close_timeout_s"):
        async with SessionService.open(Hanging(), close_timeout_s=0.01):
            pass


async def test_a_close_whose_tidying_takes_too_long_is_quiet_and_loses_nothing(folder, monkeypatch):
    async def slow(*_: object) -> None:
        await asyncio.sleep(60)

    monkeypatch.setattr(Engine, "tidy", slow)
    async with SessionService.open(folder, close_timeout_s=0.05) as service:
        session = await service.session("a", create=True)
        await session.push("1", "")
    async with reopened(folder, "a", close_timeout_s=0.05) as again:
        assert [frame.user_input for frame in await again.stack()] == ["1"]


async def test_a_close_that_cannot_sync_in_time_says_how_much_is_not_on_the_disk(folder):
    disk = TroubledDisk()
    service = SessionService.open(FileStore(folder, disk=disk), close_timeout_s=0.2)
    await service.start()
    session = await service.session("a", create=True)
    await session.flush("synced")
    gate = disk.hold("sync")
    await session.push("1", "", durability="written")
    await session.push("2", "", durability="written")
    release = threading.Timer(1.0, gate.set)  # a system call that runs cannot be given up
    release.start()
    with pytest.raises(CloseTimeout, match="the newest records, 2 of them, may be lost") as caught:
        await service.close()
    release.join()
    assert caught.value.unsynced == 2


def test_another_event_loop_is_refused_and_changes_nothing(folder):
    first, second = asyncio.new_event_loop(), asyncio.new_event_loop()
    service = SessionService.open(folder)
    try:
        first.run_until_complete(service.start())
        session = first.run_until_complete(service.session("a", create=True))
        first.run_until_complete(session.push("1", ""))
        for use in (
            service.close,
            lambda: service.session("a"),
            lambda: session.push("2", ""),
            lambda: service.delete("a"),
            lambda: session.exchange().__aenter__(),
        ):
            with pytest.raises(WrongLoop) as refused:
                second.run_until_complete(use())
            assert isinstance(refused.value, SessionActorError)
        assert len(first.run_until_complete(session.stack())) == 1
    finally:
        first.run_until_complete(service.close())
        first.close()
        second.close()


def test_without_asyncio_the_service_refuses_by_name(store):
    starting = SessionService.open(store).start()
    with pytest.raises(AsyncioOnly, match="trio"):
        starting.send(None)


WRONG = {
    "durability": ["fast", None, 3],
    "idle_timeout_s": [0, -1, float("nan"), "x"],
    "lock_timeout_s": [-1, float("nan"), "x"],
    "close_timeout_s": [-1, None, float("nan")],
    "max_live": [0, -1, 1.5, True],
    "mailbox_limit": [0, None, "x", 1.5],
    "max_restarts": [-1, 1.5, None],
    "restart_window_s": [0, -1, None],
}


@pytest.mark.parametrize(("name", "value"), [(name, value) for name, values in WRONG.items() for value in values])
def test_an_option_that_can_never_be_right_is_refused_by_its_name(name, value):
    with pytest.raises(InvalidArgument, match=name):
        SessionService.open(MemoryStore(), **{name: value})


@pytest.mark.parametrize("path", ["", "a\0b", 5, None, b"x"])
def test_what_is_no_directory_is_refused_before_anything_is_made(path):
    with pytest.raises(InvalidArgument, match="store"):
        SessionService.open(path)


@pytest.mark.parametrize("timeout_s", [-1, float("nan"), "x", True])
async def test_a_timeout_that_can_never_be_right_is_refused_whether_the_call_waits_or_not(session, timeout_s):
    with pytest.raises(InvalidArgument, match="timeout_s"):
        await session.push("a", "b", timeout_s=timeout_s)
    with pytest.raises(InvalidArgument, match="wait_s"):
        session.exchange(wait_s=timeout_s)
    assert len(await session.stack()) == 0


def test_every_changing_method_takes_the_same_last_four_arguments():
    methods = {**vars(Changes), **vars(Branching)}
    changing = [method for name, method in methods.items() if not name.startswith("_") and name != "send"]
    changing = [method for method in changing if inspect.isfunction(method)]
    assert len(changing) >= 14
    for method in (*changing, Session.branch_off, SessionService.end):
        parameters = inspect.signature(method).parameters
        assert [*parameters][-4:] == ["durability", "timeout_s", "key", "expect_head"], method.__name__
        assert parameters["timeout_s"].default == 5.0


async def test_a_session_that_another_owner_took_says_so_to_everybody_until_it_is_asked_for_anew(service, session):
    await session.push("1", "")
    await service._store.acquire("user-42", create=False)
    for use in (session.push("2", ""), session.push("3", ""), session.stack(), session.get(1)):
        with pytest.raises(SessionFenced):
            await use
    again = await service.session("user-42")
    assert [frame.user_input for frame in await again.stack()] == ["1"]
    assert (await session.push("2", "")).id == 2


async def test_the_reference_of_a_session_answers_with_the_errors_of_the_package(service, session):
    class Nonsense(Call[None]):
        pass

    with pytest.raises(SessionCrashed):
        await session.ref.call(Poison())
    with pytest.raises(UnknownMessage, match="session 'user-42' takes no message of this class: it takes `Push`"):
        await session.ref.call(Nonsense())
    assert repr(session.ref) == "<ServerRef 'user-42' running>"
    assert (await session.ref.call(Push("1", ""))).id == 1
    assert statistics(session.ref).handled >= 1
    await service.delete("user-42")
    with pytest.raises(SessionDeleted):
        session.cast(Push("2", ""))


async def test_making_a_session_on_a_store_that_takes_nothing_is_refused_at_once_and_makes_none():
    class Degraded(MemoryStore):
        degraded = False

        def admit(self, level: str) -> None:
            if self.degraded:
                raise StoreDegraded("disk gone")
            super().admit(level)

    store = Degraded()
    async with SessionService.open(store) as service:
        session = await service.session("a", create=True)
        await session.push("1", "")
        store.degraded = True
        with pytest.raises(StoreDegraded):
            await service.session("b", create=True)
        assert len(await (await service.session("a", create=True)).stack()) == 1
        store.degraded = False
        assert [info.id async for info in service.sessions()] == ["a"]


async def test_a_cast_to_a_resting_session_brings_it_back(store):
    async with SessionService.open(store, idle_timeout_s=0.01) as service:
        session = await service.session("a", create=True)
        await until(lambda: service.health().live == 0)
        session.ref.cast(Push("1", ""))
        await session.flush("async")
        assert len(await session.stack()) == 1


async def test_a_service_whose_tasks_were_all_cancelled_by_a_stranger_says_so_when_it_is_closed(store):
    service = SessionService.open(store)
    await service.start()
    session = await service.session("a", create=True)
    for task in asyncio.all_tasks() - {asyncio.current_task()}:
        task.cancel()
    for _ in range(20):
        await asyncio.sleep(0)
    with pytest.raises(ServiceDown):
        await session.push("1", "")
    with pytest.raises(ServiceDown):
        await service.close()
    assert asyncio.all_tasks() == {asyncio.current_task()}


@pytest.mark.parametrize("no_id", [True, "1", 1.0, None])
async def test_what_is_no_frame_id_is_refused(session, no_id):
    await session.push("1", "")
    with pytest.raises(InvalidArgument, match="frame_id"):
        await session.get(no_id)


async def test_a_handle_on_a_branch_that_is_not_there_says_so_in_every_read(session):
    nowhere = session.on("nowhere")
    for read in (nowhere.branch, nowhere.head, nowhere.stack, nowhere.pending_calls, nowhere.instructions):
        with pytest.raises(BranchUnknown):
            await read()
