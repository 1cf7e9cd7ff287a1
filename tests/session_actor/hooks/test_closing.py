"""Closing: `passivated` alone, within its time, and what is pending stays so. And sessions that nobody uses."""

from __future__ import annotations

import asyncio
import signal
import sys
import time
from pathlib import Path

import pytest

from session_actor import InvalidArgument, MemoryStore
from session_actor.state.times import now_us
from session_actor.telemetry import attach

from .conftest import idle, opened, turns, until


async def test_a_hook_that_hangs_does_not_keep_the_service_from_closing_and_stays_pending(calls, store):
    calls.gates.update(bill=asyncio.Event(), stuck=asyncio.Event())
    hooks = calls.must("bill", timeout_s=3600), calls.hook("stuck", "passivated", timeout_s=3600)
    async with opened(store, *hooks, close_timeout_s=0.3) as service:
        await service.session("user-43", create=True)
        await service.session("user-42", create=True)
        await service.end("user-42")
        await until(lambda: calls.names)
    assert sorted(calls.names) == ["bill", "stuck"]
    assert asyncio.all_tasks() == {asyncio.current_task()}
    calls.gates["bill"].set()
    async with opened(store, calls.must("bill")) as service:
        await idle(service)
    first, second = (ctx for ctx in calls.contexts if ctx.phase == "ended")
    assert (first.key, first.attempt, second.attempt) == (second.key, 1, 1)  # a try cut short by closing is none


async def test_a_hook_that_is_nearly_done_is_waited_for(calls, store):
    async with opened(store, calls.must("bill")) as service:
        await service.session("user-42", create=True)
        calls.gates["bill"] = asyncio.Event()
        await service.end("user-42")
        await until(lambda: calls.names)
        asyncio.get_running_loop().call_later(0.02, calls.gates["bill"].set)
    async with opened(store, calls.must("bill")) as service:
        assert service.hooks.pending() == []
    assert calls.names == ["bill"]


async def test_what_has_not_begun_when_the_service_closes_does_not(calls, store):
    calls.gates["bill"] = asyncio.Event()
    async with opened(store, calls.must("bill", priority=90), calls.must("learn")) as service:
        await service.session("user-42", create=True)
        await service.end("user-42")
        await until(lambda: calls.names)
        asyncio.get_running_loop().call_later(0.02, calls.gates["bill"].set)
    assert calls.names == ["bill"]
    async with opened(store, calls.must("bill"), calls.must("learn")) as service:
        await idle(service)
    assert calls.names == ["bill", "learn"]


async def test_a_service_that_is_opened_and_closed_again_and_again_runs_a_hook_once(calls, store):
    async with opened(store, calls.must("bill")) as service:
        for number in range(5):
            await service.session(f"user-{number}", create=True)
            await service.end(f"user-{number}")
    for _ in range(5):
        async with opened(store, calls.must("bill")) as service:
            await turns(3)
    async with opened(store, calls.must("bill")) as service:
        await idle(service)
    assert sorted(ctx.session_id for ctx in calls.contexts) == [f"user-{number}" for number in range(5)]


@pytest.mark.parametrize("stop", [signal.SIGINT, signal.SIGTERM])
async def test_a_process_that_is_told_to_stop_passivates_and_leaves_the_rest_pending(calls, tmp_path, stop):
    command = [sys.executable, str(Path(__file__).with_name("child_stopped.py")), str(tmp_path / "store")]
    child = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
    try:
        assert await child.stdout.readline() == b"ended over\n"
        child.send_signal(stop)
        told = await child.stdout.read()
        assert await child.wait() == 0
    finally:
        if child.returncode is None:
            child.kill()
            await child.wait()
    assert told == b"passivated open\n" + (b"interrupted\n" if stop == signal.SIGINT else b"")
    async with opened(tmp_path / "store", calls.must("bill")) as service:
        assert await (await service.session("open")).ended() is None
        await idle(service)
    assert [(ctx.session_id, ctx.attempt) for ctx in calls.contexts] == [("over", 1)]


async def test_sessions_that_nobody_used_for_long_are_ended(calls, store):
    async with opened(store, calls.must("bill"), calls.hook("on", "activated"), calls.hook("off", "passivated")) as old:
        for session_id in ("idle", "ended", "empty"):
            session = await old.session(session_id, create=True)
        await (await old.session("idle")).push("hello", "hi")
        await old.end("ended")
        await idle(old)
    calls.names.clear()
    async with opened(store, calls.must("bill"), calls.hook("on", "activated"), calls.hook("off", "passivated")) as now:
        assert await now.end_idle(3600) == []
        assert now.health().live == 0
        assert calls.names == []
        busy = await now.session("busy", create=True)
        async with busy.exchange():
            assert await now.end_idle(0, reason="night") == ["empty", "idle"]
        session = await now.session("idle")
        assert await session.ended() == "night"
        assert await busy.ended() is None
        await idle(now)
    assert sorted(name for name in calls.names if name != "on") == ["bill", "bill", "off"]
    with pytest.raises(InvalidArgument):
        await now.end_idle(-1)


