"""Assumptions that are taken back: what is contaminated, what the model is told, what a summary may not say."""

from __future__ import annotations

import json
from typing import Any

import pytest

from session_actor import AddAssistant, AddUser, Retract, SessionService, ToolCall, validate_request
from session_actor.compaction.errors import AssumptionUnknown, SummaryRejected
from session_actor.compaction.retracting import Contamination
from session_actor.errors import InvalidArgument, SessionEnded

from ..live import Live, picture
from .compacted import DIALECTS, GUESS, MESSAGES, MODELS, converse, go_on, planned

NOTE = "It is nearly full."


@pytest.fixture
async def service(tmp_path):
    async with SessionService.open(tmp_path / "store", models=MODELS) as running:
        yield running


@pytest.fixture
async def session(service):
    made = await service.session("user-42", create=True)
    await converse(made, 2)
    return made


def texts_of(request: Any, dialect: str) -> list[str]:
    return [json.dumps(message, default=str) for message in request[MESSAGES[dialect]]]


async def test_a_retraction_is_a_frame_of_the_path(session):
    before = await session.head()
    frame = await session.retract(GUESS, NOTE)
    assert (frame.parent, frame.turns) == (before, ())
    assert (frame.retracted.assumption, frame.retracted.note) == (GUESS, NOTE)
    assert GUESS not in repr(frame.retracted)
    assert (await session.stack()).top == frame


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_the_correction_stands_at_the_front_of_what_the_user_says_next(session, dialect):
    system = (await session.build_request(dialect)).get("system")
    frame = await session.retract(GUESS, NOTE)
    await session.add_user("Go on.")
    request = await session.build_request(dialect)
    assert validate_request(dialect, request) == []
    last = texts_of(request, dialect)[-1]
    assert last.index("Correction") < last.index(GUESS) < last.index(NOTE) < last.index("Go on.")
    assert ("correction", frame.id) in {(note.what, note.frame) for note in request.added}
    assert request.get("system") == system
    assert sum("Correction" in text for text in texts_of(request, dialect)) == 1
    await session.add_assistant("I see.")
    await session.add_user("And?")
    later = await session.build_request(dialect)
    assert texts_of(later, dialect)[: len(texts_of(request, dialect))] == texts_of(request, dialect)


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_in_the_middle_of_tool_calls_it_stands_behind_the_results(session, dialect):
    await session.add_user("List it.")
    await session.add_assistant("", tool_calls=[ToolCall("c1", "ls"), ToolCall("c2", "ls")])
    await session.add_tool_result("c1", "a.py")
    await session.retract(GUESS)
    waiting = await session.build_request(dialect)
    assert validate_request(dialect, waiting) == []
    await session.add_tool_result("c2", "b.py")
    request = await session.build_request(dialect)
    assert validate_request(dialect, request) == []
    shown = "".join(texts_of(request, dialect))
    assert shown.index("a.py") < shown.index("b.py") < shown.index("Correction")
    await session.add_assistant("There.")
    later = texts_of(await session.build_request(dialect), dialect)
    assert later[: len(texts_of(request, dialect))] == texts_of(request, dialect)


async def test_it_is_shown_at_once_when_nobody_says_more(session):
    await session.retract(GUESS)
    for dialect in DIALECTS:
        request = await session.build_request(dialect)
        assert validate_request(dialect, request) == []
        assert "Correction" in texts_of(request, dialect)[-1]


async def test_what_came_after_the_statement_is_contaminated_on_every_branch(session):
    frames = (await session.stack()).frames()
    stated = next(frame for frame in frames if GUESS in frame.assumptions)
    await session.branch_off("idea", frames[-2].id)
    await session.branch_off("before", stated.parent)
    assert await session.contaminated() == {}
    taken = await session.stack()
    retraction = await session.retract(GUESS)
    found = await session.contaminated()
    assert found == {
        "main": Contamination((*range(stated.id, retraction.id + 1),), stated.parent),
        "idea": Contamination((*range(stated.id, frames[-2].id + 1),), stated.parent),
    }
    assert (await session.stack()).contaminated() == found["main"]
    assert (await session.on("idea").stack()).contaminated() == found["idea"]
    assert not (await session.on("before").stack()).contaminated()
    assert taken.contaminated() == Contamination((), taken.head), "a stack that was taken never changes"
    await session.goto(found["main"].last_clean)
    await session.add_user("Again, then.")
    clean = (await session.stack()).contaminated()
    assert clean == Contamination((), await session.head())
    assert "Correction" not in json.dumps(await session.build_request("anthropic"))


async def test_a_retraction_that_nothing_holds_contaminates_nothing_until_somebody_goes_back_to_it(session):
    await go_on(session, 1)
    head = await session.head()
    retraction = await session.retract(GUESS)
    before, tainted = await session.stack(), await session.contaminated()
    assert set(tainted) == {"main"}
    await session.pop()
    assert await session.contaminated() == {}
    assert (await session.stack()).contaminated() == Contamination((), head)
    assert "Correction" not in json.dumps(await session.build_request("anthropic"))
    assert before.contaminated() == tainted["main"], "a stack that was taken never changes"
    await session.goto(retraction.id)
    assert (await session.contaminated())["main"] == Contamination(tainted["main"].frames[:-1], 2)
    assert (await session.stack()).contaminated() == tainted["main"]
    await session.goto(head)
    assert await session.contaminated() == {}


