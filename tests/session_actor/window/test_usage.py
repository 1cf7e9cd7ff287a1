"""Usage is added up on every path and in every session, and stays so over copies, snapshots and pruning."""

from __future__ import annotations

import json

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from session_actor import SessionService, Turn, Usage, UsageTotals
from session_actor.commands import AddAssistant, AddUser, Fork, Goto, Pop, Push
from session_actor.events import decode_event
from session_actor.persistence import encode_record_data
from session_actor.state.spending import NOTHING_SPENT, plus, spent_in
from session_actor.state.state import State

from ..conftest import reopened
from ..live import Live, cold, prune

MOST = 2**63 - 1


def said(sent: int, made: int = 1) -> AddAssistant:
    return AddAssistant("a", usage=Usage(sent, made, raw={"own": sent}, anchor_tokens=3))


def branch(live: Live, on: str | None = None) -> Usage | None:
    top = live.state.stack(on).top
    return NOTHING_SPENT if top is None else top.spent


def test_the_path_has_its_own_sum_and_the_session_all():
    live = Live()
    live.do(said(10))
    live.do(said(20))
    live.do(Pop())
    live.do(said(5))

    assert branch(live) == Usage(15, 2)
    assert live.state.usage == Usage(35, 3)
    live.do(Goto(2))
    assert branch(live) == Usage(30, 2)
    live.do(Fork(1, user_input="other"))
    assert branch(live) == Usage(10, 1)
    assert live.state.usage == Usage(35, 3)


def test_every_turn_of_a_frame_counts():
    live = Live()
    live.do(
        Push(turns=[Turn("assistant", (), Usage(10, 1)), Turn("user"), Turn("assistant", (), Usage(12, 2, 4, 5, 1))])
    )

    assert branch(live) == live.state.usage == Usage(22, 3, 4, 5, 1)


def test_sums_stop_where_a_record_ends():
    live = Live()
    for _ in range(40):
        live.do(said(MOST, MOST))

    assert live.state.usage == Usage(MOST, MOST)
    assert live.replayed().usage == live.state.usage
    live.save()
    assert live.recovered().usage == live.state.usage


counts = st.integers(0, 2**40)
usages = st.builds(Usage, counts, counts, counts, counts, counts)
steps = st.lists(
    st.one_of(
        st.builds(lambda usage: AddAssistant("a", usage=usage), usages),
        st.builds(lambda: AddUser("u")),
        st.builds(Pop, st.integers(1, 5)),
        st.builds(lambda at: ("goto", at), st.integers(0, 100)),
    ),
    max_size=60,
)


@given(steps, st.integers(0, 60))
def test_each_frame_knows_what_its_path_cost_whatever_was_done(given_steps, save_at):
    live = Live()
    for number, step in enumerate(given_steps):
        if number == save_at:
            live.save()
        if isinstance(step, tuple):
            if live.state.next_id > 1:
                live.do(Goto(step[1] % (live.state.next_id - 1) + 1))
        else:
            live.do(step)
    table = live.state.table
    frames = [table.at(frame_id) for frame_id in range(1, live.state.next_id)]
    for frame in frames:
        assert frame.spent == spent_in(table.path(frame.id))
    assert live.state.usage == spent_in(frames)
    for state in (live.replayed(), live.recovered(), cold(live)[0]):
        assert state.usage == live.state.usage
        assert [state.table.at(frame.id) for frame in frames] == frames


@given(usages, usages, usages)
def test_a_sum_does_not_depend_on_the_order(first, second, third):
    assert plus(plus(first, second), third) == plus(plus(third, first), second)
    assert plus(first, NOTHING_SPENT) == first


def test_what_was_pruned_was_spent_all_the_same():
    live = Live()
    live.do(said(10))
    live.do(said(20))
    live.do(Pop())
    prune(live)

    assert live.state.table.get(2) is None
    assert live.state.usage == Usage(30, 2)
    assert live.replayed().usage == Usage(30, 2)


