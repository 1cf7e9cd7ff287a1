"""Turns of very many calls: each result costs what one costs, in a session and in an import."""

from __future__ import annotations

import asyncio
import json

import pytest

from session_actor.blocks import CallRef, Text, ToolCall, ToolResult
from session_actor.commands import AddAssistant, AddToolResult, AddUser, HoldCall, Push
from session_actor.errors import CallAmbiguous
from session_actor.frames import Turn
from session_actor.state.decide import decide
from session_actor.transfer.importing import import_transcript

from .growth import growth
from .live import Live
from .transfer.transferring import memory

SMALL, LARGE = 100, 400
LINEAR = LARGE / SMALL * 1.3
"""Twice the size, twice the work, and a little more."""


def calling(count: int, same_id: bool = False) -> Live:
    live = Live()
    live.do(AddUser("do it"))
    live.do(AddAssistant("", [ToolCall("x" if same_id else f"c{number}", "read") for number in range(count)]))
    return live


def result(number: int) -> ToolResult:
    return ToolResult(f"c{number}", (Text("done"),))


def one_by_one(count: int):
    live = calling(count)

    def run() -> None:
        for number in range(count):
            event, _, found = decide(live.state, AddToolResult(f"c{number}", "done"))
            live.record(event, found)

    return run


def by_ref(count: int):
    live = calling(count)

    def run() -> None:
        for number in reversed(range(count)):
            event, _, found = decide(live.state, AddToolResult(CallRef(2, number), "done"))
            live.record(event, found)

    return run


def held(count: int):
    live = calling(count)

    def run() -> None:
        for number in range(count):
            event, _, found = decide(live.state, HoldCall(f"c{number}", "approval"))
            live.record(event, found)

    return run


def in_one_turn(count: int):
    live = calling(count)
    return lambda: decide(live.state, Push(turns=[Turn("tool", tuple(map(result, range(count))))]))


def listed(count: int):
    live = calling(count)
    return live.state.pending_calls


@pytest.mark.parametrize("prepared", [one_by_one, by_ref, held, in_one_turn, listed])
def test_the_work_of_many_results_grows_as_their_number(prepared):
    assert growth(prepared, SMALL, LARGE) < LINEAR


def test_among_many_calls_those_of_one_id_are_told_apart_by_ref_alone():
    live = calling(40, same_id=True)
    assert "40" in str(live.refuses(CallAmbiguous, AddToolResult("x", "done")))
    for index in (39, 0, 20):
        frame = live.do(AddToolResult(CallRef(2, index), "done"))
        assert frame.turns[0].blocks[0].ref == CallRef(2, index)
    assert [call.ref.index for call in live.state.pending_calls()] == [
        index for index in range(40) if index not in {0, 20, 39}
    ]


def chat(count: int, between: list[dict] | None = None) -> list[dict]:
    calls = [{"id": f"c{n}", "type": "function", "function": {"name": "read", "arguments": "{}"}} for n in range(count)]
    said = {"role": "assistant", "content": None, "tool_calls": calls}
    results = [{"role": "tool", "tool_call_id": f"c{n}", "content": "done"} for n in range(count)]
    return [{"role": "user", "content": "do it"}, said, *(between or ()), *results]


def late(count: int) -> list[dict]:
    return chat(count, [{"role": "user", "content": "go on"}])


def in_one_message(count: int, same_id: bool = False) -> list[dict]:
    ids = ["x" if same_id else f"c{number}" for number in range(count)]
    calls = [{"type": "tool_use", "id": call_id, "name": "read", "input": {}} for call_id in ids]
    results = [{"type": "tool_result", "tool_use_id": call_id, "content": "done"} for call_id in ids]
    return [
        {"role": "user", "content": "do it"},
        {"role": "assistant", "content": calls},
        {"role": "user", "content": results},
    ]


def of_one_id(count: int) -> list[dict]:
    return in_one_message(count, same_id=True)


@pytest.mark.parametrize("made", [chat, late, in_one_message, of_one_id])
def test_the_work_of_importing_many_results_grows_as_their_number(tmp_path, made):
    async def imported(path) -> None:
        async with memory() as service:
            await import_transcript(service, path)

    def prepared(count: int):
        path = tmp_path / f"{count}.json"
        path.write_text(json.dumps({"messages": made(count)}))
        return lambda: asyncio.run(imported(path))

    assert growth(prepared, SMALL, LARGE) < LINEAR


async def test_imported_results_of_calls_of_one_id_go_to_one_call_each(tmp_path):
    path = tmp_path / "same.json"
    path.write_text(json.dumps({"messages": of_one_id(5)}))
    async with memory() as service:
        report = await import_transcript(service, path)
        session = await service.session(report.sessions[0])
        frames = list(await session.stack())
        refs = [block.ref for frame in frames for turn in frame.turns if turn.role == "tool" for block in turn.blocks]
        assert sorted(refs, key=lambda ref: ref.index) == [CallRef(2, index) for index in range(5)]
        assert await session.pending_calls() == []
        assert (await import_transcript(service, path)).added == 0