@pytest.mark.parametrize("hold", ["branch", "checkpoint"])
async def test_a_retraction_counts_on_every_branch_while_a_branch_or_a_checkpoint_holds_it(session, hold):
    retraction = await session.retract(GUESS)
    if hold == "branch":
        await session.branch_off("kept", retraction.id)
    else:
        await session.checkpoint("kept")
    await session.pop()
    assert (await session.contaminated())["main"] == (await session.stack()).contaminated()
    assert (await session.stack()).contaminated()
    await (session.delete_branch if hold == "branch" else session.delete_checkpoint)("kept")
    assert await session.contaminated() == {}
    assert not (await session.stack()).contaminated()
    assert not (await session.on("main").stack()).contaminated()


async def test_white_space_and_composed_forms_do_not_count_all_else_does(service):
    session = await service.session("texts", create=True)
    await session.push("a", "b", assumptions=["The caf\u00e9  is\nopen."])
    for other in ("The cafe is open.", "the caf\u00e9 is open.", "The caf\u00e9 is open"):
        with pytest.raises(AssumptionUnknown) as caught:
            await session.retract(other)
        assert other not in str(caught.value)
    frame = await session.retract(" The cafe\u0301 is open. ")
    assert frame.retracted.assumption == "The caf\u00e9  is\nopen."
    with pytest.raises(AssumptionUnknown):
        await session.retract("The caf\u00e9 is open.")
    await session.pop()
    await session.retract("The caf\u00e9 is open.", key="again")
    assert (await session.retract("The caf\u00e9 is open.", key="again")).id == await session.head()


async def test_another_branch_does_not_state_it(session):
    await session.goto(2)
    with pytest.raises(AssumptionUnknown):
        await session.retract(GUESS)
    with pytest.raises(AssumptionUnknown):
        await session.send(Retract(GUESS, stated=4))


@pytest.mark.parametrize("arguments", [("",), (" \n",), (7,), (None,), (GUESS, 7)], ids=repr)
async def test_what_can_never_be_right_is_refused(session, arguments):
    with pytest.raises(InvalidArgument):
        await session.retract(*arguments)


async def test_an_ended_session_takes_none(service, session):
    await service.end("user-42")
    with pytest.raises(SessionEnded):
        await session.retract(GUESS)


async def test_no_summary_may_use_it_again(session):
    await go_on(session, 12)
    await session.retract(GUESS, NOTE)
    await session.add_user("And now?")
    plan = await planned(session)
    assert [fact.text for fact in plan.facts.retracted] == [GUESS]
    assert GUESS not in [fact.text for fact in plan.facts.assumptions]
    text = plan.extractive()
    with pytest.raises(SummaryRejected, match="retracted_used"):
        await session.commit_compaction(plan, text.replace("## Progress\n", f"## Progress\n- {GUESS}\n"))
    await session.commit_compaction(plan, text)
    for dialect in DIALECTS:
        request = await session.build_request(dialect)
        assert validate_request(dialect, request) == []
        assert "## Retracted" in json.dumps(request)
    await go_on(session, 8)
    again = await planned(session)
    assert [fact.text for fact in again.facts.retracted] == [GUESS]


async def test_it_survives_a_restart_a_snapshot_and_a_copy(tmp_path):
    async with SessionService.open(tmp_path / "store", models=MODELS) as service:
        session = await service.session("user-42", create=True)
        await converse(session, 2)
        await session.retract(GUESS, NOTE)
        await go_on(session, 3)
        before = await session.build_request("anthropic")
        tainted = await session.contaminated()
    async with SessionService.open(tmp_path / "store", models=MODELS) as service:
        session = await service.session("user-42")
        assert await session.build_request("anthropic") == before
        assert await session.contaminated() == tainted
        copy = await service.fork("user-42", "copy")
        assert await copy.contaminated() == tainted
        assert await copy.build_request("anthropic") == before


def test_a_state_comes_back_with_its_retractions():
    live = Live()
    live.do(AddUser("hello"))
    live.do(AddAssistant("yes", assumptions=["a \ud800 b"]))
    live.do(Retract("a \ud800  b", "no \udfff"))
    live.save()
    assert picture(live.replayed()) == picture(live.state) == picture(live.recovered())
    assert live.state.retractions[3].assumption == "a \ud800 b"


async def test_pruning_changes_nothing_of_what_is_contaminated(tmp_path):
    async with SessionService.open(tmp_path / "store", models=MODELS) as service:
        session = await service.session("user-42", create=True)
        await session.push("a", "b", assumptions=[GUESS])
        await session.push("c", "d", assumptions=[NOTE])
        await session.branch_off("idea", await session.head())
        await session.retract(GUESS)
        await session.on("idea").retract(NOTE)
        await session.pop(1)
        tainted = await session.contaminated()
        assert set(tainted) == {"main", "idea"}
        assert (await session.prune()).frames == 1
        assert await session.contaminated() == tainted
    async with SessionService.open(tmp_path / "store", models=MODELS) as service:
        assert await (await service.session("user-42")).contaminated() == tainted
