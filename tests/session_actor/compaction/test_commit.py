"""Plans are carried out once, while they hold; what they cover is shown as a summary from then on."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from session_actor import MemoryStore, SessionService, ToolCall, Usage, telemetry, validate_request
from session_actor.compaction_errors import CompactionUnknown, PlanUsed, StalePlan, SummaryRejected
from session_actor.errors import HeadMoved, InvalidArgument, SessionEnded

from .compacted import CHOICE, DIALECTS, GUESS, MESSAGES, MODELS, RULE, compact, converse, go_on, planned


@pytest.fixture
async def service():
    async with SessionService.open(MemoryStore(), models=MODELS) as running:
        yield running


@pytest.fixture
async def session(service):
    made = await service.session("user-42", create=True)
    await converse(made)
    return made


def shown(request: Any) -> str:
    return json.dumps(dict(request), default=str)


async def requests(session) -> dict[str, Any]:
    found = {}
    for dialect in DIALECTS:
        found[dialect] = request = await session.build_request(dialect)
        assert validate_request(dialect, request) == []
    return found


def records(session) -> int:
    return session.durable_seq["async"]


async def test_a_summary_takes_the_place_of_old_frames_in_every_dialect(session):
    await session.add_user("And now?")
    before = await requests(session)
    plan = await planned(session)
    compaction = await session.commit_compaction(plan, plan.extractive())
    after = await requests(session)
    assert (compaction.generation, compaction.covered_frame) == (1, plan.covered_frame)
    assert compaction.tokens_after < compaction.tokens_before
    for dialect in DIALECTS:
        request = after[dialect]
        assert request.generation == 1
        assert request.input_tokens < before[dialect].input_tokens
        assert all(text in shown(request) for text in (RULE, CHOICE, GUESS))
        assert ("summary", plan.covered_frame) in {(note.what, note.frame) for note in request.added}
        assert "Answer 3: " + "because it is so " * 50 not in shown(request)
        assert len(request[MESSAGES[dialect]]) < len(before[dialect][MESSAGES[dialect]])
    budget = await session.budget()
    assert budget.used <= before["anthropic"].input_tokens


async def test_the_estimate_of_what_is_left_is_about_right(session):
    await session.add_user("And now?")
    compaction = await compact(session)
    request = await session.build_request("anthropic")
    assert abs(request.input_tokens - compaction.tokens_after) <= 0.05 * compaction.tokens_after


async def test_all_frames_stay_readable(session):
    before = (await session.stack()).frames()
    await compact(session)
    assert (await session.stack()).frames() == before


async def test_the_prefix_stays_the_same_within_a_generation(session):
    await compact(session)
    await session.add_user("And now?")
    first = await session.build_request("anthropic")
    await session.add_assistant("This.")
    await go_on(session, 3)
    await session.add_user("And then?")
    second = await session.build_request("anthropic")
    assert second["messages"][: len(first["messages"]) - 1] == first["messages"][:-1]
    assert second["messages"][0] == first["messages"][0]


async def test_a_rejected_summary_changes_nothing_and_says_why(session):
    plan = await planned(session)
    seq = records(session)
    with pytest.raises(SummaryRejected) as caught:
        await session.commit_compaction(plan, "I cannot help with that.")
    assert caught.value.verdict.codes
    assert "cannot help" not in str(caught.value)
    with pytest.raises(SummaryRejected, match="stop_reason"):
        await session.commit_compaction(plan, plan.extractive(), stop_reason="max_tokens")
    assert records(session) == seq
    await session.commit_compaction(plan, plan.extractive())


async def test_a_plan_is_used_once(session):
    plan = await planned(session)
    text = plan.extractive()
    first = await session.commit_compaction(plan, text, key="once")
    seq = records(session)
    with pytest.raises(PlanUsed) as caught:
        await session.commit_compaction(plan, text)
    assert caught.value.generation == 1
    assert await session.commit_compaction(plan, text, key="once") == first
    await session.uncompact(1)
    with pytest.raises(PlanUsed):
        await session.commit_compaction(plan, text)
    assert records(session) == seq + 1


async def test_what_is_pushed_meanwhile_does_no_harm(session):
    plan = await planned(session)
    await asyncio.gather(*(session.push(f"meanwhile {number}") for number in range(100)))
    compaction = await session.commit_compaction(plan, plan.extractive())
    request = await session.build_request("anthropic")
    assert compaction.covered_frame == plan.covered_frame
    assert all(f"meanwhile {number}" in shown(request) for number in range(100))


async def popped_below(session, plan):
    await session.goto(plan.covered_frame - 1)


async def compacted_before(session, plan):
    other = await planned(session)
    await session.commit_compaction(other, other.extractive().replace("## Progress\n", "## Progress\n- Other.\n"))
    await go_on(session, 1)


async def retracted(session, plan):
    await session.retract(GUESS)


async def on_another_branch(session, plan):
    await session.fork(plan.covered_frame - 2, user_input="elsewhere")


@pytest.mark.parametrize("change", [popped_below, retracted, on_another_branch], ids=lambda change: change.__name__)
async def test_a_stale_plan_is_refused_and_changes_nothing(session, change):
    plan = await planned(session)
    await change(session, plan)
    seq = records(session)
    with pytest.raises(StalePlan):
        await session.commit_compaction(plan, plan.extractive())
    assert records(session) == seq


async def test_a_plan_made_before_another_compaction_is_stale(session):
    first = await planned(session)
    await go_on(session, 6)
    second = await planned(session)
    await session.commit_compaction(second, second.extractive())
    with pytest.raises(StalePlan, match="another compaction"):
        await session.commit_compaction(first, first.extractive())


async def test_a_plan_of_another_session_is_stale(service, session):
    other = await service.fork("user-42", "other")
    plan = await planned(session)
    with pytest.raises(StalePlan, match="another session"):
        await other.commit_compaction(plan, plan.extractive())


async def test_a_session_that_was_made_anew_under_the_same_id_is_another(service, session):
    plan = await planned(session)
    await service.delete("user-42")
    again = await service.session("user-42", create=True)
    await converse(again, exchanges=14)
    with pytest.raises(StalePlan, match="others"):
        await again.commit_compaction(plan, plan.extractive())


async def test_arguments_that_can_never_be_right_are_refused(session):
    plan = await planned(session)
    for arguments in [(object(), "x"), (plan, 7), (plan, "x", "usage"), (plan, "x", None, 7)]:
        with pytest.raises(InvalidArgument):
            await session.commit_compaction(*arguments)
    with pytest.raises(InvalidArgument):
        await session.prepare_compaction(7)
    with pytest.raises(HeadMoved):
        await session.commit_compaction(plan, plan.extractive(), expect_head=1)


async def test_an_ended_session_is_not_compacted(service, session):
    plan = await planned(session)
    await service.end("user-42")
    with pytest.raises(SessionEnded):
        await session.commit_compaction(plan, plan.extractive())


async def test_nothing_to_gain_is_no_plan(service):
    session = await service.session("short", create=True)
    await session.configure(model="small")
    assert await session.prepare_compaction() is None
    await session.add_user("Hi")
    assert await session.prepare_compaction() is None


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


async def test_events_tell_of_it_without_content(session):
    told = []
    detach = telemetry.attach(("session_actor", "compaction"), lambda *event: told.append(event))
    try:
        plan = await planned(session)
        with pytest.raises(SummaryRejected):
            await session.commit_compaction(plan, "No.")
        await session.commit_compaction(plan, plan.extractive())
    finally:
        detach()
    assert [name[-1] for name, _, _ in told] == ["start", "rejected", "stop"]
    assert told[1][2]["codes"]
    assert told[2][1]["tokens_after"] < told[2][1]["tokens_before"]
    assert RULE not in repr(told)


async def test_nothing_shows_content(session):
    plan = await planned(session)
    await session.commit_compaction(plan, plan.extractive())
    overlay = session._cell.state.overlays[0]
    assert not any(RULE in repr(one) for one in (plan, overlay, overlay.facts, session._cell.state))


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
