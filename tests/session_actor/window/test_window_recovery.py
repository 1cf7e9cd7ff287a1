"""A recovered session asks byte for byte what it asked before."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from pathlib import Path

import pytest

from session_actor import MemoryStore, SessionEnded, SessionService, Tool, ToolCall, validate_request
from session_actor.commands import (
    AddAssistant,
    AddToolResult,
    AddUser,
    BuildRequest,
    Checkpoint,
    Configure,
    Fork,
    Goto,
    HoldCall,
    NoteArtifact,
    Pop,
)
from session_actor.requests.canonical import canonical
from session_actor.server.cold import Shelf
from session_actor.server.snapshots import snapshot_of, state_from
from session_actor.state.decide import decide

from ..live import Archive, prune
from .asked import DIALECTS, MODELS, TOOLS, messages_of, same, settled, shown
from .test_window_limits import grown, step

CHILD = Path(__file__).with_name("child_asker.py")


def test_a_session_killed_in_the_middle_of_parallel_calls_asks_the_same_and_goes_on(tmp_path):
    folder = tmp_path / "conversations"
    ran = subprocess.run([sys.executable, str(CHILD), str(folder)], capture_output=True, text=True, check=False)
    assert ran.returncode == -9, ran.stderr
    before = json.loads(ran.stdout)

    async def after() -> None:
        async with SessionService.open(folder) as service:
            session = await service.session("user-42")
            assert [call.id for call in await session.pending_calls()] == ["call_0", "call_2"]
            for dialect in DIALECTS:
                request = await session.build_request(dialect)
                assert canonical(request).hex() == before[dialect]
                assert validate_request(dialect, request) == []
            await session.add_tool_result("call_0", "a.py")
            await session.add_tool_result("call_2", "c.py")
            request = await session.build_request("openai_chat")
            assert request.pending == ()
            assert all(name in shown(request) for name in ("a.py", "b.py", "c.py"))

    asyncio.run(after())


@pytest.mark.parametrize("snapshot", [True, False])
def test_after_trims_refusals_and_readings_every_state_asks_the_same(live, dialect, snapshot):
    grown(live, dialect, 2)
    if snapshot:
        live.save()
    live.do(NoteArtifact("a.py"))
    step(live, 1, "x " * 3_000)
    grown(live, dialect, 3)
    live.do(AddUser("And?"))
    request = live.ask(dialect)
    assert same(live.again(dialect, live.recovered() if snapshot else None), request)


def test_a_state_whose_frames_are_all_on_the_disk_asks_the_same(live, dialect):
    grown(live, dialect, 2)
    live.do(AddUser("And?"))
    request = live.ask(dialect)
    archive = Archive(live.records)
    state = state_from(snapshot_of(live.state), live.state.seq, Shelf(live.state.session, archive))
    assert same(live.again(dialect, state), request)
    read = {frame_id for ids in archive.reads for frame_id in ids}
    assert 2 not in read, "what is trimmed is not needed"


async def asked(service: SessionService, dialect: str, session_id: str = "user-42") -> bytes:
    session = await service.session(session_id)
    return canonical(await session.build_request(dialect))


async def converse(service: SessionService, turns: int) -> None:
    session = await service.session("user-42", create=True)
    await session.configure(system="Be brief.", tools=TOOLS, model="small")
    for number in range(turns):
        await session.add_user(f"question {number} " + "why " * 300)
        if number % 5 == 0:
            await session.build_request("anthropic")
        await session.add_assistant("", tool_calls=[ToolCall(f"c{number}", "ls")])
        await session.add_tool_result(f"c{number}", "thus " * 300)
        await session.add_assistant("so")
    await session.add_user("And?")


async def test_a_reopened_store_asks_the_same(folder, dialect):
    async with SessionService.open(folder, models=MODELS) as service:
        await converse(service, 60)
        before = await asked(service, dialect)
    async with SessionService.open(folder, models=MODELS) as service:
        session = await service.session("user-42")
        assert (await session.budget()).used > 1_000
        assert await asked(service, dialect) == before
        assert session._cell.state.marks


async def test_nothing_blocks_the_loop_to_read_what_is_cold(folder, monkeypatch):
    async with SessionService.open(folder, models=MODELS) as service:
        await converse(service, 60)
    async with SessionService.open(folder, models=MODELS) as service:
        session = await service.session("user-42")
        assert session._cell.state.table.shelf is not None

        def blocks(self, table, ids) -> None:
            raise AssertionError("a cold frame is read on the loop")

        def none_cold(self, table, ids) -> None:
            if any(map(table.is_cold, ids)):
                blocks(self, table, ids)

        monkeypatch.setattr(Shelf, "fill", none_cold)
        await session.budget()
        await session.build_request("gemini")
        await session.add_user("more")
        await session.build_request("gemini")
        await session.build_request("anthropic", model="claude-sonnet-4-5")


async def test_a_command_that_is_sent_directly_reads_what_is_cold(folder):
    async with SessionService.open(folder, models=MODELS) as service:
        await converse(service, 60)
        before = await asked(service, "gemini")
    async with SessionService.open(folder, models=MODELS) as service:
        session = await service.session("user-42")
        assert canonical(await session.ref.call(BuildRequest("gemini"))) == before


@pytest.mark.parametrize("level", ["written", "synced"])
async def test_what_a_request_shows_has_reached_its_level_when_it_is_given_out(folder, level):
    async with SessionService.open(folder, models=MODELS) as service:
        session = await service.session("user-42", create=True)
        await session.add_user("Hello")
        request = await session.build_request("anthropic", model="small", durability=level)
        assert session.durable_seq[level] >= request.seq


async def test_giving_up_the_wait_for_a_request_leaves_its_record(folder):
    async with SessionService.open(folder, models=MODELS) as service:
        session = await service.session("user-42", create=True)
        await session.add_user("Hello")
        asking = asyncio.create_task(session.build_request("anthropic", model="small", durability="synced", key="k"))
        await asyncio.sleep(0)
        asking.cancel()
        await asyncio.gather(asking, return_exceptions=True)
        assert list(session._cell.state.requests) == [3]
        again = await session.build_request("anthropic", model="small", key="k")
        assert again.seq == 3


async def test_an_ended_session_gives_out_no_request_but_tells_its_budget(folder):
    async with SessionService.open(folder, models=MODELS) as service:
        session = await service.session("user-42", create=True)
        await session.configure(model="small")
        await session.add_user("Hello")
        await service.end("user-42")
        with pytest.raises(SessionEnded):
            await session.build_request("anthropic")
        assert (await session.budget()).used > 0


async def test_an_approval_survives_a_redeploy_and_another_model(folder):
    tools = [Tool("rm", "Delete.", {"type": "object"})]
    async with SessionService.open(folder) as service:
        session = await service.session("user-42", create=True)
        await session.configure(tools=tools, model="claude-sonnet-4-5")
        await session.add_user("Delete it.")
        await session.add_assistant("", tool_calls=[ToolCall("toolu_1", "rm", '{"path": "a"}')])
        await session.hold_call("toolu_1")
        assert "approval" in shown(await session.build_request("anthropic"))
    async with SessionService.open(folder) as service:
        session = await service.session("user-42")
        await session.configure(model="gpt-5")
        await session.add_user("Meanwhile: what time is it?")
        request = await session.build_request("openai_responses")
        assert validate_request("openai_responses", request) == []
        assert [call.held for call in request.pending] == ["approval"]
        await session.add_assistant("Noon.")
    async with SessionService.open(folder) as service:
        session = await service.session("user-42")
        (call,) = await session.pending_calls()
        await session.add_tool_result(call.ref, "deleted")
        for dialect in DIALECTS:
            request = await session.build_request(dialect)
            assert validate_request(dialect, request) == []
            assert "deleted" in shown(request)
            assert request.pending == ()


async def test_a_copy_of_a_session_keeps_its_trims_and_readings():
    async with SessionService.open(MemoryStore(), models=MODELS) as service:
        await converse(service, 40)
        session = await service.session("user-42")
        await session.checkpoint("here")
        before = await asked(service, "anthropic")
        await service.fork("user-42", "whole")
        await service.fork("user-42", "path", "here")
        marks = session._cell.state.marks
        assert marks
        assert await asked(service, "anthropic", "whole") == before
        assert await asked(service, "anthropic", "path") == before
        early = await service.fork("user-42", "early", marks[0].at - 4)
        assert early._cell.state.marks == ()
        await early.build_request("anthropic")


async def test_a_crash_of_the_session_changes_nothing_of_what_it_asks(dialect):
    from ..conftest import Poison

    async with SessionService.open(MemoryStore(), models=MODELS) as service:
        await converse(service, 20)
        before = await asked(service, dialect)
        session = await service.session("user-42")
        session.cast(Poison("x"))
        await session.stack(timeout_s=None)
        assert await asked(service, dialect) == before


def test_a_conversation_may_change_from_provider_to_provider_and_back(live):
    models = {"anthropic": "claude-sonnet-4-5", "openai_responses": "gpt-5", "gemini": "gemini-2.5-pro"}
    for number in range(3):
        for dialect, model in models.items():
            live.do(Configure(model=model))
            live.do(AddUser(f"{number}: list it"))
            live.ask(dialect)
            live.do(AddAssistant("", tool_calls=[ToolCall(f"{dialect}|{number}", "ls")], dialect=dialect, model=model))
            live.ask(dialect)
            live.do(AddToolResult(f"{dialect}|{number}", "a.py"))
            for other in DIALECTS:
                live.ask(other)
            live.do(AddAssistant("There.", dialect=dialect, model=model))
    assert len(messages_of(live.ask("openai_chat"))) > 30


def test_a_late_result_a_second_one_and_one_of_another_branch_are_shown_where_they_belong(live, dialect):
    live.do(AddUser("Delete it"))
    asked_for = live.do(AddAssistant("", tool_calls=[ToolCall("a", "ls"), ToolCall("b", "ls")]))
    live.do(HoldCall("b"))
    live.do(Fork(asked_for, "idea", attach=False))
    live.do(AddToolResult("a", "one", on="idea"))
    assert "one" not in shown(live.ask(dialect))
    assert "one" in shown(live.ask(dialect, on="idea"))
    live.do(AddUser("Go on"))
    live.ask(dialect)
    live.do(AddToolResult("b", "late two"))
    request = live.ask(dialect)
    assert "late two" in shown(request)
    assert "late_result" in {note.what for note in request.added}
    prefix = messages_of(request)[:2]
    live.do(AddAssistant("Fine."))
    assert messages_of(live.ask(dialect))[:2] == prefix


def test_pruning_leaves_what_is_asked_as_it_is(live, dialect):
    grown(live, dialect, 2)
    live.do(Checkpoint("here"))
    live.do(AddUser("gone"))
    live.do(Pop(1, "exchange"))
    request = live.ask(dialect)
    prune(live)
    assert same(live.ask(dialect), request)
    live.do(Goto("here"))
    assert same(live.again(dialect), live.ask(dialect))


def test_deciding_changes_nothing(live, dialect):
    from ..live import picture

    grown(live, dialect)
    live.do(AddUser("why " * 9_000))
    before = picture(live.state)
    event, _, request = decide(settled(live.state), BuildRequest(dialect))
    assert event.made is not None
    assert picture(live.state) == before
    assert same(live.ask(dialect), request)
