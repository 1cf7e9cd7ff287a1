"""Transcripts of Claude Code."""

from __future__ import annotations

import json
from pathlib import Path

from session_actor.blocks import CallRef, Image, Thinking, ToolCall, ToolResult
from session_actor.transfer.importing import import_transcript

from .transferring import SAMPLES, frames_of, imported, lines_in, memory, said, state_of, written

SAMPLE = SAMPLES / "claude_code.jsonl"
SESSION = "0f9e7c52-6a0b-4d0e-9b64-0f4b6d1f7c20"


def line(kind: str, uuid: str, parent: str | None, content, **more) -> dict:
    message = {"role": kind, "content": content, **more.pop("message", {})}
    return {"type": kind, "uuid": uuid, "parentUuid": parent, "sessionId": "s", "message": message, **more}


def call(call_id: str) -> list[dict]:
    return [{"type": "tool_use", "id": call_id, "name": "ls", "input": {}}]


def result(call_id: str, content: str = "ok") -> list[dict]:
    return [{"type": "tool_result", "tool_use_id": call_id, "content": content}]


def reply(uuid: str, parent: str, message_id: str, content, **more) -> dict:
    return line(
        "assistant", uuid, parent, content, message={"id": message_id, "model": "m", "stop_reason": None}, **more
    )


async def test_the_sample_is_a_tree_with_branches_side_chains_and_a_compaction():
    async with memory() as service:
        report, state = await imported(service, SAMPLE)

    assert (report.form, report.added, report.sessions, report.passed) == ("claude-code", 22, [SESSION], 5)
    assert [why for _, why in report.unread] == ["not JSON"]
    assert SAMPLE.read_bytes()[report.unread[0][0] :].startswith(b'{"parentUuid":"a8","type":"user","mess')
    assert state.branches == {"main": 22, "b9": 9, "side-de30ae5d": 21}
    (overlay,) = state.overlays
    assert (overlay.covered_frame, overlay.tokens_before) == (16, 155_025)
    assert overlay.summary.startswith("This session is being continued")


async def test_lines_of_one_reply_are_one_turn_and_its_parallel_results_follow_it():
    async with memory() as service:
        _, state = await imported(service, SAMPLE)
    reply_frame, first, second = (state.table.at(frame_id) for frame_id in (3, 4, 5))

    (turn,) = reply_frame.turns
    assert [type(block) for block in turn.blocks[:1]] == [Thinking]
    assert [block.id for block in turn.blocks if isinstance(block, ToolCall)] == ["toolu_1", "toolu_2"]
    assert (turn.model, turn.stop_reason, turn.usage.input_tokens) == ("claude-sonnet-4-5", "tool_use", 752)
    results = [block for frame in (first, second) for turn in frame.turns for block in turn.blocks]
    assert [block.ref for block in results if isinstance(block, ToolResult)] == [CallRef(3, 0), CallRef(3, 1)]
    assert results[1].is_error
    assert isinstance(results[1].blocks[1], Image)
    assert (first.parent, second.parent, second.open_calls) == (3, 4, ())


async def test_halves_of_surrogate_pairs_are_read_and_times_are_kept():
    async with memory() as service:
        _, state = await imported(service, SAMPLE)
    frame = state.table.at(2)

    assert "\ud83c half a wave, \U0001f30a a whole one" in frame.turns[0].text
    assert frame.timestamp.isoformat() == "2026-03-03T09:00:02.250000+00:00"


async def test_what_is_said_twice_stays_said_twice():
    async with memory() as service:
        _, state = await imported(service, SAMPLE)

    assert said(frames_of(state)).count(("user", "Same again?")) == 2
    assert said(frames_of(state)).count(("assistant", "Yes.")) == 2


async def test_a_reply_that_grew_since_takes_the_place_of_its_beginning(tmp_path: Path):
    asked = [line("user", "u", None, "Go"), reply("a1", "u", "m1", call("c1"))]
    path = written(tmp_path / "t.jsonl", *asked)
    async with memory() as service:
        await imported(service, path)
        written(
            path,
            *asked,
            line("user", "r1", "a1", result("c1")),
            reply("a2", "a1", "m1", call("c2")),
            line("user", "r2", "a2", result("c2")),
            reply("a3", "r1", "m2", "Done."),
        )
        report, state = await imported(service, path)
        again, _ = await imported(service, path)

    assert (report.added, again.added) == (4, 0)
    path_of = state.table.path(state.head)[::-1]
    assert [len(turn.blocks) for frame in path_of for turn in frame.turns] == [1, 2, 1, 1, 1]
    assert said(path_of)[-1] == ("assistant", "Done.")
    assert state.branches == {"main": 6}


async def test_a_resumed_file_that_copies_its_beginning_adds_only_what_is_new(tmp_path: Path):
    whole = lines_in(SAMPLE)
    path = tmp_path / "resumed.jsonl"
    fresh = line("user", "n1", "a10", "And now?", timestamp="2026-03-04T00:00:00Z")
    path.write_bytes(b"".join(whole) + b"".join(whole) + json.dumps(fresh).encode())
    async with memory() as service:
        await import_transcript(service, SAMPLE, session_id="one")
        report = await import_transcript(service, path, session_id="one")
        state = await state_of(service, "one")

    assert report.added == 1
    assert state.branches["main"] == 23
    assert state.table.at(23).parent == 22


async def test_an_own_file_of_a_side_chain_is_a_conversation(tmp_path: Path):
    path = written(
        tmp_path / "agent-7.jsonl",
        line("user", "u", None, "Search", isSidechain=True, agentId="7"),
        reply("a", "u", "m1", "Found", isSidechain=True, agentId="7"),
    )
    async with memory() as service:
        report, state = await imported(service, path)

    assert report.sessions == ["agent-7"]
    assert state.branches == {"main": 2}


async def test_a_parent_that_cannot_be_read_leaves_its_children_where_the_file_goes_on(tmp_path: Path):
    path = written(
        tmp_path / "t.jsonl",
        line("user", "u1", None, "One"),
        line("user", "u2", "u1", 7),
        line("user", "u3", "u2", "Three"),
        line("user", "u4", "lost", "Four"),
    )
    async with memory() as service:
        report, state = await imported(service, path)

    assert [why for _, why in report.unread] == ["a field has another type than expected"]
    assert [frame.parent for frame in frames_of(state)] == [None, 1, 2]


async def test_a_compaction_at_the_start_of_a_file_is_what_the_user_says(tmp_path: Path):
    path = written(
        tmp_path / "t.jsonl",
        {"type": "system", "subtype": "compact_boundary", "uuid": "c", "parentUuid": None, "sessionId": "s"},
        line("user", "s", "c", "It was about tides.", isCompactSummary=True),
        line("user", "u", "s", "Go on"),
    )
    async with memory() as service:
        _, state = await imported(service, path)

    assert "It was about tides." in state.table.at(1).turns[0].text
    assert (state.overlays, state.branches) == ((), {"main": 2})


async def test_a_summary_does_not_cover_a_call_that_waits(tmp_path: Path):
    path = written(
        tmp_path / "t.jsonl",
        line("user", "u", None, "Go"),
        reply("a", "u", "m", call("c1")),
        {"type": "system", "subtype": "compact_boundary", "uuid": "c", "parentUuid": None, "logicalParentUuid": "a"},
        line("user", "s", "c", "Something runs.", isCompactSummary=True),
        line("user", "r", "s", result("c1")),
    )
    async with memory() as service:
        _, state = await imported(service, path)

    assert [overlay.covered_frame for overlay in state.overlays] == [1]
    assert state.table.at(3).turns[0].role == "tool"
