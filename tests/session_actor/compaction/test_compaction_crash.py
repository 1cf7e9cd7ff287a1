"""Whatever happens in the middle of a compaction, the old state is there, or the new one."""

from __future__ import annotations

import asyncio
import random
import signal
import sys
from pathlib import Path

import pytest

from session_actor import MemoryStore, PlanUsed, SessionService, StalePlan, SummaryRejected, validate_request
from session_actor.server import snapshots
from session_actor.server.cold import Shelf

from ..conftest import Poison
from .compacted import DIALECTS, GUESS, MODELS, compact, converse, go_on, planned

CHILD = Path(__file__).with_name("child_compacter.py")


async def killed(folder: Path, seed: int) -> list[list[str]]:
    """What a child said before it was killed, some time after its first or second plan."""
    chance = random.Random(seed)
    child = await asyncio.create_subprocess_exec(sys.executable, CHILD, folder, stdout=asyncio.subprocess.PIPE)
    assert child.stdout is not None
    plans, said = chance.randint(1, 2), list[list[str]]()
    while plans:
        line = await child.stdout.readline()
        assert line, "the child died by itself"
        said.append(line.decode().split())
        plans -= said[-1][0] == "planned"
    await asyncio.sleep(chance.random() * 0.03)
    child.send_signal(signal.SIGKILL)
    rest = await child.stdout.read()
    await child.wait()
    return said + [line.split() for line in rest.decode().split("\n")[:-1]]


@pytest.mark.parametrize("seed", range(3))
async def test_after_a_kill_there_is_the_old_state_or_the_new_one(tmp_path, seed):
    said = await killed(tmp_path / "store", seed)
    frames = [int(words[1]) for words in said if words[0] == "frame"]
    compactions = [(int(words[1]), int(words[2])) for words in said if words[0] == "compaction"]
    async with SessionService.open(tmp_path / "store", models=MODELS) as service:
        session = await service.session("user-42")
        state = session._cell.state
        answered = compactions[-1][0] if compactions else 0
        assert state.generation in {answered, answered + 1}
        assert {frame.id for frame in await session.stack()} >= set(frames)
        assert [(one.generation, one.covered_frame) for one in state.overlays][: len(compactions)] == compactions
        for dialect in DIALECTS:
            request = await session.build_request(dialect)
            assert request.generation == state.generation
            assert validate_request(dialect, request) == []
        await go_on(session, 12)
        assert (await compact(session)).generation == state.generation


async def test_a_crash_of_the_session_loses_no_compaction_and_spares_a_plan():
    async with SessionService.open(MemoryStore(), models=MODELS) as service:
        session = await service.session("user-42", create=True)
        await converse(session)
        await compact(session)
        await go_on(session, 8)
        before = await session.build_request("anthropic")
        plan = await planned(session)
        session.cast(Poison("x"))
        await session.stack(timeout_s=None)
        assert await session.build_request("anthropic") == before
        assert (await session.commit_compaction(plan, plan.extractive())).generation == 2


async def test_after_a_reopening_requests_and_plans_are_the_same(tmp_path):
    async with SessionService.open(tmp_path / "store", models=MODELS) as service:
        session = await service.session("user-42", create=True)
        await converse(session, 40)
        await compact(session)
        await go_on(session, 10)
        await session.add_user("And now?")
        before = {dialect: await session.build_request(dialect) for dialect in DIALECTS}
        plan = await planned(session)
    async with SessionService.open(tmp_path / "store", models=MODELS) as service:
        session = await service.session("user-42")
        assert {dialect: await session.build_request(dialect) for dialect in DIALECTS} == before
        again = await planned(session)
        assert (again.hash, again.prompts, again.covered_frame) == (plan.hash, plan.prompts, plan.covered_frame)
        compaction = await session.commit_compaction(plan, plan.extractive())
        assert compaction.generation == 2
        with pytest.raises(PlanUsed):  # an equal plan is the same one
            await session.commit_compaction(again, plan.extractive())


async def test_nothing_blocks_the_loop_to_read_what_is_cold(tmp_path, monkeypatch):
    monkeypatch.setattr(snapshots, "RESTING_RECORDS", 1)
    async with SessionService.open(tmp_path / "store", models=MODELS) as service:
        session = await service.session("user-42", create=True)
        await converse(session, 40)
        await compact(session)
        await go_on(session, 40)
        await session.flush()

    def none_cold(self, table, ids) -> None:
        if any(map(table.is_cold, ids)):
            raise AssertionError("a cold frame is read on the loop")

    monkeypatch.setattr(Shelf, "fill", none_cold)
    async with SessionService.open(tmp_path / "store", models=MODELS) as service:
        session = await service.session("user-42")
        assert session._cell.state.table.shelf is not None
        assert (await compact(session)).generation == 2
        await session.build_request("anthropic")
    async with SessionService.open(tmp_path / "store", models=MODELS) as service:
        session = await service.session("user-42")
        await session.retract(GUESS)
        assert set(await session.contaminated()) == {"main"}


async def test_pushes_during_a_compaction_are_serial_and_none_is_lost(tmp_path):
    async with SessionService.open(tmp_path / "store", models=MODELS) as service:
        session = await service.session("user-42", create=True)
        await converse(session)
        begun = await session.head()

        async def push_some(number: int) -> int:
            await asyncio.sleep(0.001 * (number % 7))
            return (await session.push(f"meanwhile {number}", durability="written")).id

        pushes = [asyncio.create_task(push_some(number)) for number in range(100)]
        plan = await planned(session)
        compaction = await session.commit_compaction(plan, plan.extractive())
        ids = await asyncio.gather(*pushes)
        assert sorted(ids) == list(range(begun + 1, begun + 101))
    async with SessionService.open(tmp_path / "store", models=MODELS) as service:
        session = await service.session("user-42")
        frames = (await (await session.stack()).load()).frames()
        assert [frame.id for frame in frames] == list(range(1, begun + 101))
        request = await session.build_request("anthropic")
        assert request.generation == compaction.generation == 1


async def test_a_failed_a_late_or_a_stale_summary_changes_no_byte_of_the_log(tmp_path):
    def log() -> bytes:
        return b"".join(path.read_bytes() for path in sorted((tmp_path / "store" / "log").iterdir()))

    async with SessionService.open(tmp_path / "store", models=MODELS) as service:
        session = await service.session("user-42", create=True)
        await converse(session)
        late = await planned(session)
        await go_on(session, 6)
        await compact(session)
        stale = await planned(session) if await session.prepare_compaction() else late
        await session.flush("synced")
        before = log()
        for plan, text in ((late, late.extractive()), (stale, "No."), (stale, ""), (late, "I cannot.")):
            with pytest.raises((StalePlan, SummaryRejected)):
                await session.commit_compaction(plan, text)
        await session.flush("synced")
        assert log() == before
