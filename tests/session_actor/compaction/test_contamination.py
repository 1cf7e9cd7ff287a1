"""What is contaminated by a retraction: in branches, in copies, and where an assumption is stated anew."""

from __future__ import annotations

import json

import msgspec
import pytest

from session_actor import AddAssistant, Branches, Contamination, Retract, SessionService
from session_actor.compaction.errors import AssumptionUnknown

from ..live import Live, picture
from .compacted import GUESS, MODELS, converse, go_on, planned


@pytest.fixture
async def service(tmp_path):
    async with SessionService.open(tmp_path / "store", models=MODELS) as running:
        yield running


@pytest.fixture
async def session(service):
    made = await service.session("user-42", create=True)
    await converse(made, 2)
    return made


async def guess(session) -> int:
    return (await session.push("And the disk?", "I guess so.", assumptions=[GUESS])).id


async def test_branches_tell_what_of_them_is_contaminated(session):
    stated = next(frame for frame in await session.stack() if GUESS in frame.assumptions)
    await session.branch_off("before", stated.parent)
    assert (await session.branches()).contaminated() == {}
    taken = await session.branches()
    retraction = await session.retract(GUESS)
    branches = await session.branches()
    assert branches == {"main": retraction.id, "before": stated.parent}
    assert branches.contaminated() == await session.contaminated()
    assert branches.contaminated() == {
        "main": Contamination(tuple(range(stated.id, retraction.id + 1)), stated.parent),
    }
    assert branches.contaminated()["main"] == (await session.stack()).contaminated()
    assert taken.contaminated() == {}, "branches that were taken never change"


async def test_branches_are_a_dict_of_ids(session):
    branches = await session.branches()
    assert isinstance(branches, Branches)
    assert json.loads(json.dumps(branches)) == branches == dict(branches) == {"main": await session.head()}
    assert msgspec.json.decode(msgspec.json.encode(dict(branches))) == branches
    branches["mine"] = None
    assert "mine" not in await session.branches()


async def test_branches_of_a_session_that_was_loaded_again_tell_the_same(tmp_path):
    async with SessionService.open(tmp_path / "store", models=MODELS) as service:
        session = await service.session("user-42", create=True)
        await converse(session, 40)
        await session.retract(GUESS)
        tainted = (await session.branches()).contaminated()
    async with SessionService.open(tmp_path / "store", models=MODELS) as service:
        session = await service.session("user-42")
        assert set(tainted) == {"main"}
        assert (await session.branches()).contaminated() == tainted


async def test_an_assumption_that_is_stated_anew_can_be_retracted_again(session):
    first = await session.retract(GUESS)
    with pytest.raises(AssumptionUnknown):
        await session.retract(GUESS)
    await guess(session)
    second = await session.retract(f" {GUESS} ")
    assert second.retracted.assumption == GUESS
    with pytest.raises(AssumptionUnknown):
        await session.retract(GUESS)
    with pytest.raises(AssumptionUnknown):
        await session.send(Retract(GUESS, stated=2))
    await session.pop()
    assert (await session.retract(GUESS)).parent == second.parent
    assert first.id < second.id


async def test_what_is_stated_anew_is_an_assumption_of_summaries_until_it_is_retracted_again(session):
    await session.retract(GUESS)
    await guess(session)
    await go_on(session, 12)
    plan = await planned(session)
    assert [fact.text for fact in plan.facts.assumptions] == [GUESS]
    assert plan.facts.retracted == ()
    await session.commit_compaction(plan, plan.extractive())
    await session.retract(GUESS)
    await go_on(session, 12)
    plan = await planned(session)
    assert plan.facts.assumptions == ()
    assert [fact.text for fact in plan.facts.retracted] == [GUESS]
    await session.commit_compaction(plan, plan.extractive())


async def test_what_is_stated_anew_on_a_clean_branch_is_not_contaminated(session):
    await session.retract(GUESS)
    clean = (await session.contaminated())["main"].last_clean
    await session.goto(clean)
    again = await guess(session)
    assert set(await session.contaminated()) == {"main"}
    assert (await session.stack()).contaminated() == Contamination((), again)
    retraction = await session.retract(GUESS)
    assert (await session.stack()).contaminated() == Contamination((again, retraction.id), clean)


async def test_a_copy_from_before_a_retraction_knows_what_is_contaminated(tmp_path):
    async with SessionService.open(tmp_path / "store", models=MODELS) as service:
        session = await service.session("user-42", create=True)
        await converse(session, 2)
        head = await session.head()
        tainted = Contamination(tuple(range(3, head + 1)), 2)
        await session.retract(GUESS)
        copy = await service.fork("user-42", "copy", at=head)
        assert await copy.contaminated() == {"main": tainted}
        assert (await copy.stack()).contaminated() == tainted
        assert "Correction" not in json.dumps(await copy.build_request("anthropic"))
        await service.delete("user-42")
    async with SessionService.open(tmp_path / "store", models=MODELS) as service:
        copy = await service.session("copy")
        assert await copy.contaminated() == {"main": tainted}
        assert await (await service.fork("copy", "second")).contaminated() == {"main": tainted}
        third = await service.fork("copy", "third", at=3)
        assert await third.contaminated() == {"main": Contamination((3,), 2)}
        assert await (await service.fork("copy", "clean", at=2)).contaminated() == {}
        retraction = await third.retract(GUESS)
        assert (await third.contaminated())["main"].frames == (3, retraction.id)
        await third.goto(2)
        again = await guess(third)
        assert (await third.stack()).contaminated() == Contamination((), again)


async def test_a_copy_up_to_the_retraction_itself_has_it(service, session):
    retraction = await session.retract(GUESS, "It is full.")
    tainted = await session.contaminated()
    copy = await service.fork("user-42", "copy", at=retraction.id)
    assert await copy.contaminated() == tainted
    assert "Correction" in json.dumps(await copy.build_request("anthropic"))
    with pytest.raises(AssumptionUnknown):
        await copy.retract(GUESS)


async def test_a_copy_knows_nothing_of_a_retraction_that_was_popped(service, session):
    head = await session.head()
    await session.retract(GUESS)
    await session.pop()
    assert await (await service.fork("user-42", "copy", at=head)).contaminated() == {}


def test_a_state_comes_back_with_what_it_knows_of_retractions_elsewhere():
    live = Live()
    live.do(AddAssistant("yes", assumptions=[GUESS]))
    live.do(Retract(GUESS))
    live.do(AddAssistant("no", assumptions=[GUESS]))
    live.do(Retract(GUESS))
    live.save()
    assert picture(live.replayed()) == picture(live.state) == picture(live.recovered())
    assert sorted(live.state.retractions) == [2, 4]
