"""The frame table: where frames stand after a recovery, and that no id is taken for another."""

from __future__ import annotations

import random

import pytest

from session_actor.commands import AddUser, Checkpoint, Fork, Goto, Pop, Push
from session_actor.errors import FrameUnknown, Refused
from session_actor.events import Moved
from session_actor.service.service import SessionService
from session_actor.state.apply import apply
from session_actor.state.decide import decide
from session_actor.state.state import State
from session_actor.state.table import Table

from .live import Live, cold, in_memory, picture


def long(n: int) -> Live:
    """A session with `n` pushed frames."""
    live = Live()
    for number in range(1, n + 1):
        live.do(Push(f"q{number}", f"a{number}"))
    return live


def test_a_recovered_table_takes_no_room_for_its_history():
    state, _ = cold(long(1))
    table = Table.cold(10**15, [(7, 10**15 - 40)], state.table.shelf)

    assert len(table.frames) <= 32
    assert len(table) == 6 + 39
    assert (table.next_id, table.is_cold(6), table.is_cold(7), table.is_cold(10**15 - 1)) == (10**15, True, False, True)
    assert "no frame" not in [table.slot(number) for number in (-(10**15), -1, 0, 1, 10**15)]


@pytest.mark.parametrize("count", [0, 1, 31, 32, 33, 63, 64, 65, 100])
def test_the_newest_frame_has_its_place_in_the_list(count):
    live = long(count)
    state, _ = cold(live)

    assert len(state.stack()) == count
    assert all(frame is None or frame.id == state.table.first + at for at, frame in enumerate(state.table.frames))
    assert in_memory(state.table) == list(range(max(count & ~31, 1), count + 1))
    assert len(state.table) == count


@pytest.mark.parametrize("frame_id", [0, -1, -4, -37, -96, -97, -(10**9), 101, 10**9])
def test_an_id_of_no_frame_finds_none_in_a_recovered_table(frame_id):
    state, _ = cold(long(100))
    state.table.path(100)

    assert state.table.get(frame_id) is None
    assert state.table.slot(frame_id) is None
    assert not state.table.has(frame_id)
    if frame_id:
        with pytest.raises(FrameUnknown):
            decide(state, Goto(frame_id))
    else:
        assert decide(state, Goto(frame_id))[0] == Moved(None)


async def test_an_id_of_no_frame_finds_none_in_a_recovered_session(tmp_path):
    async with SessionService.open(tmp_path) as service:
        session = await service.session("s", create=True)
        for number in range(200):
            await session.push(f"{number}")
    async with SessionService.open(tmp_path) as service:
        session = await service.session("s")
        await session.push("on")
        assert [(await session.get(number)).user_input for number in (1, 150, 200, 201)] == ["0", "149", "199", "on"]
        for frame_id in (0, -1, -5, -9, -10, -190, 202):
            with pytest.raises(FrameUnknown):
                await session.get(frame_id)


def test_cold_frames_that_were_read_stay_when_others_are_dropped():
    live = long(2_000)
    live.do(Goto(700))
    live.do(Fork(700, branch="kept"))
    state, archive = cold(live)
    before = state.table
    assert len(state.stack("main").frames()) == 2_000
    reads = len(archive.reads)

    after = before.without([(701, 1_999)])
    assert [after.get(number) for number in (1, 511, 512, 700)] == [before.get(number) for number in (1, 511, 512, 700)]
    assert [after.get(number) for number in (701, 1_024, 1_999)] == [None] * 3
    assert in_memory(after) == [*range(1, 701), 2_000]
    assert in_memory(before) == list(range(1, 2_001))
    assert len(after) == 701
    assert len(archive.reads) == reads


def random_command(dice: random.Random, live: Live) -> object:
    """A command that may well be refused."""
    tree = live.state
    somewhere = dice.randrange(tree.next_id + 1)
    branch = dice.choice([None, *tree.branches])
    return dice.choice(
        [
            Push(f"q{tree.next_id}", "a" * dice.randrange(2)),
            Push("on a branch", on=branch),
            AddUser("hello"),
            Pop(dice.randrange(1, 40)),
            Pop(dice.randrange(1, 4), unit=dice.choice(["step", "exchange"]), on=branch),
            Goto(somewhere),
            Goto(branch or "main"),
            Fork(somewhere, user_input="x" * dice.randrange(2), attach=dice.random() < 0.5),
            Checkpoint(f"c{tree.next_id}-{tree.seq}", somewhere),
        ]
    )


@pytest.mark.parametrize("seed", range(12))
def test_a_recovered_state_decides_and_answers_as_one_that_never_went(seed):
    dice = random.Random(seed)
    live = long(dice.choice([5, 40, 200, 1_100]))
    for _ in range(60):
        record(live, outcome(live.state, random_command(dice, live)))
    state, _ = cold(live)
    assert state.stack().top == live.state.stack().top  # loading a session reads its head
    for _ in range(100):
        command = random_command(dice, live)
        ours, theirs = outcome(state, command), outcome(live.state, command)
        assert ours == theirs
        reply = record(live, theirs)
        if isinstance(ours, tuple):
            assert apply(state, ours[0], live.state.seq, live.at_us, ours[2]) == reply
    assert picture(state) == picture(live.state)


def outcome(state: State, command: object) -> object:
    """What `decide` says, or what it refuses with."""
    try:
        return decide(state, command)
    except Refused as error:
        return str(error)


def record(live: Live, outcome: object) -> object:
    """Let what was decided happen, unless it was refused."""
    return live.record(outcome[0], outcome[2]) if isinstance(outcome, tuple) else None
