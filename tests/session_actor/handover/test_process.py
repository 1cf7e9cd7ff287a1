"""A service is handed over to another process on the same machine, which waits for the lock."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from pathlib import Path

import pytest

from session_actor import (
    HandedOver,
    MemoryStore,
    ServiceClosed,
    SessionService,
    telemetry,
)

from ..conftest import reopened
from .handing import inputs

CHILD = Path(__file__).parent / "child_generation.py"
HANDOVERS = 50


class Process:
    """One of the processes."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process

    @classmethod
    async def start(cls, folder: Path) -> Process:
        return cls(await asyncio.create_subprocess_exec(sys.executable, CHILD, folder, stdin=-1, stdout=-1))

    def tell(self, what: str, **more) -> None:
        self.process.stdin.write(json.dumps({"do": what, **more}).encode() + b"\n")

    async def answer(self) -> dict:
        line = await self.process.stdout.readline()
        assert line, "the process has ended"
        return json.loads(line)

    async def end(self) -> None:
        self.process.stdin.close()
        await self.process.wait()


async def test_fifty_handovers_between_processes_lose_and_double_nothing(folder):
    now, other = await asyncio.gather(Process.start(folder), Process.start(folder))
    answered: list[str] = []
    refused: set[str] = set()
    try:
        now.tell("open")
        await now.answer()
        for _ in range(HANDOVERS):
            other.tell("open")  # it waits for the lock from here on
            await asyncio.sleep(0.005)
            now.tell("hand")
            handed, opened = await asyncio.gather(now.answer(), other.answer())
            assert opened["at"] > handed["at"]
            answered += handed["answered"]
            now, other = other, now
            now.tell("again", refused=handed["refused"])
            refused.update(handed["refused"].values())
            await now.answer()
        now.tell("hand")
        answered += (await now.answer())["answered"]
    finally:
        await asyncio.gather(now.end(), other.end())

    assert len(refused) > HANDOVERS
    assert refused <= set(answered), "sent again, and acknowledged then"
    for number in range(5):
        async with reopened(folder, f"s{number}") as session:
            said = await inputs(session)
            assert len(set(said)) == len(said), "answered twice"
            assert {text for text in answered if text.startswith(f"s{number} ")} <= set(said), "lost"


async def test_what_was_sent_before_is_answered_and_what_comes_later_gets_handed_over(folder):
    service = SessionService.open(folder, durability="synced")
    await service.start()
    sessions = [await service.session(f"s{number}", create=True) for number in range(20)]
    waiting = [asyncio.create_task(session.push(str(number))) for session in sessions for number in range(3)]
    await asyncio.sleep(0)
    stack = await sessions[0].stack()
    await service.handover("process")

    assert [frame.id for frame in await asyncio.gather(*waiting)] == [1, 2, 3] * 20
    for late in (sessions[0].push("late"), service.session("s1"), service.session("new", create=True)):
        with pytest.raises(HandedOver, match=r"another process.*with a key= sending it again is safe"):
            await late
    assert len(stack) <= 3
    await service.close()
    with pytest.raises(ServiceClosed):
        await service.session("s1")
    async with reopened(folder, "s7") as session:
        assert await inputs(session) == ["0", "1", "2"]


async def test_a_long_log_is_cut_and_long_sessions_are_saved_while_they_are_still_served(folder):
    told: list = []
    detach = telemetry.attach(("session_actor", "handover"), lambda *event: told.append(event))
    async with SessionService.open(folder) as service:
        session = await service.session("a", create=True)
        short = await service.session("b", create=True)
        for number in range(150):
            await session.push(str(number), "x" * 4_000)
        await short.push("x")
        handing = asyncio.create_task(service.handover("process"))
        served = 0
        while not handing.done():
            try:
                await session.push("meanwhile")
            except HandedOver:
                break
            served += 1
            await asyncio.sleep(0)
        await handing
    detach()

    assert served
    (start, stop) = told
    assert (start[0][2], stop[0][2], stop[2]) == ("start", "stop", {"to": "process"})
    assert 0 < stop[1]["closed_ms"] < stop[1]["duration_ms"]
    async with reopened(folder, "a") as session:
        report = session.recovery
        assert report.snapshot_seq >= 151
        assert report.log_records <= served
        assert len(await inputs(session)) == 150 + served


async def test_a_handover_that_nobody_waits_for_any_more_goes_on_and_its_end_is_told(folder):
    told: list = []
    detach = telemetry.attach(("session_actor", "handover"), lambda *event: told.append(event))
    service = SessionService.open(folder)
    await service.start()
    session = await service.session("a", create=True)
    await session.push("x")
    handing = asyncio.create_task(service.handover("process"))
    while service._lifetime._closing is None:  # noqa: ASYNC110 - there is no event for it
        await asyncio.sleep(0)
    closing = service._lifetime._closing
    handing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await handing
    assert [name[-1] for name, *_ in told] == ["start"]
    await closing
    await asyncio.sleep(0)
    detach()

    assert [name[-1] for name, *_ in told] == ["start", "stop"]
    assert told[1][1]["sessions"] == 1
    assert 0 < told[1][1]["closed_ms"] < told[1][1]["duration_ms"]
    async with reopened(folder, "a") as session:
        assert await inputs(session) == ["x"]


async def test_a_handover_that_is_cancelled_before_it_has_effect_is_told_as_cancelled(folder):
    told: list = []
    detach = telemetry.attach(("session_actor", "handover"), lambda *event: told.append(event))
    async with SessionService.open(folder) as service:
        session = await service.session("a", create=True)
        await session.push("to be written first")
        handing = asyncio.create_task(service.handover("process"))
        await asyncio.sleep(0)
        assert service._lifetime._closing is None
        handing.cancel()
        with pytest.raises(asyncio.CancelledError):
            await handing
        assert [(name[-1], metadata.get("error")) for name, _, metadata in told] == [
            ("start", None),
            ("exception", "CancelledError"),
        ]
        assert (await session.push("and on")).id == 2
    detach()


async def test_a_memory_store_can_be_let_go_as_well():
    service = SessionService.open(MemoryStore())
    await service.start()
    session = await service.session("a", create=True)
    await service.handover("process")
    with pytest.raises(HandedOver):
        await session.push("x")
    with pytest.raises(HandedOver):
        await service.handover("process")
    await service.close()


OPENING = "import asyncio, sys, session_actor; asyncio.run(session_actor.SessionService.open(sys.argv[1]).start())"


async def test_a_second_process_is_told_what_to_do(folder):
    async with SessionService.open(folder):
        command = (sys.executable, "-c", OPENING, str(folder))
        second = await asyncio.create_subprocess_exec(*command, stderr=asyncio.subprocess.PIPE)
        _, said = await second.communicate()
    last = said.decode().splitlines()[-1]
    for part in ("StoreLocked", str(folder), f"process {os.getpid()}", "one process per store", "lock_timeout_s"):
        assert part in last
    assert "--workers" in last
