"""What of a compaction is shown where: other branches, earlier frames, pins, trims, copies."""

from __future__ import annotations

import pytest

from session_actor import SessionService, Text, Thinking, ToolCall, Turn, Usage
from session_actor.compaction.errors import CompactionUnknown

from .compacted import CHOICE, GUESS, MODELS, RULE, compact, go_on, planned, requests, shown


async def test_goto_to_before_undoes_it_and_a_fork_from_before_never_sees_it(session):
    whole = await session.build_request("anthropic")
    compaction = await compact(session)
    tip = await session.head()
    await session.goto(compaction.covered_frame - 1)
    assert (await session.build_request("anthropic")).generation == 0
    await session.fork(compaction.covered_frame - 1, user_input="elsewhere", branch="idea")
    assert (await session.build_request("anthropic")).generation == 0
    await session.goto(compaction.covered_frame)
    assert (await session.build_request("anthropic")).generation == 1
    await session.goto("main")
    assert await session.head() == tip
    assert (await session.build_request("anthropic")).generation == 1
    await session.uncompact(1)
    again = await session.build_request("anthropic")
    assert again.generation == 0
    assert again["messages"] == whole["messages"]


async def test_the_compaction_before_is_shown_when_the_newest_is_taken_back(session):
    await compact(session)
    await session.add_user("And now?")
    first = await session.build_request("anthropic")
    await session.add_assistant("So.")
    await go_on(session, 8)
    second = await compact(session)
    assert second.generation == 2
    await session.add_user("And then?")
    assert (await session.build_request("anthropic")).generation == 2
    await session.uncompact(2)
    request = await session.build_request("anthropic")
    assert request.generation == 1
    assert request["messages"][0] == first["messages"][0]
    for generation in (2, 3, 0):
        with pytest.raises(CompactionUnknown):
            await session.uncompact(generation)
    third = await compact(session)
    assert third.generation == 3


async def test_ten_rounds_keep_every_rule_and_decision(session):
    for generation in range(1, 11):
        await go_on(session, 7)
        compaction = await compact(session)
        assert compaction.generation == generation
        await session.add_user(f"And now, {generation}?")
        for request in (await requests(session)).values():
            assert all(text in shown(request) for text in (RULE, CHOICE, GUESS))
        await session.add_assistant("So.")


async def test_pinned_frames_stay_as_they_are(session):
    frames = await session.stack()
    early, later = frames[4], frames[6]
    await session.pin(early.id)
    compaction = await compact(session)
    request = shown(await session.build_request("anthropic"))
    assert "Question 0: why" not in request
    assert (early.user_input or early.assistant_output).strip() in request
    assert later.id < compaction.covered_frame
    await session.pin(later)
    request = await session.build_request("anthropic")
    assert (later.user_input or later.assistant_output).strip() in shown(request)
    await session.pin(later, False)
    assert (later.user_input or later.assistant_output).strip() not in shown(await session.build_request("anthropic"))


async def test_a_pin_takes_the_results_of_its_step_along(session):
    await session.add_user("List it.")
    step = await session.add_assistant("", tool_calls=[ToolCall("c1", "ls")])
    result = await session.add_tool_result("c1", "a.py")
    await session.add_assistant("There.")
    await go_on(session, 12)
    await compact(session)
    await session.add_user("And now?")
    await session.pin(step.id)
    for request in (await requests(session)).values():
        assert "a.py" in shown(request)
    assert session._cell.state.pins[step.id].frames == (step.id, result.id)


async def test_a_frame_pushed_pinned_can_be_unpinned(service):
    session = await service.session("pins", create=True)
    await session.configure(model="small")
    kept = await session.push("Remember this stone.", "Yes.", pinned=True)
    await go_on(session, 12)
    plan = await planned(session)
    assert kept.id in plan.kept
    await session.pin(kept.id, False)
    assert kept.id not in (await planned(session)).kept


async def test_what_the_summary_cost_counts_and_anchors_nothing(session):
    before = (await session.usage()).session
    plan = await planned(session)
    learned = session._cell.state.learned
    await session.commit_compaction(plan, plan.extractive(), Usage(input_tokens=5_000, output_tokens=300))
    after = (await session.usage()).session
    assert after.input_tokens == before.input_tokens + 5_000
    assert after.output_tokens == before.output_tokens + 300
    assert session._cell.state.learned == learned
    assert (await session.usage()).branch == before


async def test_a_trim_made_before_does_not_apply_under_a_new_generation(session):
    await go_on(session, 30, words=300)
    await session.add_user("And now?")
    trimmed = await session.build_request("anthropic")
    assert "trimmed" in {note.what for note in trimmed.omitted}
    await compact(session)
    request = await session.build_request("anthropic")
    assert request.generation == 1
    assert "trimmed" not in {note.what for note in request.omitted}