async def test_usage_of_branch_and_session_is_told(session):
    assert await session.usage() == UsageTotals(NOTHING_SPENT, NOTHING_SPENT)
    base = await session.add_assistant("a", usage=Usage(10, 1))
    idea = await session.branch_off("idea", base.id)
    await idea.add_assistant("b", usage=Usage(20, 2, 5))

    assert await session.usage() == UsageTotals(Usage(30, 3, 5), Usage(10, 1))
    assert await idea.usage() == UsageTotals(Usage(30, 3, 5), Usage(30, 3, 5))


async def test_a_copied_session_has_what_its_frames_cost(service, session):
    await session.add_assistant("a", usage=Usage(10, 1))
    await session.add_assistant("b", usage=Usage(20, 2))
    await session.pop()
    copied = await service.fork(session.id, "copy")
    await copied.add_assistant("c", usage=Usage(5, 1))

    assert await copied.usage() == UsageTotals(Usage(15, 2), Usage(15, 2))
    assert (await session.usage()).session == Usage(30, 3)


async def test_usage_is_the_same_after_recovery_from_a_snapshot(folder):
    async with SessionService.open(folder) as service:
        session = await service.session("user-42", create=True)
        for number in range(1_200):
            await session.add_assistant("a", usage=Usage(number, 1, raw={"n": number}))
        total = await session.usage()
    async with reopened(folder) as session:
        assert await session.usage() == total
        assert session.recovery.snapshot_seq
        assert total.branch == Usage(sum(range(1_200)), 1_200)
        await session.add_assistant("b", usage=Usage(1, 1))
        assert (await session.usage()).branch == Usage(sum(range(1_200)) + 1, 1_201)


# --- records and snapshots of a version that did not add up ---


def without_sums(kind: str, data: bytes) -> bytes:
    """A record as that version wrote it."""
    record = json.loads(data)
    if record.get("place"):
        del record["place"][6:]
    return json.dumps(record, separators=(",", ":")).encode()


def old(live: Live) -> Live:
    """The session with records and a snapshot of that version."""
    live.records = [(kind, without_sums(kind, data), seq, at_us) for kind, data, seq, at_us in live.records]
    for place, (seq, data) in enumerate(live.saved):
        saved = json.loads(data)
        del saved["usage"]
        live.saved[place] = seq, json.dumps(saved, separators=(",", ":")).encode()
    return live


def talked() -> Live:
    live = Live()
    for number in range(100):
        live.do(said(number))
        live.do(AddUser("u"))
    return live


def test_old_records_are_replayed_to_the_same_sums():
    live = talked()
    state = old(live).replayed()

    assert state.usage == live.state.usage
    assert state.stack().top.spent == live.state.stack().top.spent


def test_behind_an_old_snapshot_sums_are_not_known_and_not_guessed():
    live = talked()
    live.save()
    live.do(said(7))
    state = old(live).recovered()

    assert state.usage is None
    assert state.stack().top.spent is None
    assert [msgspec.structs.replace(frame, spent=None) for frame in live.state.table.path(live.state.head)] == [
        msgspec.structs.replace(frame, spent=None) for frame in state.table.path(state.head)
    ]
    live.state = state
    live.do(said(8))
    live.save()
    assert live.recovered().usage is None


async def test_sums_that_are_not_known_are_counted_when_they_are_asked_for(session):
    await session.add_assistant("a", usage=Usage(10, 1))
    await session.add_assistant("b", usage=Usage(20, 2))
    await session.pop()
    await session.add_user("c")
    total = await session.usage()
    state: State = session._cell.state
    state.usage = None
    table = state.table
    table.keep(msgspec.structs.replace(table.at(3), spent=None))

    assert await session.usage() == total
    assert total == UsageTotals(Usage(30, 3), Usage(10, 1))


def test_a_session_without_usage_has_none_of_it_in_its_records():
    live = Live()
    for _ in range(31):
        live.do(Push("a", "b"))

    assert not [data for _, data, _, _ in live.records if b"token" in data]


@pytest.mark.parametrize("usage", [NOTHING_SPENT, Usage(5, 3)])
def test_a_place_says_whether_nothing_was_spent_or_nothing_is_known(usage):
    live = Live()
    live.do(AddAssistant("a", usage=usage))
    for _ in range(31):
        live.do(Push("a"))
    kind, data, _, _ = live.records[-1]
    event = decode_event(kind, data)

    assert event.place.spent == usage
    assert encode_record_data(event) == data
