"""Plans are carried out once, while they hold; what they cover is shown as a summary from then on."""

from __future__ import annotations

import asyncio

import pytest

from session_actor import telemetry
from session_actor.compaction.errors import PlanUsed, StalePlan, SummaryRejected
from session_actor.errors import HeadMoved, InvalidArgument, SessionEnded

from .compacted import CHOICE, DIALECTS, GUESS, MESSAGES, RULE, compact, converse, go_on, planned, requests, shown


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
    assert {metadata["branch"] for _, _, metadata in told} == {"main"}, "the same word as in other events"
    assert told[1][2]["codes"]
    assert told[2][1]["tokens_after"] < told[2][1]["tokens_before"]
    assert RULE not in repr(told)


async def test_nothing_shows_content(session):
    plan = await planned(session)
    await session.commit_compaction(plan, plan.extractive())
    overlay = session._cell.state.overlays[0]
    assert not any(RULE in repr(one) for one in (plan, overlay, overlay.facts, session._cell.state))