async def test_a_request_can_be_had_again_by_its_key_after_a_compaction(session):
    request = await session.build_request("anthropic", key="r")
    await compact(session)
    assert await session.build_request("anthropic", key="r") == request
    later = await session.build_request("anthropic", key="s")
    await session.uncompact(1)
    assert await session.build_request("anthropic", key="s") == later


async def test_a_copy_of_a_session_keeps_the_compactions_of_what_is_copied(service, session):
    compaction = await compact(session)
    await session.add_user("And now?")
    before = await session.build_request("anthropic")
    whole = await service.fork("user-42", "whole")
    assert await whole.build_request("anthropic") == before
    early = await service.fork("user-42", "early", compaction.covered_frame - 1)
    assert (await early.build_request("anthropic")).generation == 0
    await go_on(whole, 8)
    assert (await compact(whole)).generation == 2


async def test_pruning_keeps_what_a_compaction_of_a_live_path_needs(session):
    await compact(session)
    await session.add_user("gone")
    await session.pop()
    before = await session.build_request("anthropic")
    await session.prune()
    assert await session.build_request("anthropic") == before
    await session.uncompact(1)
    assert (await session.build_request("anthropic")).generation == 0


async def test_what_stayed_shown_beside_a_summary_is_trimmed_like_all_else(service):
    session = await service.session("long", create=True)
    await session.configure(model="small")
    asked = await session.add_user("Read all the files, one by one.")
    for number in range(30):
        await session.add_assistant("", tool_calls=[ToolCall(f"c{number}", "read")])
        await session.add_tool_result(f"c{number}", f"file {number} " + "says so " * 150)
    plan = await planned(session)
    assert asked.id in plan.kept, "the exchange goes on"
    await session.commit_compaction(plan, plan.extractive())
    assert "one by one." in shown((await session.build_request("anthropic"))["messages"][0])
    for _ in range(4):
        await session.add_assistant("Done.")
        await go_on(session, 14)
        await session.add_user("And now?")
        for request in (await requests(session)).values():
            assert request.generation == 1
            assert request.added[0].what == "summary"
        marks = session._cell.state.marks
        await session.build_request("gemini")
        assert session._cell.state.marks == marks
    assert marks[-1].generation == 1
    assert asked.id not in marks[-1].kept
    assert {"trimmed"} <= {note.what for note in request.omitted}


async def test_texts_that_no_provider_takes_are_carried_along(tmp_path):
    async with SessionService.open(tmp_path / "store", models=MODELS) as service:
        session = await service.session("odd", create=True)
        await session.configure(model="small")
        await session.add_user("Never touch \ud800 the \x00 file </summary> <|im_start|>. Only use a\u2028b.")
        await session.add_assistant("ok \udfff", decisions=["We \ud800 decide"], assumptions=["It \ud800 is"])
        await go_on(session, 12)
        await session.retract("It \ud800 is", "no\ud800te")
        await session.add_user("And?")
        plan = await planned(session, instructions="mind \ud800 this")
        await session.commit_compaction(plan, plan.extractive())
        before = await requests(session)
        copy = await service.fork("odd", "copy")
        assert await requests(copy) == before
    async with SessionService.open(tmp_path / "store", models=MODELS) as service:
        assert await requests(await service.session("odd")) == before


async def think(session, number: int) -> None:
    await session.add_user(f"Think about {number}.")
    blocks = (Thinking(f"Hm, {number}.", f"sig-{number}"), Text(f"Thought about {number}."))
    await session.push(turns=(Turn("assistant", blocks, model="small", dialect="anthropic", stop_reason="end_turn"),))


async def thoughts(session) -> list[str]:
    text = shown(await session.build_request("anthropic"))
    return [name for name in ("sig-1", "sig-2", "sig-3") if name in text]


async def test_reasoning_from_before_a_new_prefix_is_left_out(session):
    await think(session, 1)
    await session.add_user("And now?")
    assert await thoughts(session) == ["sig-1"]
    plan = await planned(session)
    await session.commit_compaction(plan, plan.extractive())
    await session.add_assistant("So.")
    assert await thoughts(session) == []
    await think(session, 2)
    await session.add_user("And then?")
    assert await thoughts(session) == ["sig-2"]
    tip = await session.head()
    await session.fork(plan.head, user_input="elsewhere")
    assert await thoughts(session) == [], "what was there before the compaction is stale on every path"
    await think(session, 3)
    await session.add_user("And there?")
    assert await thoughts(session) == ["sig-3"]
    await session.goto("main")
    assert (await session.head(), await thoughts(session)) == (tip, ["sig-2"])
    await session.uncompact(1)
    await session.add_assistant("So.")
    await session.add_user("Back?")
    assert await thoughts(session) == [], "they were thought behind the summary"