async def test_a_session_that_has_ended_is_not_loaded_to_be_looked_at(store):
    async with opened(store) as service:
        for session_id in ("over", "open"):
            await (await service.session(session_id, create=True)).push("hello", "hi")
        await service.end("over")
    assert await loaded_to_end_idle(store, ["open"]) == ["open"]


async def test_a_session_that_was_pruned_after_its_end_is_not_loaded_to_be_looked_at(tmp_path):
    async with opened(tmp_path / "store", retention="prune", max_live=1) as service:
        session = await service.session("over", create=True)
        await session.push("hello", "hi")
        await session.pop()
        await service.end("over")
        await service.session("open", create=True)
        await until(lambda: service.health().live == 1)
        assert [record.kind for record in await service._store.newest("over", 2)] == ["session_ended", "pruned"]
    assert await loaded_to_end_idle(tmp_path / "store", ["open"]) == ["open"]


async def loaded_to_end_idle(store, ended: list[str]) -> list[str]:
    """The sessions that are loaded when the idle ones are ended, twice."""
    loaded: list[str] = []
    begun = ("session_actor", "session", "recovery", "start")
    detach = attach(begun, lambda name, measured, about: loaded.append(about["session"]))
    try:
        async with opened(store) as service:
            assert await service.end_idle(0) == ended
            assert await service.end_idle(0) == []
    finally:
        detach()
    return loaded


async def test_a_store_that_cannot_tell_has_its_sessions_loaded_to_be_looked_at():
    class Older(MemoryStore):
        newest = None

    async with opened(Older()) as service:
        for session_id in ("over", "open"):
            await (await service.session(session_id, create=True)).push("hello", "hi")
        await service.end("over")
        assert await service.end_idle(0) == ["open"]
        assert await service.end_idle(0) == []


async def test_a_loaded_session_that_was_used_lately_is_not_idle(store, monkeypatch):
    async with opened(store) as service:
        session = await service.session("user-42", create=True)
        await session.push("hello", "hi")
        monkeypatch.setattr(
            "session_actor.service.endings.now_us", lambda: now_us() + 3_600_000_000
        )  # its frame is old then
        await session.goto(1)
        assert await service.end_idle(1800) == []
        monkeypatch.setattr("session_actor.service.endings.perf_counter", lambda: time.perf_counter() + 3600)
        assert await service.end_idle(1800) == ["user-42"]


async def test_the_book_does_not_grow_for_ever(calls, store, monkeypatch):
    monkeypatch.setattr("session_actor.hooks.keeper.EVERY_RECORDS", 20)
    async with opened(store, calls.must("bill"), calls.must("learn")) as service:
        keeper = service._people().hooks.keeper
        for number in range(20):
            await service.session(f"user-{number}", create=True)
            await service.end(f"user-{number}")
        await idle(service)
        assert keeper._saved_seq > 60
        calls.gates["bill"] = asyncio.Event()
        for number in range(20, 25):
            await service.session(f"user-{number}", create=True)
            await service.end(f"user-{number}")
        calls.gates["bill"].set()
        before = len(calls.names)
    async with opened(store, calls.must("bill"), calls.must("learn")) as service:
        assert before >= 40
        await idle(service)
    done = sorted((ctx.session_id, name) for ctx, name in zip(calls.contexts, calls.names, strict=True))
    assert done == sorted((f"user-{number}", name) for number in range(25) for name in ("bill", "learn"))


async def test_a_book_that_cannot_be_read_keeps_no_session_from_work_but_from_ending(calls, tmp_path):
    from session_actor import StoreCorrupt

    calls.gates["bill"] = asyncio.Event()
    async with opened(tmp_path / "store", calls.must("bill"), close_timeout_s=0.1) as service:
        await service.session("user-42", create=True)
        await service.end("user-42")
        await service.session("user-43", create=True)
    (journal,) = (tmp_path / "store").glob("journals/*/session_actor*.ndjson")
    data = bytearray(journal.read_bytes())
    data[len(data) // 2] ^= 1
    journal.write_bytes(data)
    async with opened(tmp_path / "store", calls.must("bill")) as service:
        session = await service.session("user-43")
        await session.push("hello", "hi")
        assert str(journal) in service.health().hooks.trouble
        for refused in (service.end("user-43"), service.delete("user-43")):
            with pytest.raises(StoreCorrupt):
                await refused
        with pytest.raises(StoreCorrupt):
            service.hooks.pending()
        await session.push("and", "on")
