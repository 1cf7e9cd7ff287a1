"""Pruning: what nothing holds is given up, what anything holds stays, and stacks that were taken keep their frames."""

from __future__ import annotations

import asyncio
import contextlib

import pytest

from session_actor import (
    FrameUnknown,
    InvalidArgument,
    MemoryStore,
    NotDurable,
    PruneReport,
    SessionDeleted,
    SessionService,
    StoreError,
)
from session_actor.persistence import FileStore
from session_actor.persistence import errors as persistence
from session_actor.server import snapshots

from .conftest import reopened
from .test_passivation import until


@pytest.fixture(autouse=True)
def often(monkeypatch):
    """Every session that rests has a snapshot."""
    monkeypatch.setattr(snapshots, "RESTING_RECORDS", 1)


@pytest.fixture(params=["memory", "file"])
def store(request, tmp_path):
    """Either store."""
    return MemoryStore() if request.param == "memory" else tmp_path / "conversations"


async def rested(service: SessionService, session) -> None:
    """Unload the session."""
    ref = session.ref
    await service.session("other", create=True)
    await until(lambda: ref.phase == "ended")


async def known(session, last: int) -> list[int]:
    """The ids that can be got."""
    found = []
    for frame_id in range(1, last + 1):
        with contextlib.suppress(FrameUnknown):
            found.append((await session.get(frame_id)).id)
    return found


async def test_what_a_remembered_key_is_answered_with_stays(store):
    async with SessionService.open(store) as service:
        session = await service.session("user-42", create=True)
        for number in range(1, 101):
            await session.push(f"q{number}", f"a{number}", key="k" if number == 70 else None)
        await session.pop(50)

        assert (await session.prune()).frames == 30
        assert await known(session, 100) == list(range(1, 71))
        assert (await session.push("q70", "a70", key="k")).id == 70


async def test_popped_frames_are_known_until_they_are_pruned(store):
    async with SessionService.open(store) as service:
        session = await service.session("user-42", create=True)
        for number in range(1, 101):
            await session.push(f"q{number}", f"a{number}")
        await session.branch_off("branch", 53)
        await session.checkpoint("point", 57)
        await session.pop(50)
        assert await known(session, 100) == list(range(1, 101))

        assert (await session.prune()).frames == 43
        assert await known(session, 100) == list(range(1, 58))
        with pytest.raises(FrameUnknown):
            await session.goto(58)
        assert [frame.id for frame in await session.stack()] == list(range(1, 51))
        assert [frame.id for frame in await session.on("branch").stack()] == list(range(1, 54))
        assert (await session.goto("point")).id == 57
        assert (await session.push("on", "")).id == 101


async def test_pruning_again_gives_up_what_came_since(store):
    async with SessionService.open(store) as service:
        session = await service.session("user-42", create=True)
        for _ in range(3):
            await session.push("q", "a")
            await session.push("q", "a")
            await session.pop()
        assert (await session.prune()).frames == 3
        assert (await session.prune()) == PruneReport()
        await session.pop()
        assert (await session.prune()).frames == 1


async def test_a_pruned_session_comes_back_pruned(store):
    async with SessionService.open(store, max_live=1) as service:
        session = await service.session("user-42", create=True)
        for number in range(1, 101):
            await session.push(f"q{number}", f"a{number}")
        await session.pop(50)
        frames = list(await session.stack())
        await rested(service, session)

        assert (await session.prune()).frames == 50
        await rested(service, session)
        assert await known(session, 100) == list(range(1, 51))
        assert list(await session.stack()) == frames


async def test_stacks_that_were_taken_keep_their_frames(store):
    async with SessionService.open(store, max_live=1) as service:
        session = await service.session("user-42", create=True)
        frames = [await session.push(f"q{number}", f"a{number}") for number in range(1, 101)]
        warm = await session.stack()
        await rested(service, session)
        cold = await session.stack()
        await rested(service, session)
        await session.pop(50)
        del session
        session = await service.session("user-42")

        assert (await session.prune()).frames == 50
        assert list(warm) == list(cold) == frames
        assert await known(session, 100) == list(range(1, 51))


async def test_nothing_is_read_for_stacks_that_nobody_has(store):
    async with SessionService.open(store, max_live=1) as service:
        session = await service.session("user-42", create=True)
        for number in range(1, 1_001):
            await session.push(f"q{number}", f"a{number}")
        await session.pop(500)
        await rested(service, session)
        await session.ref.started()
        asked: list[int] = []
        archive = session._cell.shelf()._archive

        class Watched:
            async def fetch(self, ids):
                asked.extend(ids)
                return await archive.fetch(ids)

            def read(self, ids):
                raise AssertionError("it read on the loop")

        session._cell.shelf()._archive = Watched()
        assert (await session.prune()).frames == 500
        assert len(asked) < 100


async def test_changes_go_on_meanwhile_and_what_they_hold_stays(store):
    async with SessionService.open(store, max_live=1) as service:
        session = await service.session("user-42", create=True)
        for number in range(1, 101):
            await session.push(f"q{number}", f"a{number}")
        await session.pop(50)
        await rested(service, session)
        pruning = asyncio.create_task(session.prune())
        await session.goto(70)
        pushed = await session.push("on", "")

        assert (await pruning).frames in {30, 29}
        assert await known(session, 101) == [*range(1, 71), pushed.id]


