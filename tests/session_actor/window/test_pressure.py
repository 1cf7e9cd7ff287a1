"""Crossings from one pressure to another are told as events, and to nobody when nobody listens."""

from __future__ import annotations

import threading

import pytest

from session_actor import MemoryStore, SessionService, telemetry
from session_actor.server import snapshots
from session_actor.server.cold import Shelf
from session_actor.window import pressure

from .asked import MODELS


@pytest.fixture
async def small():
    """A session of a service with a small model."""
    async with SessionService.open(MemoryStore(), models=MODELS) as service:
        session = await service.session("user-42", create=True)
        await session.configure(model="small")
        yield session


@pytest.fixture
def told():
    """The events of the window, as (from, to, branch)."""
    events: list[tuple[object, ...]] = []

    def note(name, measurements, metadata) -> None:
        assert name == ("session_actor", "window", "pressure")
        assert 0 < measurements["tokens"] <= measurements["upper"]
        assert measurements["allowance"] > 0
        assert metadata["session"] == "user-42"
        assert metadata["model"] == "small"
        events.append((metadata["from"], metadata["to"], metadata["branch"]))

    detach = telemetry.attach(("session_actor", "window"), note)
    yield events
    detach()


async def test_each_crossing_is_told_once(small, told):
    await small.add_user("Hello")
    await small.build_request("anthropic")
    assert told == []
    for _ in range(22):
        await small.add_user("why " * 1_000)
        await small.budget()
    assert told == [("green", "yellow", "main"), ("yellow", "red", "main")]
    await small.pop(10)
    assert told[2:] == [("red", "green", "main")]


async def test_once_asked_for_changes_tell_of_themselves(small, told):
    await small.add_user("Hello")
    await small.build_request("anthropic")
    for _ in range(19):
        await small.add_user("why " * 1_000)
    assert told == [("green", "yellow", "main")]


async def test_a_trim_goes_back_to_green(small, told):
    for _ in range(24):
        await small.push("why " * 900, "thus")
    await small.build_request("anthropic")
    assert told == []
    await small.push("why " * 7_000, "thus")
    assert told[-1][1] in {"yellow", "red"}
    await small.add_user("And?")
    await small.build_request("anthropic")
    assert told[-1][1] == "green"


async def test_a_branch_has_a_pressure_of_its_own(small, told):
    await small.add_user("Hello")
    await small.branch_off("idea")
    idea = small.on("idea")
    await idea.build_request("anthropic")
    for _ in range(19):
        await idea.add_user("why " * 1_000)
    assert told == [("green", "yellow", "idea")]
    assert (await small.budget()).pressure == "green"


async def test_nothing_is_reckoned_for_nobody(small, monkeypatch):
    await small.add_user("Hello")
    await small.build_request("anthropic")
    monkeypatch.setattr(pressure, "unfitted", None)
    await small.add_user("why " * 20_000)
    assert len(await small.stack()) == 3


async def test_a_watcher_that_fails_is_the_session_s_no_trouble(small):
    def fails(name, measurements, metadata) -> None:
        raise RuntimeError

    detach = telemetry.attach(("session_actor", "window"), fails)
    await small.add_user("Hello")
    await small.build_request("anthropic")
    await small.add_user("why " * 19_000)
    assert (await small.budget()).pressure == "yellow"
    assert telemetry.attached == ()
    detach()


async def test_what_is_on_the_disk_is_not_read_to_tell_a_crossing(tmp_path, told, loop_reads, monkeypatch):
    """A session that rested: a branch is asked for, and for changes of another the loop reads nothing."""
    monkeypatch.setattr(snapshots, "RESTING_RECORDS", 1)
    path = tmp_path / "conversations"
    async with SessionService.open(path, models=MODELS) as service:
        session = await service.session("user-42", create=True)
        await session.configure(model="small")
        for number in range(80):
            await session.add_user(f"Question {number} " + "why " * 60)
            await session.add_assistant("Because.")
        await session.build_request("anthropic")
        await session.fork(3, branch="idea")
        await session.add_user("Other")
    async with SessionService.open(path, models=MODELS) as service:
        session = await service.session("user-42")
        await session.build_request("anthropic")
        await session.goto("main")
        await session.add_user("More")
        assert session._cell.state.table.is_cold(50)
        assert loop_reads == []
        told.clear()
        await session.budget()
        for _ in range(25):
            await session.add_user("why " * 1_000)
        assert told, "once it is in memory, changes tell again"
        assert loop_reads == []


@pytest.fixture
def loop_reads(monkeypatch):
    """What the thread of the loop reads from the disk, as the ids of frames."""
    found: list[object] = []
    real, loop = Shelf.fill, threading.get_ident()

    def fill(shelf, table, ids) -> None:
        wanted = [frame_id for frame_id in ids if table.is_cold(frame_id)]
        if wanted and threading.get_ident() == loop:
            found.append(wanted)
        real(shelf, table, ids)

    monkeypatch.setattr(Shelf, "fill", fill)
    return found
