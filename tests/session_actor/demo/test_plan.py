"""What the demo plans to do, and where it plans to kill."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from session_actor.blocks import CallRef, ToolResult
from session_actor.demo.main import SAMPLE
from session_actor.demo.parent import aim
from session_actor.demo.plan import CHECKPOINT, IDEA, read_plan
from session_actor.demo.protocol import Acknowledged, Finished, Opening, Ready, decode, encode


async def test_every_readable_line_of_the_sample_becomes_a_frame():
    plan = await read_plan(SAMPLE)
    lines = [json.loads(line)["type"] for line in SAMPLE.read_text(encoding="utf-8").splitlines()]
    fed = [kind for kind in lines if kind != "thinking_level_change"]
    assert len(plan.frames) == len(fed) + 2  # the two of the idea
    assert (plan.unreadable, plan.stray_results) == ([], 0)


async def test_the_plan_goes_back_to_main_after_the_idea():
    plan = await read_plan(SAMPLE)
    frames = {frame.id: frame for frame in plan.frames}
    fork = next(frame for frame in plan.frames if frame.forked_from)
    assert fork.parent == fork.forked_from == plan.checkpoints[CHECKPOINT]
    assert plan.branches == {"main": plan.frames[-1].id, IDEA: fork.id + 1}
    assert frames[fork.id + 2].parent == fork.id - 1


async def test_ids_parents_and_depths_of_the_plan_are_those_of_a_tree():
    plan = await read_plan(SAMPLE)
    assert [frame.id for frame in plan.frames] == list(range(1, len(plan.frames) + 1))
    for frame in plan.frames:
        below = plan.frames[frame.parent - 1] if frame.parent else None
        assert frame.depth == (below.depth if below else 0) + 1


async def test_a_result_names_the_frame_of_its_call():
    plan = await read_plan(SAMPLE)
    results = [
        block for frame in plan.frames for turn in frame.turns for block in turn.blocks if isinstance(block, ToolResult)
    ]
    for result in results:
        assert isinstance(result.ref, CallRef)
        (turn,) = plan.frames[result.ref.frame - 1].turns
        calls = [block for block in turn.blocks if type(block).__name__ == "ToolCall"]
        assert calls[result.ref.index].id == result.call_id


async def test_a_result_without_its_call_is_left_out_and_counted(tmp_path: Path):
    user = {"type": "message", "message": {"role": "user", "content": "hello"}}
    stray = {"type": "message", "message": {"role": "toolResult", "toolCallId": "x", "content": [], "isError": False}}
    path = tmp_path / "transcript.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in (user, stray, user, user)))
    plan = await read_plan(path)
    assert plan.stray_results == 1
    assert len(plan.frames) == 3 + 2


async def test_a_transcript_with_too_little_to_fork_is_refused(tmp_path: Path):
    path = tmp_path / "transcript.jsonl"
    path.write_text("{}\n")
    with pytest.raises(ValueError, match="0 readable turns"):
        await read_plan(path)


@given(st.integers(0, 50), st.integers(1, 2_000), st.integers())
def test_the_same_seed_kills_at_the_same_points(kills: int, steps: int, seed: int):
    aims = aim(kills, steps, seed)
    assert aims == aim(kills, steps, seed)
    assert len(aims) == kills
    assert [kill.step for kill in aims] == sorted(kill.step for kill in aims)
    assert all(0 <= kill.step < steps for kill in aims)
    assert not (aims and aims[0].in_recovery)


@pytest.mark.parametrize(
    "message", [Opening(), Ready(3, 1.5), Acknowledged(2, 3, 1_700_000_000_000_001, 80.5), Finished()]
)
def test_a_message_of_the_child_comes_through(message):
    assert decode(encode(message)) == message


def test_a_message_that_was_cut_by_the_kill_is_no_message():
    assert decode(encode(Finished())[:-1]) is None