async def test_a_session_in_use_by_a_prune_is_not_unloaded(store):
    async with SessionService.open(store, idle_timeout_s=0.01) as service:
        session = await service.session("user-42", create=True)
        await session.push("q", "a")
        session._cell.busy += 1
        await asyncio.sleep(0.1)
        assert service.health().live == 1
        session._cell.busy -= 1
        await until(lambda: service.health().live == 0)


async def test_retention_prunes_a_session_when_it_rests(store):
    async with SessionService.open(store, max_live=1, retention="prune") as service:
        session = await service.session("user-42", create=True)
        for number in range(1, 11):
            await session.push(f"q{number}", f"a{number}")
        await session.pop(5)
        assert await known(session, 10) == list(range(1, 11))
        await rested(service, session)
        assert await known(session, 10) == list(range(1, 6))


async def test_retention_all_keeps_everything(store):
    async with SessionService.open(store, max_live=1) as service:
        session = await service.session("user-42", create=True)
        await session.push("q", "a")
        await session.pop()
        await rested(service, session)
        assert (await session.get(1)).user_input == "q"


def test_another_retention_is_refused():
    for wrong in ("none", None, 5):
        with pytest.raises(InvalidArgument, match="retention"):
            SessionService.open(MemoryStore(), retention=wrong)


async def test_an_ended_session_can_be_pruned(store):
    async with SessionService.open(store) as service:
        session = await service.session("user-42", create=True)
        await session.push("q", "a")
        await session.pop()
        await service.end("user-42")
        assert (await session.prune()).frames == 1


async def test_a_disk_that_refuses_is_told_and_the_next_prune_does_the_rest():
    class Refusing(MemoryStore):
        refuses = False

        async def saved(self, lease, seq):
            if self.refuses:
                raise persistence.NotDurable(seq, "synced", "no space")
            await super().saved(lease, seq)

    store = Refusing()
    async with SessionService.open(store) as service:
        session = await service.session("user-42", create=True)
        await session.push("q", "a")
        await session.pop()
        store.refuses = True
        with pytest.raises(NotDurable):
            await session.prune()
        store.refuses = False
        report = await session.prune()
        assert report.size_bytes > 0
        with pytest.raises(FrameUnknown):
            await session.get(1)


async def test_a_pruned_session_is_whole_after_a_restart_of_the_service(folder):
    async with SessionService.open(folder) as service:
        session = await service.session("user-42", create=True)
        for number in range(1, 101):
            await session.push(f"q{number}", f"a{number}")
        await session.pop(50)
        frames = list(await session.stack())
        await session.prune()
    async with reopened(folder) as session:
        assert list(await session.stack()) == frames
        with pytest.raises(FrameUnknown):
            await session.get(51)


@pytest.mark.parametrize("met", [OSError(5, "Input/output error"), persistence.JournalCorrupt("/x", 9, 3)])
async def test_a_store_that_cannot_prune_is_told_by_an_error_of_the_package(met):
    class Refusing(MemoryStore):
        async def prune(self, lease, dropped):
            raise met

    async with SessionService.open(Refusing()) as service:
        session = await service.session("user-42", create=True)
        await session.push("q", "a")
        await session.pop()
        with pytest.raises(StoreError):
            await session.prune()
        assert (await session.push("on", "")).id == 2


async def test_a_session_that_is_deleted_meanwhile_is_deleted():
    class Slow(MemoryStore):
        async def saved(self, lease, seq):
            await deleting
            await super().saved(lease, seq)

    async with SessionService.open(Slow()) as service:
        session = await service.session("user-42", create=True)
        await session.push("q", "a")
        deleting = asyncio.create_task(service.delete("user-42"))
        with pytest.raises(SessionDeleted):
            await session.prune()


async def test_files_of_frames_that_were_given_up_in_the_log_are_dropped_when_the_session_rests_again(folder):
    """Their records came into the journals after the session was pruned."""

    def opened() -> SessionService:
        return SessionService.open(FileStore(folder, journal_bytes=2_000), max_live=1, retention="prune")

    def popped() -> int:
        return sum(path.read_bytes().count(b"POPPED") for path in (folder / "journals").glob("*/*"))

    async with opened() as service:
        session = await service.session("user-42", create=True)
        for number in range(200):
            await session.push(f"POPPED {number}", "x" * 100)
        await session.pop(200)
        await session.push("kept", "")
        await rested(service, session)
    assert popped() == 200
    async with opened() as service:
        session = await service.session("user-42")
        await session.push("on", "")
        await rested(service, session)
        assert popped() < 20
        assert [frame.user_input for frame in await session.stack()] == ["kept", "on"]


async def test_the_report_tells_how_many_frames_only_keys_hold(store):
    async with SessionService.open(store) as service:
        session = await service.session("user-42", create=True)
        for number in range(10):
            await session.push(f"q{number}", "", key=f"k{number}")
        await session.pop(4)
        report = await session.prune()
        assert (report.frames, report.held_by_keys) == (0, 4)
        assert (await session.get(10)).user_input == "q9"
        await session.checkpoint("here", 8)
        assert (await session.prune()).held_by_keys == 2
